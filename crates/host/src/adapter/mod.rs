//! OSLayer: the host's half of an adapter (batching 2.1). It provides sockets to applications, and maps them to the requests that the
//! adapter understands.
//!
//! Everything is asynchronous. The application's calls become requests in a queue; responses become [`Ready`](crate::Ready) events. The
//! application calls [`OsLayer::pump`] after each unit of work, which transfers the queued requests if the batching rule says so: the
//! requests of one unit of work leave together, even without batching.
//!
//! Resources are reserved before they are promised. The layer requests a connection only if there is a number and a receive buffer for it;
//! that buffer is *pledged* while it is not posted. If buffers are scarce and the adapter reports unread data, further connections are *on
//! demand*: a buffer is posted when the adapter has reported data, fills at once, and is free again. A share of the buffers is reserved for sends, so that neither direction can starve the
//! other. When buffers become scarce, a connection may have only as many sends in flight as there are buffers free, so that stuck
//! connections leave some for the others.
//!
//! Modules: `listening`, `opening`, `sending`, `receiving`, `closing` and `control` implement the application's calls and handle their
//! results; `files` sends what the adapter reads by itself; `lending` tracks data that is sent without a copy; `submission` has the requests that wait to be submitted, `times` the
//! timestamps; `completion` finds the request of a response, `readiness` notifies the application, `pump` transfers everything, `loss`
//! handles the end of a link.

mod caching;
mod calls;
mod check;
mod closing;
mod completion;
mod config;
mod control;
mod cork;
mod files;
mod lending;
mod listening;
mod loss;
mod moving;
mod numbers;
mod opening;
mod packets;
mod pump;
mod readiness;
mod receiving;
mod sending;
mod socket;
mod stats;
mod submission;
mod times;

pub use caching::FileChange;
pub use calls::Calls;
pub use config::{OsLayerConfig, OsLayerConfigError};
pub use control::{Completed, Completion, NotSubmitted};
pub use listening::ListenOptions;
pub use moving::{Exported, MoveNews};
pub use packets::PacketPart;
pub use stats::{NoRoom, NoRoomCounts, OsLayerStats};
pub use times::{SendTimes, TransmitTime};

use crate::SocketId;
use baton_bus::Chains;
use baton_bus::descriptor::Status;
use baton_bus::link::Inline;
use baton_bus::{BatchingRule, Descriptor, DescriptorQueue, HostLink};
use baton_wire::{Endpoint, Time};
use caching::Caching;
use cork::CorkTimers;
use listening::Listener;
use moving::Carried;
use numbers::Numbers;
use socket::{Operation, Phase, SetUp, Socket};
use std::collections::{BTreeMap, VecDeque};

/// Receives leave one in this many of a link's buffers to sends.
const SEND_SHARE: usize = 4;

/// One in this many of a link's buffers is reserved for the first buffers of connections.
const NEWCOMERS_SHARE: usize = 4;

/// If the adapter reports unread data, one in this many of a link's buffers is kept for connections without a pledged buffer.
const ON_DEMAND_SHARE: usize = 16;

/// All sockets of one application, and the queues between them and the adapter.
///
/// Call in this order: [`OsLayer::pump`] until it has nothing to do; then [`OsLayer::next_ready`] until it returns `None`, handling each
/// socket through [`OsLayer::calls`]; then start over. Once there is nothing to do, start over at [`OsLayer::poll_timeout`], or when the
/// link has something.
#[derive(Debug)]
pub struct OsLayer<P> {
    config: OsLayerConfig,
    /// Maximum number of a connection's sends that wait to be fetched: the lower of the configuration's and the adapter's limit.
    most_sends: u32,
    queue: DescriptorQueue,
    /// Sockets by number.
    sockets: Vec<Socket>,
    numbers: Numbers,
    listeners: Vec<Listener>,
    /// Unanswered requests; a node's number is the request's tag.
    requests: Chains<Request>,
    /// Data that was received and not read, or taken and not sent.
    pieces: Chains<P>,
    /// Sockets with requests to submit, or that wait for space in the ring.
    submitting: VecDeque<u32>,
    /// Number of free descriptors in the ring that did not suffice for the first socket in `submitting`.
    room_in_vain: usize,
    /// Connections to open for which there was no buffer to pledge.
    opening: VecDeque<u32>,
    /// Whether an ACCEPT is being cancelled to free a buffer for a connection in `opening`.
    reclaiming: bool,
    /// Sockets without sends in flight that wait for a buffer.
    waiting: VecDeque<u32>,
    /// On-demand connections with unread data that wait for a receive buffer.
    fetching: VecDeque<u32>,
    /// Sockets with events.
    ready: VecDeque<u32>,
    /// Sockets some of whose lent data the adapter may no longer need.
    done_with: VecDeque<u32>,
    /// Whether there may be connections to accept.
    acceptable: bool,
    corks: CorkTimers,
    completions: VecDeque<Completion>,
    /// Number of expected answers to the application's own requests.
    completions_due: usize,
    /// Number of buffers that hold data to be sent.
    placed: usize,
    /// Number of requests whose answers only release resources: sends and closes.
    releasing: usize,
    /// Whether anything waits for resources that answers to sends and closes release.
    starved: bool,
    /// Number of posted buffers.
    posted: usize,
    /// Number of buffers reserved for connections without a posted buffer.
    pledged: usize,
    /// Number of connections for which buffers could be pledged when the link was last seen.
    room_for_imports: usize,
    /// Number of socket numbers in use.
    in_use: usize,
    /// Time of the last call.
    now: Time,
    /// When to offer requests again after the link took only some of them.
    retry_at: Option<Time>,
    /// Responses being handled; kept to reuse the memory.
    responses: Vec<Descriptor>,
    entry: Vec<Descriptor>,
    /// States of moving connections, by socket.
    carried: BTreeMap<u32, Carried>,
    /// Number of buffers with parts of states that the adapter uses.
    carrying: usize,
    moves: VecDeque<MoveNews>,
    /// Whether imported connections of a lost adapter wait to be taken.
    keeps_lost: bool,
    soft_limit: Option<u32>,
    /// The adapter's data cache, if enabled.
    caching: Option<Box<Caching>>,
    stats: OsLayerStats,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Request {
    socket: u32,
    operation: Operation,
}

impl<P: Inline> OsLayer<P> {
    /// Creates a layer without sockets.
    ///
    /// # Errors
    /// Names the invalid parameter, and what was expected.
    pub fn new(config: OsLayerConfig) -> Result<Self, OsLayerConfigError> {
        config.validate()?;
        Ok(Self {
            queue: DescriptorQueue::new(&config.batching, config.ring_depth)?,
            sockets: Vec::new(),
            numbers: Numbers::new(config.bulk_accept, config.most_sockets),
            listeners: Vec::new(),
            requests: Chains::new(),
            pieces: Chains::new(),
            submitting: VecDeque::new(),
            room_in_vain: 0,
            opening: VecDeque::new(),
            reclaiming: false,
            waiting: VecDeque::new(),
            fetching: VecDeque::new(),
            ready: VecDeque::new(),
            done_with: VecDeque::new(),
            acceptable: false,
            corks: CorkTimers::default(),
            completions: VecDeque::new(),
            completions_due: 0,
            placed: 0,
            releasing: 0,
            carried: BTreeMap::new(),
            carrying: 0,
            moves: VecDeque::new(),
            keeps_lost: false,
            soft_limit: None,
            caching: Caching::new(&config.nic_cache),
            starved: false,
            posted: 0,
            pledged: 0,
            room_for_imports: 0,
            in_use: 0,
            now: Time::ZERO,
            retry_at: None,
            responses: Vec::new(),
            entry: Vec::new(),
            stats: OsLayerStats::default(),
            most_sends: config.most_sends,
            config,
        })
    }

    /// Returns the socket calls that an application can make at `now`.
    pub fn calls<'a, L: HostLink<Data = P>>(
        &'a mut self,
        now: Time,
        link: &'a mut L,
    ) -> Calls<'a, P, L> {
        Calls::new(now, self, link)
    }

    /// Returns the parameters.
    pub fn config(&self) -> &OsLayerConfig {
        &self.config
    }

    /// Returns the counters.
    pub fn stats(&self) -> &OsLayerStats {
        &self.stats
    }

    /// Returns the queue of requests that wait to be transferred.
    pub fn queue(&self) -> &DescriptorQueue {
        &self.queue
    }

    /// Returns the number of sockets, including those reserved for future connections and those being closed.
    pub fn sockets(&self) -> usize {
        self.in_use
    }

    /// Returns the number of requests that wait for an answer.
    pub fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// Returns the remote endpoint of a connection.
    pub fn peer(&self, socket: SocketId) -> Option<Endpoint> {
        let entry = self.known(socket)?;
        (entry.phase != Phase::Listening).then_some(entry.endpoint)
    }

    /// Returns where a listener listens, or the local endpoint of a connection once the adapter has answered a
    /// [query](OsLayer::query_local) for it.
    pub fn local(&self, socket: SocketId) -> Option<Endpoint> {
        let entry = self.known(socket)?;
        match entry.phase {
            Phase::Listening => Some(entry.endpoint),
            _ => entry.own,
        }
    }

    /// Returns why a socket is unusable: its connection could not be opened or has ended, or it cannot listen.
    pub fn error_of(&self, socket: SocketId) -> Option<Status> {
        self.known(socket)?.why_failed()
    }

    /// Returns whether the peer of a connection has ended its stream.
    pub fn has_ended(&self, socket: SocketId) -> bool {
        self.known(socket).is_some_and(Socket::has_ended)
    }

    /// Returns whether a connection has ended and the adapter does not know it any more.
    pub fn is_over(&self, socket: SocketId) -> bool {
        self.known(socket).is_none_or(|entry| entry.unknown)
    }

    /// Returns whether a socket is an established connection.
    pub fn is_open(&self, socket: SocketId) -> bool {
        self.known(socket).is_some_and(|entry| {
            entry.phase == Phase::Open && !entry.unknown && entry.error.is_none()
        })
    }

    /// Returns whether a socket is a connection that is still being opened.
    pub fn is_opening(&self, socket: SocketId) -> bool {
        self.known(socket)
            .is_some_and(|entry| entry.phase == Phase::Opening && entry.error.is_none())
    }

    /// Returns whether the adapter has confirmed that a listener listens.
    pub fn is_listening(&self, socket: SocketId) -> bool {
        self.known(socket).is_some_and(|entry| {
            let asked_all = entry.phase == Phase::Listening && entry.set_up == SetUp::Done;
            asked_all
                && entry.endpoint.port != 0
                && entry.error.is_none()
                && self.waiting_request(socket.0, Operation::Listen).is_none()
        })
    }

    /// Returns whether the layer holds nothing of the application: the adapter has fetched all data, and all requests were transferred.
    pub fn is_flushed(&self) -> bool {
        let nothing_held = (self.sockets.iter()).all(|entry| entry.held_len + entry.lent == 0);
        self.placed == 0 && nothing_held && self.submitting.is_empty() && self.queue.is_empty()
    }

    /// Returns whether nothing waits for the buffers and numbers that answers to sends and closes release. The adapter then need not wake
    /// this side for such answers.
    pub fn masks_lazy(&self) -> bool {
        !self.starved && self.waiting.is_empty() && self.opening.is_empty()
    }

    /// Limits the number of a connection's sends that wait to be fetched to what the adapter allows. Must be called before the first use of
    /// a link.
    pub fn limit_sends(&mut self, most: u32) {
        debug_assert_eq!(self.placed, 0, "nothing waits yet");
        self.most_sends = self.config.most_sends.min(most.max(1));
    }

    /// Replaces the batching rule of the parameters by the caller's own, before there are any requests.
    pub fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        self.queue.set_batching(rule);
    }

    /// Makes the adapter wake this side for every answer to outstanding requests.
    pub fn unmask_lazy(&mut self) {
        self.starved |= self.releasing > 0;
    }

    /// Returns the number of bytes that were taken from the application and not yet given to the adapter, because of the cork or for lack
    /// of buffer space. Works for closed sockets, too.
    pub fn held(&self, socket: SocketId) -> usize {
        let entry = self.sockets.get(socket.0 as usize);
        entry.map_or(0, |entry| entry.held_len as usize)
    }

    /// Returns a socket that the application may use.
    fn known(&self, socket: SocketId) -> Option<&Socket> {
        let entry = self.sockets.get(socket.0 as usize)?;
        entry.is_known().then_some(entry)
    }

    fn socket(&self, number: u32) -> &Socket {
        &self.sockets[number as usize]
    }

    fn socket_mut(&mut self, number: u32) -> &mut Socket {
        &mut self.sockets[number as usize]
    }

    /// Initializes the entry of a number that was just taken.
    fn occupy(&mut self, number: u32, phase: Phase) -> &mut Socket {
        let end = self.numbers.end() as usize;
        if end > self.sockets.len() {
            self.sockets.resize_with(end, Socket::default);
        }
        self.in_use += 1;
        let entry = self.socket_mut(number);
        debug_assert_eq!(entry.phase, Phase::Free);
        *entry = Socket {
            phase,
            queued: entry.queued,
            given: entry.given,
            ..Socket::default()
        };
        entry
    }

    /// Takes a single number.
    fn take_number(&mut self) -> Option<u32> {
        let sockets = &self.sockets;
        self.numbers.take_one(|number| {
            let entry = sockets.get(number as usize);
            entry.is_none_or(|entry| entry.phase == Phase::Free)
        })
    }

    /// Releases a socket that the adapter does not know any more.
    fn release(&mut self, number: u32) {
        let pieces = &mut self.pieces;
        let entry = &mut self.sockets[number as usize];
        debug_assert!(entry.phase != Phase::Free && entry.operation_of() == 0);
        let was_reserved = entry.phase == Phase::Reserved;
        if entry.imported {
            self.moves.push_back(MoveNews::Over(SocketId(number)));
        }
        pieces.clear(&mut entry.received);
        pieces.clear(&mut entry.held);
        self.tell_done_with(number);
        let entry = &mut self.sockets[number as usize];
        *entry = Socket {
            pledged: entry.pledged,
            queued: entry.queued,
            given: entry.given,
            ..Socket::default()
        };
        self.settle_pledge(number);
        self.numbers.give_back(number);
        self.in_use -= 1;
        if !was_reserved {
            for listener in &mut self.listeners {
                listener.paused = false;
            }
        }
    }

    /// Returns the number of buffers available for sends: those that are free and not pledged.
    fn spare<L: HostLink<Data = P>>(&self, link: &L) -> usize {
        link.free_buffers().saturating_sub(self.pledged)
    }

    /// Returns the number of buffers for sends and receives together.
    fn buffers<L: HostLink<Data = P>>(&self, link: &L) -> usize {
        link.free_buffers() + self.placed + self.posted
    }

    /// Returns the number of buffers that may be pledged to connections. On-demand connections keep their share.
    fn room_for_pledges<L: HostLink<Data = P>>(&self, link: &L) -> usize {
        let kept = match self.config.reports_unread {
            true => (self.buffers(link) / ON_DEMAND_SHARE).max(1),
            false => 0,
        };
        self.spare_for_receives(link).saturating_sub(kept)
    }

    /// Returns whether a new connection is on demand if there is this much room for pledges. Without room, others have to wait.
    fn is_on_demand(&self, room_for_pledges: usize) -> bool {
        room_for_pledges == 0 && self.config.reports_unread
    }

    /// Returns whether a new connection gets receive buffers if there is this much room for pledges.
    fn has_buffers(&self, room_for_pledges: usize) -> bool {
        room_for_pledges > 0 || self.config.reports_unread
    }

    /// Returns the number of buffers that may be posted in addition to pledged ones. Sends keep their share.
    fn spare_for_receives<L: HostLink<Data = P>>(&self, link: &L) -> usize {
        let kept = (self.buffers(link) / SEND_SHARE)
            .max(1)
            .saturating_sub(self.placed);
        self.spare(link).saturating_sub(kept)
    }

    /// Returns whether there are enough buffers for a connection to post more than one: new connections must find some.
    fn has_plenty<L: HostLink<Data = P>>(&self, link: &L) -> bool {
        self.spare_for_receives(link) > self.buffers(link) / NEWCOMERS_SHARE
    }

    /// Pledges a buffer for a connection without a posted buffer, or releases its pledge.
    fn settle_pledge(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        let owed = entry.is_owed_a_buffer();
        let before = std::mem::replace(&mut entry.pledged, owed);
        self.pledged = self.pledged + usize::from(owed) - usize::from(before);
    }

    /// Returns the maximum length of the buffer or data of one transfer, in bytes.
    fn transfer_bytes<L: HostLink<Data = P>>(&self, link: &L) -> u32 {
        self.config
            .batching
            .max_transfer_bytes
            .min(link.buffer_bytes())
    }
}
