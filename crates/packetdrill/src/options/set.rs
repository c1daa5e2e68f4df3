//! setsockopt.

use super::congestion_named;
use super::value::{fast_open_keys, int, int_or_byte, int_within, linger, rate, timeout};
use crate::errno::Errno;
use crate::flags::FastOpenBits;
use crate::sockets::{Socket, SocketId};
use crate::world::World;
use baton_abi::address::Family;
use baton_abi::tcp_info::TcpState;
use baton_wire::Timestamping;
use libc::c_int;

/// Largest SO_SNDBUF and SO_RCVBUF without privilege, before doubling (wmem_max, rmem_max of Linux 6.18).
const LARGEST_ASKED_BUFFER: u32 = 4 << 20;
/// SOCK_MIN_SNDBUF and SOCK_MIN_RCVBUF.
const LEAST_SEND_BUFFER: u32 = 4608;
const LEAST_RECEIVE_BUFFER: u32 = 2304;
/// TCP_MIN_MSS and MAX_TCP_WINDOW limit TCP_MAXSEG.
const LEAST_MSS: c_int = 88;
const LARGEST_MSS: c_int = 32_767;
/// MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL (seconds) and MAX_TCP_KEEPCNT.
const LONGEST_KEEPALIVE_S: c_int = 32_767;
const MOST_KEEPALIVE_PROBES: c_int = 127;
/// MAX_TCP_SYNCNT.
const MOST_SYNS: c_int = 127;
/// TCP_FIN_TIMEOUT_MAX, seconds.
const LONGEST_LINGER2_S: c_int = 120;
/// Longest time for which SYN-ACKs are repeated, for TCP_DEFER_ACCEPT: 2^8 - 1 s.
const LONGEST_DEFER_S: c_int = 255;
/// TCP options that Linux has and the C library may not name.
pub(super) const TCP_INQ: c_int = 36;
pub(super) const TCP_TX_DELAY: c_int = 37;

/// SOL_SOCKET options without effect, which are stored and returned.
pub(super) const HARMLESS_SOCKET: [c_int; 18] = [
    libc::SO_BROADCAST,
    libc::SO_BUSY_POLL,
    libc::SO_DEBUG,
    libc::SO_DONTROUTE,
    libc::SO_INCOMING_CPU,
    libc::SO_LOCK_FILTER,
    libc::SO_MARK,
    libc::SO_NO_CHECK,
    libc::SO_OOBINLINE,
    libc::SO_PASSCRED,
    libc::SO_PASSSEC,
    libc::SO_PRIORITY,
    libc::SO_RXQ_OVFL,
    libc::SO_SELECT_ERR_QUEUE,
    libc::SO_TIMESTAMP,
    libc::SO_TIMESTAMPNS,
    libc::SO_WIFI_STATUS,
    libc::SO_ZEROCOPY,
];

/// IPPROTO_TCP options without effect, which are stored and returned.
pub(super) const HARMLESS_TCP: [c_int; 5] = [
    libc::TCP_SAVE_SYN,
    libc::TCP_THIN_DUPACK,
    libc::TCP_THIN_LINEAR_TIMEOUTS,
    libc::TCP_TIMESTAMP,
    TCP_TX_DELAY,
];

/// IPPROTO_IP options without effect, which are stored and returned.
pub(super) const HARMLESS_IP: [c_int; 8] = [
    libc::IP_BIND_ADDRESS_NO_PORT,
    libc::IP_FREEBIND,
    libc::IP_MINTTL,
    libc::IP_PKTINFO,
    libc::IP_RECVTOS,
    libc::IP_RECVTTL,
    libc::IP_TRANSPARENT,
    libc::IP_TTL,
];

/// IPPROTO_IPV6 options without effect, which are stored and returned.
pub(super) const HARMLESS_IPV6: [c_int; 7] = [
    libc::IPV6_AUTOFLOWLABEL,
    libc::IPV6_FLOWINFO_SEND,
    libc::IPV6_FREEBIND,
    libc::IPV6_RECVHOPLIMIT,
    libc::IPV6_RECVPKTINFO,
    libc::IPV6_RECVTCLASS,
    libc::IPV6_UNICAST_HOPS,
];

const INVALID: Errno = Errno(libc::EINVAL);
const UNKNOWN: Errno = Errno(libc::ENOPROTOOPT);

impl World {
    /// setsockopt(2).
    ///
    /// # Errors
    /// As in the manual pages; ENOPROTOOPT for an unknown option.
    pub fn setsockopt(
        &mut self,
        fd: c_int,
        level: c_int,
        name: c_int,
        value: &[u8],
    ) -> Result<(), Errno> {
        let id = self.socket_id(fd)?;
        match level {
            libc::SOL_SOCKET => self.set_socket_option(id, name, value)?,
            libc::IPPROTO_TCP => self.set_tcp_option(id, name, value)?,
            libc::IPPROTO_IP => self.set_ip_option(id, name, value)?,
            libc::IPPROTO_IPV6 => self.set_ipv6_option(id, name, value)?,
            _ => return Err(UNKNOWN),
        }
        self.apply_options(id);
        self.changed();
        self.pump();
        Ok(())
    }

    fn set_socket_option(&mut self, id: SocketId, name: c_int, value: &[u8]) -> Result<(), Errno> {
        let socket = &mut self.sockets[id];
        let options = &mut socket.options;
        match name {
            libc::SO_REUSEADDR => options.reuse_address = int(value)? != 0,
            libc::SO_REUSEPORT => options.reuse_port = int(value)? != 0,
            libc::SO_KEEPALIVE => options.keepalive_on = int(value)? != 0,
            libc::SO_LINGER => options.linger = linger(value)?,
            libc::SO_RCVTIMEO => options.receive_timeout = timeout(value)?,
            libc::SO_SNDTIMEO => options.send_timeout = timeout(value)?,
            libc::SO_RCVLOWAT => options.low_water = int(value)?.max(1) as usize,
            libc::SO_SNDBUF => set_send_buffer(socket, asked_buffer(value)?),
            libc::SO_SNDBUFFORCE => set_send_buffer(socket, int(value)?.max(0) as u32),
            libc::SO_RCVBUF => set_receive_buffer(socket, asked_buffer(value)?),
            libc::SO_RCVBUFFORCE => set_receive_buffer(socket, int(value)?.max(0) as u32),
            libc::SO_MAX_PACING_RATE => options.max_pacing_rate = rate(value)?,
            libc::SO_BINDTODEVICE => {}
            libc::SO_TIMESTAMPING => return self.set_timestamping(id, int(value)?),
            name if HARMLESS_SOCKET.contains(&name) => {
                options.others.insert((libc::SOL_SOCKET, name), int(value)?);
            }
            _ => return Err(UNKNOWN),
        }
        Ok(())
    }

    /// Sets SO_TIMESTAMPING. Bytes are numbered from the time when OPT_ID is first requested, which requires a connection.
    fn set_timestamping(&mut self, id: SocketId, value: c_int) -> Result<(), Errno> {
        let asked = Timestamping::from_option(value).ok_or(INVALID)?;
        let before = self.sockets[id].options.timestamping;
        if (asked - before).contains(Timestamping::OPT_ID) {
            let conn = self.sockets[id].conn.ok_or(INVALID)?;
            let first = match asked.contains(Timestamping::OPT_ID_TCP) {
                true => self.bytes_written(conn),
                false => self.stack.info(self.now(), conn).bytes_acked,
            };
            self.sockets[id].timestamps.number_from(first);
        }
        self.sockets[id].options.timestamping = asked;
        Ok(())
    }

    fn set_tcp_option(&mut self, id: SocketId, name: c_int, value: &[u8]) -> Result<(), Errno> {
        match name {
            libc::TCP_CONGESTION => return self.set_congestion(id, value),
            libc::TCP_QUICKACK => return self.set_quick_ack(id, int(value)?),
            libc::TCP_WINDOW_CLAMP => return self.set_window_clamp(id, int(value)?),
            libc::TCP_REPAIR => return Err(Errno(libc::EPERM)),
            libc::TCP_FASTOPEN
            | libc::TCP_FASTOPEN_CONNECT
            | libc::TCP_FASTOPEN_KEY
            | libc::TCP_FASTOPEN_NO_COOKIE => return self.set_fast_open(id, name, value),
            _ => {}
        }
        let conn = self.sockets[id].conn;
        let options = &mut self.sockets[id].options;
        match name {
            libc::TCP_NODELAY => {
                options.nodelay = int(value)? != 0;
                if let (true, Some(conn)) = (options.nodelay, conn) {
                    // Setting the option pushes pending data each time.
                    self.stack.set_nodelay(conn, true);
                }
            }
            libc::TCP_CORK => options.cork = int(value)? != 0,
            libc::TCP_MAXSEG => {
                options.mss = match int(value)? {
                    0 => None,
                    _ => Some(int_within(value, LEAST_MSS, LARGEST_MSS)? as u16),
                }
            }
            libc::TCP_KEEPIDLE => {
                options.keepalive.idle_ms = 1000 * int_within(value, 1, LONGEST_KEEPALIVE_S)?;
            }
            libc::TCP_KEEPINTVL => {
                options.keepalive.interval_ms = 1000 * int_within(value, 1, LONGEST_KEEPALIVE_S)?;
            }
            libc::TCP_KEEPCNT => {
                options.keepalive.probes = int_within(value, 1, MOST_KEEPALIVE_PROBES)?;
            }
            libc::TCP_SYNCNT => options.syn_count = Some(int_within(value, 1, MOST_SYNS)?),
            libc::TCP_LINGER2 => {
                options.linger2_ms = match int(value)? {
                    seconds if seconds < 0 => -1,
                    seconds => i64::from(seconds.min(LONGEST_LINGER2_S)) * 1000,
                }
            }
            libc::TCP_DEFER_ACCEPT => {
                options.defer_accept_s = int(value)?.clamp(0, LONGEST_DEFER_S) as u32;
            }
            libc::TCP_USER_TIMEOUT => {
                options.user_timeout_ms = int_within(value, 0, c_int::MAX)?;
            }
            libc::TCP_NOTSENT_LOWAT => options.not_sent_low_water = int(value)? as u32,
            TCP_INQ => options.report_unread = int_within(value, 0, 1)? == 1,
            name if HARMLESS_TCP.contains(&name) => {
                options
                    .others
                    .insert((libc::IPPROTO_TCP, name), int(value)?);
            }
            _ => return Err(UNKNOWN),
        }
        Ok(())
    }

    /// Sets options of Fast Open. Except for the keys, they can be set only on sockets without a connection.
    fn set_fast_open(&mut self, id: SocketId, name: c_int, value: &[u8]) -> Result<(), Errno> {
        let state = self.tcp_state(id);
        let idle = matches!(state, TcpState::Close | TcpState::Listen);
        let client = self.settings.fast_open.contains(FastOpenBits::CLIENT);
        let options = &mut self.sockets[id].options.fast_open;
        match name {
            libc::TCP_FASTOPEN_KEY => options.keys = Some(fast_open_keys(value)?),
            libc::TCP_FASTOPEN_CONNECT if !client => return Err(Errno(libc::EOPNOTSUPP)),
            libc::TCP_FASTOPEN_CONNECT if state == TcpState::Listen => return Err(INVALID),
            _ if !idle => return Err(INVALID),
            libc::TCP_FASTOPEN => options.pending = Some(int_within(value, 0, c_int::MAX)?),
            libc::TCP_FASTOPEN_CONNECT => options.connect = int_within(value, 0, 1)? == 1,
            _ => options.without_cookie = int_within(value, 0, 1)? == 1,
        }
        Ok(())
    }

    /// Sets TCP_CONGESTION. The name may or may not end with a zero byte (tcp(7)).
    fn set_congestion(&mut self, id: SocketId, value: &[u8]) -> Result<(), Errno> {
        let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
        if value.is_empty() {
            return Err(INVALID);
        }
        let name = std::str::from_utf8(name).ok().and_then(congestion_named);
        self.sockets[id].options.congestion = name.ok_or(Errno(libc::ENOENT))?;
        Ok(())
    }

    fn set_quick_ack(&mut self, id: SocketId, value: c_int) -> Result<(), Errno> {
        self.sockets[id].options.quick_ack = value != 0;
        if let Some(conn) = self.sockets[id].conn {
            match value {
                0 => self.stack.delay_acks(conn),
                _ => self.stack.quick_ack(conn),
            }
        }
        Ok(())
    }

    /// Sets TCP_WINDOW_CLAMP. Zero removes the limit, which is allowed only without a connection.
    fn set_window_clamp(&mut self, id: SocketId, value: c_int) -> Result<(), Errno> {
        let idle = self.sockets[id].conn.is_none();
        match value {
            0 if !idle => return Err(INVALID),
            0 => self.sockets[id].window.set_clamp(u32::MAX),
            value => {
                let clamp = (value.max(0) as u32).max(LEAST_RECEIVE_BUFFER / 2);
                self.sockets[id].window.set_clamp(clamp);
            }
        }
        Ok(())
    }

    fn set_ip_option(&mut self, id: SocketId, name: c_int, value: &[u8]) -> Result<(), Errno> {
        let options = &mut self.sockets[id].options;
        match name {
            // TCP sets the ECN bits itself.
            libc::IP_TOS => options.service_v4 = int_or_byte(value)? as u8 & !3,
            libc::IP_MTU_DISCOVER => {
                options.mtu_discover = match int_or_byte(value)? {
                    how @ libc::IP_PMTUDISC_DONT..=libc::IP_PMTUDISC_OMIT => how,
                    _ => return Err(INVALID),
                }
            }
            libc::IP_RECVERR => options.report_errors = int_or_byte(value)? != 0,
            name if HARMLESS_IP.contains(&name) => {
                options
                    .others
                    .insert((libc::IPPROTO_IP, name), int_or_byte(value)?);
            }
            _ => return Err(UNKNOWN),
        }
        Ok(())
    }

    fn set_ipv6_option(&mut self, id: SocketId, name: c_int, value: &[u8]) -> Result<(), Errno> {
        let socket = &mut self.sockets[id];
        if socket.family == Family::V4 {
            return Err(UNKNOWN);
        }
        let bound = socket.bound.is_some();
        let options = &mut socket.options;
        match name {
            libc::IPV6_TCLASS => {
                options.service_v6 = match int(value)? {
                    -1 => 0,
                    class @ 0..=255 => class as u8 & !3,
                    _ => return Err(INVALID),
                }
            }
            libc::IPV6_V6ONLY if bound => return Err(INVALID),
            libc::IPV6_V6ONLY => options.v6_only = int(value)? != 0,
            libc::IPV6_MTU_DISCOVER => {
                options.mtu_discover = match int(value)? {
                    how @ libc::IP_PMTUDISC_DONT..=libc::IP_PMTUDISC_OMIT => how,
                    _ => return Err(INVALID),
                }
            }
            libc::IPV6_RECVERR => options.report_errors = int(value)? != 0,
            name if HARMLESS_IPV6.contains(&name) => {
                options
                    .others
                    .insert((libc::IPPROTO_IPV6, name), int(value)?);
            }
            _ => return Err(UNKNOWN),
        }
        Ok(())
    }

    /// Applies changed options to the engine and to the connection's link.
    pub(crate) fn apply_options(&mut self, id: SocketId) {
        let socket = &self.sockets[id];
        let Some(conn) = socket.conn else {
            return self.apply_to_listeners(id);
        };
        let local = self.stack.flow(conn).local.addr;
        let config = socket.options.config(&self.settings, &socket.window, local);
        let service = socket.options.service(Family::of(local));
        let (may_fragment, cork) = (socket.options.may_fragment(), socket.options.cork);
        let max_pacing_rate = socket.options.max_pacing_rate;
        // This fails if a script uses more sets of parameters than the engine keeps, which no real script does.
        let _ = self.stack.configure(self.now(), conn, |old| *old = config);
        self.stack.set_cork(conn, cork);
        let link = self.link(conn);
        link.service = service;
        link.pacing.limit(max_pacing_rate);
        link.may_fragment = may_fragment;
    }
}

impl World {
    /// Applies a listening socket's current options to future connections and answers.
    fn apply_to_listeners(&mut self, id: SocketId) {
        let socket = &self.sockets[id];
        let listening = socket.listening.as_ref();
        let Some(listening) = listening else { return };
        let fast_open = &socket.options.fast_open;
        for &listener in &listening.listeners {
            let local = self.stack.listening_at(listener);
            let config = socket
                .options
                .config(&self.settings, &socket.window, local.addr);
            let _ = self.stack.configure_listener(listener, &config);
            let rules = fast_open.listening(&self.settings, listening.backlog);
            self.stack.set_fast_open(listener, rules);
            self.stack.set_own_fast_open_keys(local, fast_open.keys);
        }
    }
}

/// The buffer size that an application without privilege may request (socket(7)).
fn asked_buffer(value: &[u8]) -> Result<u32, Errno> {
    // A negative number counts as a very large one.
    Ok((int(value)? as u32).min(LARGEST_ASKED_BUFFER))
}

fn set_send_buffer(socket: &mut Socket, asked: u32) {
    socket.options.send_buffer = asked.saturating_mul(2).max(LEAST_SEND_BUFFER);
    socket.options.send_buffer_locked = true;
}

fn set_receive_buffer(socket: &mut Socket, asked: u32) {
    let buffer = asked.saturating_mul(2).max(LEAST_RECEIVE_BUFFER);
    socket.window.set_buffer(buffer);
}
