//! write, send and related calls on sockets.

use super::{Association, SocketId};
use crate::errno::{Errno, Outcome, Stop, fail, wait};
use crate::flags::Gso;
use crate::world::World;
use baton_abi::tcp_info::TcpState;
use baton_tcp::{ConnId, WriteFlags};
use baton_wire::{Time, Timestamping};
use bytes::Bytes;
use libc::c_int;

/// Buffers are limited to half of the peer's largest window if that is larger than this (TCP_MSS_DEFAULT).
const SMALL_WINDOW: u32 = 536;

/// Maximum number of pieces of memory in one buffer (MAX_SKB_FRAGS).
const MOST_PIECES: usize = 17;

/// send(2) of a socket.
#[derive(Debug)]
pub struct Send {
    fd: c_int,
    data: Bytes,
    flags: c_int,
    /// Destination address, which is used only if the call opens the connection.
    sockaddr: Vec<u8>,
    sent: usize,
    /// The call opened the connection by Fast Open.
    opens: bool,
    /// The call found no space, and waits until the socket is writable.
    waits: bool,
    limit: Option<Option<Time>>,
    /// Timestamps that the call requests for its own bytes, besides those of its socket.
    asks: Option<Timestamping>,
    /// Ends of the pieces of memory that held the data.
    pieces: Vec<usize>,
}

impl Send {
    /// Creates the call.
    pub fn new(fd: c_int, data: Bytes, flags: c_int) -> Self {
        Self {
            fd,
            data,
            flags,
            sockaddr: Vec::new(),
            sent: 0,
            opens: false,
            waits: false,
            limit: None,
            asks: None,
            pieces: Vec::new(),
        }
    }

    /// Adds the timestamps that a control message requests (SO_TIMESTAMPING).
    pub fn asking(self, flags: Option<u32>) -> Self {
        let asks = flags.map(Timestamping::from_bits_truncate);
        Self { asks, ..self }
    }

    /// Sets the lengths of the pieces of memory that held the data; a zero-copy buffer holds a limited number of pieces, as in Linux.
    #[must_use]
    pub fn in_pieces(self, lens: impl Iterator<Item = usize>) -> Self {
        let ends = lens.scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        let pieces = ends.collect();
        Self { pieces, ..self }
    }

    /// Sets the destination address (sendto(2)).
    #[must_use]
    pub fn to(self, sockaddr: &[u8]) -> Self {
        Self {
            sockaddr: sockaddr.to_vec(),
            ..self
        }
    }

    fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    /// Writes what fits. Returns the number of bytes once all are written or no more can be.
    ///
    /// # Errors
    /// As in the manual page, if nothing was written.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<usize> {
        let outcome = match self.write_on(world) {
            Err(Stop::Fail(_)) if self.sent > 0 => Ok(self.sent),
            outcome => outcome,
        };
        if outcome.is_ok() && self.sent > 0 && self.sent < self.data.len() {
            self.ask_for_stamps(world);
        }
        if outcome.is_ok() && self.sent > 0 && self.has(libc::MSG_ZEROCOPY) {
            self.note_zero_copy(world);
        }
        outcome
    }

    /// Requests the times of the call's last byte, which is in the send queue and has not been sent yet.
    fn ask_for_stamps(&self, world: &mut World) {
        let Ok(id) = world.socket_id(self.fd) else {
            return;
        };
        let socket = &world.sockets[id];
        let wanted = socket.options.timestamping.with_call(self.asks);
        if let (false, Some(conn)) = (wanted.stages().is_empty(), socket.conn)
            && world.link(conn).queue.unsent_len() > 0
        {
            let end = world.bytes_written(conn);
            let (key, stages) = world.sockets[id].timestamps.request(end, wanted);
            world.stack.ask_times(conn, key, stages);
        }
    }

    /// Registers the call for a zero-copy report.
    fn note_zero_copy(&self, world: &mut World) {
        let Ok(id) = world.socket_id(self.fd) else {
            return;
        };
        let socket = &mut world.sockets[id];
        if let (true, Some(conn)) = (socket.options.reports_zero_copy(), socket.conn) {
            let queued = world.stack.unacknowledged(conn) as u64;
            socket.zero_copy.written(queued);
        }
    }

    fn write_on(&mut self, world: &mut World) -> Outcome<usize> {
        let id = world.socket_id(self.fd)?;
        let now = world.now();
        let socket = &world.sockets[id];
        let limit = *self
            .limit
            .get_or_insert_with(|| socket.send_limit(now, self.flags));
        let fast = self.has(libc::MSG_FASTOPEN) || socket.deferred.is_some();
        // If connect(2) only has to report its outcome, this is an ordinary message (__inet_stream_connect of Linux).
        let opened = socket.association == Association::Connecting
            && socket.conn.is_some()
            && !world.is_opening(id);
        if fast && !self.opens && !opened {
            self.open_fast(world, id, limit.is_some())?;
            if limit.is_none() {
                return match self.sent {
                    0 => fail(libc::EINPROGRESS),
                    sent => Ok(sent),
                };
            }
        }
        let opening = world.is_opening(id);
        let socket = &mut world.sockets[id];
        if opening && socket.error.is_none() {
            return wait(now, limit);
        }
        if self.opens
            && let Some(errno) = socket.error.take()
        {
            // The SYN's data never arrived.
            self.sent = 0;
            return Err(errno.into());
        }
        match world.tcp_state(id) {
            TcpState::Established | TcpState::CloseWait | TcpState::SynReceived => {}
            _ => return self.broken_pipe(world, id),
        }
        let socket = &mut world.sockets[id];
        if fast {
            socket.association = Association::Connected;
        }
        if socket.error.is_some() || socket.send_shut {
            return self.broken_pipe(world, id);
        }
        let conn = world.sockets[id]
            .conn
            .expect("an established socket has a connection");
        if self.waits && !world.is_writable(id) {
            return wait(now, limit);
        }
        self.waits = false;
        self.fill(world, id, conn);
        if self.sent == self.data.len() {
            return Ok(self.sent);
        }
        self.waits = true;
        world.sockets[id].no_space = true;
        wait(now, limit)
    }

    /// Opens the connection with as much data as the SYN holds (RFC 7413 4.2.1; sendto(2), MSG_FASTOPEN). If the caller waits, also
    /// queues further data, to be sent when the handshake ends.
    fn open_fast(&mut self, world: &mut World, id: SocketId, waits: bool) -> Result<(), Errno> {
        let (flow, how) = world.fast_open_of(id, &self.sockaddr)?;
        let conn = world.open_connection(id, flow, Some(how))?;
        self.opens = true;
        let room = world.stack.fast_open_room(world.now, conn);
        if room > 0 && !self.data.is_empty() {
            self.write_part(world, conn, room, true, false);
            world.link(conn).queue.push();
        }
        world.pump();
        if waits {
            self.fill(world, id, conn);
        }
        Ok(())
    }

    /// Outcome if the socket cannot send any more: the number of bytes written, or the error if there are none.
    fn broken_pipe(&self, world: &mut World, id: SocketId) -> Outcome<usize> {
        match self.sent {
            0 => {
                let error = world.sockets[id].error.take();
                Err(error.unwrap_or(Errno(libc::EPIPE)).into())
            }
            sent => Ok(sent),
        }
    }

    /// Fills as many buffers of the send queue as there is memory for, and sends what may be sent.
    fn fill(&mut self, world: &mut World, id: SocketId, conn: ConnId) {
        let begun = self.sent;
        while self.sent < self.data.len() {
            let goal = world.buffer_goal(conn);
            let room = world.link(conn).queue.room_in_last(goal);
            if room == 0 && !world.takes_buffer(id) {
                break;
            }
            let most = if room == 0 { goal } else { room } as usize;
            let pieces = self.room_for_pieces(world, id);
            let full = pieces <= most && self.sent + pieces < self.data.len();
            self.write_part(world, conn, most.min(pieces), room == 0, full);
            if self.sent < self.data.len() {
                let link = world.link(conn);
                let largest_window = link.largest_window;
                link.queue.push_if_much(largest_window);
                world.pump();
            }
        }
        let whole = self.sent == self.data.len();
        if self.sent > begun && whole {
            self.ask_for_stamps(world);
        }
        if self.sent > begun && !(whole && self.has(libc::MSG_MORE)) {
            world.link(conn).queue.push();
        }
        world.pump();
    }

    /// Bytes of the next pieces that fit into one buffer. Copied data counts as one piece.
    fn room_for_pieces(&self, world: &World, id: SocketId) -> usize {
        let copies = !self.has(libc::MSG_ZEROCOPY)
            || !world.sockets[id].options.reports_zero_copy()
            || self.pieces.len() <= MOST_PIECES;
        if copies {
            return usize::MAX;
        }
        let begun = self.pieces.partition_point(|&end| end <= self.sent);
        let last = (begun + MOST_PIECES - 1).min(self.pieces.len() - 1);
        self.pieces[last] - self.sent
    }

    /// Writes at most `most` bytes into one buffer. With `full` the buffer counts as full, however much it holds.
    fn write_part(
        &mut self,
        world: &mut World,
        conn: ConnId,
        most: usize,
        new_buffer: bool,
        full: bool,
    ) {
        let len = most.min(self.data.len() - self.sent);
        let last = self.sent + len == self.data.len();
        let flags = WriteFlags {
            more: last && self.has(libc::MSG_MORE),
            end_of_record: full || last && self.has(libc::MSG_EOR),
            urgent: last && self.has(libc::MSG_OOB),
        };
        let part = self.data.slice(self.sent..self.sent + len);
        let taken = world.stack.write_with(conn, part, flags).unwrap_or(0);
        debug_assert_eq!(
            taken, len,
            "an established connection takes what its socket has room for"
        );
        let queue = &mut world.link(conn).queue;
        queue.append(taken as u32, new_buffer);
        if flags.end_of_record {
            queue.end_record();
        }
        if full {
            queue.push();
        }
        self.sent += len;
    }
}

impl World {
    /// Bytes that Linux puts into one buffer of the send queue: whole segments, at most a super-segment and half of the
    /// largest window ever offered (tcp_xmit_size_goal).
    fn buffer_goal(&mut self, conn: ConnId) -> u32 {
        let info = self.stack.info(self.now(), conn);
        let mss = info.send_mss.max(1);
        if self.settings.gso == Gso::Off {
            return mss;
        }
        let link = self.link(conn);
        link.largest_window = link.largest_window.max(info.send_window);
        let half = match link.largest_window {
            0 => u32::MAX,
            window if window > SMALL_WINDOW => window / 2,
            window => window,
        };
        let most = crate::gso::LARGEST.min(half);
        (most / mss).max(1) * mss
    }
}
