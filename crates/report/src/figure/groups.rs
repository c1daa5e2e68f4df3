//! Groups of bars side by side, in panels stacked vertically.

/// Several measures of the same items, each for several series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// Title above the figure.
    pub title: String,
    /// Label of the horizontal axis; empty if the names of the groups say enough.
    pub x: String,
    /// Label of all vertical axes, which then have the same scale; empty if each panel has its own.
    pub y: String,
    /// A height that all bars are compared with, and its name in the legend.
    pub level: Option<(f64, String)>,
    /// Labels of the groups, below the last panel.
    pub names: Vec<String>,
    /// The panels, from top to bottom.
    pub panels: Vec<GroupPanel>,
}

/// One measure, with a vertical axis that begins at 0. Its legend is beside it, unless all panels have the same one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupPanel {
    /// Label of the vertical axis or, if all panels have the same, name of the panel.
    pub y: String,
    /// The series, each with one bar in each group.
    pub series: Vec<GroupSeries>,
}

/// One bar in each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupSeries {
    /// Name in the legend.
    pub name: String,
    /// Heights by group; `None` where there is no bar.
    pub values: Vec<Option<f64>>,
    /// Half of the 95 % interval of each height, by group; empty if none is known.
    pub half_widths: Vec<Option<f64>>,
}
