//! Panels of lines, stacked vertically, that share a horizontal axis.

/// Several measures of the same items.
#[derive(Clone, Debug, PartialEq)]
pub struct Panels {
    /// Title above the figure.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// The panels, from top to bottom.
    pub panels: Vec<Panel>,
}

/// One measure. Its vertical axis begins at 0, or is logarithmic.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Label of the vertical axis.
    pub y: String,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend. Lines with the same name share a colour and a legend entry.
    pub name: String,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// The points in order. Points at or below 0 are left out on a logarithmic axis.
    pub points: Vec<(f64, f64)>,
    /// Error bars: position on the horizontal axis, lower end and upper end on the vertical axis.
    pub intervals: Vec<(f64, f64, f64)>,
    /// Positions on the horizontal axis of runs that were not steady. Points there are marked as uncertain.
    pub doubtful: Vec<f64>,
}
