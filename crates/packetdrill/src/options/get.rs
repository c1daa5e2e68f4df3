//! getsockopt.

use super::congestion_name;
use super::set::{HARMLESS_IP, HARMLESS_IPV6, HARMLESS_SOCKET, HARMLESS_TCP, TCP_INQ};
use super::value::{of_fast_open_keys, of_linger, of_timeout};
use crate::errno::Errno;
use crate::sockets::SocketId;
use crate::world::World;
use baton_abi::address::Family;
use baton_abi::tcp_info::{self, SocketInfo};
use baton_tcp::FastOpenKeys;
use baton_wire::Endpoint;
use libc::c_int;

/// MSS before anything is known of the peer (TCP_MSS_DEFAULT; RFC 9293 3.7.1).
const DEFAULT_MSS: c_int = 536;

/// Bytes of TCP_CONGESTION's value (TCP_CA_NAME_MAX).
const CONGESTION_NAME_LEN: usize = 16;

const UNKNOWN: Errno = Errno(libc::ENOPROTOOPT);

fn bytes(value: c_int) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

impl World {
    /// getsockopt(2): returns the value, of which the caller copies as much as fits.
    ///
    /// # Errors
    /// As in the manual pages; ENOPROTOOPT for an unknown option.
    pub fn getsockopt(&mut self, fd: c_int, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
        let id = self.socket_id(fd)?;
        match level {
            libc::SOL_SOCKET => self.socket_option(id, name),
            libc::IPPROTO_TCP => self.tcp_option(id, name),
            libc::IPPROTO_IP => self.ip_option(id, name),
            libc::IPPROTO_IPV6 => self.ipv6_option(id, name),
            _ => Err(UNKNOWN),
        }
    }

    fn socket_option(&mut self, id: SocketId, name: c_int) -> Result<Vec<u8>, Errno> {
        let socket = &mut self.sockets[id];
        let options = &socket.options;
        let value = match name {
            libc::SO_ERROR => {
                let error = socket.error.take().or(socket.soft_error.take());
                error.map_or(0, |errno| errno.0)
            }
            libc::SO_TYPE => libc::SOCK_STREAM,
            libc::SO_DOMAIN => socket.family.number(),
            libc::SO_PROTOCOL => libc::IPPROTO_TCP,
            libc::SO_MAX_PACING_RATE => {
                let rate = options.max_pacing_rate.unwrap_or(u64::MAX);
                return Ok(rate.to_ne_bytes().to_vec());
            }
            libc::SO_ACCEPTCONN => socket.listening.is_some().into(),
            libc::SO_REUSEADDR => options.reuse_address.into(),
            libc::SO_REUSEPORT => options.reuse_port.into(),
            libc::SO_KEEPALIVE => options.keepalive_on.into(),
            libc::SO_TIMESTAMPING => options.timestamping.bits() as c_int,
            libc::SO_LINGER => return Ok(of_linger(options.linger)),
            libc::SO_RCVTIMEO => return Ok(of_timeout(options.receive_timeout)),
            libc::SO_SNDTIMEO => return Ok(of_timeout(options.send_timeout)),
            libc::SO_RCVLOWAT => options.low_water as c_int,
            libc::SO_SNDLOWAT => 1,
            libc::SO_MEMINFO => return Ok(self.memory_info(id)),
            libc::SO_SNDBUF => options.send_buffer as c_int,
            libc::SO_RCVBUF => socket.window.buffer() as c_int,
            name if HARMLESS_SOCKET.contains(&name) => {
                let kept = options.others.get(&(libc::SOL_SOCKET, name));
                kept.copied().unwrap_or(0)
            }
            _ => return Err(UNKNOWN),
        };
        Ok(bytes(value))
    }

    /// SO_MEMINFO: unread bytes, their limit, bytes in transmission (always zero), the limit of the send buffer, and its use; Linux's
    /// other counters are zero.
    fn memory_info(&self, id: SocketId) -> Vec<u8> {
        let socket = &self.sockets[id];
        let link = socket.conn.and_then(|conn| self.links.get(&conn));
        let queued = link.map_or(0, |link| link.queue.memory());
        let (unread, room) = (socket.received.len() as u32, socket.window.buffer());
        let counts = [
            unread,
            room,
            0,
            socket.options.send_buffer,
            0,
            queued,
            0,
            0,
            0,
        ];
        counts
            .iter()
            .flat_map(|count| count.to_ne_bytes())
            .collect()
    }

    fn tcp_option(&mut self, id: SocketId, name: c_int) -> Result<Vec<u8>, Errno> {
        let socket = &self.sockets[id];
        let options = &socket.options;
        let value = match name {
            libc::TCP_INFO => return Ok(self.tcp_info(id)),
            libc::TCP_CC_INFO => return Ok(Vec::new()),
            libc::TCP_CONGESTION => {
                let mut name = congestion_name(options.congestion).into_bytes();
                name.resize(CONGESTION_NAME_LEN, 0);
                return Ok(name);
            }
            libc::TCP_NODELAY => options.nodelay.into(),
            libc::TCP_CORK => options.cork.into(),
            libc::TCP_MAXSEG => self.current_mss(id),
            libc::TCP_KEEPIDLE => (options.keepalive.idle_ms / 1000) as c_int,
            libc::TCP_KEEPINTVL => (options.keepalive.interval_ms / 1000) as c_int,
            libc::TCP_KEEPCNT => options.keepalive.probes as c_int,
            libc::TCP_SYNCNT => options.syn_count.unwrap_or(self.settings.tcp.syn_retries) as c_int,
            libc::TCP_LINGER2 => match options.linger2_ms {
                ms if ms < 0 => -1,
                ms => (ms / 1000) as c_int,
            },
            libc::TCP_DEFER_ACCEPT => options.defer_accept_s as c_int,
            libc::TCP_USER_TIMEOUT => options.user_timeout_ms as c_int,
            libc::TCP_NOTSENT_LOWAT => options.not_sent_low_water as c_int,
            libc::TCP_QUICKACK => options.quick_ack.into(),
            libc::TCP_WINDOW_CLAMP => socket.window.clamp().unwrap_or(0) as c_int,
            TCP_INQ => options.report_unread.into(),
            libc::TCP_FASTOPEN => options.fast_open.pending.unwrap_or(0) as c_int,
            libc::TCP_FASTOPEN_CONNECT => options.fast_open.connect.into(),
            libc::TCP_FASTOPEN_NO_COOKIE => options.fast_open.without_cookie.into(),
            libc::TCP_FASTOPEN_KEY => return Ok(of_fast_open_keys(&self.fast_open_keys(id))),
            name if HARMLESS_TCP.contains(&name) => {
                let kept = options.others.get(&(libc::IPPROTO_TCP, name));
                kept.copied().unwrap_or(0)
            }
            _ => return Err(UNKNOWN),
        };
        Ok(bytes(value))
    }

    /// The socket's own keys, or the host's.
    fn fast_open_keys(&self, id: SocketId) -> FastOpenKeys {
        let socket = &self.sockets[id];
        let local = Endpoint::new(socket.family.any(), socket.port());
        let in_use = || *self.stack.fast_open_keys_at(socket.bound.unwrap_or(local));
        socket.options.fast_open.keys.unwrap_or_else(in_use)
    }

    /// Value of TCP_MAXSEG: the application's setting before there is a connection, then the MSS in use.
    fn current_mss(&self, id: SocketId) -> c_int {
        let socket = &self.sockets[id];
        match (socket.conn, socket.options.mss) {
            (Some(conn), _) if self.is_synchronized(conn) => {
                self.stack.info(self.now(), conn).send_mss as c_int
            }
            (None, Some(mss)) => mss.into(),
            _ => DEFAULT_MSS,
        }
    }

    fn ip_option(&mut self, id: SocketId, name: c_int) -> Result<Vec<u8>, Errno> {
        let socket = &self.sockets[id];
        let value = match name {
            libc::IP_TOS => socket.options.service_v4.into(),
            libc::IP_MTU_DISCOVER => socket.options.mtu_discover,
            libc::IP_RECVERR => socket.options.report_errors.into(),
            libc::IP_MTU => self.path_mtu(id)?,
            name if HARMLESS_IP.contains(&name) => {
                let kept = socket
                    .options
                    .others
                    .get(&(libc::IPPROTO_IP, name))
                    .copied();
                kept.unwrap_or(if name == libc::IP_TTL { 64 } else { 0 })
            }
            _ => return Err(UNKNOWN),
        };
        Ok(bytes(value))
    }

    fn ipv6_option(&mut self, id: SocketId, name: c_int) -> Result<Vec<u8>, Errno> {
        let socket = &self.sockets[id];
        if socket.family == Family::V4 {
            return Err(UNKNOWN);
        }
        let value = match name {
            libc::IPV6_TCLASS => socket.options.service_v6.into(),
            libc::IPV6_V6ONLY => socket.options.v6_only.into(),
            libc::IPV6_MTU_DISCOVER => socket.options.mtu_discover,
            libc::IPV6_RECVERR => socket.options.report_errors.into(),
            libc::IPV6_MTU => self.path_mtu(id)?,
            name if HARMLESS_IPV6.contains(&name) => {
                let kept = socket
                    .options
                    .others
                    .get(&(libc::IPPROTO_IPV6, name))
                    .copied();
                kept.unwrap_or(if name == libc::IPV6_UNICAST_HOPS {
                    64
                } else {
                    0
                })
            }
            _ => return Err(UNKNOWN),
        };
        Ok(bytes(value))
    }

    /// The path's MTU, which only a connected socket knows (ip(7)).
    fn path_mtu(&self, id: SocketId) -> Result<c_int, Errno> {
        let conn = self.sockets[id].conn.ok_or(Errno(libc::ENOTCONN))?;
        Ok(self.stack.info(self.now(), conn).path_mtu as c_int)
    }

    /// `struct tcp_info` of a socket in any state.
    fn tcp_info(&self, id: SocketId) -> Vec<u8> {
        let socket = &self.sockets[id];
        let state = self.tcp_state(id);
        let Some(conn) = socket.conn else {
            let listening = socket.listening.as_ref();
            let queue = listening.map(|it| [it.queue.len() as u32, it.backlog as u32]);
            let queue = queue.unwrap_or_default();
            return tcp_info::without_connection(state, socket.probes, socket.syn_data, queue);
        };
        let (now, link) = (self.now(), &self.links[&conn]);
        let about_socket = SocketInfo {
            state,
            is_active: socket.active,
            receive_space: socket.window.offered(),
            receive_rtt: socket.window.round_trip(),
            pacing_rates: [link.pacing.rate(), socket.options.max_pacing_rate],
            limited_us: link.limits.totals_us(now),
            unsent: 0,
        };
        tcp_info::of_connection(&self.stack.info(now, conn), &about_socket)
    }
}
