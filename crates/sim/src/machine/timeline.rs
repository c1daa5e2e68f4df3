//! Writes a timeline of a run: the activity of processors, bus and chosen connections, and the lengths of queues.

mod recorder;

use baton_timeline::Sampling;
pub(super) use recorder::{Gauge, Recorder};
use std::path::PathBuf;

/// A timeline to write during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Selects the content of the timeline.
    pub sampling: Sampling,
    /// The file to write, in Perfetto's format.
    pub path: PathBuf,
}
