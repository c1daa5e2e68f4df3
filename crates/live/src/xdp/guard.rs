//! The program that drops packets of the adapter's flows that the kernel sends.

use super::bpf::{AttachPoint, Link, Map, Program, ProgramKind};
use super::clsact::Filter;
use super::error::XdpError;
use super::programs::{self, Maps};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How the guard is attached to the packets that the kernel sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// By a link, which ends with the process (Linux 6.6 and later).
    Tcx,
    /// By a filter of the qdisc `clsact`. If the process is killed, the filter stays, passes all packets, and is replaced by the next
    /// process.
    Clsact,
}

/// The guard of an interface; dropping it detaches the program.
#[derive(Debug)]
pub(super) struct Guard {
    // Dropped before the program.
    attached: Attached,
    pub(super) program: Program,
}

/// The attachment of the guard.
#[derive(Debug)]
enum Attached {
    Link(Link),
    Filter(#[expect(dead_code, reason = "it is kept to be dropped")] Filter),
}

impl Guard {
    /// Attaches the guard: as `kind` says, or by default by a link if the kernel supports this.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub(super) fn attach(
        interface: u32,
        kind: Option<GuardKind>,
        flows: &Map,
        maps: &Maps<'_>,
    ) -> Result<Self, XdpError> {
        let program = load(flows, maps)?;
        let attach = |kind| match kind {
            GuardKind::Tcx => program
                .attach(AttachPoint::TcxEgress, interface, 0)
                .map(Attached::Link),
            GuardKind::Clsact => Filter::new(interface, &program).map(Attached::Filter),
        };
        let attached = match kind {
            Some(kind) => attach(kind),
            None => attach(GuardKind::Tcx).or_else(|error| match is_unknown(&error) {
                true => attach(GuardKind::Clsact),
                false => Err(error),
            }),
        };
        let attached =
            attached.map_err(XdpError::of("filter the packets that the kernel sends"))?;
        Ok(Self { attached, program })
    }

    /// Replaces a guard that another process has attached by a link.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub(super) fn take_over(
        link: OwnedFd,
        interface: u32,
        flows: &Map,
        maps: &Maps<'_>,
    ) -> Result<Self, XdpError> {
        let program = load(flows, maps)?;
        let link = program.replace(link, interface);
        let link = link.map_err(XdpError::of("filter the packets that the kernel sends"))?;
        Ok(Self {
            attached: Attached::Link(link),
            program,
        })
    }

    /// Returns the link, which ends with the process that owns it, or `None` for a filter.
    pub(super) fn link(&self) -> Option<BorrowedFd<'_>> {
        match &self.attached {
            Attached::Link(link) => Some(link.as_fd()),
            Attached::Filter(_) => None,
        }
    }

    pub(super) fn kind(&self) -> GuardKind {
        match self.attached {
            Attached::Link(_) => GuardKind::Tcx,
            Attached::Filter(_) => GuardKind::Clsact,
        }
    }
}

fn load(flows: &Map, maps: &Maps<'_>) -> Result<Program, XdpError> {
    let instructions = programs::guard(flows, maps);
    Program::load("baton_guard", ProgramKind::TrafficControl, &instructions)
        .map_err(XdpError::of_load("baton_guard"))
}

/// Returns whether the kernel does not support links for traffic control.
fn is_unknown(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS)
    )
}
