//! Errors of XDP programs and sockets, with advice.

use super::bpf::LoadError;
use crate::port::InterfaceError;
use std::io;

/// Number of lines of the verifier's log that are shown; the last lines contain the error.
const LOG_LINES: usize = 6;

/// The reason why XDP cannot be used on an interface.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The interface cannot be used at all.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The process lacks the permission.
    #[error(
        "no permission to {0}; run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW of the system, not of a user namespace"
    )]
    Permission(&'static str),
    /// The kernel was built without the feature, or is too old.
    #[error(
        "this kernel cannot {what} ({error}); expected Linux 5.9 or later with CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS"
    )]
    Kernel {
        /// The operation.
        what: &'static str,
        /// The error that the kernel reported.
        error: io::Error,
    },
    /// Another XDP program is attached, in this mode or in the other.
    #[error(
        "{0} already has an XDP program, which `ip -d link show {0}` names; end the process that attached it, or run `ip link set dev {0} xdp off`"
    )]
    Occupied(String),
    /// The driver refuses the program.
    #[error(
        "{name} accepts no XDP program in {mode} mode: {error}; an MTU of 1500, and fewer offloads and queues (ethtool -K, -L), may help"
    )]
    Refused {
        /// Name of the interface.
        name: String,
        /// The mode; if both were tried, the last.
        mode: super::Mode,
        /// The error that the driver reported.
        error: io::Error,
    },
    /// Another program has a socket on a queue of the interface.
    #[error(
        "queue {queue} of {name} is used by another AF_XDP socket; end the process that owns it"
    )]
    QueueTaken {
        /// Name of the interface.
        name: String,
        /// Number of the queue.
        queue: u32,
    },
    /// The interface has fewer queues than there are engines.
    #[error(
        "{name} has {queues} receive queues, and {wanted} engines need one each; expected fewer --engines, or more queues (ethtool -L {name} combined {wanted})"
    )]
    FewQueues {
        /// Name of the interface.
        name: String,
        /// Number of its queues.
        queues: usize,
        /// Number of engines.
        wanted: usize,
    },
    /// Frames of the interface do not fit into the sockets' memory.
    #[error(
        "frames of {name} are too long for AF_XDP: its MTU is {mtu}, expected at most {most}; run `ip link set dev {name} mtu {most}`"
    )]
    Mtu {
        /// Name of the interface.
        name: String,
        /// MTU of the interface, bytes.
        mtu: u16,
        /// Maximum MTU, bytes.
        most: u16,
    },
    /// Frames that were joined, or that are not cut yet, are too long for the sockets' memory.
    #[error(
        "in generic mode, {0} may receive merged or not yet segmented frames, which AF_XDP accepts only from Linux 6.6 on; use native mode \
         (`--xdp-mode native`), or a device that is not virtual, with `ethtool -K {0} gro off`"
    )]
    Joined(String),
    /// The kernel refused the program.
    #[error("the kernel refuses the program {program}: {error}{}", last_lines(.log))]
    Verifier {
        /// Name of the program.
        program: &'static str,
        /// The error that the kernel reported.
        error: io::Error,
        /// The verifier's log.
        log: String,
    },
    /// The map has no space for another flow.
    #[error("the map of flows is full: it holds at most {capacity} flows")]
    MapFull {
        /// Size of the map.
        capacity: u32,
    },
    /// Memory to be shared with the kernel could not be allocated.
    #[error("cannot lock memory to {what} ({error}); raise `ulimit -l`, or grant CAP_IPC_LOCK")]
    Memory {
        /// The operation.
        what: &'static str,
        /// The error that the system reported.
        error: io::Error,
    },
    /// Any other error.
    #[error("cannot {what}: {error}")]
    Other {
        /// The operation.
        what: &'static str,
        /// The error that the system reported.
        error: io::Error,
    },
}

impl XdpError {
    /// Returns a function that makes the error of the operation `what`.
    pub(crate) fn of(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission(what),
            Some(libc::ENOSYS | libc::EAFNOSUPPORT) => Self::Kernel { what, error },
            Some(libc::ENOBUFS | libc::ENOMEM) => Self::Memory { what, error },
            _ => Self::Other { what, error },
        }
    }

    /// Returns a function that makes the error of loading `program`.
    pub(super) fn of_load(program: &'static str) -> impl Fn(LoadError) -> Self {
        move |LoadError { error, log }| match log.is_empty() {
            true => Self::of("load an XDP program")(error),
            false => Self::Verifier {
                program,
                error,
                log,
            },
        }
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}
