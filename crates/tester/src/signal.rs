//! Signals between the participants of a trial.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Value for a stream whose sender is not done.
const NOT_DONE: u64 = u64::MAX;

/// State of a trial that its participants share.
#[derive(Debug)]
pub struct Signal {
    aborted: AtomicBool,
    /// Number of frames of each stream that the driver accepted, once the sender is done.
    handed: [AtomicU64; 2],
}

impl Default for Signal {
    fn default() -> Self {
        Self {
            aborted: AtomicBool::new(false),
            handed: [AtomicU64::new(NOT_DONE), AtomicU64::new(NOT_DONE)],
        }
    }
}

impl Signal {
    /// Asks all participants to end immediately.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    /// Returns whether all participants have to end immediately.
    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Reports that the sender of a stream is done, and how many frames the driver accepted; with TCP, that the reader is done.
    pub fn done(&self, stream: u8, handed: u64) {
        self.handed[usize::from(stream)].store(handed, Ordering::Release);
    }

    /// Returns the number of frames of a stream, once its sender is done.
    pub fn handed(&self, stream: u8) -> Option<u64> {
        let handed = self.handed[usize::from(stream)].load(Ordering::Acquire);
        (handed != NOT_DONE).then_some(handed)
    }
}
