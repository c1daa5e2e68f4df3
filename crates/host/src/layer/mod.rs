//! The socket layer of a live host: each connection is on the local stack or on an adapter, and may move (handoff-policies 2).
//!
//! The application sees [`Sockets`](crate::Sockets) and never learns where a connection is. A [`Selection`] policy decides which
//! connections to hand to the adapter. Connections that the adapter wants to get rid of come back, and all of them do when the adapter
//! stops. The layer owns neither the stack nor the adapters' sockets ([`OsLayer`](crate::adapter::OsLayer)) and links: its caller lends
//! them to each call.
//!
//! There may be several adapters. A connection may be handed only to the adapter on whose address it arrived; each adapter has its own
//! Soft_Limit, and losing one does not affect the others.
//!
//! A moving connection has no owner. The application's requests wait in its socket; packets that arrive for the connection are kept in
//! order, and follow its state.
//!
//! Modules: `calls` has the application's calls, `events` handles and reports events, `moving` moves connections to the adapter and back,
//! `settling` waits until connections that are to move have no data in flight, `packets` sorts packets of connections that are not in the
//! stack; `adapters` describes what is lent.

mod adapters;
mod calls;
mod check;
mod events;
mod moving;
mod packets;
mod settling;
mod socket;
mod stack;
mod stats;

pub use adapters::{AdapterEnd, AdapterId};
pub use calls::LayerCalls;
pub use moving::{Move, StackMove};
pub use packets::Fate;
pub use socket::{Place, Reached, SocketState, Used};
pub use stack::HostStack;
pub use stats::LayerStats;

use crate::{Life, NotOffloaded, Ready, Selection, SocketId, Work};
use adapters::Connections;
use baton_bus::HostLink;
use baton_bus::link::Inline;
use baton_tcp::{CloseReason, ConnId, ListenerId};
use baton_wire::{Endpoint, Flow, Span, Time};
use rustc_hash::FxHashMap;
use slab::Slab;
use socket::Socket;
use std::collections::{BTreeSet, VecDeque};

/// The sockets of one application.
///
/// Call in this order: [`SocketLayer::handle_event`] with each event of the stack, and [`SocketLayer::handle_adapters`] for those of the
/// adapters; then [`SocketLayer::next_ready`] until it returns `None`, handling each socket through [`SocketLayer::calls`].
#[derive(Debug)]
pub struct SocketLayer<P> {
    sockets: Slab<Socket<P>>,
    /// Sockets by their connection's ID in the stack.
    by_conn: Vec<Option<SocketId>>,
    /// Connections that are not in the stack.
    away: FxHashMap<Flow, Away>,
    /// State of each adapter.
    adapters: Vec<Connections>,
    /// Listeners, each with the adapter on whose address it listens.
    listeners: Vec<(ListenerId, AdapterId)>,
    /// The policy that selects connections for an adapter; `None` if there is no adapter.
    selection: Option<Box<dyn Selection>>,
    /// Kept packets of connections that have moved to an adapter, and (in `arrived`) of connections that have come back.
    to_forward: VecDeque<(AdapterId, P)>,
    arrived: VecDeque<P>,
    /// Connections that have left the stack or returned to it.
    moves: VecDeque<StackMove>,
    /// Connections that are to move once none of their data is in flight, by the time of the next check.
    settling: BTreeSet<(Time, SocketId)>,
    /// Number of connections that are being handed off or restored.
    moving: usize,
    /// Progress of moves; `None` if nobody asks for it.
    progress: Option<VecDeque<(Flow, Move)>>,
    /// Number of enqueues that expected connections will make, by remote endpoint.
    foreseen: FxHashMap<Endpoint, u32>,
    ready: VecDeque<Ready>,
    acceptable: bool,
    most_sockets: usize,
    /// Minimum time between a connection's move and the policy's next one.
    least_stay: Span,
    /// Maximum number of bytes kept of what an application sends while its connection moves.
    most_kept: usize,
    /// Number of times that the application has read data, and the part of it that came from connections on an adapter.
    requests: u64,
    requests_on_nic: u64,
    stats: LayerStats,
}

/// Who is responsible for a connection that is not in the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    /// A socket.
    Of(SocketId),
    /// The adapter, which closes the connection on its own.
    Closing(AdapterId),
}

impl<P: Inline> SocketLayer<P> {
    /// Creates a layer without sockets, for at most `most_sockets`. A selection policy means that there is an adapter.
    pub fn new(most_sockets: usize, selection: Option<Box<dyn Selection>>) -> Self {
        Self {
            sockets: Slab::new(),
            by_conn: Vec::new(),
            away: FxHashMap::default(),
            adapters: Vec::new(),
            listeners: Vec::new(),
            selection,
            to_forward: VecDeque::new(),
            arrived: VecDeque::new(),
            moves: VecDeque::new(),
            settling: BTreeSet::new(),
            moving: 0,
            progress: None,
            foreseen: FxHashMap::default(),
            ready: VecDeque::new(),
            acceptable: false,
            most_sockets,
            least_stay: Span::ZERO,
            most_kept: 0,
            requests: 0,
            requests_on_nic: 0,
            stats: LayerStats::default(),
        }
    }

    // --- getters ---

    /// Returns the number of sockets.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Returns whether there are no sockets.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Returns the counters.
    pub fn stats(&self) -> &LayerStats {
        &self.stats
    }

    /// Returns whether connections are being handed off or restored.
    pub fn are_moving(&self) -> bool {
        self.moving > 0
    }

    /// Returns the number of connections that are on adapters or moving.
    pub fn on_adapters(&self) -> usize {
        self.adapters.iter().map(|of| of.sockets.len()).sum()
    }

    /// Returns where each connection is, and why.
    pub fn states(&self) -> impl Iterator<Item = SocketState> + '_ {
        self.sockets.iter().map(|(_, socket)| socket.state())
    }

    /// Returns whether the stack has a connection and the layer holds none of its data.
    pub fn is_wholly_in_stack(&self, id: SocketId) -> bool {
        self.sockets.get(id.0 as usize).is_some_and(|socket| {
            let is_empty = socket.early.is_empty() && socket.unsent.is_empty();
            matches!(socket.place, Place::Host(_)) && is_empty
        })
    }

    /// Returns whether the layer holds received data that the application has not read.
    pub fn has_early(&self, id: SocketId) -> bool {
        let socket = self.sockets.get(id.0 as usize);
        socket.is_some_and(|socket| !socket.early.is_empty())
    }

    /// Returns the number of bytes that the application has sent and the layer still holds.
    pub fn unsent(&self, id: SocketId) -> usize {
        let socket = self.sockets.get(id.0 as usize);
        socket.map_or(0, |socket| socket.unsent.iter().map(P::len).sum())
    }

    /// Returns where one connection is, and why.
    pub fn state_of(&self, id: SocketId) -> Option<SocketState> {
        Some(self.sockets.get(id.0 as usize)?.state())
    }

    /// Returns how a connection ended, if it has.
    pub fn end_of(&self, id: SocketId) -> Option<CloseReason> {
        match self.sockets.get(id.0 as usize)?.place {
            Place::Ended(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the layer holds no data of the application and no connection is moving.
    pub fn is_flushed(&self) -> bool {
        let mut sockets = self.sockets.iter();
        sockets.all(|(_, socket)| socket.unsent.is_empty() && !socket.is_moving())
    }

    // --- mutators ---

    /// Sets how long a connection that has moved stays before the policy moves it again. If a move discards what TCP has learned of the
    /// path, this should be well above a retransmission timeout, or a connection on a lossy path never gets to retransmit.
    pub fn set_least_stay(&mut self, stay: Span) {
        self.least_stay = stay;
    }

    /// Sets how many bytes the layer keeps of what an application sends while its connection moves; they are sent after the move. By
    /// default the layer keeps none, and sockets are not writable meanwhile.
    pub fn set_most_kept(&mut self, bytes: usize) {
        self.most_kept = bytes;
    }

    /// Starts to record the progress that [`SocketLayer::poll_progress`] returns.
    pub fn keep_progress(&mut self) {
        self.progress.get_or_insert_default();
    }

    /// Returns whether the policy wants [reports](SocketLayer::handle_work) of the application's work.
    pub fn wants_work(&self) -> bool {
        let selection = self.selection.as_ref();
        selection.is_some_and(|selection| selection.wants_work())
    }

    /// Reports to the policy how long the application's processor has worked so far, and how many requests it has read by calls that bypass
    /// the layer.
    pub fn handle_work(&mut self, now: Time, busy: Span, direct_requests: u64) {
        let work = Work {
            now,
            busy,
            requests: self.requests + direct_requests,
            on_nic: self.requests_on_nic,
            connections: self.sockets.len() as u64,
        };
        if let Some(selection) = &mut self.selection {
            selection.on_work(&work);
        }
    }

    /// Announces a connection from `remote` to the selection policy, and about how many enqueues it will make to its send buffer. Only a
    /// program that replays a log can know this.
    pub fn foresee(&mut self, remote: Endpoint, enqueues: u32) {
        self.foreseen.insert(remote, enqueues);
    }

    /// Adds a listener of the stack, whose connections arrive on this adapter, if there is one.
    pub fn add_listener(&mut self, listener: ListenerId, adapter: AdapterId) {
        self.listeners.push((listener, adapter));
        self.know(adapter);
    }

    /// Removes a listener.
    pub fn remove_listener(&mut self, listener: ListenerId) {
        self.listeners.retain(|&(id, _)| id != listener);
    }

    /// Removes and returns all listeners.
    pub fn take_listeners(&mut self) -> impl Iterator<Item = ListenerId> + use<P> {
        let listeners = std::mem::take(&mut self.listeners);
        listeners.into_iter().map(|(listener, _)| listener)
    }

    /// Returns the socket calls of the application, for these adapters.
    pub fn calls<'a, L: HostLink<Data = P>, S: HostStack<P>>(
        &'a mut self,
        now: Time,
        stack: &'a mut S,
        adapters: &'a mut [AdapterEnd<P, L>],
    ) -> LayerCalls<'a, P, L, S> {
        LayerCalls::new(now, self, stack, adapters)
    }

    /// Handles the loss of an adapter, and with it of its connections and those moving to or from it: [`SocketLayer::handle_adapters`]
    /// decides what happens to each. The stack may [recover](HostStack::recover) some. A connection that the policy had chosen for this
    /// adapter goes to the next adapter when it sends again, if it is on the host by then.
    pub fn handle_adapter_lost(&mut self, adapter: AdapterId) {
        if let Some(of) = self.adapters.get_mut(adapter.index()) {
            self.stats.lost_with_adapter += of.sockets.len() as u64;
            of.generation += 1;
        }
    }

    // --- inside ---

    /// Starts to keep state of an adapter.
    fn know(&mut self, adapter: AdapterId) {
        let adapters = self.adapters.len().max(adapter.index() + 1);
        self.adapters.resize_with(adapters, Connections::default);
    }

    /// Returns the socket of a connection in the stack.
    pub fn socket_of(&self, conn: ConnId) -> Option<SocketId> {
        self.by_conn.get(conn.0 as usize).copied().flatten()
    }

    fn set_socket_of(&mut self, conn: ConnId, id: Option<SocketId>) {
        let index = conn.0 as usize;
        if index >= self.by_conn.len() {
            self.by_conn.resize(index + 1, None);
        }
        self.by_conn[index] = id;
    }

    /// Returns the socket whose connection is this socket of the adapter.
    fn socket_on(&self, adapter: AdapterId, on_adapter: SocketId) -> Option<SocketId> {
        let of = self.adapters.get(adapter.index())?;
        of.sockets.get(&on_adapter.0).copied()
    }

    fn socket(&self, id: SocketId) -> &Socket<P> {
        &self.sockets[id.0 as usize]
    }

    fn socket_mut(&mut self, id: SocketId) -> &mut Socket<P> {
        &mut self.sockets[id.0 as usize]
    }

    fn set_why(&mut self, id: SocketId, why: NotOffloaded) {
        if self.socket_mut(id).why.replace(why) != Some(why) {
            self.stats.not_offloaded.count(why);
        }
    }

    /// Frees a socket's slot; neither the stack nor the adapter may have its connection any more.
    fn remove(&mut self, id: SocketId) {
        self.settles_no_more(id);
        let socket = self.sockets.remove(id.0 as usize);
        if let Some(selection) = &mut self.selection {
            selection.on_closed(&Life {
                local: socket.flow.local,
                remote: socket.flow.remote,
                requests: socket.requests,
                enqueues: socket.enqueues,
                bytes_sent: socket.bytes_sent,
            });
        }
        // The slot may be reused while events of this socket are still in the queue.
        if socket.readable || socket.writable {
            self.ready.retain(|ready| match ready {
                Ready::Readable(other) | Ready::Writable(other) => *other != id,
                Ready::Acceptable => true,
            });
        }
        // Connections that waited for a free slot may have this one.
        self.acceptable |= self.sockets.len() + 1 == self.most_sockets;
    }
}
