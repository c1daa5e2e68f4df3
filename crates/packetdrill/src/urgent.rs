//! Urgent data as in Linux's sockets (tcp(7), recv(2)): the byte that the peer marked last is read separately, or in line
//! (SO_OOBINLINE), and no read crosses its position.

use crate::errno::{Errno, Outcome, fail};
use crate::sockets::{Ready, Received, Socket, SocketId};
use crate::world::World;
use baton_abi::tcp_info::TcpState;
use baton_tcp::ConnId;
use libc::c_int;

/// Urgent mark of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Bytes of the stream before the urgent one.
    before: u64,
    /// The urgent byte was read separately.
    read: bool,
}

impl Socket {
    /// Number of bytes before the mark, if there is one.
    pub(crate) fn bytes_to_mark(&self) -> Option<usize> {
        let mark = self.mark?;
        let left = mark.before.checked_sub(self.received.taken());
        left.map(|left| left as usize)
    }

    /// Reports whether the next byte is the urgent one.
    pub(crate) fn is_at_mark(&self) -> bool {
        self.bytes_to_mark() == Some(0)
    }

    /// Reports whether the next byte is the urgent one and is not read in line.
    pub(crate) fn is_before_hole(&self) -> bool {
        self.is_at_mark() && !self.options.urgent_inline()
    }

    /// Reports whether the urgent byte has arrived and was not read separately.
    pub(crate) fn has_urgent_byte(&self) -> bool {
        let unread = self.mark.is_some_and(|mark| !mark.read);
        let place = self.bytes_to_mark().filter(|_| unread);
        place.is_some_and(|place| place < self.received.len())
    }

    /// Bytes that a read may take now (SIOCINQ).
    pub(crate) fn readable_len(&self) -> usize {
        let len = self.received.len();
        match self.bytes_to_mark() {
            Some(left) if !self.options.urgent_inline() => len.min(left),
            _ => len,
        }
    }

    /// Removes a mark that reads have passed.
    pub(crate) fn pass_mark(&mut self) {
        if self.bytes_to_mark().is_none() {
            self.mark = None;
        }
    }

    /// recv(2) with MSG_OOB.
    pub(crate) fn take_urgent_byte(
        &mut self,
        state: TcpState,
        want: usize,
        flags: c_int,
    ) -> Outcome<Received> {
        let Some(mark) = self.mark.filter(|mark| !mark.read) else {
            return fail(libc::EINVAL);
        };
        if self.options.urgent_inline() {
            return fail(libc::EINVAL);
        }
        if state == TcpState::Close && !self.finished {
            return fail(libc::ENOTCONN);
        }
        if !self.has_urgent_byte() {
            return match state == TcpState::Close || self.receive_shut {
                true => Ok(Received::default()),
                false => fail(libc::EAGAIN),
            };
        }
        let mut byte = [0];
        self.received
            .peek(self.bytes_to_mark().unwrap_or(0), &mut byte);
        let read = flags & libc::MSG_PEEK == 0;
        self.mark = Some(Mark { read, ..mark });
        let tells = want > 0 && flags & libc::MSG_TRUNC == 0;
        Ok(Received {
            data: if tells { byte.to_vec() } else { Vec::new() },
            len: want.min(1),
            cut: want == 0,
            urgent: true,
            ..Received::default()
        })
    }
}

impl World {
    /// Takes the peer's announcement of urgent data. An earlier urgent byte that was not read is lost, unless it is read in line.
    pub(crate) fn note_urgent(&mut self, conn: ConnId) {
        let Some(&id) = self.owners.get(&conn) else {
            return;
        };
        let Some(distance) = self.stack.urgent_distance(conn) else {
            return;
        };
        let socket = &self.sockets[id];
        let fetched = socket.received.taken() + socket.received.len() as u64;
        let lost = socket.is_before_hole() && socket.received.len() > 0;
        if lost {
            self.skip_hole(id);
        }
        self.sockets[id].mark = Some(Mark {
            before: fetched + u64::from(distance),
            read: false,
        });
        if lost {
            self.give_back(id, 1);
        }
    }

    /// Skips the urgent byte in a read of ordinary data.
    pub(crate) fn skip_hole(&mut self, id: SocketId) {
        let socket = &mut self.sockets[id];
        socket.received.advance(1);
        socket.pass_mark();
    }

    /// Wakes threads that wait for urgent data once it has arrived.
    pub(crate) fn tell_urgent(&mut self, id: SocketId) {
        if self.sockets[id].has_urgent_byte() {
            self.wake(id, Ready::PRIORITY | Ready::READABLE);
        }
    }

    /// SIOCATMARK.
    ///
    /// # Errors
    /// EINVAL for a listener (tcp(7)).
    pub(crate) fn at_mark(&self, id: SocketId) -> Result<c_int, Errno> {
        let socket = &self.sockets[id];
        match socket.listening {
            Some(_) => Err(Errno(libc::EINVAL)),
            None => Ok(socket.is_at_mark().into()),
        }
    }
}
