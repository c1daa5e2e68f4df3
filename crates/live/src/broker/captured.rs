//! The flows whose packets come to the adapter, and what happens to them when the adapter disappears.

mod adapters;
mod entry;
mod gone;
mod returning;
mod stats;

pub(super) use entry::{Port, Taker};
pub(super) use gone::NotRecovered;
pub(super) use returning::Returning;
pub use stats::CapturedStats;

use super::history::History;
use super::memory::{CLOSED_BY_ADAPTER, Owner};
use super::namespace::own_namespace;
use super::notice::{BrokerNotice, Loss};
use super::probe::Prober;
use super::record::WORDS;
use super::seal::Ticket;
use super::session::Session;
use crate::port::link_info_or_loopback;
use crate::xdp::{Injector, Lookup, LookupConfig, SequenceReader, XdpError};
use baton_host::MoveReason;
use baton_sockets::broker::Destination;
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

/// Time after an application's exit in which a connection that it handed over may still reach the adapter or the broker.
const LONGEST_MOVE: Duration = Duration::from_millis(1500);
/// Maximum time for which an application keeps a connection's state before it hands it over. On a busy machine moves wait for one another.
const LONGEST_HOLD_MS: u32 = 60_000;
/// Time after the death of an adapter in which applications can take back the connections that can continue.
const LONGEST_RECOVERY: Duration = Duration::from_millis(1500);

/// Maximum number of peers that may have to be asked again.
const MOST_QUESTIONS: usize = 4096;
/// Maximum number of times that a peer is asked.
const MOST_REPEATS: u32 = 5;
/// The kernel's number of a listener's state.
const LISTEN: u32 = 10;

/// A peer that was asked for its sequence numbers.
#[derive(Debug)]
struct Question {
    state: Essentials<Bytes>,
    /// Whether the connection has no owner any more, so that the kernel resets it when the peer answers. Otherwise the kernel has the
    /// connection, and measures the path by the answer.
    is_lost: bool,
    /// Number of times that the peer was asked.
    asked: u32,
    since: Instant,
}

/// Reason why packets of a flow cannot be redirected to the adapter.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The connection has been handed over already.
    #[error("the connection is already on the adapter or moving there")]
    Captured,
    /// The connection's packets do not arrive at this interface.
    #[error("{0} is not an address of the adapter's interface")]
    Address(IpAddr),
    /// The kernel sends the connection's packets through another interface or keeps them in the machine.
    #[error("the route to {0} does not go through the adapter's interface")]
    Route(IpAddr),
    /// All connections are going back to the kernel.
    #[error("the adapter accepts no more connections")]
    Closed,
    /// There is no adapter.
    #[error("there is no adapter")]
    NoAdapter,
    /// This user has the maximum number of connections per user.
    #[error("the user already has the maximum number of connections on the adapter")]
    Share,
    /// The kernel needs the other ports for new connections.
    #[error("the maximum number of ports is already kept for connections out of the kernel")]
    Ports,
    /// The adapter has the maximum number of connections.
    #[error("the adapter already has its maximum number of connections")]
    Full,
    /// The map is full, or the kernel has no memory.
    #[error(transparent)]
    Lookup(#[from] XdpError),
}

/// The flows whose packets come to an adapter of one interface, shared by all threads that work with them.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) interface: String,
    lookup: Lookup,
    injector: Injector,
    reader: SequenceReader,
    prober: Prober,
    questions: Mutex<VecDeque<Question>>,
    addresses: Vec<IpAddr>,
    /// If true, all of 127.0.0.0/8 and ::1 belong to the interface.
    is_loopback: bool,
    namespace: u64,
    flows: Mutex<Flows>,
    /// Locked only briefly, possibly while the flows are locked.
    history: Mutex<History>,
    /// Signalled when an adapter was killed or adopted.
    changed: Condvar,
    /// When this broker started.
    began: Instant,
}

/// Returns both ends of the connection that a received IP packet belongs to.
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
    /// Creates an empty set for an interface in this thread's network namespace that has these addresses.
    pub(super) fn new(
        name: &str,
        addresses: Vec<IpAddr>,
        config: LookupConfig,
    ) -> Result<Self, XdpError> {
        let namespace = own_namespace().map_err(XdpError::of("identify the network namespace"))?;
        Ok(Self {
            interface: name.to_owned(),
            lookup: Lookup::detached(name, config)?,
            injector: Injector::new(name)?,
            reader: SequenceReader::new()?,
            questions: Mutex::default(),
            prober: Prober::new().map_err(XdpError::of("send packets"))?,
            addresses,
            is_loopback: link_info_or_loopback(name)?.1,
            namespace,
            flows: Mutex::default(),
            history: Mutex::default(),
            changed: Condvar::new(),
            began: Instant::now(),
        })
    }

    /// Attaches the broker's programs to the interface, if none are attached. Returns false if an adapter of a previous broker has attached
    /// and is about to hand over that broker's programs.
    ///
    /// # Errors
    /// Other programs are attached, or the interface does not support them.
    pub(super) fn attach_here(&self) -> Result<bool, XdpError> {
        let flows = self.lock();
        if !self.lookup.is_attached() && flows.adapter.is_none() {
            self.lookup.attach_here()?;
        }
        Ok(self.lookup.is_attached())
    }

    /// Returns the reader of the kernel's sequence numbers.
    pub(super) fn reader(&self) -> &SequenceReader {
        &self.reader
    }

    /// Returns the lookup, which finds the packets of the flows.
    pub(super) fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// Returns the kernel's number of the network namespace of the connections.
    pub(super) fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Returns whether the interface is the loopback interface.
    pub(super) fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Returns the next notice for the operator.
    pub(super) fn poll_notice(&self) -> Option<BrokerNotice> {
        let notice = self.lock().notices.pop_front();
        notice.or_else(|| self.history().poll_notice())
    }

    /// Returns the history of moves.
    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a connection that is about to go back to the kernel. Returns the time since which the adapter has not had the connection and,
    /// if the adapter is giving back all connections, the reason.
    pub(super) fn returning(&self, flow: &Flow) -> Option<(u32, Option<MoveReason>)> {
        let flows = self.lock();
        let entry = flows.entries.get(flow)?;
        let of_all = match entry.session.memory.closed.load(Ordering::Relaxed) {
            0 => None,
            CLOSED_BY_ADAPTER => Some(MoveReason::AdapterEnds),
            _ => Some(MoveReason::Command),
        };
        Some((self.history().returning(flow, entry.place()), of_all))
    }

    /// Returns whether there is neither an adapter nor a connection of a former one.
    pub(super) fn is_unused(&self) -> bool {
        let flows = self.lock();
        flows.adapter.is_none() && flows.entries.is_empty()
    }

    // --- connections ---

    /// Redirects packets of `flow` to the adapter and keeps the kernel from sending any, because `taker` has asked for it. `is_wide` says
    /// whether the connection's socket is an IPv6 socket. Returns the adapter's session, and the connection's place in the session's memory.
    pub(super) fn capture(
        &self,
        flow: &Flow,
        taker: Taker,
        is_wide: bool,
    ) -> Result<(Arc<Session>, Ticket), CaptureError> {
        let addr = &flow.local.addr;
        let is_looped = self.is_loopback && addr.is_loopback();
        if !is_looped && !self.addresses.contains(addr) {
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
            _port: None,
        };
        let ticket = entry.ticket();
        flows.insert(*flow, entry);
        flows.stats.captured += 1;
        Ok((session, ticket))
    }

    /// Keeps the port of a connection until the connection is over, even if its application closes its socket. The kernel would give the
    /// port to a new connection, whose SYN is dropped as long as the adapter has the old one in TIME-WAIT.
    pub(super) fn keep_port(&self, flow: &Flow, port: Port) {
        if let Some(entry) = self.lock().entries.get_mut(flow) {
            entry._port = Some(Arc::new(port));
        }
    }

    /// Records the state in which a connection has left the kernel.
    pub(super) fn note(&self, flow: &Flow, state: &[u32; WORDS]) {
        if let Some(entry) = self.lock().entries.get(flow) {
            entry.place().record.reset(Some(state));
        }
    }

    /// Returns the packets of `flow` to the kernel.
    pub(super) fn let_go(&self, flow: &Flow) {
        let mut flows = self.lock();
        if self.forget(&mut flows, flow) {
            flows.stats.let_go += 1;
            flows.note_returned(flow);
        }
    }

    /// Returns whether packets of `flow` come to the adapter because `taker` has asked for it.
    pub(super) fn is_of(&self, flow: &Flow, taker: Taker) -> bool {
        let mut flows = self.lock();
        let entry = flows.entries.get_mut(flow);
        entry.is_some_and(|entry| entry.belongs_to(taker))
    }

    /// Handles the disconnect of `taker`: its connections become orphans, which are given up if they do not reach the adapter soon. Those
    /// whose adapter has disappeared are given up now, because nobody will ask for them.
    pub(super) fn abandon(&self, taker: Taker) {
        let mut flows = self.lock();
        self.history().forget_program(taker);
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

    /// Called periodically. Removes ended connections, gives up those that nobody asks for, and publishes the counters to the adapter.
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
            if entry.is_over() {
                over.push(*flow);
            } else if place.owner().1 == Owner::Application && (is_late() || is_orphan()) {
                lost.push((*flow, Loss::Abandoned));
            }
        }
        for flow in over {
            self.end(&mut flows, &flow);
        }
        self.give_up(&mut flows, lost);
        self.history()
            .look(|flow| flows.entries.get(flow).map(Entry::place));
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

    /// Passes an IP packet that the adapter has received to the kernel, but only if its flow is captured or was until recently. If the
    /// connection has ended, its flow is first released: a SYN may open another connection, whose packets must pass.
    ///
    /// # Errors
    /// The packet belongs to no such flow, or the kernel does not accept it.
    pub(super) fn inject_stray(&self, packet: &[u8]) -> io::Result<()> {
        let flow = flow_of_received(packet).ok_or(io::ErrorKind::InvalidData)?;
        let mut flows = self.lock();
        if flows.entries.get(&flow).is_some_and(Entry::is_over) {
            self.end(&mut flows, &flow);
        }
        let is_known = flows.knows(&flow);
        drop(flows);
        match is_known {
            true => self.inject(packet),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Passes an IP packet to the kernel as if it had been received here.
    ///
    /// # Errors
    /// The kernel does not accept the packet.
    pub(super) fn inject(&self, packet: &[u8]) -> io::Result<()> {
        self.injector.inject(packet)?;
        self.lock().stats.injected += 1;
        Ok(())
    }

    /// Makes the peer of a connection that returns to the kernel acknowledge what it has received, by which the kernel measures the path.
    /// Repeats this a few times if packets are lost. The kernel asks, too, but peers answer segments without data at most twice a second.
    pub(super) fn ask_to_acknowledge(&self, state: &Essentials<Bytes>) {
        self.question(state, false);
    }

    /// Asks the peer of a connection now, and a few more times if necessary. Unless it `is_lost`, the kernel has the connection.
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

    /// Asks peers again that may not have received the question.
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
                // The connection's clock has kept running, at a tick per millisecond.
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
            flows.note_returned(flow);
            let why = "closed".to_owned();
            self.history().ended(flow, Destination::Ended, why);
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
        // Nothing can be done about a kernel without memory.
        let _ = self.lookup.remove(flow);
        entry.place().vacate(entry.number);
    }

    fn lock(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
