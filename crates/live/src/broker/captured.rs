//! The flows whose packets come to the adapter, and what becomes of them when that is gone.

mod adapters;
mod entry;
mod gone;
mod returning;
mod stats;

pub(super) use entry::Taker;
pub(super) use gone::NotRecovered;
pub(super) use returning::Returning;
pub use stats::CapturedStats;

use super::memory::Owner;
use super::namespace::own_namespace;
use super::notice::{BrokerNotice, Loss};
use super::probe::Prober;
use super::record::WORDS;
use super::seal::Ticket;
use super::session::Session;
use crate::xdp::{Injector, Lookup, LookupConfig, SequenceReader, XdpError};
use baton_tcp::Essentials;
use baton_wire::{Endpoint, Flow};
use bytes::Bytes;
use entry::{Entry, Flows};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What an application that is gone had handed over arrives within this time, or not at all.
const LONGEST_MOVE: Duration = Duration::from_millis(1500);
/// An application that lives has handed over what it has by then, or ended it at once. On a busy machine moves wait for one another.
const LONGEST_HOLD_MS: u32 = 60_000;
/// Applications have so long to take back what can go on.
const LONGEST_RECOVERY: Duration = Duration::from_millis(1500);

/// Peers that may have to be asked again.
const MOST_QUESTIONS: usize = 4096;
/// Times that a peer is asked.
const MOST_REPEATS: u32 = 5;
/// The kernel's number of a listener's state.
const LISTEN: u32 = 10;

/// A peer that was asked where it is.
#[derive(Debug)]
struct Question {
    state: Essentials<Bytes>,
    /// Nobody has the connection, and the kernel answers the peer by a reset. Otherwise the kernel has it back, and measures the path.
    is_lost: bool,
    /// Times that the peer was asked.
    asked: u32,
    since: Instant,
}

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
    /// The last one has ended.
    #[error("there is no adapter")]
    NoAdapter,
    /// This user has as many as one may have.
    #[error("the user has as many connections on the adapter as one may have")]
    Share,
    /// There are as many as there may be.
    #[error("the adapter has as many connections as it may have")]
    Full,
    /// The map is full, or the kernel has no memory.
    #[error(transparent)]
    Lookup(#[from] XdpError),
}

/// The flows whose packets come to an adapter of one interface, by all threads that have to do with them.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) interface: String,
    lookup: Lookup,
    injector: Injector,
    reader: SequenceReader,
    prober: Prober,
    questions: Mutex<VecDeque<Question>>,
    addresses: Vec<IpAddr>,
    namespace: u64,
    flows: Mutex<Flows>,
    /// An adapter was killed, or has come.
    changed: Condvar,
    /// When this broker began.
    began: Instant,
}

/// Both ends of the connection that a received IP packet is of.
fn flow_of_received(packet: &[u8]) -> Option<Flow> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (from, to): (IpAddr, IpAddr) = match sliced.net? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        NetSlice::Arp(_) => return None,
    };
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        return None;
    };
    Some(Flow {
        local: Endpoint::new(to, tcp.destination_port()),
        remote: Endpoint::new(from, tcp.source_port()),
    })
}

impl Captured {
    /// None yet, of an interface in this thread's network namespace, which has these addresses.
    pub(super) fn new(
        name: &str,
        addresses: Vec<IpAddr>,
        config: LookupConfig,
    ) -> Result<Self, XdpError> {
        let namespace = own_namespace().map_err(XdpError::of("tell the network namespace"))?;
        Ok(Self {
            interface: name.to_owned(),
            lookup: Lookup::detached(name, config)?,
            injector: Injector::new(name)?,
            reader: SequenceReader::new()?,
            questions: Mutex::default(),
            prober: Prober::new().map_err(XdpError::of("send packets"))?,
            addresses,
            namespace,
            flows: Mutex::default(),
            changed: Condvar::new(),
            began: Instant::now(),
        })
    }

    /// Puts the programs that find packets at the interface, if none are there. False if an adapter that was another broker's brings them in a
    /// moment.
    ///
    /// # Errors
    /// Others are there, or the interface cannot have them.
    pub(super) fn attach_here(&self) -> Result<bool, XdpError> {
        let flows = self.lock();
        if !self.lookup.is_attached() && flows.adapter.is_none() {
            self.lookup.attach_here()?;
        }
        Ok(self.lookup.is_attached())
    }

    /// Tells where the kernel's connections are.
    pub(super) fn reader(&self) -> &SequenceReader {
        &self.reader
    }

    /// What finds them.
    pub(super) fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// The kernel's number of the network namespace that they are in.
    pub(super) fn namespace(&self) -> u64 {
        self.namespace
    }

    /// The next thing to tell the operator.
    pub(super) fn poll_notice(&self) -> Option<BrokerNotice> {
        self.lock().notices.pop_front()
    }

    /// Whether there is neither an adapter nor anything left of one.
    pub(super) fn is_unused(&self) -> bool {
        let flows = self.lock();
        flows.adapter.is_none() && flows.entries.is_empty()
    }

    // --- connections ---

    /// From here on packets of `flow` come to the adapter, and the kernel sends none, because `taker` has asked for it; its socket is one of
    /// IPv6 if it `is_wide`. Gives the adapter, and where the connection stands in its memory.
    pub(super) fn capture(
        &self,
        flow: &Flow,
        taker: Taker,
        is_wide: bool,
    ) -> Result<(Arc<Session>, Ticket), CaptureError> {
        if !self.addresses.contains(&flow.local.addr) {
            return Err(CaptureError::Address(flow.local.addr));
        }
        let mut flows = self.lock();
        let session = flows.adapter.clone().ok_or(CaptureError::NoAdapter)?;
        if !self.lookup.is_attached() {
            return Err(CaptureError::NoAdapter);
        }
        if session.memory.closed.load(Ordering::Relaxed) != 0 {
            return Err(CaptureError::Closed);
        }
        if flows.entries.contains_key(flow) {
            return Err(CaptureError::Captured);
        }
        if flows.has_its_share(taker.user) {
            flows.stats.over_share += 1;
            return Err(CaptureError::Share);
        }
        let place = flows.free.take().ok_or(CaptureError::Full)?;
        if let Err(error) = self.lookup.insert(flow) {
            flows.free.give(place);
            return Err(error.into());
        }
        let number = session.memory.places[place as usize].occupy(flow, taker.user, is_wide);
        session.memory.announce(place);
        let entry = Entry {
            session: Arc::clone(&session),
            place,
            number,
            taker,
            orphan: None,
        };
        let ticket = entry.ticket();
        flows.insert(*flow, entry);
        flows.stats.captured += 1;
        Ok((session, ticket))
    }

    /// A connection has left the kernel with this state.
    pub(super) fn note(&self, flow: &Flow, state: &[u32; WORDS]) {
        if let Some(entry) = self.lock().entries.get(flow) {
            entry.place().record.reset(Some(state));
        }
    }

    /// From here on packets of `flow` are the kernel's.
    pub(super) fn let_go(&self, flow: &Flow) {
        let mut flows = self.lock();
        if self.forget(&mut flows, flow) {
            flows.stats.let_go += 1;
            flows.note_returned(flow);
        }
    }

    /// Whether packets of `flow` come to the adapter because `taker` has asked for it.
    pub(super) fn is_of(&self, flow: &Flow, taker: Taker) -> bool {
        let mut flows = self.lock();
        let entry = flows.entries.get_mut(flow);
        entry.is_some_and(|entry| entry.belongs_to(taker))
    }

    /// `taker` is gone: what it had on its way does not arrive, and what it had on an adapter that is gone nobody asks for.
    pub(super) fn abandon(&self, taker: Taker) {
        let mut flows = self.lock();
        let mut lost = Vec::new();
        for (flow, entry) in &mut flows.entries {
            if entry.taker.number == taker.number {
                entry.orphan = Some(Instant::now());
                if entry.session.is_gone() {
                    lost.push((*flow, Loss::Abandoned));
                }
            }
        }
        self.give_up(&mut flows, lost);
    }

    /// Lets go of connections that are over, gives up those that nobody asks for, and tells the adapter what was counted. Now and then.
    pub(super) fn sweep(&self) {
        self.ask_again();
        let mut flows = self.lock();
        let (mut over, mut lost) = (Vec::new(), Vec::new());
        for (flow, entry) in &flows.entries {
            if let Some(gone) = entry.session.gone.get() {
                if gone.elapsed() > LONGEST_RECOVERY {
                    lost.push((*flow, Loss::Abandoned));
                }
                continue;
            }
            let place = entry.place();
            let is_late = || place.age_ms() > LONGEST_HOLD_MS;
            let is_orphan = || {
                entry
                    .orphan
                    .is_some_and(|since| since.elapsed() > LONGEST_MOVE)
            };
            match place.owner() {
                (number, _) if number != entry.number => over.push(*flow),
                (_, Owner::Adapter | Owner::Broker) => {}
                (_, Owner::Application) if is_late() || is_orphan() => {
                    lost.push((*flow, Loss::Abandoned));
                }
                (_, Owner::Application) => {}
                (_, Owner::Over | Owner::Nobody) => over.push(*flow),
            }
        }
        for flow in over {
            self.end(&mut flows, &flow);
        }
        self.give_up(&mut flows, lost);
        let stats = CapturedStats {
            flows: flows.entries.len() as u64,
            ..flows.stats
        };
        if let Some(adapter) = &flows.adapter {
            for (place, value) in adapter.memory.counters.iter().zip(stats.to_words()) {
                place.store(value, Ordering::Relaxed);
            }
        }
    }

    /// Gives the kernel an IP packet of a connection that it has back, which the adapter has received. Others are none of the adapter's business.
    ///
    /// # Errors
    /// It is no such packet, or the kernel takes none.
    pub(super) fn inject_stray(&self, packet: &[u8]) -> io::Result<()> {
        let flow = flow_of_received(packet).ok_or(io::ErrorKind::InvalidData)?;
        let is_known = self.lock().knows(&flow);
        match is_known {
            true => self.inject(packet),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Gives the kernel an IP packet as if it had been received here.
    ///
    /// # Errors
    /// The kernel takes none.
    pub(super) fn inject(&self, packet: &[u8]) -> io::Result<()> {
        self.injector.inject(packet)?;
        self.lock().stats.injected += 1;
        Ok(())
    }

    /// The kernel is about to go on with a connection. Its peer is asked to acknowledge what it has, by which the kernel measures the path; again a
    /// few times if that is lost. The kernel asks, too, but peers answer what carries no data twice a second at most.
    pub(super) fn ask_to_acknowledge(&self, state: &Essentials<Bytes>) {
        self.question(state, false);
    }

    /// Asks the peer of a connection, which is lost or the kernel's, now and a few times again if need be.
    fn question(&self, state: &Essentials<Bytes>, is_lost: bool) {
        let _ = self.prober.ask(state);
        let mut questions = self.questions();
        if questions.len() < MOST_QUESTIONS {
            let (send_buffer, receive_buffer) = (Vec::new(), Vec::new());
            questions.push_back(Question {
                is_lost,
                state: Essentials {
                    send_buffer,
                    receive_buffer,
                    ..state.clone()
                },
                asked: 1,
                since: Instant::now(),
            });
        }
    }

    fn questions(&self) -> MutexGuard<'_, VecDeque<Question>> {
        let questions = self.questions.lock();
        questions.unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks peers again that may not have heard.
    fn ask_again(&self) {
        let waiting = std::mem::take(&mut *self.questions());
        for mut one in waiting {
            let Question {
                state,
                is_lost,
                asked,
                since,
            } = &mut one;
            let found = self.reader.read(&state.flow).ok().flatten();
            let is_waiting = match found.filter(|found| found.state != LISTEN) {
                Some(found) => !*is_lost && found.send_una == state.send_una - 1,
                None => *is_lost && !self.lock().entries.contains_key(&state.flow),
            };
            if is_waiting && *asked < MOST_REPEATS {
                *asked += 1;
                // The connection's clock has gone on, by a tick a millisecond.
                let elapsed_ms = since.elapsed().as_millis() as u32;
                let _ = self.prober.ask(&Essentials {
                    timestamp: state.timestamp.map(|time| time.wrapping_add(elapsed_ms)),
                    ..state.clone()
                });
                self.questions().push_back(one);
            }
        }
    }

    // --- inside ---

    fn end(&self, flows: &mut Flows, flow: &Flow) {
        if self.forget(flows, flow) {
            flows.stats.ended += 1;
        }
    }

    fn forget(&self, flows: &mut Flows, flow: &Flow) -> bool {
        let Some(entry) = flows.remove(flow) else {
            return false;
        };
        self.remove(flow, &entry);
        if flows.is_current(&entry.session) {
            flows.free.give(entry.place);
        }
        true
    }

    fn remove(&self, flow: &Flow, entry: &Entry) {
        // There is nothing to be done about a kernel without memory.
        let _ = self.lookup.remove(flow);
        entry.place().vacate(entry.number);
    }

    fn lock(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
