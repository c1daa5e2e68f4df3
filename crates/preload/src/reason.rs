//! Reasons why something is not on the adapter or was refused, with names and counters. Each occurrence is logged as `BATON_LOG` says.

use crate::sys;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the variable for the log's destination: `stderr`, or a file to append to.
const LOG: &str = "BATON_LOG";

/// The reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no adapter to attach to, so only the kernel listens.
    NoAdapter,
    /// Another process listens at this address on the adapter; this process retries from time to time.
    AddressInUse,
    /// The address is not one of the adapter's.
    AddressNotAvailable,
    /// The adapter refuses to listen for another reason.
    NotListening,
    /// The descriptor does not fit into the table.
    TooManyDescriptors,
    /// A kernel connection cannot move.
    NotTakenIn,
    /// A connection stayed with the parent at fork(2).
    LeftWithParent,
    /// A connection was to be passed to another process.
    Passed,
    /// The program wanted to use io_uring.
    Rings,
    /// splice(2) from or to a connection.
    Spliced,
    /// Urgent data was to be sent or read: only the kernel has it.
    Urgent,
    /// The program asked for timestamps of a connection that begins in the kernel; only the kernel supports them there.
    Timestamping,
}

impl Reason {
    const ALL: [Self; 12] = [
        Self::NoAdapter,
        Self::AddressInUse,
        Self::AddressNotAvailable,
        Self::NotListening,
        Self::TooManyDescriptors,
        Self::NotTakenIn,
        Self::LeftWithParent,
        Self::Passed,
        Self::Rings,
        Self::Spliced,
        Self::Urgent,
        Self::Timestamping,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::NoAdapter => "no_adapter",
            Self::AddressInUse => "address_in_use",
            Self::AddressNotAvailable => "address_not_available",
            Self::NotListening => "not_listening",
            Self::TooManyDescriptors => "too_many_descriptors",
            Self::NotTakenIn => "not_taken_in",
            Self::LeftWithParent => "left_with_parent",
            Self::Passed => "passed",
            Self::Rings => "io_uring",
            Self::Spliced => "spliced",
            Self::Urgent => "urgent",
            Self::Timestamping => "timestamping",
        }
    }

    /// Counts an occurrence of the reason, and logs it with its subject.
    pub fn count(self, about: impl Display) {
        COUNTS[self as usize].fetch_add(1, Ordering::Relaxed);
        tell(format_args!("{}: {about}", self.name()));
    }
}

static COUNTS: [AtomicU64; Reason::ALL.len()] = [const { AtomicU64::new(0) }; Reason::ALL.len()];

static PLACE: OnceLock<Option<String>> = OnceLock::new();

/// Reads the environment.
pub fn at_load() {
    PLACE.get_or_init(|| std::env::var(LOG).ok());
}

/// Tells something, if it is wanted.
pub fn tell(message: impl Display) {
    let Some(Some(place)) = PLACE.get() else {
        return;
    };
    let line = format!("baton-preload: {}: {message}\n", sys::process());
    // Nobody can be told that it cannot be told.
    let _ = match place.as_str() {
        "stderr" => std::io::stderr().write_all(line.as_bytes()),
        path => OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes())),
    };
}

/// Tells how often each reason was counted.
pub fn tell_counts() {
    for reason in Reason::ALL {
        let count = COUNTS[reason as usize].load(Ordering::Relaxed);
        if count > 0 {
            tell(format_args!("{} {count} times", reason.name()));
        }
    }
}
