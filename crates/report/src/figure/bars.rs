//! Stacked bars.

/// Bars side by side, each a stack of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Title above the figure.
    pub title: String,
    /// Label of the vertical axis.
    pub y: String,
    /// The highest value of the vertical axis.
    pub most: f64,
    /// Names of the parts, from below, for the legend.
    pub parts: Vec<String>,
    /// The bars, from left to right.
    pub bars: Vec<Bar>,
}

/// One stacked bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Label below the bar; may contain line breaks.
    pub name: String,
    /// Whether the run was not steady, so that its values are uncertain. The bar is marked.
    pub is_doubtful: bool,
    /// The height of each part, from below.
    pub parts: Vec<f64>,
}
