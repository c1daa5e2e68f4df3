//! A self-contained HTML page about runs: it needs no network and no other file.
//!
//! The contents are data ([`Page`], [`Runs`]). Verdict, provenance and the first rows of the table are visible without scripts. Scripts
//! sort and filter tables and draw figures. uPlot, which is part of the page, draws figures over time and over keys.

pub mod explorer;
mod html;
mod runs;

pub use runs::{Measure, Run, Runs, Samples};

/// Contents of a page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title of the page.
    pub title: String,
    /// Main result, in a sentence.
    pub headline: String,
    /// Further results, one paragraph each.
    pub findings: Vec<String>,
    /// The configurations.
    pub comparison: Comparison,
    /// Origin of the runs: names and values.
    pub provenance: Vec<(String, String)>,
    /// The runs.
    pub runs: Runs,
}

/// A table with a row for each configuration.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Titles of the columns, the first of which names the configuration.
    pub head: Vec<String>,
    /// The configurations.
    pub rows: Vec<Compared>,
    /// Explanation below the table.
    pub note: String,
}

/// A configuration in the table.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Texts of the columns.
    pub cells: Vec<String>,
    /// Length of its bar and half of its interval, as shares of the longest bar; `None` for no bar.
    pub bar: Option<(f64, f64)>,
    /// Why its numbers may not hold; empty if they do.
    pub doubt: String,
}

#[cfg(test)]
mod tests;
