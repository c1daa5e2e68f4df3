//! Bars of several parts.

/// Bars side by side, each a stack of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Above the figure.
    pub title: String,
    /// Beside the vertical axis.
    pub y: String,
    /// The highest value of the vertical axis.
    pub most: f64,
    /// What the parts are, from below, with their colours told in the legend.
    pub parts: Vec<String>,
    /// What is drawn, from the left.
    pub bars: Vec<Bar>,
}

/// One stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Below it; may hold line breaks.
    pub name: String,
    /// Whether the run was not steady, and this may not be so: it is marked.
    pub is_doubtful: bool,
    /// The height of each part, from below.
    pub parts: Vec<f64>,
}
