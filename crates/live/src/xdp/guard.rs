//! The program that drops what the kernel sends of the adapter's flows.

use super::bpf::{AttachPoint, Link, Map, Program, ProgramKind};
use super::clsact::Filter;
use super::error::XdpError;
use super::programs::{self, Maps};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How the guard sees what the kernel sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// By a link, which goes with the process (Linux 6.6 and later).
    Tcx,
    /// By a filter of the qdisc `clsact`. When the process is killed it stays, lets all pass, and is taken over by the next process.
    Clsact,
}

/// The guard of an interface; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    // Before the program.
    attached: Attached,
    pub(super) program: Program,
}

/// What holds it there.
#[derive(Debug)]
enum Attached {
    Link(Link),
    Filter(#[expect(dead_code, reason = "it is kept to be dropped")] Filter),
}

impl Guard {
    /// Attaches it, by a link if there are such links, unless a kind is given.
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
        let attached = attached.map_err(XdpError::of("guard what the kernel sends"))?;
        Ok(Self { attached, program })
    }

    /// Takes the place of the one that a link holds, which another process has made.
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
        let link = link.map_err(XdpError::of("guard what the kernel sends"))?;
        Ok(Self {
            attached: Attached::Link(link),
            program,
        })
    }

    /// What goes with the process that has it; a filter stays.
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

/// Whether the kernel knows no such links.
fn is_unknown(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS)
    )
}
