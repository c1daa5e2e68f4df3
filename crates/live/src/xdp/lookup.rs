//! Looks up the adapter's flows in the kernel, before the kernel's stack sees a packet.

use super::bpf::{Map, MapKind, Program};
use super::error::XdpError;
use super::guard::{Guard, GuardKind};
use super::key::Key;
use super::programs::{self, Counter, Maps};
use super::steering::{Mode, Steering};
use crate::port::interface_index;
use baton_wire::Flow;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::OnceLock;

/// Configuration of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupConfig {
    /// Maximum number of flows; the kernel allocates 100 bytes for each when the lookup is created.
    pub capacity: u32,
    /// Mode of the program; `None` selects native mode where the driver supports it.
    pub mode: Option<Mode>,
    /// How the kernel is kept from sending; `None` selects a link where the kernel supports it.
    pub guard: Option<GuardKind>,
}

impl Default for LookupConfig {
    fn default() -> Self {
        Self {
            capacity: 65_536,
            mode: None,
            guard: None,
        }
    }
}

/// Counters of the programs of a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCounters {
    /// Received frames that were redirected to a socket of the adapter.
    pub redirected: u64,
    /// Received frames that were passed to the kernel.
    pub passed: u64,
    /// Packets of the adapter's flows that the kernel tried to send and that were dropped.
    pub guarded: u64,
    /// Received frames of the adapter's flows that were dropped because the flow is on hold, or there is no socket.
    pub discarded: u64,
}

/// The fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The adapter receives the frame.
    Redirected,
    /// The kernel processes the frame.
    Passed,
    /// The frame is dropped.
    Dropped,
}

/// Finds the flows of an adapter among the packets that an interface receives, and redirects them to the adapter's sockets. Packets of
/// these flows that the kernel sends are dropped: its sockets may still exist while a connection is handed off or restored. Everything else
/// is unaffected, including frames that the programs do not understand: fragments, VLANs, IPv6 extension headers, truncated frames. A
/// received frame is dropped if its flow is on [hold](Lookup::hold), or if there is no socket for the flow.
///
/// Dropping this detaches the programs, and so does any end of the process: then the kernel receives the flows again.
#[derive(Debug)]
pub struct Lookup {
    steering: Steering,
    flows: Map,
    /// `None` until the programs are attached to the interface.
    guard: OnceLock<Guard>,
    name: String,
    config: LookupConfig,
}

impl Lookup {
    /// Attaches the programs to the interface `name` in this thread's network namespace.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn attach(name: &str, config: LookupConfig) -> Result<Self, XdpError> {
        let lookup = Self::detached(name, config)?;
        lookup.attach_here()?;
        Ok(lookup)
    }

    /// Loads the programs without attaching them. They are [attached](Lookup::attach_here) later, or [replace](Lookup::take_over) the
    /// programs of another lookup.
    pub(crate) fn detached(name: &str, config: LookupConfig) -> Result<Self, XdpError> {
        let flows = Map::new(
            "baton_flows",
            MapKind::Hash,
            Key::BYTES,
            REDIRECTED.len(),
            config.capacity,
        )
        .map_err(XdpError::of("create the maps of the XDP programs"))?;
        let write = |maps: &Maps<'_>| programs::lookup(&flows, maps);
        let load = Program::load_for_parts;
        let steering = Steering::detached(name, "baton_lookup", load, write)?;
        Ok(Self {
            steering,
            flows,
            guard: OnceLock::new(),
            name: name.to_owned(),
            config,
        })
    }

    /// Attaches the programs to the interface. This must happen only once.
    pub(crate) fn attach_here(&self) -> Result<(), XdpError> {
        self.steering.attach_to(&self.name, self.config.mode)?;
        self.set_guard(|interface, maps| {
            Guard::attach(interface, self.config.guard, &self.flows, maps)
        })
    }

    /// Replaces the programs of another lookup, given its [links](Lookup::links) and the mode in which it ran. No packet is missed: each
    /// meets either the old or the new program.
    pub(crate) fn take_over(
        &self,
        links: impl IntoIterator<Item = OwnedFd>,
        mode: Mode,
    ) -> Result<(), XdpError> {
        let mut links = links.into_iter();
        let missing = || XdpError::of("replace an XDP program")(io::ErrorKind::NotFound.into());
        let steers = links.next().ok_or_else(missing)?;
        self.steering
            .take_over(steers, interface_index(&self.name)?, mode)?;
        self.set_guard(|interface, maps| match links.next() {
            Some(link) => Guard::take_over(link, interface, &self.flows, maps),
            None => Guard::attach(interface, self.config.guard, &self.flows, maps),
        })
    }

    fn set_guard(
        &self,
        make: impl FnOnce(u32, &Maps<'_>) -> Result<Guard, XdpError>,
    ) -> Result<(), XdpError> {
        let guard = make(interface_index(&self.name)?, &self.steering.maps())?;
        let _ = self.guard.set(guard);
        Ok(())
    }

    /// Returns whether the programs are attached to the interface.
    pub(crate) fn is_attached(&self) -> bool {
        self.guard.get().is_some()
    }

    /// Assigns `flow` to the adapter from now on.
    ///
    /// # Errors
    /// [`XdpError::MapFull`].
    pub fn insert(&self, flow: &Flow) -> Result<(), XdpError> {
        self.set(flow, &REDIRECTED)
    }

    /// Drops received frames of `flow` from now on: the flow is the adapter's, but no adapter can receive them.
    ///
    /// # Errors
    /// [`XdpError::MapFull`].
    pub fn hold(&self, flow: &Flow) -> Result<(), XdpError> {
        self.set(flow, &ON_HOLD)
    }

    fn set(&self, flow: &Flow, value: &[u8; 4]) -> Result<(), XdpError> {
        let inserted = self.flows.update(&Key::from(flow).to_bytes(), value);
        inserted.map_err(|error| match error.raw_os_error() {
            Some(libc::E2BIG) => XdpError::MapFull {
                capacity: self.config.capacity,
            },
            _ => XdpError::of("insert a flow")(error),
        })
    }

    /// Assigns `flow` to the kernel from now on. Returns whether the flow was in the map.
    ///
    /// # Errors
    /// The kernel does not have enough memory.
    pub fn remove(&self, flow: &Flow) -> Result<bool, XdpError> {
        match self.flows.delete(&Key::from(flow).to_bytes()) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(XdpError::of("remove a flow")(error)),
        }
    }

    /// Returns the maximum number of flows at a time.
    pub fn capacity(&self) -> u32 {
        self.config.capacity
    }

    /// Returns the links that attach the programs: a process with duplicates of these descriptors keeps the programs attached if this
    /// process is killed.
    pub fn links(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let guard = self.guard.get().and_then(Guard::link);
        [self.steering.link(), guard].into_iter().flatten()
    }

    /// Returns how the kernel is kept from sending, or `None` if the programs are not attached.
    pub fn guard(&self) -> Option<GuardKind> {
        self.guard.get().map(Guard::kind)
    }

    /// Returns the counters of the programs.
    pub fn counters(&self) -> LookupCounters {
        LookupCounters {
            redirected: self.steering.redirected(),
            passed: self.steering.passed(),
            guarded: self.steering.count(Counter::Guarded),
            discarded: self.steering.count(Counter::Discarded),
        }
    }

    /// Returns the steering, which redirects frames to sockets.
    pub fn steering(&self) -> &Steering {
        &self.steering
    }

    /// Returns the fate that a received frame on queue 0 would have. The frame is counted.
    ///
    /// # Errors
    /// The kernel does not run programs on such a frame: it is too short for an Ethernet header, or too long.
    pub fn verdict_on_received(&self, frame: &[u8]) -> io::Result<Verdict> {
        Ok(match self.steering.program.run(frame)?.cast_signed() {
            programs::REDIRECT => Verdict::Redirected,
            programs::PASS => Verdict::Passed,
            _ => Verdict::Dropped,
        })
    }

    /// Returns the fate that a frame sent by the kernel would have. The frame is counted if it is dropped.
    ///
    /// # Errors
    /// See [`Lookup::verdict_on_received`]; or the programs are not attached.
    pub fn verdict_on_sent(&self, frame: &[u8]) -> io::Result<Verdict> {
        let guard = self.guard.get().ok_or(io::ErrorKind::NotConnected)?;
        Ok(match guard.program.run(frame)?.cast_signed() {
            programs::DROP => Verdict::Dropped,
            _ => Verdict::Passed,
        })
    }
}

/// Value of a flow whose frames are redirected to a socket.
const REDIRECTED: [u8; 4] = [0; 4];
/// Value of a flow whose frames are dropped.
const ON_HOLD: [u8; 4] = [1; 4];
