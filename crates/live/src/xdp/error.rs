//! Why programs and sockets of XDP cannot be had, and what would help.

use super::bpf::LoadError;
use crate::port::InterfaceError;
use std::io;

/// Lines of the verifier that are shown; the last ones say what is wrong.
const LOG_LINES: usize = 6;

/// Why XDP cannot be had on an interface.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The interface cannot be used at all.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Not allowed.
    #[error(
        "no permission to {0}; run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW of the system, not of a user namespace"
    )]
    Permission(&'static str),
    /// The kernel was built without it, or is too old.
    #[error(
        "this kernel cannot {what} ({error}); expected Linux 5.9 or later with CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS"
    )]
    Kernel {
        /// What was to be done.
        what: &'static str,
        /// What it said.
        error: io::Error,
    },
    /// Another XDP program is attached, in this mode or in the other.
    #[error(
        "{0} has an XDP program already, which `ip -d link show {0}` names; end the process that attached it, or `ip link set dev {0} xdp off`"
    )]
    Occupied(String),
    /// The driver refuses a program.
    #[error(
        "{name} takes no XDP program in {mode} mode: {error}; an MTU of 1500, and fewer offloads and queues (ethtool -K, -L), may help"
    )]
    Refused {
        /// The interface.
        name: String,
        /// The mode, and the last one where both were tried.
        mode: super::Mode,
        /// What the driver said.
        error: io::Error,
    },
    /// A device sends no frames that programs in drivers redirect.
    #[error(
        "{0} sends no frames that an XDP program in native mode redirects to it; one of a veth pair does while gro is on at the other end \
         (`ethtool -K PEER gro on`), and the generic mode does without"
    )]
    NoRedirect(String),
    /// A queue of the interface has a socket of another program.
    #[error(
        "queue {queue} of {name} is taken by another AF_XDP socket; end the process that has it"
    )]
    QueueTaken {
        /// The interface.
        name: String,
        /// The queue.
        queue: u32,
    },
    /// Frames of the interface do not fit into the sockets' memory.
    #[error(
        "frames of {name} are too long for AF_XDP: its MTU is {mtu}, expected at most {most}; `ip link set dev {name} mtu {most}`"
    )]
    Mtu {
        /// The interface.
        name: String,
        /// Its MTU, bytes.
        mtu: u16,
        /// The largest that fits, bytes.
        most: u16,
    },
    /// Frames that were joined, or not cut yet, are too long for the sockets' memory.
    #[error(
        "in generic mode {0} may receive frames that were joined or not cut yet, which AF_XDP takes from Linux 6.6 on; expected native mode \
         (`--xdp-mode native`), or a device that is not virtual with `ethtool -K {0} gro off`"
    )]
    Joined(String),
    /// The kernel did not take a program.
    #[error("the kernel refuses the program {program}: {error}{}", last_lines(.log))]
    Verifier {
        /// The program.
        program: &'static str,
        /// What the kernel said.
        error: io::Error,
        /// What its verifier said.
        log: String,
    },
    /// The map has no room for another flow.
    #[error("the map of flows is full: it has room for {capacity}")]
    MapFull {
        /// Its size.
        capacity: u32,
    },
    /// Memory that is shared with the kernel cannot be had.
    #[error("no memory to {what} may be pinned ({error}); raise `ulimit -l`, or give CAP_IPC_LOCK")]
    Memory {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Anything else.
    #[error("cannot {what}: {error}")]
    Other {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl XdpError {
    /// The error of a call, or of what stood around it.
    pub(crate) fn of(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission(what),
            Some(libc::ENOSYS | libc::EAFNOSUPPORT) => Self::Kernel { what, error },
            Some(libc::ENOBUFS | libc::ENOMEM) => Self::Memory { what, error },
            _ => Self::Other { what, error },
        }
    }

    /// The error of loading a program.
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
