//! The flows whose packets come to the adapter.

use super::namespace::own_namespace;
use crate::xdp::{Injector, Lookup, LookupConfig, XdpError};
use baton_wire::Flow;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What an application that is gone had handed over arrives within this time, or not at all.
const LONGEST_MOVE: Duration = Duration::from_secs(3);
/// An application that lives has handed over what it has by then, or ended it at once. On a busy machine moves wait for one another.
const LONGEST_HOLD: Duration = Duration::from_secs(60);

/// Why packets of a flow cannot come to the adapter.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Somebody has handed it over already.
    #[error("the connection is on the adapter already, or on its way")]
    Captured,
    /// Its packets do not come by this interface.
    #[error("{0} is no address of the adapter's interface")]
    Address(IpAddr),
    /// All connections go back to the kernel.
    #[error("the adapter takes no more connections")]
    Closed,
    /// The map is full, or the kernel has no memory.
    #[error(transparent)]
    Lookup(#[from] XdpError),
}

/// Where a captured connection is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Its application has its state since then, and hands it to the adapter or to the kernel.
    Application(Instant),
    Adapter,
    /// The application that had it is gone since then.
    Orphan(Instant),
}

/// A flow whose packets come to the adapter.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    /// Who took it out of the kernel, and may put it back.
    taker: Taker,
}

/// An application's connection to the broker, by number.
pub(super) type Taker = u64;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CapturedStats {
    /// Flows now.
    pub flows: u64,
    /// Flows so far.
    pub captured: u64,
    /// Of these, flows that went back to the kernel.
    pub let_go: u64,
    /// And those whose connection came to its end on the adapter or on the way.
    pub ended: u64,
    /// Packets that came to the adapter and went on to the kernel, because the connection was there again.
    pub injected: u64,
}

/// The flows whose packets come to the adapter, by all threads that have to do with them.
#[derive(Debug)]
pub struct Captured {
    lookup: Lookup,
    injector: Injector,
    addresses: Vec<IpAddr>,
    namespace: u64,
    flows: Mutex<Flows>,
    /// How many of them are coming: to ask costs no lock.
    coming: AtomicUsize,
    /// No more are to come.
    closed: AtomicBool,
    /// Connections of applications on the adapter, after it was closed.
    on_adapter: AtomicU64,
}

#[derive(Debug, Default)]
struct Flows {
    entries: FxHashMap<Flow, Entry>,
    /// Those that are coming.
    coming: Vec<Flow>,
    stats: CapturedStats,
}

impl Captured {
    /// None yet, of the interface `name` in this thread's network namespace, which has these addresses.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn new(name: &str, addresses: Vec<IpAddr>, config: LookupConfig) -> Result<Self, XdpError> {
        let namespace = own_namespace().map_err(XdpError::of("tell the network namespace"))?;
        Ok(Self {
            lookup: Lookup::attach(name, config)?,
            injector: Injector::new(name)?,
            addresses,
            namespace,
            flows: Mutex::default(),
            coming: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            on_adapter: AtomicU64::new(u64::MAX),
        })
    }

    /// What finds them.
    pub fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// The kernel's number of the network namespace that they are in.
    pub fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Totals.
    pub fn stats(&self) -> CapturedStats {
        let flows = self.lock();
        CapturedStats {
            flows: flows.entries.len() as u64,
            ..flows.stats
        }
    }

    /// No more flows are to come, and the adapter is to give back those that are there.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether no more are to come.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Connections that are not the kernel's again after it was closed: on the adapter, or with an application that has still to bring them
    /// back. More than there can be as long as the adapter has not heard.
    pub fn left(&self) -> u64 {
        // In this order: what leaves the adapter in between is counted twice rather than not at all.
        let on_adapter = self.on_adapter.load(Ordering::Acquire);
        on_adapter.saturating_add(self.with_applications() as u64)
    }

    /// After it was closed: connections of applications that are on the adapter. Departures come before.
    pub(crate) fn set_on_adapter(&self, connections: u64) {
        self.on_adapter.store(connections, Ordering::Release);
    }

    /// From here on packets of `flow` come to the adapter, and the kernel sends none, because `taker` has asked for it.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub(super) fn capture(&self, flow: &Flow, taker: Taker) -> Result<(), CaptureError> {
        if self.is_closed() {
            return Err(CaptureError::Closed);
        }
        if !self.addresses.contains(&flow.local.addr) {
            return Err(CaptureError::Address(flow.local.addr));
        }
        let mut flows = self.lock();
        if flows.entries.contains_key(flow) {
            return Err(CaptureError::Captured);
        }
        self.lookup.insert(flow)?;
        let place = Place::Application(Instant::now());
        flows.entries.insert(*flow, Entry { place, taker });
        flows.coming.push(*flow);
        self.coming.store(flows.coming.len(), Ordering::Relaxed);
        flows.stats.captured += 1;
        Ok(())
    }

    /// From here on they are the kernel's.
    pub fn let_go(&self, flow: &Flow) {
        let mut flows = self.lock();
        if flows.entries.remove(flow).is_some() {
            self.remove(flow);
            flows.stats.let_go += 1;
        }
    }

    /// Whether packets of `flow` come to the adapter.
    pub fn has(&self, flow: &Flow) -> bool {
        self.lock().entries.contains_key(flow)
    }

    /// Whether they do because `taker` has asked for it.
    pub(super) fn is_of(&self, flow: &Flow, taker: Taker) -> bool {
        let flows = self.lock();
        let entry = flows.entries.get(flow);
        entry.is_some_and(|entry| entry.taker == taker)
    }

    /// `taker` is gone: what it had on its way does not arrive.
    pub(super) fn abandon(&self, taker: Taker) {
        let orphan = Place::Orphan(Instant::now());
        for entry in self.lock().entries.values_mut() {
            if entry.taker == taker && matches!(entry.place, Place::Application(_)) {
                entry.place = orphan;
            }
        }
    }

    /// A connection has left the adapter: its application has it, and brings it back to the kernel.
    pub(crate) fn depart(&self, flow: &Flow) {
        if let Some(entry) = self.lock().entries.get_mut(flow) {
            entry.place = Place::Application(Instant::now());
        }
    }

    /// Connections that an application has still to hand over.
    pub(crate) fn with_applications(&self) -> usize {
        let flows = self.lock();
        let entries = flows.entries.values();
        entries
            .filter(|entry| matches!(entry.place, Place::Application(_)))
            .count()
    }

    /// Takes note of connections that have come: `is_here` says which ones the adapter has. To be called before any of them can end.
    pub(crate) fn arrive(&self, is_here: impl Fn(&Flow) -> bool) {
        if self.coming.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Flows {
            entries, coming, ..
        } = &mut *self.lock();
        coming.retain(|flow| match entries.get_mut(flow) {
            Some(Entry { place, .. }) if matches!(place, Place::Application(_)) => {
                let is_here = is_here(flow);
                if is_here {
                    *place = Place::Adapter;
                }
                !is_here
            }
            _ => false,
        });
        self.coming.store(coming.len(), Ordering::Relaxed);
    }

    /// Lets go of connections that are over: `is_here` says which ones the adapter has, TIME-WAIT included. Departures come before.
    pub(crate) fn sweep(&self, now: Instant, is_here: impl Fn(&Flow) -> bool) {
        let Flows { entries, stats, .. } = &mut *self.lock();
        entries.retain(|flow, Entry { place, .. }| {
            let is_over = match *place {
                _ if is_here(flow) => {
                    *place = Place::Adapter;
                    false
                }
                Place::Adapter => true,
                Place::Orphan(since) => now.duration_since(since) > LONGEST_MOVE,
                Place::Application(since) => now.duration_since(since) > LONGEST_HOLD,
            };
            if is_over {
                self.remove(flow);
                stats.ended += 1;
            }
            !is_over
        });
    }

    /// Gives the kernel an IP packet that was received here.
    ///
    /// # Errors
    /// The kernel takes none.
    pub(crate) fn inject(&self, packet: &[u8]) -> io::Result<()> {
        self.injector.inject(packet)?;
        self.lock().stats.injected += 1;
        Ok(())
    }

    fn remove(&self, flow: &Flow) {
        // There is nothing to be done about a kernel without memory; the next sweep has forgotten it.
        let _ = self.lookup.remove(flow);
    }

    fn lock(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
