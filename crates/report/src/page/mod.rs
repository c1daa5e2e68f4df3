//! A page of HTML about runs, which needs nothing but itself: no network, no other file.
//!
//! What is in it is data ([`Page`], [`Runs`]). Verdict, provenance and the first rows of the table are there without scripts; with them
//! tables are sorted and filtered, and figures drawn. Figures over time and keys are drawn by uPlot, which is part of the page.

pub mod explorer;
mod html;
mod runs;

pub use runs::{Measure, Run, Runs, Samples};

/// Everything that is on a page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// What was found, in a sentence.
    pub headline: String,
    /// What is to be said beside that, a paragraph each.
    pub findings: Vec<String>,
    /// Where the runs come from: what it is, and what it says.
    pub provenance: Vec<(String, String)>,
    /// The runs.
    pub runs: Runs,
}

#[cfg(test)]
mod tests;
