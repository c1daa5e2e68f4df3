//! Groups of bars side by side, in panels one above the other.

/// Several measures, each of the same things by several series.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Above the figure.
    pub title: String,
    /// What each group is of, below the last panel.
    pub names: Vec<String>,
    /// From above.
    pub panels: Vec<GroupPanel>,
}

/// One measure: a vertical axis that begins at 0, and a legend of its own beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPanel {
    /// Beside the vertical axis.
    pub y: String,
    /// What is drawn: in each group a bar for each.
    pub series: Vec<GroupSeries>,
}

/// One bar in each group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSeries {
    /// Its name in the legend.
    pub name: String,
    /// Heights by group; none where there is nothing to draw.
    pub values: Vec<Option<f64>>,
}
