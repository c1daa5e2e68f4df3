//! read, recv and related calls on sockets.

use super::{Socket, SocketId};
use crate::errno::{Errno, Outcome, fail, wait};
use crate::timestamping::Stamp;
use crate::world::World;
use crate::zero_copy::Completion;
use baton_abi::address::Family;
use baton_abi::tcp_info::TcpState;
use baton_wire::{Time, Timestamping};
use libc::c_int;

/// Result of a receiving call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The bytes, without those dropped by MSG_TRUNC.
    pub data: Vec<u8>,
    /// Number of bytes received.
    pub len: usize,
    /// Number of unread bytes, if the socket requests it (TCP_INQ).
    pub unread: Option<c_int>,
    /// Zero-copy report from the error queue (MSG_ERRQUEUE).
    pub completion: Option<Completion>,
    /// Timestamp report from the error queue.
    pub stamp: Option<Stamp>,
    /// When the last byte arrived, if the socket requests it (SO_TIMESTAMPING).
    pub arrived: Option<Time>,
    /// The data did not fit into the caller's buffer, and the rest of it is lost.
    pub cut: bool,
    /// The data is the urgent byte, read separately (MSG_OOB).
    pub urgent: bool,
    /// The socket's family, on which the format of a report depends.
    pub family: Family,
}

/// recv(2) of a socket.
#[derive(Debug)]
pub struct Receive {
    fd: c_int,
    want: usize,
    flags: c_int,
    got: Received,
    limit: Option<Option<Time>>,
    /// The first byte would be written to a null pointer.
    nowhere: bool,
    /// The next byte is urgent, which ends this read.
    at_mark: bool,
}

impl Receive {
    /// Creates the call, for at most `want` bytes.
    pub fn new(fd: c_int, want: usize, flags: c_int) -> Self {
        Self {
            fd,
            want,
            flags,
            got: Received::default(),
            limit: None,
            nowhere: false,
            at_mark: false,
        }
    }

    /// With `nowhere`, the call takes no data from the socket, and fails with EFAULT.
    pub fn nowhere(self, nowhere: bool) -> Self {
        Self { nowhere, ..self }
    }

    fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    /// Returns the available data, if there is enough.
    ///
    /// # Errors
    /// As in the manual page. Takes no data if it fails.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<Received> {
        let id = world.socket_id(self.fd)?;
        if self.has(libc::MSG_ERRQUEUE) {
            return self.take_report(&mut world.sockets[id]);
        }
        if world.sockets[id].listening.is_some() {
            return fail(libc::ENOTCONN);
        }
        if self.has(libc::MSG_OOB) {
            let state = world.tcp_state(id);
            return world.sockets[id].take_urgent_byte(state, self.want, self.flags);
        }
        let now = world.now();
        let socket = &world.sockets[id];
        let limit = *self
            .limit
            .get_or_insert_with(|| socket.receive_limit(now, self.flags));
        let unread = world.sockets[id].received.len();
        if self.nowhere && self.want.min(unread) > 0 && !self.has(libc::MSG_TRUNC) {
            return fail(libc::EFAULT);
        }
        let there = self.take(world, id);
        let target = match self.has(libc::MSG_WAITALL) {
            true => self.want,
            false => world.sockets[id].options.low_water.min(self.want),
        };
        let stops = self.at_mark && self.got.len > 0;
        if self.got.len >= target.max(1) || stops || (self.want == 0 && there) {
            return Ok(self.finish(world, id));
        }
        let waits = limit.is_some_and(|limit| limit > now);
        match self.end_of_waiting(world, id) {
            Some(_) if self.got.len > 0 => Ok(self.finish(world, id)),
            Some(Ok(())) => Ok(self.finish(world, id)),
            Some(Err(errno)) => {
                world.sockets[id].error = None;
                Err(errno.into())
            }
            None if self.got.len > 0 && !waits => Ok(self.finish(world, id)),
            None => wait(now, limit),
        }
    }

    /// Takes a report from the error queue.
    fn take_report(&mut self, socket: &mut Socket) -> Outcome<Received> {
        self.got.family = socket.family;
        if let Some(stamp) = socket.timestamps.take_report() {
            self.got.len = stamp.data.len().min(self.want);
            self.got.cut = stamp.data.len() > self.want;
            self.got.data = stamp.data[..self.got.len].to_vec();
            self.got.stamp = Some(stamp);
        } else {
            self.got.completion = socket.zero_copy.take_report();
        }
        match (&self.got.stamp, &self.got.completion) {
            (None, None) => fail(libc::EAGAIN),
            _ => Ok(std::mem::take(&mut self.got)),
        }
    }

    /// Takes, or peeks at, as much of the wanted data as is available, up to urgent data. Returns true if there was any.
    fn take(&mut self, world: &mut World, id: SocketId) -> bool {
        if self.has(libc::MSG_PEEK) {
            (self.got.len, self.got.data) = (0, Vec::new());
        }
        let socket = &world.sockets[id];
        let first = self.got.len == 0;
        let there = socket.received.len() > 0;
        // A read that starts at the urgent byte skips it.
        let skip = first && there && self.want > 0 && socket.is_before_hole();
        let to_mark = socket.bytes_to_mark().filter(|&left| left > 0 || !first);
        let unread = socket.received.len() - usize::from(skip);
        let most = (self.want - self.got.len).min(to_mark.unwrap_or(usize::MAX));
        let len = unread.min(most);
        self.at_mark = to_mark == Some(len);
        let asked = socket.options.timestamping;
        if len > 0 && asked.contains(Timestamping::OF_ARRIVAL) {
            let arrived = socket.received.arrival_of(len + usize::from(skip));
            self.got.arrived = arrived.or(self.got.arrived);
        }
        let keeps = !self.has(libc::MSG_TRUNC);
        if self.has(libc::MSG_PEEK) {
            self.got.len = len;
            if keeps {
                self.got.data.resize(len, 0);
                let queue = &world.sockets[id].received;
                queue.peek(usize::from(skip), &mut self.got.data);
            }
            return there;
        }
        if skip {
            world.skip_hole(id);
        }
        let mut left = len;
        while left > 0 {
            let Some(piece) = world.sockets[id].received.take(left) else {
                break;
            };
            left -= piece.len();
            if keeps {
                self.got.data.extend_from_slice(&piece);
            }
        }
        self.got.len += len;
        world.sockets[id].pass_mark();
        if len > 0 || skip {
            world.give_back(id, len + usize::from(skip));
        }
        there
    }

    /// Returns the outcome if no more data can arrive: orderly end, or an error.
    fn end_of_waiting(&self, world: &World, id: SocketId) -> Option<Result<(), Errno>> {
        let socket = &world.sockets[id];
        if socket.finished {
            return Some(Ok(()));
        }
        if let Some(errno) = socket.error {
            return Some(Err(errno));
        }
        if socket.receive_shut {
            return Some(Ok(()));
        }
        let closed = world.tcp_state(id) == TcpState::Close;
        closed.then_some(Err(Errno(libc::ENOTCONN)))
    }

    fn finish(&mut self, world: &World, id: SocketId) -> Received {
        let socket = &world.sockets[id];
        if socket.options.report_unread {
            // If nothing is unread, 1 means that the peer has closed (TCP_INQ).
            let left = socket.received.len() as c_int;
            self.got.unread = Some(match left {
                0 => socket.finished.into(),
                left => left,
            });
        }
        std::mem::take(&mut self.got)
    }
}
