//! read, recv and their kin on sockets.

use super::{Socket, SocketId, TcpState};
use crate::address::Family;
use crate::errno::{Errno, Outcome, fail, wait};
use crate::timestamping::{Asked, Stamp};
use crate::world::World;
use crate::zero_copy::Completion;
use baton_wire::Time;
use libc::c_int;

/// What a receiving call came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The bytes; none of those dropped by MSG_TRUNC.
    pub data: Vec<u8>,
    /// How many bytes were received.
    pub len: usize,
    /// What is left to be read, for a socket that asked for it (TCP_INQ).
    pub unread: Option<c_int>,
    /// What the error queue held (MSG_ERRQUEUE).
    pub completion: Option<Completion>,
    /// The same, where it was a timestamp.
    pub stamp: Option<Stamp>,
    /// When the last byte of it arrived, for a socket that asked for it (SO_TIMESTAMPING).
    pub arrived: Option<Time>,
    /// There was more than the caller gave room for, which is lost.
    pub cut: bool,
    /// The socket's family, which the form of a report depends on.
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
    /// The caller gave no place for what there is.
    nowhere: bool,
}

impl Receive {
    /// The call as it is made, for at most `want` bytes.
    pub fn new(fd: c_int, want: usize, flags: c_int) -> Self {
        Self {
            fd,
            want,
            flags,
            got: Received::default(),
            limit: None,
            nowhere: false,
        }
    }

    /// The same; with `nowhere` data stays where it is, and the call fails with EFAULT.
    pub fn nowhere(self, nowhere: bool) -> Self {
        Self { nowhere, ..self }
    }

    fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    /// What there is, when that is enough.
    ///
    /// # Errors
    /// As the manual page has it; nothing is taken then.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<Received> {
        let id = world.socket_id(self.fd)?;
        if self.has(libc::MSG_ERRQUEUE) {
            return self.take_report(&mut world.sockets[id]);
        }
        if self.has(libc::MSG_OOB) {
            // Urgent data is ignored: there never is any (tcp(7)).
            return fail(libc::EINVAL);
        }
        if world.sockets[id].listening.is_some() {
            return fail(libc::ENOTCONN);
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
        if self.got.len >= target.max(1) || (self.want == 0 && there) {
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

    /// What the error queue holds.
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

    /// Takes, or looks at, as much as is there and wanted. True when anything was there.
    fn take(&mut self, world: &mut World, id: SocketId) -> bool {
        let socket = &mut world.sockets[id];
        let tells = Asked::RX_SOFTWARE | Asked::SOFTWARE;
        let stamps = socket.options.timestamping.contains(tells);
        let queue = &mut socket.received;
        let there = queue.len() > 0;
        if stamps && there {
            let len = queue.len().min(self.want - self.got.len);
            self.got.arrived = queue.arrival_of(len).or(self.got.arrived);
        }
        if self.has(libc::MSG_PEEK) {
            self.got.len = queue.len().min(self.want);
            if !self.has(libc::MSG_TRUNC) {
                self.got.data.resize(self.got.len, 0);
                queue.peek(0, &mut self.got.data);
            }
            return there;
        }
        let mut taken = 0;
        while self.got.len < self.want {
            let Some(piece) = queue.take(self.want - self.got.len) else {
                break;
            };
            taken += piece.len();
            self.got.len += piece.len();
            if !self.has(libc::MSG_TRUNC) {
                self.got.data.extend_from_slice(&piece);
            }
        }
        if taken > 0 {
            world.give_back(id, taken);
        }
        there
    }

    /// Whether nothing more can come: in order, or with an error.
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
            // With nothing left, 1 says that the peer is done (TCP_INQ).
            let left = socket.received.len() as c_int;
            self.got.unread = Some(match left {
                0 => socket.finished.into(),
                left => left,
            });
        }
        std::mem::take(&mut self.got)
    }
}
