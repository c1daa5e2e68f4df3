//! The socket calls of an application.

use super::socket::{Place, Socket, Used, Wish};
use super::{AdapterEnd, AdapterId, HostStack, SocketLayer};
use crate::adapter::{Calls, FileChange};
use crate::pages::pages;
use crate::{
    Borrower, Borrowers, FileContent, FromCache, Gone, MoveReason, NextLook, NotOffloaded, Receive,
    SocketId, Sockets, Unread,
};
use baton_bus::HostLink;
use baton_bus::link::Inline;
use baton_tcp::{CloseReason, ConnId, ListenerId, Stack, State};
use baton_wire::{SeqNr, Time};

/// Maximum number of bytes that Linux takes from a file in one enqueue: those of a pipe's buffers.
const ENQUEUE_BYTES: u32 = 64 << 10;

/// Returns how many enqueues the first `len` bytes of content are: `sendfile` puts each page into the send buffer separately.
fn enqueues(content: &FileContent, len: usize) -> u32 {
    pages(content.offset, len).count() as u32
}

/// The socket calls on the layer, its stack, and its adapters if there are any.
#[derive(Debug)]
pub struct LayerCalls<'a, P, L, S = Stack<P>> {
    now: Time,
    layer: &'a mut SocketLayer<P>,
    stack: &'a mut S,
    adapters: &'a mut [AdapterEnd<P, L>],
}

impl<'a, P: Inline, L: HostLink<Data = P>, S: HostStack<P>> LayerCalls<'a, P, L, S> {
    pub(super) fn new(
        now: Time,
        layer: &'a mut SocketLayer<P>,
        stack: &'a mut S,
        adapters: &'a mut [AdapterEnd<P, L>],
    ) -> Self {
        Self {
            now,
            layer,
            stack,
            adapters,
        }
    }

    /// Returns the adapters.
    pub fn adapters(&self) -> &[AdapterEnd<P, L>] {
        self.adapters
    }

    /// Returns the adapter on which the connection of a socket arrived.
    pub fn adapter_of(&self, id: SocketId) -> Option<AdapterId> {
        Some(self.layer.state_of(id)?.adapter)
    }

    /// Returns whether the connection of a socket has been on its adapter.
    pub fn was_handed_off(&self, id: SocketId) -> bool {
        let state = self.layer.state_of(id);
        state.is_some_and(|state| state.handoffs > 0)
    }

    /// Keeps the connection of a socket, which is on the host, from being handed off in future, for this reason.
    pub fn stay(&mut self, id: SocketId, why: NotOffloaded) {
        if let Some(socket) = self.layer.sockets.get_mut(id.0 as usize) {
            socket.stays = Some(why);
        }
    }

    /// Moves the connection of a socket back to the host if it is away, and keeps it from being handed off again, for this reason. Data
    /// that the application had taken and that is still `unread` will be received again.
    pub fn go_home(&mut self, id: SocketId, why: NotOffloaded, unread: P) {
        let Some(socket) = self.layer.sockets.get_mut(id.0 as usize) else {
            return;
        };
        socket.stays = Some(why);
        if unread.len() > 0 {
            socket.early.push_front(unread);
        }
        if self.layer.stays(self.stack, id) && !self.restore(id) {
            self.layer.give_early_back(self.now, self.stack, id);
        }
    }

    /// Records how the application has used a connection on the host.
    pub fn account(&mut self, id: SocketId, used: &Used) {
        if let Some(socket) = self.layer.sockets.get_mut(id.0 as usize) {
            socket.requests += used.requests;
            socket.enqueues += used.enqueues;
            socket.bytes_sent += used.bytes;
            socket.receives += used.receives;
            match used.receives {
                0 => socket.response_bytes += used.bytes,
                _ => socket.response_bytes = used.response_bytes,
            }
        }
    }

    /// Records the use, and asks the policy about the connection. Returns when to ask the policy next, counted from now, provided that the
    /// connection stays on the host and its adapter is not lost.
    pub fn consider_used(&mut self, id: SocketId, used: &Used, corked: bool) -> NextLook {
        self.account(id, used);
        let Some(socket) = self.layer.sockets.get_mut(id.0 as usize) else {
            return NextLook::NEVER;
        };
        socket.corked = corked;
        let Some(end) = self.adapters.get_mut(socket.adapter.index()) else {
            return NextLook::NEVER;
        };
        if used.receives > 0 {
            self.layer
                .consider_receive(self.now, self.stack, &mut end.os, id);
        }
        if used.enqueues > 0 {
            self.layer
                .consider_send(self.now, self.stack, &mut end.os, id, used.enqueues);
        }
        self.layer.next_look(self.now, self.stack, &end.os, id)
    }

    /// Notifies each adapter of a change to a file: see [`Calls::file_changed`].
    pub fn file_changed(
        &mut self,
        change: &FileChange,
        mut block: impl FnMut(u64, u32) -> Option<P>,
    ) {
        for end in &mut *self.adapters {
            let mut calls = end.os.calls(self.now, &mut end.link);
            calls.file_changed(change, &mut block);
        }
    }

    /// Accepts the oldest connection in the queue of one listener.
    pub fn accept_on(&mut self, listener: ListenerId) -> Option<SocketId> {
        if !self.has_place() {
            return None;
        }
        let mut listeners = self.layer.listeners.iter();
        let &(_, adapter) = listeners.find(|&&(id, _)| id == listener)?;
        let conn = self.stack.accept(listener)?;
        Some(self.accepted(conn, adapter))
    }

    /// Adds a connection of the stack that no listener has accepted, and that may be handed to this adapter once it is
    /// [established](Self::opened). Returns `None` if there is no free socket.
    pub fn admit(&mut self, conn: ConnId, adapter: AdapterId) -> Option<SocketId> {
        self.layer.know(adapter);
        self.has_place().then(|| self.insert(conn, adapter))
    }

    /// Asks the policy about an added connection that is established now.
    pub fn opened(&mut self, id: SocketId) {
        let layer = &mut *self.layer;
        let Some(socket) = layer.sockets.get(id.0 as usize) else {
            return;
        };
        if let Some(end) = self.adapters.get_mut(socket.adapter.index()) {
            layer.consider_established(self.now, self.stack, &mut end.os, id);
        }
    }

    /// Returns whether there is a free socket; counts the attempt if not.
    fn has_place(&mut self) -> bool {
        let layer = &mut *self.layer;
        let has_place = layer.sockets.len() < layer.most_sockets;
        layer.stats.accepts_deferred += u64::from(!has_place);
        has_place
    }

    fn accepted(&mut self, conn: ConnId, adapter: AdapterId) -> SocketId {
        let layer = &mut *self.layer;
        layer.stats.accepted += 1;
        // While a listener has another connection, a wait reports that again.
        let waits = |&(id, _): &(_, _)| self.stack.has_acceptable(id);
        layer.acceptable |= layer.listeners.iter().any(waits);
        let id = self.insert(conn, adapter);
        self.opened(id);
        id
    }

    fn insert(&mut self, conn: ConnId, adapter: AdapterId) -> SocketId {
        let layer = &mut *self.layer;
        let flow = self.stack.flow(conn);
        let slot = layer
            .sockets
            .insert(Socket::new(self.now, conn, flow, adapter));
        let id = SocketId(slot as u32);
        layer.socket_mut(id).foreseen = layer.foreseen.remove(&flow.remote);
        layer.set_socket_of(conn, Some(id));
        id
    }

    /// Returns approximately how many bytes a socket would take now.
    ///
    /// # Errors
    /// The connection has ended or is shut down for sending.
    pub fn send_room(&mut self, id: SocketId) -> Result<usize, Gone> {
        let on_adapter = self.may_send(id)?;
        let socket = self.layer.socket(id);
        match (on_adapter, socket.place) {
            (Some(on_adapter), _) => {
                let end = self.adapters.get_mut(socket.adapter.index()).ok_or(Gone)?;
                let calls = end.os.calls(self.now, &mut end.link);
                calls.send_room(on_adapter)
            }
            (None, Place::Host(conn)) if socket.can_send() => Ok(self.stack.send_space(conn)),
            (None, _) => Ok(self.layer.room_to_keep(id)),
        }
    }

    /// Makes a socket become writable when it has buffer space.
    pub fn want_room(&mut self, id: SocketId) {
        let Some(socket) = self.layer.sockets.get_mut(id.0 as usize) else {
            return;
        };
        socket.wants_room = true;
        let end = self.adapters.get_mut(socket.adapter.index());
        if let (Place::Adapter(on_adapter), Some(end)) = (socket.place, end) {
            let mut calls = end.os.calls(self.now, &mut end.link);
            calls.want_room(on_adapter);
        }
    }

    /// Hands a connection to its adapter, regardless of the selection policy.
    ///
    /// # Errors
    /// The connection stays, for the reason given.
    pub fn hand_off(&mut self, id: SocketId) -> Result<(), NotOffloaded> {
        let adapter = self.socket(id).map(|socket| socket.adapter);
        let end = adapter.and_then(|adapter| self.adapters.get_mut(adapter.index()));
        let os = &mut end.ok_or(NotOffloaded::State)?.os;
        self.layer.hand_off(self.now, self.stack, os, id)
    }

    /// Takes a connection back from its adapter. Returns false if the connection is not there.
    pub fn restore(&mut self, id: SocketId) -> bool {
        let adapter = self.socket(id).map(|socket| socket.adapter);
        if let Some(socket) = self.socket(id) {
            socket.reason = MoveReason::Call;
        }
        let end = adapter.and_then(|adapter| self.adapters.get_mut(adapter.index()));
        end.is_some_and(|end| self.layer.restore(self.now, self.stack, &mut end.os, id))
    }

    fn socket(&mut self, id: SocketId) -> Option<&mut Socket<P>> {
        self.layer.sockets.get_mut(id.0 as usize)
    }

    /// Looks at a settling connection: its data may have been acknowledged by now.
    fn look_if_settling(&mut self, id: SocketId) {
        let settles = |socket: &&Socket<P>| socket.settling.is_some();
        let socket = self.layer.sockets.get(id.0 as usize).filter(settles);
        let adapter = socket.map(|socket| socket.adapter);
        if let Some(end) = adapter.and_then(|it| self.adapters.get_mut(it.index())) {
            let (now, stack) = (self.now, &mut *self.stack);
            self.layer.look_at_settling(now, stack, &mut end.os, id);
        }
    }

    /// Returns whether the peer had sent its FIN before the connection left for the adapter, so that no data can follow what the layer
    /// holds.
    fn has_ended_before(&self, id: SocketId) -> bool {
        let kept = self.layer.socket(id).kept.as_ref();
        self.stack.keeps_unread() && kept.is_some_and(|kept| kept.state == State::CloseWait)
    }

    /// Returns the socket on the adapter to which data can be sent now, if there is one.
    fn may_send(&mut self, id: SocketId) -> Result<Option<SocketId>, Gone> {
        self.look_if_settling(id);
        let socket = self.socket(id).ok_or(Gone)?;
        if socket.wish != Wish::None || matches!(socket.place, Place::Ended(_)) {
            return Err(Gone);
        }
        match socket.place {
            Place::Adapter(on_adapter) if socket.can_send() => Ok(Some(on_adapter)),
            _ => Ok(None),
        }
    }

    /// Sends as much of `data` as there is buffer space for. `to_adapter` sends data to the adapter, and `enqueues` returns as how many
    /// enqueues a number of bytes counts for the selection policy.
    fn send_by(
        &mut self,
        id: SocketId,
        data: P,
        enqueues: impl FnOnce(usize) -> u32,
        to_adapter: impl FnOnce(&mut Calls<'_, P, L>, SocketId, &P) -> Result<usize, Gone>,
    ) -> Result<usize, Gone> {
        let on_adapter = self.may_send(id)?;
        let socket = self.layer.socket(id);
        let len = data.len();
        let taken = match (on_adapter, socket.place) {
            (Some(on_adapter), _) => {
                let end = self.adapters.get_mut(socket.adapter.index()).ok_or(Gone)?;
                let mut calls = end.os.calls(self.now, &mut end.link);
                to_adapter(&mut calls, on_adapter, &data)?
            }
            (None, Place::Host(conn)) if socket.can_send() => self.stack.send(conn, data)?,
            (None, _) => {
                let taken = self.layer.keep(id, &data);
                let used = Used {
                    requests: u32::from(taken > 0),
                    enqueues: enqueues(taken),
                    bytes: taken as u64,
                    ..Used::default()
                };
                self.layer.socket_mut(id).wants_room = taken < len;
                self.account(id, &used);
                return Ok(taken);
            }
        };
        self.layer.socket_mut(id).wants_room = taken < len;
        if taken > 0 {
            self.consider_send(id, taken, enqueues(taken));
        }
        Ok(taken)
    }

    /// Sends `len` bytes from `address` on, in a file that the link lends to the adapter, as [`Calls::send_lent`] does. Returns `None` if
    /// the connection is not on its adapter, or must not send there now.
    ///
    /// # Errors
    /// The connection has ended or is shut down for sending.
    pub fn send_lent(
        &mut self,
        id: SocketId,
        (address, len): (u64, u32),
    ) -> Result<Option<u32>, Gone> {
        let Some(on_adapter) = self.may_send(id)? else {
            return Ok(None);
        };
        let adapter = self.layer.socket(id).adapter;
        let end = self.adapters.get_mut(adapter.index()).ok_or(Gone)?;
        let mut calls = end.os.calls(self.now, &mut end.link);
        let taken = calls.send_lent(on_adapter, (address, len))?;
        self.layer.socket_mut(id).wants_room = taken < len;
        if taken > 0 {
            self.consider_send(id, taken as usize, taken.div_ceil(ENQUEUE_BYTES));
        }
        Ok(Some(taken))
    }

    /// Called when the application has put `len` bytes into a send buffer by this many enqueues (handoff-policies 3.3).
    fn consider_send(&mut self, id: SocketId, len: usize, enqueues: u32) {
        let socket = self.layer.socket_mut(id);
        socket.requests += 1;
        socket.enqueues += enqueues;
        socket.bytes_sent += len as u64;
        socket.response_bytes += len as u64;
        if let Some(end) = self.adapters.get_mut(socket.adapter.index()) {
            self.layer
                .consider_send(self.now, self.stack, &mut end.os, id, enqueues);
        }
    }

    /// Asks the policy whether to take a connection back from its adapter before the application sends `bytes`, which it has announced.
    pub fn announce(&mut self, id: SocketId, bytes: u64) {
        let Some(socket) = self.layer.sockets.get(id.0 as usize) else {
            return;
        };
        if let Some(end) = self.adapters.get_mut(socket.adapter.index()) {
            self.layer
                .consider_announced(self.now, self.stack, &mut end.os, id, bytes);
        }
    }

    /// Counts a read for the policy.
    fn note_received(&mut self, id: SocketId) {
        let socket = self.layer.socket_mut(id);
        socket.receives += 1;
        socket.response_bytes = 0;
        self.layer.requests += 1;
    }

    /// Called when the application has read from a connection on the host.
    fn consider_receive(&mut self, id: SocketId) {
        let adapter = self.layer.socket(id).adapter;
        if let Some(end) = self.adapters.get_mut(adapter.index()) {
            self.layer
                .consider_receive(self.now, self.stack, &mut end.os, id);
        }
    }

    /// Closes a socket.
    fn let_go(&mut self, id: SocketId, wish: Wish) {
        let now = self.now;
        if !self.layer.sockets.contains(id.0 as usize) {
            return;
        }
        self.layer.stays(self.stack, id);
        let socket = self.layer.socket_mut(id);
        socket.early.clear();
        let (place, has_unsent) = (socket.place, !socket.unsent.is_empty());
        let adapter = socket.adapter;
        match place {
            Place::Host(_) | Place::Adapter(_) if has_unsent && wish == Wish::Close => {
                socket.wish = wish;
            }
            Place::HandingOff(_) | Place::Restoring(_) => socket.wish = wish,
            Place::Host(conn) => {
                match wish {
                    Wish::Abort => self.stack.abort(conn),
                    _ => self.stack.close(conn),
                }
                self.layer.set_socket_of(conn, None);
                self.layer.remove(id);
            }
            Place::Adapter(on_adapter) => match self.adapters.get_mut(adapter.index()) {
                Some(AdapterEnd { os, .. }) => {
                    (self.layer).end_on_adapter(now, self.stack, os, (id, on_adapter), wish);
                }
                None => self.layer.forget_on_adapter(self.stack, id, false),
            },
            Place::Ended(_) => self.layer.remove(id),
        }
    }
}

/// Queries for the lender of sent data: who may still refer to it.
impl<P: Inline, L: HostLink<Data = P>> LayerCalls<'_, P, L> {
    /// Returns the stack's connection of a socket that is on the host, and the sequence number after all data that the application has
    /// sent.
    pub fn in_stack(&self, id: SocketId) -> Option<(ConnId, SeqNr)> {
        match self.layer.sockets.get(id.0 as usize)?.place {
            Place::Host(conn) => Some((conn, self.stack.send_end(conn))),
            _ => None,
        }
    }

    /// Returns who refers to the data that a socket was given last; empty if the data has moved with the connection, whose state then
    /// contains it.
    pub fn borrowers(&mut self, id: SocketId) -> Borrowers {
        let Some(socket) = self.layer.sockets.get(id.0 as usize) else {
            return Borrowers::new();
        };
        match socket.place {
            Place::Host(conn) => {
                let end = self.stack.send_end(conn);
                Borrowers::from_iter([(Borrower::Connection(conn), end)])
            }
            Place::Adapter(on_adapter) | Place::Restoring(on_adapter) => {
                let end = self.adapters.get_mut(socket.adapter.index());
                end.map_or_else(Borrowers::new, |end| {
                    end.os.borrowers(socket.adapter, on_adapter)
                })
            }
            Place::HandingOff(_) | Place::Ended(_) => Borrowers::new(),
        }
    }
}

impl<P: Inline, L: HostLink<Data = P>, S: HostStack<P>> Sockets<P> for LayerCalls<'_, P, L, S> {
    fn accept(&mut self) -> Option<SocketId> {
        if !self.has_place() {
            return None;
        }
        let mut listeners = self.layer.listeners.iter();
        let accepted = |&(id, adapter)| Some((self.stack.accept(id)?, adapter));
        let (conn, adapter) = listeners.find_map(accepted)?;
        // Responses are written as a whole, so there is nothing to wait for.
        self.stack.set_nodelay(conn, true);
        Some(self.accepted(conn, adapter))
    }

    fn receive(&mut self, id: SocketId, max: usize) -> Receive<P> {
        let Some(socket) = self.layer.sockets.get_mut(id.0 as usize) else {
            return Receive::Gone;
        };
        if let Some(piece) = socket.early.front_mut() {
            let len = piece.len();
            if len <= max {
                return socket
                    .early
                    .pop_front()
                    .map_or(Receive::WouldBlock, Receive::Data);
            }
            let data = piece.slice(0, max);
            *piece = piece.slice(max, len - max);
            return Receive::Data(data);
        }
        let (place, adapter) = (socket.place, socket.adapter);
        match place {
            Place::Host(conn) => {
                let received = self.stack.receive(conn, max);
                if matches!(received, Receive::Data(_)) {
                    self.note_received(id);
                    self.consider_receive(id);
                }
                received
            }
            Place::Adapter(on_adapter) | Place::Restoring(on_adapter) => {
                match self.adapters.get_mut(adapter.index()) {
                    Some(end) => {
                        let received = end.os.receive(on_adapter, max);
                        if matches!(received, Receive::Data(_)) {
                            self.note_received(id);
                            self.layer.requests_on_nic += 1;
                        }
                        received
                    }
                    None => Receive::Gone,
                }
            }
            Place::HandingOff(_) if self.has_ended_before(id) => Receive::EndOfStream,
            Place::HandingOff(_) => Receive::WouldBlock,
            Place::Ended(CloseReason::Normal) => Receive::EndOfStream,
            Place::Ended(_) => Receive::Gone,
        }
    }

    fn unread(&self, id: SocketId) -> Unread {
        let Some(socket) = self.layer.sockets.get(id.0 as usize) else {
            return Unread::GONE;
        };
        let early: usize = socket.early.iter().map(P::len).sum();
        let unread = match socket.place {
            Place::Host(conn) => self.stack.unread(conn),
            Place::Adapter(on_adapter) | Place::Restoring(on_adapter) => {
                let end = self.adapters.get(socket.adapter.index());
                end.map_or(Unread::GONE, |end| end.os.unread(on_adapter))
            }
            Place::HandingOff(_) => Unread {
                ended: self.has_ended_before(id),
                ..Unread::default()
            },
            Place::Ended(_) => Unread::GONE,
        };
        Unread {
            len: early + unread.len,
            ..unread
        }
    }

    fn send(&mut self, id: SocketId, data: P) -> Result<usize, Gone> {
        let once = |_| 1;
        self.send_by(id, data, once, |calls, socket, data| {
            calls.send_some(socket, data)
        })
    }

    fn send_file(&mut self, id: SocketId, content: FileContent, data: P) -> Result<usize, Gone> {
        let by_page = |taken| enqueues(&content, taken);
        self.send_by(id, data, by_page, |calls, socket, data| {
            calls.send_content(socket, &content, data)
        })
    }

    fn send_cached(&mut self, id: SocketId, content: &FileContent) -> Result<FromCache, Gone> {
        let Some(on_adapter) = self.may_send(id)? else {
            return Ok(FromCache::NOTHING);
        };
        let adapter = self.layer.socket(id).adapter;
        let end = self.adapters.get_mut(adapter.index()).ok_or(Gone)?;
        let mut calls = end.os.calls(self.now, &mut end.link);
        let done = calls.send_cached(on_adapter, content)?;
        self.layer.socket_mut(id).wants_room = !done.has_room;
        if done.taken > 0 {
            let taken = done.taken as usize;
            self.consider_send(id, taken, enqueues(content, taken));
        }
        Ok(done)
    }

    fn set_cork(&mut self, id: SocketId, cork: bool) {
        let now = self.now;
        let Some(socket) = self.socket(id) else {
            return;
        };
        socket.corked = cork;
        match socket.place {
            Place::Host(conn) => self.stack.set_cork(conn, cork),
            Place::Adapter(on_adapter) => {
                let adapter = socket.adapter;
                if let Some(end) = self.adapters.get_mut(adapter.index()) {
                    end.os.set_cork(now, &mut end.link, on_adapter, cork);
                }
            }
            Place::HandingOff(_) | Place::Restoring(_) | Place::Ended(_) => {}
        }
    }

    fn shutdown(&mut self, id: SocketId) -> bool {
        let now = self.now;
        let Some(socket) = self.layer.sockets.get_mut(id.0 as usize) else {
            return true;
        };
        let end = self.adapters.get_mut(socket.adapter.index());
        if end.as_ref().is_some_and(|end| !end.os.config().half_close) {
            return false;
        }
        self.layer.stays(self.stack, id);
        let socket = self.layer.socket_mut(id);
        match socket.place {
            Place::Host(conn) if socket.unsent.is_empty() => self.stack.shutdown(conn),
            Place::Host(_) | Place::HandingOff(_) | Place::Restoring(_) => {
                socket.wish = Wish::Shutdown;
            }
            Place::Adapter(_) if !socket.unsent.is_empty() => socket.wish = Wish::Shutdown,
            Place::Adapter(on_adapter) => {
                if let Some(end) = end {
                    end.os.shutdown(now, on_adapter);
                }
            }
            Place::Ended(_) => {}
        }
        true
    }

    fn close(&mut self, id: SocketId) {
        self.let_go(id, Wish::Close);
    }

    fn abort(&mut self, id: SocketId) {
        self.let_go(id, Wish::Abort);
    }
}
