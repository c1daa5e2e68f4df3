//! The socket layer of a live host: each connection lives on the local stack or on an adapter, and may move (handoff-policies 2).
//!
//! The application sees [`Sockets`](crate::Sockets) and never learns where a connection lives. A [`Selection`] decides which ones the
//! adapter is handed; those it asks to be relieved of, and all of them when it stops, come back. The stack belongs to whoever
//! drives it, and so do the adapter's sockets ([`OsLayer`](crate::adapter::OsLayer)) and their link: they are lent to each call.
//!
//! There may be several adapters. A connection is of the one on whose address it came, the only one that it may be handed to; each has
//! a Soft_Limit of its own, and is lost for itself.
//!
//! A connection on its way has no owner. What the application asks of it waits in its socket; packets that come for it are kept, in
//! order, and go where its state goes.
//!
//! Where to look: `calls` is what the application does, `events` what it is told, `moving` takes connections to the adapter and back,
//! `settling` waits for what those have under way that are to move, `packets` sorts what is of no connection here; `adapters` has what is lent.

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

use crate::{Life, NotOffloaded, Ready, Selection, SocketId};
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
/// Order of calls: events of the stack go to [`SocketLayer::handle_event`], those of the adapters are taken by
/// [`SocketLayer::handle_adapters`]; then [`SocketLayer::next_ready`] until it gives nothing, the application acting on each by
/// [`SocketLayer::calls`].
#[derive(Debug)]
pub struct SocketLayer<P> {
    sockets: Slab<Socket<P>>,
    /// By the connection's number in the stack.
    by_conn: Vec<Option<SocketId>>,
    /// Connections that are not in the stack.
    away: FxHashMap<Flow, Away>,
    /// The same by adapter.
    adapters: Vec<Connections>,
    /// Each with the adapter on whose address it listens.
    listeners: Vec<(ListenerId, AdapterId)>,
    /// What is handed to an adapter; none when there is none.
    selection: Option<Box<dyn Selection>>,
    /// Packets of connections that have moved to an adapter, and of those that have come back.
    to_forward: VecDeque<(AdapterId, P)>,
    arrived: VecDeque<P>,
    /// Connections that have moved out of the stack and into it.
    moves: VecDeque<StackMove>,
    /// Connections that are to move when nothing of theirs is under way any more, by when to look next.
    settling: BTreeSet<(Time, SocketId)>,
    /// How connections get on that move; none if nobody asks.
    progress: Option<VecDeque<(Flow, Move)>>,
    /// What connections that are about to come will send, by their other ends.
    foreseen: FxHashMap<Endpoint, u32>,
    ready: VecDeque<Ready>,
    acceptable: bool,
    most_sockets: usize,
    /// A connection that has moved stays for so long before policy moves it again.
    least_stay: Span,
    stats: LayerStats,
}

/// Whose a connection is that is not in the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    /// It belongs to a socket.
    Of(SocketId),
    /// An adapter brings it to its end.
    Closing(AdapterId),
}

impl<P: Inline> SocketLayer<P> {
    /// A layer without sockets, of which there may be `most_sockets`. With a selection policy there is an adapter.
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
            progress: None,
            foreseen: FxHashMap::default(),
            ready: VecDeque::new(),
            acceptable: false,
            most_sockets,
            least_stay: Span::ZERO,
            stats: LayerStats::default(),
        }
    }

    // --- getters ---

    /// Sockets.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Whether there are no sockets.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Totals.
    pub fn stats(&self) -> &LayerStats {
        &self.stats
    }

    /// Connections that are on adapters or on their way there.
    pub fn on_adapters(&self) -> usize {
        self.adapters.iter().map(|of| of.sockets.len()).sum()
    }

    /// Where each connection is, and why.
    pub fn states(&self) -> impl Iterator<Item = SocketState> + '_ {
        self.sockets.iter().map(|(_, socket)| socket.state())
    }

    /// Whether nothing of a connection is here that its stack does not have.
    pub fn is_wholly_in_stack(&self, id: SocketId) -> bool {
        self.sockets.get(id.0 as usize).is_some_and(|socket| {
            let is_empty = socket.early.is_empty() && socket.unsent.is_empty();
            matches!(socket.place, Place::Host(_)) && is_empty
        })
    }

    /// Where one connection is, and why.
    pub fn state_of(&self, id: SocketId) -> Option<SocketState> {
        Some(self.sockets.get(id.0 as usize)?.state())
    }

    /// How a connection ended, if it has.
    pub fn end_of(&self, id: SocketId) -> Option<CloseReason> {
        match self.sockets.get(id.0 as usize)?.place {
            Place::Ended(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether nothing that was taken from the application waits here for a connection to arrive.
    pub fn is_flushed(&self) -> bool {
        let mut sockets = self.sockets.iter();
        sockets.all(|(_, socket)| socket.unsent.is_empty() && !socket.is_moving())
    }

    // --- mutators ---

    /// Has a connection that policy has moved stay for so long before policy moves it again. Where a move forgets what TCP has learned of
    /// the path, that is to be well above a retransmission timeout, or a lossy one never gets to send again.
    pub fn set_least_stay(&mut self, stay: Span) {
        self.least_stay = stay;
    }

    /// Keeps what [`SocketLayer::poll_progress`] gives, from now on.
    pub fn keep_progress(&mut self) {
        self.progress.get_or_insert_default();
    }

    /// Tells the selection policy of a connection that is about to come from `remote`, by about how many enqueues to its send buffer it will
    /// be used. Only who replays a log can know.
    pub fn foresee(&mut self, remote: Endpoint, enqueues: u32) {
        self.foreseen.insert(remote, enqueues);
    }

    /// Takes in connections of a listener of the stack: they come on this adapter, if there is one.
    pub fn add_listener(&mut self, listener: ListenerId, adapter: AdapterId) {
        self.listeners.push((listener, adapter));
        self.know(adapter);
    }

    /// Takes in connections of a listener no more.
    pub fn remove_listener(&mut self, listener: ListenerId) {
        self.listeners.retain(|&(id, _)| id != listener);
    }

    /// The listeners, of which none is left here.
    pub fn take_listeners(&mut self) -> impl Iterator<Item = ListenerId> + use<P> {
        let listeners = std::mem::take(&mut self.listeners);
        listeners.into_iter().map(|(listener, _)| listener)
    }

    /// The socket calls of the application, where there are these adapters.
    pub fn calls<'a, L: HostLink<Data = P>, S: HostStack<P>>(
        &'a mut self,
        now: Time,
        stack: &'a mut S,
        adapters: &'a mut [AdapterEnd<P, L>],
    ) -> LayerCalls<'a, P, L, S> {
        LayerCalls::new(now, self, stack, adapters)
    }

    /// An adapter is lost, and with it the connections on it and on their way: what becomes of each [`SocketLayer::handle_adapters`]
    /// finds. The stack may [recover](HostStack::recover) some. A connection that the policy had chosen for it goes to the next one when it sends again, if it is on the host by then.
    pub fn handle_adapter_lost(&mut self, adapter: AdapterId) {
        if let Some(of) = self.adapters.get_mut(adapter.index()) {
            self.stats.lost_with_adapter += of.sockets.len() as u64;
            of.generation += 1;
        }
    }

    // --- inside ---

    /// Keeps account of an adapter from now on.
    fn know(&mut self, adapter: AdapterId) {
        let adapters = self.adapters.len().max(adapter.index() + 1);
        self.adapters.resize_with(adapters, Connections::default);
    }

    /// The socket whose connection it is in the stack.
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

    /// The socket whose connection is an adapter's socket of this number.
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

    /// Frees a socket's slot; nothing of it may be in the stack or on the adapter.
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
        // Its slot may be used again while the old one is still in the queue.
        if socket.readable || socket.writable {
            self.ready.retain(|ready| match ready {
                Ready::Readable(other) | Ready::Writable(other) => *other != id,
                Ready::Acceptable => true,
            });
        }
        // Those that waited for a place may have it.
        self.acceptable |= self.sockets.len() + 1 == self.most_sockets;
    }
}
