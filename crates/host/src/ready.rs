//! Waking applications: which sockets have something to report.

use crate::footprint;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::sockets::SocketId;
use baton_wire::Payload;

impl<P: Payload> Kernel<P> {
    /// The socket has data, the end of the stream, or an error to read.
    pub(crate) fn wake_reader<M: Meter>(&mut self, id: SocketId, m: &mut M) {
        footprint::wakeup(m, id.0);
        self.change_readiness(id, |readable, _| *readable = true);
    }

    /// The socket has room for a writer that waits.
    pub(crate) fn wake_writer<M: Meter>(&mut self, id: SocketId, m: &mut M) {
        footprint::wakeup(m, id.0);
        self.sockets[id].wants_room = false;
        self.change_readiness(id, |_, writable| *writable = true);
    }

    /// There is nothing left to read, and nothing has to be reported.
    pub(crate) fn clear_readable(&mut self, id: SocketId) {
        self.change_readiness(id, |readable, _| *readable = false);
    }

    /// The socket has nothing to report any more.
    pub(crate) fn clear_ready(&mut self, id: SocketId) {
        self.change_readiness(id, |readable, writable| {
            *readable = false;
            *writable = false;
        });
    }

    /// The application has taken the socket: from now on its changes are reported, and what came before them.
    pub(crate) fn begin_reporting(&mut self, id: SocketId) {
        let socket = &mut self.sockets[id];
        socket.accepted = true;
        if socket.readable || socket.writable {
            self.ready_count += 1;
            self.enter_ready_queue(id);
        }
    }

    fn change_readiness(&mut self, id: SocketId, change: impl Fn(&mut bool, &mut bool)) {
        let socket = &mut self.sockets[id];
        if socket.closed {
            return;
        }
        let was = socket.readable || socket.writable;
        change(&mut socket.readable, &mut socket.writable);
        let is = socket.readable || socket.writable;
        if !socket.accepted || was == is {
            return;
        }
        if is {
            self.ready_count += 1;
            self.enter_ready_queue(id);
        } else {
            self.ready_count -= 1;
        }
    }

    fn enter_ready_queue(&mut self, id: SocketId) {
        let socket = &mut self.sockets[id];
        if !socket.in_ready_queue {
            socket.in_ready_queue = true;
            self.ready_queue.push_back(id);
        }
    }
}
