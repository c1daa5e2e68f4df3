//! Reasons why something is not on the adapter or was refused, with names and counters. Each occurrence is logged as `BATON_LOG` says.

use crate::sys;
use baton_iolib::log::{self, Level, Log, Target};
use std::collections::BTreeMap;
use std::fmt::Display;
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
    /// Another process has the connection, too: a child, or a program that was started.
    Shared,
    /// A stream of the C library uses the connection.
    Stream,
    /// An option was set that only the kernel honours.
    Option,
    /// A connection was to be passed to another process.
    Passed,
    /// The program wanted to use io_uring.
    Rings,
    /// splice(2) from or to a connection.
    Spliced,
    /// Both directions were shut down, and the kernel answers arriving data with a reset.
    ShutDown,
    /// Urgent data was to be sent or read, which only the kernel supports.
    Urgent,
    /// The program asked for timestamps of a connection that begins in the kernel; only the kernel supports them there.
    Timestamping,
    /// The program asked for signals about a connection (F_SETOWN, O_ASYNC), which only the kernel sends.
    Signals,
    /// The process has started a program that runs without this library.
    Unfit,
}

impl Reason {
    const ALL: [Self; 18] = [
        Self::NoAdapter,
        Self::AddressInUse,
        Self::AddressNotAvailable,
        Self::NotListening,
        Self::TooManyDescriptors,
        Self::NotTakenIn,
        Self::LeftWithParent,
        Self::Shared,
        Self::Stream,
        Self::Option,
        Self::Passed,
        Self::Rings,
        Self::Spliced,
        Self::ShutDown,
        Self::Urgent,
        Self::Timestamping,
        Self::Signals,
        Self::Unfit,
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
            Self::Shared => "shared",
            Self::Stream => "stream",
            Self::Option => "option",
            Self::Passed => "passed",
            Self::Rings => "io_uring",
            Self::Spliced => "spliced",
            Self::ShutDown => "shut_down",
            Self::Urgent => "urgent",
            Self::Timestamping => "timestamping",
            Self::Signals => "signals",
            Self::Unfit => "without_library",
        }
    }

    /// Counts an occurrence of the reason, and logs it with its subject.
    pub fn count(self, about: impl Display) {
        COUNTS[self as usize].fetch_add(1, Ordering::Relaxed);
        let name = self.name();
        log::tell(
            Level::Warn,
            name,
            format_args!("{}: {name}: {about}", sys::process()),
        );
    }
}

static COUNTS: [AtomicU64; Reason::ALL.len()] = [const { AtomicU64::new(0) }; Reason::ALL.len()];

/// Reads the environment, and opens the log.
pub fn at_load() {
    let Ok(place) = std::env::var(LOG) else {
        return;
    };
    let target = match place.as_str() {
        "stderr" => Target::Stderr,
        _ => Target::File(place),
    };
    let level = std::env::var(log::LEVEL).ok();
    let level = level.and_then(|level| level.parse().ok());
    let level = level.unwrap_or_default();
    log::set_global(Log::new("baton-preload", level, target));
}

/// Logs a message, if the log's level includes it.
pub fn tell(message: impl Display) {
    let kind = "actions of the library";
    log::tell(
        Level::Info,
        kind,
        format_args!("{}: {message}", sys::process()),
    );
}

/// Returns the number of occurrences of each reason that occurred.
pub fn counts() -> BTreeMap<String, u64> {
    let counts = Reason::ALL.map(|reason| {
        let count = COUNTS[reason as usize].load(Ordering::Relaxed);
        (reason.name().to_owned(), count)
    });
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Logs how often each reason occurred.
pub fn tell_counts() {
    for (name, count) in counts() {
        tell(format_args!("{name} {count} times"));
    }
}
