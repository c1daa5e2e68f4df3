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
    /// Origin of the runs: names and values.
    pub provenance: Vec<(String, String)>,
    /// The runs.
    pub runs: Runs,
}

#[cfg(test)]
mod tests;
