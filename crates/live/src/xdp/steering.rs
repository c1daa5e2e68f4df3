//! A program on an interface that redirects frames to sockets.

use super::bpf::{AttachPoint, Instruction, Link, LoadError, Map, MapKind, Program};
use super::error::XdpError;
use super::programs::{self, Counter, Maps};
use crate::port::{interface_index, receive_queues};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

/// The point on a frame's way to the kernel at which the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel has spent any work on the frame.
    Native,
    /// In the kernel's receive path; works with every driver.
    Generic,
}

impl Mode {
    /// Returns the flag that selects this mode (XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE).
    const fn flag(self) -> u32 {
        match self {
            Self::Native => 1 << 2,
            Self::Generic => 1 << 1,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

/// Redirects the frames that an interface receives to sockets, by queue. Dropping this detaches the program, and so does any end of the
/// process.
#[derive(Debug)]
pub struct Steering {
    sockets: Map,
    counters: Map,
    pub(super) program: Program,
    queues: u32,
    /// The link that attaches the program to the interface, and its mode; empty until the program is attached.
    attached: OnceLock<(Link, Mode)>,
}

impl Steering {
    /// Steers all frames of the interface `name` in this thread's network namespace. If `mode` is `None`, native mode is tried first.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn of_everything(name: &str, mode: Option<Mode>) -> Result<Self, XdpError> {
        let load = Program::load_for_parts;
        let steering = Self::detached(name, "baton_all", load, programs::everything)?;
        steering.attach_to(name, mode)?;
        Ok(steering)
    }

    /// Steers by a program that `write` creates and `load` loads, without attaching it to the interface.
    pub(super) fn detached(
        name: &str,
        program_name: &'static str,
        load: impl FnOnce(&str, &[Instruction]) -> Result<Program, LoadError>,
        write: impl FnOnce(&Maps<'_>) -> Vec<Instruction>,
    ) -> Result<Self, XdpError> {
        let queues = receive_queues(name)?;
        let map = |name, kind, value, entries| {
            Map::new(name, kind, size_of::<u32>(), value, entries)
                .map_err(XdpError::of("create the maps of the XDP programs"))
        };
        let sockets = map("baton_sockets", MapKind::Sockets, size_of::<u32>(), queues)?;
        let counters = map(
            "baton_counters",
            MapKind::PerCpuArray,
            size_of::<u64>(),
            Counter::COUNT,
        )?;
        let instructions = write(&Maps {
            sockets: &sockets,
            counters: &counters,
        });
        let program = load(program_name, &instructions).map_err(XdpError::of_load(program_name))?;
        Ok(Self {
            sockets,
            counters,
            program,
            queues,
            attached: OnceLock::new(),
        })
    }

    /// Attaches the program, unless it is attached.
    pub(super) fn attach_to(&self, name: &str, mode: Option<Mode>) -> Result<(), XdpError> {
        if self.attached.get().is_none() {
            let attached = attach_in(mode, &self.program, name, interface_index(name)?)?;
            let _ = self.attached.set(attached);
        }
        Ok(())
    }

    /// Replaces another program; this one then runs in the same mode.
    pub(super) fn take_over(
        &self,
        link: OwnedFd,
        interface: u32,
        mode: Mode,
    ) -> Result<(), XdpError> {
        let link = self.program.replace(link, interface);
        let link = link.map_err(XdpError::of("replace an XDP program"))?;
        let _ = self.attached.set((link, mode));
        Ok(())
    }

    /// Returns the mode in which the program runs; [`Mode::Native`] if it is not attached.
    pub fn mode(&self) -> Mode {
        self.attached.get().map_or(Mode::Native, |(_, mode)| *mode)
    }

    /// Returns the number of receive queues of the interface, each of which can have a socket.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Redirects frames of `queue` to this AF_XDP socket from now on, until it is closed.
    ///
    /// # Errors
    /// The queue does not exist, or the socket is not set up.
    pub(crate) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let descriptor = socket.as_raw_fd();
        self.sockets
            .update(&queue.to_ne_bytes(), &descriptor.to_ne_bytes())
    }

    /// Returns the number of frames that were redirected to a socket.
    pub fn redirected(&self) -> u64 {
        self.count(Counter::Redirected)
    }

    /// Returns the number of frames that were passed to the kernel.
    pub fn passed(&self) -> u64 {
        self.count(Counter::Passed)
    }

    /// Returns the link that attaches the program to the interface, or `None` if the program is not attached.
    pub(super) fn link(&self) -> Option<BorrowedFd<'_>> {
        self.attached.get().map(|(link, _)| link.as_fd())
    }

    /// Returns the maps that the program shares with others.
    pub(super) fn maps(&self) -> Maps<'_> {
        Maps {
            sockets: &self.sockets,
            counters: &self.counters,
        }
    }

    pub(super) fn count(&self, counter: Counter) -> u64 {
        // An entry of this map always exists.
        let sums = self.counters.sums::<1>(counter as u32);
        sums.map_or(0, |[sum]| sum)
    }
}

/// Attaches the program in this mode, or if `mode` is `None`, in the best mode that works.
fn attach_in(
    mode: Option<Mode>,
    program: &Program,
    name: &str,
    index: u32,
) -> Result<(Link, Mode), XdpError> {
    let attach = |mode: Mode| {
        let link = program.attach(AttachPoint::Xdp, index, mode.flag());
        link.map(|link| (link, mode))
            .map_err(|error| match error.raw_os_error() {
                // The other program may run in this mode or in the other.
                Some(libc::EBUSY | libc::EEXIST) => XdpError::Occupied(name.to_owned()),
                Some(libc::EPERM) => XdpError::Permission("attach an XDP program"),
                _ => XdpError::Refused {
                    name: name.to_owned(),
                    mode,
                    error,
                },
            })
    };
    match mode {
        Some(mode) => attach(mode),
        None => attach(Mode::Native).or_else(|error| match error {
            XdpError::Refused { .. } => attach(Mode::Generic),
            error => Err(error),
        }),
    }
}
