//! A run as a timeline: what processors, bus and chosen connections do when, and what waits.

mod recorder;

use baton_timeline::Sampling;
pub(super) use recorder::{Gauge, Recorder};
use std::path::PathBuf;

/// A timeline to be written during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// What goes into it.
    pub sampling: Sampling,
    /// The file to write, in Perfetto's format.
    pub path: PathBuf,
}
