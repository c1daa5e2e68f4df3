//! Events of the stack and the adapters, and events for the application.

use super::moving::StackMove;
use super::socket::{Place, Wish};
use super::{AdapterEnd, AdapterId, Away, HostStack, SocketLayer};
use crate::adapter::MoveNews;
use crate::{MoveReason, Ready, SocketId};
use baton_bus::HostLink;
use baton_bus::link::Inline;
use baton_tcp::{CloseReason, ConnId, Event};
use baton_wire::Time;

/// A socket becomes writable once one in this many parts of its send buffer is free.
const WAKE_SHARE: u32 = 4;

impl<P: Inline> SocketLayer<P> {
    /// Handles an event of the stack.
    pub fn handle_event(&mut self, stack: &mut impl HostStack<P>, conn: ConnId, event: &Event) {
        if matches!(event, Event::Acceptable(_)) {
            self.acceptable = true;
            return;
        }
        let Some(id) = self.socket_of(conn) else {
            return;
        };
        match event {
            Event::Readable | Event::PeerClosed => self.wake_reader(id),
            Event::Connected => self.tell_writable(id),
            Event::Acknowledged(_) => {
                if !self.send_unsent(stack, id, conn) {
                    return;
                }
                let socket = self.socket(id);
                let enough = stack.send_buffer(conn) / WAKE_SHARE;
                let has_room = socket.unsent.is_empty() && socket.wants_room;
                if has_room && stack.send_space(conn) >= enough as usize {
                    self.wake_writer(id);
                }
            }
            Event::Closed(reason) => {
                self.set_socket_of(conn, None);
                self.end(id, *reason);
            }
            // Urgent data is read together with other data; the other two events are not used here.
            Event::Urgent | Event::TransmitTimes | Event::Acceptable(_) => {}
        }
    }

    /// Handles the events of these adapters, and moves connections that are to move.
    pub fn handle_adapters<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        adapters: &mut [AdapterEnd<P, L>],
    ) {
        // The caller has not asked for the remaining moves.
        self.moves.clear();
        for (adapter, end) in (0..).map(AdapterId).zip(adapters) {
            while let Some(news) = end.os.poll_move() {
                self.handle_move(now, stack, adapter, end, news);
            }
            while let Some(ready) = end.os.next_ready() {
                match ready {
                    Ready::Acceptable => {}
                    Ready::Readable(socket) => {
                        match self.socket_on(adapter, socket) {
                            // The application has closed the socket: this event may be the end of the connection.
                            Some(id) if self.socket(id).is_closed() => {
                                self.has_room_there(now, stack, end, id);
                            }
                            Some(id) => self.wake_reader(id),
                            None => {}
                        }
                    }
                    Ready::Writable(socket) => {
                        if let Some(id) = self.socket_on(adapter, socket) {
                            self.has_room_there(now, stack, end, id);
                        }
                    }
                }
            }
        }
    }

    fn handle_move<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        adapter: AdapterId,
        end: &mut AdapterEnd<P, L>,
        news: MoveNews,
    ) {
        let socket = match news {
            MoveNews::Imported(socket)
            | MoveNews::ImportRefused(socket, _)
            | MoveNews::Exported(socket)
            | MoveNews::NotExported(socket)
            | MoveNews::Relief(socket)
            | MoveNews::Lost(socket) => socket,
            MoveNews::Over(socket) => {
                let of = self.adapters.get_mut(adapter.index());
                if let Some((flow, closed_first)) = of.and_then(|of| of.closing.remove(&socket.0))
                    && self.away.get(&flow) == Some(&Away::Closing(adapter))
                {
                    self.away.remove(&flow);
                    self.moves
                        .push_back(StackMove::Ended { flow, closed_first });
                }
                return;
            }
        };
        let Some(id) = self.socket_on(adapter, socket) else {
            return;
        };
        match news {
            MoveNews::Imported(_) => self.handed_off(now, stack, end, id),
            MoveNews::ImportRefused(_, status) => self.handoff_refused(now, stack, id, status),
            MoveNews::Exported(_) => self.restored(now, stack, &mut end.os, id),
            MoveNews::NotExported(_) => self.not_restored(now, stack, &mut end.os, id),
            MoveNews::Relief(_) => {
                self.socket_mut(id).reason = MoveReason::Relief;
                self.restore(now, stack, &mut end.os, id);
            }
            MoveNews::Lost(_) => self.lost(now, stack, &mut end.os, id),
            MoveNews::Over(_) => {}
        }
    }

    /// Returns whether [`SocketLayer::next_ready`] may return something.
    pub fn has_ready(&self) -> bool {
        self.acceptable || !self.ready.is_empty()
    }

    /// Returns the next event for the application.
    pub fn next_ready(&mut self) -> Option<Ready> {
        if std::mem::take(&mut self.acceptable) {
            return Some(Ready::Acceptable);
        }
        while let Some(ready) = self.ready.pop_front() {
            let id = match ready {
                Ready::Readable(id) => {
                    self.socket_mut(id).readable = false;
                    id
                }
                Ready::Writable(id) => {
                    self.socket_mut(id).writable = false;
                    id
                }
                Ready::Acceptable => return Some(ready),
            };
            // The application may have closed the socket while its connection was moving.
            if !self.socket(id).is_closed() {
                return Some(ready);
            }
        }
        None
    }

    pub(super) fn wake_reader(&mut self, id: SocketId) {
        let socket = self.socket_mut(id);
        if !socket.is_closed() && !std::mem::replace(&mut socket.readable, true) {
            self.ready.push_back(Ready::Readable(id));
        }
    }

    pub(super) fn wake_writer(&mut self, id: SocketId) {
        let socket = self.socket_mut(id);
        if !socket.is_closed() && std::mem::take(&mut socket.wants_room) {
            self.tell_writable(id);
        }
    }

    fn tell_writable(&mut self, id: SocketId) {
        if !std::mem::replace(&mut self.socket_mut(id).writable, true) {
            self.ready.push_back(Ready::Writable(id));
        }
    }

    /// Handles the end of a connection.
    pub(super) fn end(&mut self, id: SocketId, reason: CloseReason) {
        self.settles_no_more(id);
        let socket = self.socket_mut(id);
        let is_closed = socket.is_closed();
        socket.kept = None;
        socket.packets.clear();
        socket.unsent.clear();
        socket.place = Place::Ended(reason);
        self.stats.ended_abnormally += u64::from(reason != CloseReason::Normal);
        match is_closed {
            true => self.remove(id),
            false => self.wake_reader(id),
        }
    }

    /// Sends data that waits in the socket, and then what the application wanted to happen after it. Returns false if the socket was
    /// removed.
    pub(super) fn send_unsent(
        &mut self,
        stack: &mut impl HostStack<P>,
        id: SocketId,
        conn: ConnId,
    ) -> bool {
        let socket = &mut self.sockets[id.0 as usize];
        if !socket.send_unsent_by(|piece| stack.send(conn, piece.clone())) {
            return true;
        }
        match socket.wish {
            Wish::None => {}
            Wish::Shutdown => {
                socket.wish = Wish::None;
                stack.shutdown(conn);
            }
            Wish::Close => {
                stack.close(conn);
                return self.forget(id, conn);
            }
            Wish::Abort => {
                stack.abort(conn);
                return self.forget(id, conn);
            }
        }
        true
    }

    /// Called when the adapter has buffer space for a connection, or the connection has ended there.
    fn has_room_there<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        end: &mut AdapterEnd<P, L>,
        id: SocketId,
    ) {
        match self.socket(id).place {
            Place::Adapter(on_adapter) => {
                self.send_unsent_there(now, stack, end, id, on_adapter);
            }
            _ => self.wake_writer(id),
        }
    }

    /// Sends waiting data to a connection on the adapter, and then does what the application wanted to happen after it. Returns false if
    /// the socket was removed.
    pub(super) fn send_unsent_there<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        end: &mut AdapterEnd<P, L>,
        id: SocketId,
        on_adapter: SocketId,
    ) -> bool {
        if end.os.is_lost(on_adapter) {
            // The data waits until the connection is in the stack again.
            return true;
        }
        let socket = &mut self.sockets[id.0 as usize];
        let mut calls = end.os.calls(now, &mut end.link);
        if !socket.send_unsent_by(|piece| calls.send_some(on_adapter, piece)) {
            calls.want_room(on_adapter);
            return true;
        }
        match socket.wish {
            Wish::None => {}
            Wish::Shutdown => {
                socket.wish = Wish::None;
                end.os.shutdown(now, on_adapter);
            }
            wish @ (Wish::Close | Wish::Abort) => {
                self.end_on_adapter(now, stack, &mut end.os, (id, on_adapter), wish);
                return false;
            }
        }
        self.wake_writer(id);
        true
    }

    fn forget(&mut self, id: SocketId, conn: ConnId) -> bool {
        self.set_socket_of(conn, None);
        self.remove(id);
        false
    }

    /// Records that the connection of a socket is not on its adapter any more.
    pub(super) fn leave_adapter(&mut self, id: SocketId) {
        let socket = self.socket(id);
        let (flow, adapter) = (socket.flow, socket.adapter);
        let is_moving = socket.is_moving();
        if let Some(on_adapter) = socket.place.on_adapter() {
            let of = &mut self.adapters[adapter.index()];
            let left = of.sockets.remove(&on_adapter.0);
            self.moving -= usize::from(left.is_some() && is_moving);
            self.away.remove(&flow);
        }
    }
}
