//! Curves over sizes that grow by powers of two.

/// Percentages over sizes in bytes, with a logarithmic size axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Title above the figure.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name in the legend. Curves with the same name share a colour and a legend entry.
    pub name: String,
    /// Whether the curve is dashed.
    pub dashed: bool,
    /// Size in bytes and percentage, in order of size.
    pub points: Vec<(u64, f64)>,
}
