//! Effects of the engine's events on sockets and on threads that wait for them.

use super::{Ready, SocketId};
use crate::errno::Errno;
use crate::icmp::Report;
use crate::world::World;
use baton_tcp::{CloseReason, ConnId, Event, PathError, Segment};
use baton_wire::Span;
use bytes::Bytes;

impl World {
    /// Fetches events from the engine. Returns false if there was none.
    pub(crate) fn take_events(&mut self) -> bool {
        let mut any = false;
        while let Some((conn, event)) = self.stack.poll_event() {
            any = true;
            self.changed();
            match event {
                Event::Connected => self.wake_owner(conn),
                Event::Acceptable(listener) => self.child_established(listener),
                Event::Readable => self.fetch(conn),
                Event::Urgent => self.note_urgent(conn),
                Event::Acknowledged(len) => self.acknowledged(conn, len),
                Event::TransmitTimes => self.stamp(conn, None),
                Event::PeerClosed => self.peer_closed(conn),
                Event::Closed(reason) => self.connection_ended(conn, reason),
            }
        }
        any
    }

    fn wake_owner(&mut self, conn: ConnId) {
        if let Some(&id) = self.owners.get(&conn) {
            self.wake(id, Ready::ALL);
        }
    }

    /// Moves arrived data to its socket. The window opens when the application reads.
    fn fetch(&mut self, conn: ConnId) {
        let owner = self.owners.get(&conn).copied();
        while let Some(piece) = self.stack.read(conn, usize::MAX) {
            if let Some(id) = owner {
                let now = self.now();
                self.sockets[id].received.push(piece, now);
            }
        }
        let Some(id) = owner else { return };
        self.tell_urgent(id);
        let socket = &self.sockets[id];
        // Do not wake readers while there are fewer bytes than the low-water mark (socket(7), SO_RCVLOWAT).
        if socket.received.len() >= socket.options.low_water || socket.receive_shut {
            self.wake_readers(id);
        }
    }

    fn acknowledged(&mut self, conn: ConnId, len: u32) {
        let link = self.link(conn);
        link.queue.acknowledged(len);
        link.acknowledged = true;
        if let Some(&id) = self.owners.get(&conn) {
            self.complete(id, len.into());
        }
    }

    /// Completes zero-copy calls after `len` bytes were acknowledged.
    fn complete(&mut self, id: SocketId, len: u64) {
        if self.sockets[id].zero_copy.acknowledged(len) {
            self.wake(id, Ready::ERROR);
        }
    }

    /// Reports the times at which requested bytes were acknowledged or were sent with this segment.
    pub(crate) fn stamp(&mut self, conn: ConnId, segment: Option<&Segment<Bytes>>) {
        while let Some(time) = self.stack.poll_transmit_time(conn) {
            let data = segment.map_or_else(Vec::new, |segment| segment.payload.concat());
            if let Some(&id) = self.owners.get(&conn)
                && self.sockets[id].timestamps.take(time, &data)
            {
                self.wake(id, Ready::ERROR);
            }
        }
    }

    /// Number of bytes written to a connection so far.
    pub(crate) fn bytes_written(&self, conn: ConnId) -> u64 {
        self.stack.info(self.now(), conn).bytes_acked + self.stack.unacknowledged(conn) as u64
    }

    fn peer_closed(&mut self, conn: ConnId) {
        if let Some(&id) = self.owners.get(&conn) {
            let socket = &mut self.sockets[id];
            socket.receive_shut = true;
            socket.finished = true;
            self.wake(id, Ready::ALL);
        }
    }

    /// Closes the socket of a connection that ended, and sets its error.
    fn connection_ended(&mut self, conn: ConnId, reason: CloseReason) {
        let link = self.links.remove(&conn);
        let Some(id) = self.owners.remove(&conn) else {
            return;
        };
        let socket = &mut self.sockets[id];
        socket.conn = None;
        let soft = socket.soft_error;
        socket.error = match reason {
            CloseReason::Normal | CloseReason::Aborted => socket.error,
            // A reset after the peer's FIN is a broken pipe if the socket could still write.
            CloseReason::Reset if socket.finished && !socket.send_shut => Some(Errno(libc::EPIPE)),
            CloseReason::Reset => Some(Errno(libc::ECONNRESET)),
            CloseReason::Refused => Some(Errno(libc::ECONNREFUSED)),
            CloseReason::TimedOut => Some(soft.unwrap_or(Errno(libc::ETIMEDOUT))),
            CloseReason::Unreachable(error) => Some(soft.unwrap_or(errno_of(error))),
        };
        (socket.receive_shut, socket.send_shut) = (true, true);
        let sent = link.as_ref().map_or(0, |link| link.queue.sent_len());
        socket.zero_copy.ended(sent.into());
        socket.timestamps.ended();
        (socket.syn_data, socket.probes) =
            link.map_or((false, 0), |link| (link.syn_data, link.probes));
        if socket.error.is_some() {
            self.wake(id, Ready::ERROR);
        }
        self.wake(id, Ready::ALL);
    }

    /// Records the error number of an ICMP error, and makes the next call report it if the socket requests that (ip(7), IP_RECVERR).
    pub(crate) fn note_report(&mut self, conn: ConnId, report: &Report, opening: bool) {
        let Some(&id) = self.owners.get(&conn) else {
            return;
        };
        if matches!(report.error, PathError::FragmentationNeeded { .. }) {
            return;
        }
        let socket = &mut self.sockets[id];
        socket.soft_error = Some(report.errno);
        if socket.options.report_errors && !opening {
            socket.error = Some(report.errno);
            self.wake(id, Ready::ERROR);
        }
    }

    /// Opens the window after a segment with `len` bytes of data arrived.
    pub(crate) fn grow_window(&mut self, conn: ConnId, len: usize) {
        if let Some(&id) = self.owners.get(&conn) {
            let mss = self.stack.config_of(conn).mss;
            let socket = &mut self.sockets[id];
            let unread = socket.received.len() as u32;
            socket.window.arrived(len, mss, unread);
            self.offer_window(id, conn);
        }
    }

    /// Frees buffer space after the application read `len` bytes.
    pub(crate) fn give_back(&mut self, id: SocketId, len: usize) {
        let now = self.now();
        let Some(conn) = self.sockets[id].conn else {
            return;
        };
        self.stack.consume(conn, len);
        let mss = self.stack.config_of(conn).mss;
        let round_trip = match self.sockets[id].window.round_trip() {
            Span::ZERO => self.stack.info(now, conn).srtt.unwrap_or(Span::ZERO),
            measured => measured,
        };
        self.sockets[id].window.read(now, len, round_trip, mss);
        self.offer_window(id, conn);
        self.pump();
    }

    /// Makes the engine offer the socket's current window.
    fn offer_window(&mut self, id: SocketId, conn: ConnId) {
        let window = &self.sockets[id].window;
        let (clamp, space) = (window.offered(), window.full_space());
        let config = self.stack.config_of(conn);
        if config.window_clamp != clamp || config.receive_buffer != space {
            let _ = self.stack.configure(self.now(), conn, |config| {
                config.window_clamp = clamp;
                config.receive_buffer = space;
            });
        }
    }
}

/// The error number of an ICMP error that the socket did not record itself.
fn errno_of(error: PathError) -> Errno {
    Errno(match error {
        PathError::FragmentationNeeded { .. } => libc::EMSGSIZE,
        PathError::NetUnreachable => libc::ENETUNREACH,
        PathError::PortUnreachable => libc::ECONNREFUSED,
        PathError::ProtocolUnreachable => libc::ENOPROTOOPT,
        PathError::ParameterProblem => libc::EPROTO,
        PathError::HostUnreachable | PathError::AdminProhibited | PathError::TimeExceeded => {
            libc::EHOSTUNREACH
        }
    })
}
