//! OSLayer: the host's half of an adapter (batching 2.1). It gives applications sockets, and maps them to the requests that the adapter
//! understands.
//!
//! Everything is asynchronous. What an application does becomes requests that wait in a queue; responses become [`Ready`](crate::Ready). A piece of work
//! of the application ends with [`OsLayer::pump`], which transfers what waits if the batching rule says so: what one piece of work has
//! asked for leaves together, even without batching.
//!
//! Resources are had before they are promised. A connection is asked for only when a number and a receive buffer are there for it; that
//! buffer is *pledged* while it is not posted, and a share of the buffers is kept for sends, so neither direction can starve the other.
//! When buffers become few, a connection may have only as many sends under way as there are buffers left, so that those that are stuck
//! leave some for the others.
//!
//! Where to look: `listening`, `opening`, `sending`, `receiving`, `closing` and `control` are what an application can do and what
//! comes back; `lending` is about data that is sent from where it stands; `submission` is what waits to be submitted, `times` is when it happened, `completion` finds the request to a response, `readiness` tells the application,
//! `pump` moves it all, `loss` is the end of a link.

mod caching;
mod calls;
mod check;
mod closing;
mod completion;
mod config;
mod control;
mod cork;
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

/// The share of a link's buffers that receives leave for sends: one in so many.
const SEND_SHARE: usize = 4;

/// The share of a link's buffers that is left for first buffers of connections: one in so many.
const NEWCOMERS_SHARE: usize = 4;

/// All sockets of one application, and what waits between them and the adapter.
///
/// Order of calls: [`OsLayer::pump`] until it has nothing to do; then [`OsLayer::next_ready`] until there is none, each followed by what
/// the application does about it through [`OsLayer::calls`]; and again. When nothing is left, at [`OsLayer::poll_timeout`] and whenever
/// the link has something.
#[derive(Debug)]
pub struct OsLayer<P> {
    config: OsLayerConfig,
    /// Sends of one connection that may wait to be fetched, by the configuration and by the adapter.
    most_sends: u32,
    queue: DescriptorQueue,
    /// By number.
    sockets: Vec<Socket>,
    numbers: Numbers,
    listeners: Vec<Listener>,
    /// What was asked and not answered; a node's number is the request's tag.
    requests: Chains<Request>,
    /// Data that was received and not read, or taken and not sent.
    pieces: Chains<P>,
    /// Sockets that have something to ask, or wait for room in the ring.
    submitting: VecDeque<u32>,
    /// Descriptors for which the ring had room when that was not enough for the first of them.
    room_in_vain: usize,
    /// Connections to be opened for which there was no buffer to pledge.
    opening: VecDeque<u32>,
    /// An ACCEPT is being taken back for one of them.
    reclaiming: bool,
    /// Sockets without sends under way that wait for a buffer.
    waiting: VecDeque<u32>,
    /// Sockets that have something to say.
    ready: VecDeque<u32>,
    /// Sockets with whose data the adapter may be done.
    done_with: VecDeque<u32>,
    /// There are connections to accept.
    acceptable: bool,
    corks: CorkTimers,
    completions: VecDeque<Completion>,
    /// Answers that are still to come.
    completions_due: usize,
    /// Buffers that hold data to be sent.
    placed: usize,
    /// Requests whose answers only give something back: to send and to close.
    releasing: usize,
    /// Something waits for what such answers give back.
    starved: bool,
    /// Buffers that are posted.
    posted: usize,
    /// Buffers that are kept for connections without one.
    pledged: usize,
    /// Connections for which buffers can still be pledged, as the link was seen last.
    room_for_imports: usize,
    /// Numbers that are in use.
    in_use: usize,
    /// As last told.
    now: Time,
    /// The link took less than it was given: when to try again.
    retry_at: Option<Time>,
    /// Kept for their memory.
    responses: Vec<Descriptor>,
    entry: Vec<Descriptor>,
    /// States of connections on their way, by their sockets.
    carried: BTreeMap<u32, Carried>,
    /// Buffers with parts of them that the adapter has.
    carrying: usize,
    moves: VecDeque<MoveNews>,
    /// Imported connections of an adapter that is lost wait to be taken.
    keeps_lost: bool,
    soft_limit: Option<u32>,
    /// The adapter's data cache, if it is to be used.
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
    /// Without sockets.
    ///
    /// # Errors
    /// Says which parameter cannot work, and what was expected.
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

    /// The socket calls that an application can make at `now`.
    pub fn calls<'a, L: HostLink<Data = P>>(
        &'a mut self,
        now: Time,
        link: &'a mut L,
    ) -> Calls<'a, P, L> {
        Calls::new(now, self, link)
    }

    /// Its parameters.
    pub fn config(&self) -> &OsLayerConfig {
        &self.config
    }

    /// Totals.
    pub fn stats(&self) -> &OsLayerStats {
        &self.stats
    }

    /// The requests that wait to be transferred.
    pub fn queue(&self) -> &DescriptorQueue {
        &self.queue
    }

    /// Sockets, with those reserved for connections to come and those that are being closed.
    pub fn sockets(&self) -> usize {
        self.in_use
    }

    /// Requests that wait for an answer.
    pub fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// The other end of a connection.
    pub fn peer(&self, socket: SocketId) -> Option<Endpoint> {
        let entry = self.known(socket)?;
        (entry.phase != Phase::Listening).then_some(entry.endpoint)
    }

    /// Where a listener listens; this end of a connection, once the adapter was [asked](OsLayer::query_local) for it and has told it.
    pub fn local(&self, socket: SocketId) -> Option<Endpoint> {
        let entry = self.known(socket)?;
        match entry.phase {
            Phase::Listening => Some(entry.endpoint),
            _ => entry.own,
        }
    }

    /// Why a socket is of no use any more: its connection could not be opened or has ended, or it cannot listen.
    pub fn error_of(&self, socket: SocketId) -> Option<Status> {
        self.known(socket)?.error
    }

    /// Whether a socket is a connection that is open.
    pub fn is_open(&self, socket: SocketId) -> bool {
        self.known(socket).is_some_and(|entry| {
            entry.phase == Phase::Open && !entry.unknown && entry.error.is_none()
        })
    }

    /// Whether a socket is a connection of which it is not known yet whether it can be opened.
    pub fn is_opening(&self, socket: SocketId) -> bool {
        self.known(socket)
            .is_some_and(|entry| entry.phase == Phase::Opening && entry.error.is_none())
    }

    /// Whether a listener listens: the adapter has agreed.
    pub fn is_listening(&self, socket: SocketId) -> bool {
        self.known(socket).is_some_and(|entry| {
            let asked_all = entry.phase == Phase::Listening && entry.set_up == SetUp::Done;
            asked_all
                && entry.endpoint.port != 0
                && entry.error.is_none()
                && self.waiting_request(socket.0, Operation::Listen).is_none()
        })
    }

    /// Whether nothing that was taken from the application is left here: the adapter has fetched all data, and has been asked for
    /// all that was to be asked for.
    pub fn is_flushed(&self) -> bool {
        let nothing_held = (self.sockets.iter()).all(|entry| entry.held_len == 0);
        self.placed == 0 && nothing_held && self.submitting.is_empty() && self.queue.is_empty()
    }

    /// Whether nothing waits for what answers give back to which nobody else listens: buffers and numbers. Then the adapter need not
    /// wake this side for them.
    pub fn masks_lazy(&self) -> bool {
        !self.starved && self.waiting.is_empty() && self.opening.is_empty()
    }

    /// The adapter lets at most so many sends of one connection wait to be fetched. To be said before the first use of a link.
    pub fn limit_sends(&mut self, most: u32) {
        debug_assert_eq!(self.placed, 0, "nothing waits yet");
        self.most_sends = self.config.most_sends.min(most.max(1));
    }

    /// Batching of requests by a rule of the caller's own in place of what the parameters say, before there are any.
    pub fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        self.queue.set_batching(rule);
    }

    /// Wants to hear of everything that is under way as soon as it is over.
    pub fn unmask_lazy(&mut self) {
        self.starved |= self.releasing > 0;
    }

    /// Bytes that were taken from the application and not yet given to the adapter: by the cork, or for want of room. Also of a
    /// socket that was closed.
    pub fn held(&self, socket: SocketId) -> usize {
        let entry = self.sockets.get(socket.0 as usize);
        entry.map_or(0, |entry| entry.held_len as usize)
    }

    /// A socket that the application may use.
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

    /// Makes an entry of the table for a number that was just taken.
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

    /// Lets go of a socket of which nothing is left on the adapter.
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

    /// Buffers that may be used for data to be sent: all that are free and not pledged.
    fn spare<L: HostLink<Data = P>>(&self, link: &L) -> usize {
        link.free_buffers().saturating_sub(self.pledged)
    }

    /// Buffers that may be pledged, or posted beyond what was pledged. Sends keep their share.
    fn spare_for_receives<L: HostLink<Data = P>>(&self, link: &L) -> usize {
        let total = link.free_buffers() + self.placed + self.posted;
        let kept = (total / SEND_SHARE).max(1).saturating_sub(self.placed);
        self.spare(link).saturating_sub(kept)
    }

    /// Whether there are so many buffers that a connection may have more than one posted: others must find some when they come.
    fn has_plenty<L: HostLink<Data = P>>(&self, link: &L) -> bool {
        let total = link.free_buffers() + self.placed + self.posted;
        self.spare_for_receives(link) > total / NEWCOMERS_SHARE
    }

    /// Keeps a buffer for a connection without one, or lets go of the one that was kept.
    fn settle_pledge(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        let owed = entry.is_owed_a_buffer();
        let before = std::mem::replace(&mut entry.pledged, owed);
        self.pledged = self.pledged + usize::from(owed) - usize::from(before);
    }

    /// The longest buffer or data of one transfer, bytes.
    fn transfer_bytes<L: HostLink<Data = P>>(&self, link: &L) -> u32 {
        self.config
            .batching
            .max_transfer_bytes
            .min(link.buffer_bytes())
    }
}
