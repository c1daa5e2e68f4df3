//! Groups of bars side by side, in panels stacked vertically.

/// Several measures of the same items, each for several series.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Title above the figure.
    pub title: String,
    /// Labels of the groups, below the last panel.
    pub names: Vec<String>,
    /// The panels, from top to bottom.
    pub panels: Vec<GroupPanel>,
}

/// One measure, with a vertical axis that begins at 0 and a legend beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPanel {
    /// Label of the vertical axis.
    pub y: String,
    /// The series, each with one bar in each group.
    pub series: Vec<GroupSeries>,
}

/// One bar in each group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSeries {
    /// Name in the legend.
    pub name: String,
    /// Heights by group; `None` where there is no bar.
    pub values: Vec<Option<f64>>,
}
