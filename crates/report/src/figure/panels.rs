//! Lines over any axis, in panels one above the other that share it.

/// Several measures of the same things.
#[derive(Clone, Debug, PartialEq)]
pub struct Panels {
    /// Above the figure.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Whether the horizontal axis is one of logarithms.
    pub log_x: bool,
    /// From above.
    pub panels: Vec<Panel>,
}

/// One measure. Its vertical axis begins at 0, or is one of logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Beside the vertical axis.
    pub y: String,
    /// Whether the vertical axis is one of logarithms.
    pub log_y: bool,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend. Lines of the same name have the same colour and one entry there.
    pub name: String,
    /// Drawn with gaps.
    pub dashed: bool,
    /// In order. On an axis of logarithms, points at or below 0 are left out.
    pub points: Vec<(f64, f64)>,
    /// How far off points may be: where on the horizontal axis, and from where to where on the vertical one.
    pub intervals: Vec<(f64, f64, f64)>,
    /// Where on the horizontal axis runs were not steady, and this may not be so: points there are marked.
    pub doubtful: Vec<f64>,
}
