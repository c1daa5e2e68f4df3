//! The socket layer of a live host: each connection lives on the local stack or on an adapter, and may move (handoff-policies 2).
//!
//! The application sees [`Sockets`](crate::Sockets) and never learns where a connection lives. A [`Selection`] decides which ones the
//! adapter is handed; those it asks to be relieved of, and all of them when it stops, come back. The stack belongs to whoever
//! drives it, and so do the adapter's sockets ([`OsLayer`]) and their link: they are lent to each call.
//!
//! A connection on its way has no owner. What the application asks of it waits in its socket; packets that come for it are kept, in
//! order, and go where its state goes.
//!
//! Where to look: `calls` is what the application does, `events` what it is told, `moving` takes connections to the adapter and back,
//! `packets` sorts what is of no connection here.

mod calls;
mod check;
mod events;
mod moving;
mod packets;
mod socket;
mod stats;

pub use calls::LayerCalls;
pub use packets::Fate;
pub use socket::{Place, SocketState};
pub use stats::LayerStats;

use crate::offload::OsLayer;
use crate::{NotOffloaded, Ready, Selection, SocketId};
use baton_bus::HostLink;
use baton_bus::link::Inline;
use baton_tcp::{CloseReason, ConnId, ListenerId, Stack};
use baton_wire::{Flow, Time};
use rustc_hash::FxHashMap;
use slab::Slab;
use socket::Socket;
use std::collections::VecDeque;

/// The sockets of one application.
///
/// Order of calls: events of the stack go to [`SocketLayer::handle_event`], those of the adapter are taken by
/// [`SocketLayer::handle_adapter`]; then [`SocketLayer::next_ready`] until it gives nothing, the application acting on each by
/// [`SocketLayer::calls`].
#[derive(Debug)]
pub struct SocketLayer<P> {
    sockets: Slab<Socket<P>>,
    /// By the connection's number in the stack.
    by_conn: Vec<Option<SocketId>>,
    /// By the number of the adapter's socket.
    by_adapter: FxHashMap<u32, SocketId>,
    /// Connections that are not in the stack.
    away: FxHashMap<Flow, Away>,
    /// Adapter's sockets that the application has closed and whose connections are not over.
    closing: FxHashMap<u32, Flow>,
    listeners: Vec<ListenerId>,
    /// What is handed to the adapter; none when there is none.
    selection: Option<Box<dyn Selection>>,
    /// Connections that are on the adapter or on their way there.
    on_adapter: u32,
    /// Packets of connections that have moved to the adapter, and of those that have come back.
    to_forward: VecDeque<P>,
    arrived: VecDeque<P>,
    ready: VecDeque<Ready>,
    acceptable: bool,
    most_sockets: usize,
    stats: LayerStats,
}

/// Whose a connection is that is not in the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    /// It belongs to a socket.
    Of(SocketId),
    /// The adapter brings it to its end.
    Closing,
}

/// An adapter's sockets and their link, as they are lent to a call.
#[derive(Debug)]
pub struct AdapterEnd<'a, P, L> {
    /// The sockets.
    pub os: &'a mut OsLayer<P>,
    /// Their link.
    pub link: &'a mut L,
}

impl<P: Inline> SocketLayer<P> {
    /// A layer without sockets, of which there may be `most_sockets`. With a selection policy there is an adapter.
    pub fn new(most_sockets: usize, selection: Option<Box<dyn Selection>>) -> Self {
        Self {
            sockets: Slab::new(),
            by_conn: Vec::new(),
            by_adapter: FxHashMap::default(),
            away: FxHashMap::default(),
            closing: FxHashMap::default(),
            listeners: Vec::new(),
            selection,
            on_adapter: 0,
            to_forward: VecDeque::new(),
            arrived: VecDeque::new(),
            ready: VecDeque::new(),
            acceptable: false,
            most_sockets,
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

    /// Connections that are on the adapter or on their way there.
    pub fn on_adapter(&self) -> u32 {
        self.on_adapter
    }

    /// Where each connection is, and why.
    pub fn states(&self) -> impl Iterator<Item = SocketState> + '_ {
        self.sockets.iter().map(|(_, socket)| socket.state())
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

    // --- mutators ---

    /// Takes in connections of a listener of the stack.
    pub fn add_listener(&mut self, listener: ListenerId) {
        self.listeners.push(listener);
    }

    /// The listeners, of which none is left here.
    pub fn take_listeners(&mut self) -> Vec<ListenerId> {
        std::mem::take(&mut self.listeners)
    }

    /// The socket calls of the application.
    pub fn calls<'a, L: HostLink<Data = P>>(
        &'a mut self,
        now: Time,
        stack: &'a mut Stack<P>,
        adapter: Option<AdapterEnd<'a, P, L>>,
    ) -> LayerCalls<'a, P, L> {
        LayerCalls::new(now, self, stack, adapter)
    }

    /// The adapter is lost, and with it the connections on it and on their way: what becomes of each [`SocketLayer::handle_adapter`]
    /// finds.
    pub fn handle_adapter_lost(&mut self) {
        self.stats.lost_with_adapter += u64::from(self.on_adapter);
    }

    // --- inside ---

    fn socket_of(&self, conn: ConnId) -> Option<SocketId> {
        self.by_conn.get(conn.0 as usize).copied().flatten()
    }

    fn set_socket_of(&mut self, conn: ConnId, id: Option<SocketId>) {
        let index = conn.0 as usize;
        if index >= self.by_conn.len() {
            self.by_conn.resize(index + 1, None);
        }
        self.by_conn[index] = id;
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
        let socket = self.sockets.remove(id.0 as usize);
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
