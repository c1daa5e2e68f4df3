//! Conditions of a socket for poll and epoll, and wake-ups after changes (poll(2), epoll(7), tcp_poll of Linux).

use super::SocketId;
use crate::descriptors::File;
use crate::network::Link;
use crate::world::World;
use baton_abi::tcp_info::TcpState;

/// Conditions, with the values of the POLL* and EPOLL* constants (which agree).
pub(crate) struct Ready;

impl Ready {
    pub(crate) const IN: u32 = libc::POLLIN as u32;
    /// Urgent data.
    pub(crate) const PRIORITY: u32 = libc::POLLPRI as u32;
    pub(crate) const OUT: u32 = libc::POLLOUT as u32;
    pub(crate) const ERROR: u32 = libc::POLLERR as u32;
    pub(crate) const HANG_UP: u32 = libc::POLLHUP as u32;
    pub(crate) const READ_HANG_UP: u32 = libc::POLLRDHUP as u32;
    pub(crate) const INVALID: u32 = libc::POLLNVAL as u32;
    /// IN and RDNORM.
    pub(crate) const READABLE: u32 = Self::IN | libc::POLLRDNORM as u32;
    /// OUT and WRNORM.
    pub(crate) const WRITABLE: u32 = Self::OUT | libc::POLLWRNORM as u32;
    /// A change that may concern any watcher.
    pub(crate) const ALL: u32 = u32::MAX;
}

/// Kernel memory that a socket's send buffer counts for each segment in flight when it is tuned: a buffer of the
/// next power of two above MSS and headers, and its structure.
fn memory_per_segment(mss: u32) -> u32 {
    (mss + 640).next_power_of_two() + 256
}

impl World {
    /// Returns the current conditions. If the socket is not writable, also records that a writer is to be notified of space.
    pub(crate) fn socket_readiness(&mut self, id: SocketId) -> u32 {
        let state = self.tcp_state(id);
        let socket = &self.sockets[id];
        if let Some(listening) = &socket.listening {
            let shown = listening.queue.iter().any(|waiting| self.is_shown(waiting));
            return if shown { Ready::READABLE } else { 0 };
        }
        let mut ready = 0;
        if (socket.receive_shut && socket.send_shut) || state == TcpState::Close {
            ready |= Ready::HANG_UP;
        }
        if socket.receive_shut {
            ready |= Ready::READABLE | Ready::READ_HANG_UP;
        }
        if !self.is_opening(id) {
            // An urgent byte that is read separately does not count.
            let least = socket.options.low_water + usize::from(socket.is_before_hole());
            if socket.received.len() >= least {
                ready |= Ready::READABLE;
            }
            if socket.send_shut || self.is_writable(id) {
                ready |= Ready::WRITABLE;
            } else {
                self.sockets[id].no_space = true;
            }
        }
        let socket = &self.sockets[id];
        if socket.has_urgent_byte() {
            ready |= Ready::PRIORITY;
        }
        if socket.deferred.is_some() {
            ready |= Ready::WRITABLE;
        }
        if socket.error.is_some() || socket.zero_copy.has_report() || socket.timestamps.has_report()
        {
            ready |= Ready::ERROR;
        }
        ready
    }

    /// Reports whether at least a third of the send buffer is free, and less than half of TCP_NOTSENT_LOWAT waits to be sent
    /// (sk_stream_is_writeable).
    pub(super) fn is_writable(&self, id: SocketId) -> bool {
        let socket = &self.sockets[id];
        let Some(link) = self.link_of(id) else {
            return true;
        };
        let used = link.queue.memory();
        let free = socket.options.send_buffer.saturating_sub(used);
        let low_water = socket.options.not_sent_limit(&self.settings);
        free >= used / 2 && link.queue.unsent_len().saturating_mul(2) < low_water
    }

    /// Reports whether another buffer may be filled (sk_stream_memory_free).
    pub(super) fn takes_buffer(&self, id: SocketId) -> bool {
        let socket = &self.sockets[id];
        let Some(link) = self.link_of(id) else {
            return true;
        };
        let low_water = socket.options.not_sent_limit(&self.settings);
        link.queue.memory() < socket.options.send_buffer && link.queue.unsent_len() < low_water
    }

    fn link_of(&self, id: SocketId) -> Option<&Link> {
        let conn = self.sockets[id].conn?;
        self.links.get(&conn)
    }

    /// Notifies writers that found no space when there is space again.
    pub(crate) fn tell_rooms(&mut self) {
        let waiting = self.sockets.iter().filter(|(_, socket)| socket.no_space);
        let waiting: Vec<_> = waiting.map(|(id, _)| id).collect();
        for id in waiting {
            self.grow_send_buffer(id);
            if self.is_writable(id) {
                self.sockets[id].no_space = false;
                self.wake(id, Ready::WRITABLE);
            }
        }
    }

    /// Enlarges the send buffer to hold two windows, unless the application set its size (tcp(7), tcp_wmem). At most once for each arrival that
    /// acknowledges something, and only if the congestion window is not full after everything was sent (tcp_should_expand_sndbuf).
    fn grow_send_buffer(&mut self, id: SocketId) {
        let Some(conn) = self.sockets[id].conn else {
            return;
        };
        let acknowledged = std::mem::take(&mut self.link(conn).acknowledged);
        if !acknowledged || self.sockets[id].options.send_buffer_locked {
            return;
        }
        let info = self.stack.info(self.now(), conn);
        if info.unacked_segments >= crate::gso::window_segments(&info) {
            return;
        }
        let segments = crate::gso::window_segments(&info)
            .max(self.settings.tcp.initial_window_segments)
            .max(info.reordering_segments + 1);
        let wanted = segments
            .saturating_mul(memory_per_segment(info.send_mss))
            .saturating_mul(2)
            .min(self.settings.send_buffer_max);
        let options = &mut self.sockets[id].options;
        options.send_buffer = options.send_buffer.max(wanted);
    }

    /// Wakes readers, as there is something to read or accept.
    pub(super) fn wake_readers(&mut self, id: SocketId) {
        self.wake(id, Ready::READABLE);
    }

    /// Wakes epoll instances that watch the socket, since conditions in `change` may hold now.
    pub(crate) fn wake(&mut self, id: SocketId, change: u32) {
        self.changed();
        if let Some(fd) = self.descriptors.find(File::Socket(id)) {
            self.wake_watchers(fd, change);
        }
    }
}
