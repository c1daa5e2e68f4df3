//! Curves over sizes that grow by powers of two.

/// Percentages over sizes in bytes, with a logarithmic axis of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Above the figure.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical axis.
    pub y: String,
    /// What is drawn.
    pub curves: Vec<Curve>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend. Curves of the same name have the same colour and one entry there.
    pub name: String,
    /// Drawn with gaps.
    pub dashed: bool,
    /// Size in bytes and percentage, in order of size.
    pub points: Vec<(u64, f64)>,
}
