//! Which flows are the adapter's: looked up in the kernel, before its stack sees a packet.

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

/// How a lookup is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupConfig {
    /// Flows at most; the kernel has 100 bytes of memory for each from the start on.
    pub capacity: u32,
    /// The mode of the program; without, the native one where the driver has it.
    pub mode: Option<Mode>,
    /// How the kernel is kept from sending; without, by a link where the kernel has them.
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

/// What the programs of a lookup have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCounters {
    /// Received frames that went to a socket of the adapter.
    pub redirected: u64,
    /// Received frames that were left to the kernel.
    pub passed: u64,
    /// Packets that the kernel wanted to send of the adapter's flows, and that were dropped.
    pub guarded: u64,
    /// Received frames of the adapter's flows that were dropped: the flow is on hold, or there is no socket.
    pub discarded: u64,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes to the adapter.
    Redirected,
    /// The kernel has it.
    Passed,
    /// It is dropped.
    Dropped,
}

/// Finds the flows of an adapter among what an interface receives, and gives them to its sockets. What the kernel sends of them is
/// dropped: its sockets may still be there while a connection changes hands. All else goes its usual way, also what is not
/// understood: fragments, VLANs, IPv6 extension headers, frames that are cut off. What comes for a flow where there is no socket, or that
/// is on [hold](Lookup::hold), is dropped.
///
/// It ends when it is dropped, and with the process, however that ends: then the kernel has the flows.
#[derive(Debug)]
pub struct Lookup {
    steering: Steering,
    flows: Map,
    /// None until the programs are at the interface.
    guard: OnceLock<Guard>,
    name: String,
    config: LookupConfig,
}

impl Lookup {
    /// Attaches its programs to the interface `name` in this thread's network namespace.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn attach(name: &str, config: LookupConfig) -> Result<Self, XdpError> {
        let lookup = Self::detached(name, config)?;
        lookup.attach_here()?;
        Ok(lookup)
    }

    /// The same without its programs at the interface. They are [put there](Lookup::attach_here) later, or [in the place](Lookup::take_over) of
    /// others.
    pub(crate) fn detached(name: &str, config: LookupConfig) -> Result<Self, XdpError> {
        let flows = Map::new(
            "baton_flows",
            MapKind::Hash,
            Key::BYTES,
            REDIRECTED.len(),
            config.capacity,
        )
        .map_err(XdpError::of("make maps of XDP programs"))?;
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

    /// Puts its programs at the interface, which must be done once.
    pub(crate) fn attach_here(&self) -> Result<(), XdpError> {
        self.steering.attach_to(&self.name, self.config.mode)?;
        self.set_guard(|interface, maps| {
            Guard::attach(interface, self.config.guard, &self.flows, maps)
        })
    }

    /// The same in the place of another lookup's, by the [links](Lookup::links) of that, which ran in this mode. From one packet to the next all
    /// go by the flows of this one.
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

    /// Whether its programs are at the interface.
    pub(crate) fn is_attached(&self) -> bool {
        self.guard.get().is_some()
    }

    /// From here on `flow` is the adapter's.
    ///
    /// # Errors
    /// [`XdpError::MapFull`].
    pub fn insert(&self, flow: &Flow) -> Result<(), XdpError> {
        self.set(flow, &REDIRECTED)
    }

    /// From here on frames of `flow` are dropped: it is the adapter's, and there is none that could have them.
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

    /// From here on `flow` is the kernel's. Says whether it was the adapter's.
    ///
    /// # Errors
    /// The kernel has no memory.
    pub fn remove(&self, flow: &Flow) -> Result<bool, XdpError> {
        match self.flows.delete(&Key::from(flow).to_bytes()) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(XdpError::of("remove a flow")(error)),
        }
    }

    /// Flows that there can be at a time.
    pub fn capacity(&self) -> u32 {
        self.config.capacity
    }

    /// What keeps its programs attached beside it: whoever has these descriptors, too, keeps them there when this process is killed.
    pub fn links(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let guard = self.guard.get().and_then(Guard::link);
        [self.steering.link(), guard].into_iter().flatten()
    }

    /// How the kernel is kept from sending, if it is.
    pub fn guard(&self) -> Option<GuardKind> {
        self.guard.get().map(Guard::kind)
    }

    /// What its programs have counted.
    pub fn counters(&self) -> LookupCounters {
        LookupCounters {
            redirected: self.steering.redirected(),
            passed: self.steering.passed(),
            guarded: self.steering.count(Counter::Guarded),
            discarded: self.steering.count(Counter::Discarded),
        }
    }

    /// What gives frames to sockets.
    pub fn steering(&self) -> &Steering {
        &self.steering
    }

    /// What would become of a received frame on queue 0. It is counted as one.
    ///
    /// # Errors
    /// The kernel runs programs on no such frame: it is too short for an Ethernet header, or too long.
    pub fn verdict_on_received(&self, frame: &[u8]) -> io::Result<Verdict> {
        Ok(match self.steering.program.run(frame)?.cast_signed() {
            programs::REDIRECT => Verdict::Redirected,
            programs::PASS => Verdict::Passed,
            _ => Verdict::Dropped,
        })
    }

    /// What would become of a frame that the kernel sends. It is counted as one if it is dropped.
    ///
    /// # Errors
    /// As [`Lookup::verdict_on_received`].
    pub fn verdict_on_sent(&self, frame: &[u8]) -> io::Result<Verdict> {
        let guard = self.guard.get().ok_or(io::ErrorKind::NotConnected)?;
        Ok(match guard.program.run(frame)?.cast_signed() {
            programs::DROP => Verdict::Dropped,
            _ => Verdict::Passed,
        })
    }
}

/// What an entry says: the frames of its flow go to a socket.
const REDIRECTED: [u8; 4] = [0; 4];
/// Or they are dropped.
const ON_HOLD: [u8; 4] = [1; 4];
