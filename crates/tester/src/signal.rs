//! What those who work on a trial tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A stream whose sender is not done.
const NOT_DONE: u64 = u64::MAX;

/// News of a trial.
#[derive(Debug)]
pub struct Signal {
    aborted: AtomicBool,
    /// Frames that the driver took of each stream, when its sender is done.
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
    /// Everybody is to end at once.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    /// Whether everybody is to end at once.
    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// The sender of a stream is done, and the driver took so many frames; with TCP, its reader is done.
    pub fn done(&self, stream: u8, handed: u64) {
        self.handed[usize::from(stream)].store(handed, Ordering::Release);
    }

    /// Frames of a stream whose sender is done.
    pub fn handed(&self, stream: u8) -> Option<u64> {
        let handed = self.handed[usize::from(stream)].load(Ordering::Acquire);
        (handed != NOT_DONE).then_some(handed)
    }
}
