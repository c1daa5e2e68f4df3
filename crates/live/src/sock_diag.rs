//! The kernel's TCP sockets of this network namespace, as sock_diag(7) reports them to any user.

use crate::netlink::{self, HEADER_BYTES, attribute, request};
use baton_tcp::{CongestionPhase, Info, State, Timer, TimerKind};
use baton_wire::{Endpoint, Span};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Kind of questions and answers (SOCK_DIAG_BY_FAMILY).
const BY_FAMILY: u16 = 20;
/// The requested attributes, as bits, and their kinds in the answer: `struct tcp_info`, and the name of the congestion control algorithm.
const ASKED: u8 = 1 << (INFO - 1) | 1 << (CONGESTION - 1);
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
/// Length of `struct inet_diag_msg`, bytes; 48 of them are the addresses and ports.
const MESSAGE_BYTES: usize = 72;
const ENDS: usize = 4;
const NUMBERS: usize = ENDS + 48;
/// Buffer size, bytes: longer than any single answer of the kernel.
const ANSWER_BYTES: usize = 64 << 10;
/// The kernel's number of the state LISTEN.
const LISTEN: u8 = 10;

/// A socket of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSocket {
    /// Local endpoint.
    pub local: Endpoint,
    /// Remote endpoint; unspecified for a listener.
    pub remote: Endpoint,
    /// State of the connection; `None` for a listener.
    pub state: Option<State>,
    /// Number of bytes that wait to be read; for a listener, number of connections that wait to be accepted.
    pub receive_queue: u32,
    /// Number of bytes that are not acknowledged.
    pub send_queue: u32,
    /// User who owns the socket.
    pub uid: u32,
    /// Inode of the socket, by which `/proc` identifies it; 0 if no process has the socket open.
    pub inode: u32,
    /// The timer that is running, if any.
    pub timer: Option<Timer>,
    /// Name of the congestion control algorithm.
    pub congestion: String,
    /// Further state, where the kernel has it: not for a listener, and not in TIME-WAIT.
    pub info: Option<Info>,
}

/// Returns all TCP sockets of this thread's network namespace.
///
/// # Errors
/// The kernel refuses.
pub fn kernel_sockets() -> io::Result<Vec<KernelSocket>> {
    let mut sockets = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let socket = netlink::diagnosis_socket()?;
        let mut body = vec![family as u8, libc::IPPROTO_TCP as u8, ASKED, 0];
        // All states, and any endpoints.
        body.extend([0xff; 4]);
        body.resize(body.len() + 48, 0);
        send(
            &socket,
            &request(BY_FAMILY, netlink::DUMP, &body),
            SendFlags::empty(),
        )?;
        let mut answer = vec![0; ANSWER_BYTES];
        loop {
            let (_, len) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
            if take_answer(&answer[..len.min(ANSWER_BYTES)], &mut sockets)? {
                break;
            }
        }
    }
    Ok(sockets)
}

/// Adds the sockets in one datagram of the kernel's answer; returns true for the last datagram.
///
/// # Errors
/// The kernel refuses, or the datagram is not an answer.
pub fn take_answer(mut datagram: &[u8], sockets: &mut Vec<KernelSocket>) -> io::Result<bool> {
    while datagram.len() >= size_of::<u32>() {
        let (message, behind) = netlink::split(datagram).ok_or(io::ErrorKind::InvalidData)?;
        datagram = behind;
        match netlink::kind(message) {
            Some(netlink::DONE) => return Ok(true),
            Some(BY_FAMILY) => sockets.extend(socket_of(&message[HEADER_BYTES..])),
            _ => {
                if let Some(outcome) = netlink::outcome(message) {
                    return outcome.map(|()| true);
                }
            }
        }
    }
    Ok(false)
}

/// Returns the socket of one message, or `None` if the message is cut off, or its state or address family is unknown.
fn socket_of(message: &[u8]) -> Option<KernelSocket> {
    let (head, attributes) = message.split_at_checked(MESSAGE_BYTES)?;
    let numbers = Numbers(&head[NUMBERS..]);
    let state = match head[1] {
        LISTEN => None,
        state => Some(state_of(state)?),
    };
    let addr = |at: usize| -> Option<IpAddr> {
        let bytes = &head[ENDS + at..];
        match i32::from(head[0]) {
            libc::AF_INET => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
            libc::AF_INET6 => {
                Some(IpAddr::from(Ipv6Addr::from(*bytes.first_chunk::<16>()?)).to_canonical())
            }
            _ => None,
        }
    };
    let port = |at: usize| u16::from_be_bytes([head[ENDS + at], head[ENDS + at + 1]]);
    let name = attribute(attributes, CONGESTION).unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let timer = timer_of(head[2], numbers.u32(0));
    Some(KernelSocket {
        local: Endpoint::new(addr(4)?, port(0)),
        remote: Endpoint::new(addr(20)?, port(2)),
        state,
        receive_queue: numbers.u32(4),
        send_queue: if state.is_none() { 0 } else { numbers.u32(8) },
        uid: numbers.u32(12),
        inode: numbers.u32(16),
        timer,
        congestion: String::from_utf8_lossy(name).into_owned(),
        info: state.and_then(|state| {
            let info = attribute(attributes, INFO)?;
            (state != State::TimeWait).then(|| info_of(state, timer, &Numbers(info)))
        }),
    })
}

fn state_of(number: u8) -> Option<State> {
    Some(match number {
        1 => State::Established,
        2 => State::SynSent,
        3 | 12 => State::SynReceived,
        4 => State::FinWait1,
        5 => State::FinWait2,
        6 => State::TimeWait,
        8 => State::CloseWait,
        9 => State::LastAck,
        11 => State::Closing,
        _ => return None,
    })
}

fn timer_of(number: u8, after_ms: u32) -> Option<Timer> {
    let kind = match number {
        1 => TimerKind::Retransmission,
        2 => TimerKind::Keepalive,
        3 => TimerKind::TimeWait,
        4 => TimerKind::WindowProbe,
        _ => return None,
    };
    let after = Span::from_ms(after_ms.into());
    Some(Timer { kind, after })
}

/// Integers of a kernel structure by their offset; 0 for fields that this kernel does not have.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn u8(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or_default()
    }

    fn u32(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn u64(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    fn us(&self, at: usize) -> Span {
        Span::from_us(self.u32(at).into())
    }

    fn ms(&self, at: usize) -> Span {
        Span::from_ms(self.u32(at).into())
    }
}

/// Reads `struct tcp_info` by the offsets of its fields. Linux counts some of them in segments.
fn info_of(state: State, timer: Option<Timer>, info: &Numbers<'_>) -> Info {
    let options = info.u8(5);
    let mss = info.u32(16);
    let bytes = |at| info.u32(at).saturating_mul(mss);
    let measured = |at| Some(info.us(at)).filter(|span| *span > Span::ZERO);
    Info {
        state,
        phase: match info.u8(1) {
            0 => CongestionPhase::Open,
            1 => CongestionPhase::Disorder,
            2 | 3 => CongestionPhase::Recovery,
            _ => CongestionPhase::Loss,
        },
        retransmits: info.u8(2),
        probes: info.u8(3),
        backoff: info.u8(4),
        timestamps: options & 1 != 0,
        sack: options & 2 != 0,
        window_scaling: options & 4 != 0,
        ecn: options & 8 != 0,
        syn_data: options & 32 != 0,
        send_shift: info.u8(6) & 15,
        receive_shift: info.u8(6) >> 4,
        rto: info.us(8),
        timer,
        ato: info.us(12),
        send_mss: mss,
        receive_mss: info.u32(20),
        advertised_mss: u16::try_from(info.u32(84)).unwrap_or(u16::MAX),
        path_mtu: info.u32(60),
        unacked_segments: info.u32(24),
        sacked: bytes(28),
        lost: bytes(32),
        retransmitted: bytes(36),
        last_data_sent: info.ms(44),
        last_data_received: info.ms(52),
        last_ack_received: info.ms(56),
        slow_start_threshold: match info.u32(76) {
            segments if segments >= i32::MAX as u32 => u32::MAX,
            segments => segments.saturating_mul(mss),
        },
        congestion_window: bytes(80),
        srtt: measured(68),
        rttvar: measured(68).map(|_| info.us(72)),
        min_rtt: measured(148).filter(|_| info.u32(148) != u32::MAX),
        reordering_segments: info.u32(88),
        reordering_seen: info.u32(220),
        send_window: info.u32(228),
        receive_window: info.u32(232),
        not_sent: info.u32(144),
        limited_by: None,
        bytes_acked: info.u64(120),
        bytes_received: info.u64(128),
        bytes_sent: info.u64(200),
        bytes_retransmitted: info.u64(208),
        segments_in: info.u32(140),
        segments_out: info.u32(136),
        data_segments_in: info.u32(152),
        data_segments_out: info.u32(156),
        total_retransmissions: info.u32(100),
        out_of_order_segments: info.u32(224),
        delivered: info.u32(192),
        delivered_ce: info.u32(196),
        duplicate_sacks: info.u32(216),
        delivery_rate: info.u64(160),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_kernel_reports_a_connection_and_its_listener() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                assert!(address.starts_with('['), "without IPv6");
                continue;
            };
            let at = listener.local_addr().expect("it is bound");
            let mut client = TcpStream::connect(at).expect("it listens");
            let (_server, _) = listener.accept().expect("it was connected");
            client.write_all(b"12345").expect("there is room");
            let sockets = kernel_sockets().expect("it may be asked");
            let of = |local: std::net::SocketAddr| Endpoint::new(local.ip(), local.port());
            let found = |is: &dyn Fn(&KernelSocket) -> bool| {
                sockets.iter().find(|one| is(one)).expect("it is there")
            };
            let listening = found(&|one| one.local == of(at) && one.state.is_none());
            let path = format!(
                "/proc/self/fd/{}",
                std::os::fd::AsRawFd::as_raw_fd(&listener)
            );
            let inode = std::fs::metadata(path).expect("it is open").ino();
            assert_eq!(u64::from(listening.inode), inode);
            let from = client.local_addr().expect("it is bound");
            let server = found(&|one| one.remote == of(from));
            assert_eq!(server.state, Some(State::Established));
            assert_eq!(server.receive_queue, 5, "nobody has read");
            let info = server.info.as_ref().expect("it is open");
            assert_eq!((info.bytes_received, info.state), (5, State::Established));
            assert!(!server.congestion.is_empty());
            let client = found(&|one| one.local == of(from));
            let info = client.info.as_ref().expect("it is open");
            assert_eq!((info.bytes_sent, info.data_segments_out), (5, 1));
            assert!(info.srtt.is_some_and(|srtt| srtt < Span::from_secs(10)));
        }
    }

    #[test]
    fn truncated_answers_contain_no_sockets() {
        let mut whole = request(BY_FAMILY, 0, &[2; MESSAGE_BYTES]);
        whole.extend(request(netlink::DONE, 0, &[0; 4]));
        let mut sockets = Vec::new();
        assert!(take_answer(&whole, &mut sockets).is_ok_and(|done| done));
        assert_eq!(sockets.len(), 1);
        for len in 0..HEADER_BYTES + MESSAGE_BYTES {
            let mut sockets = Vec::new();
            assert!(!matches!(
                take_answer(&whole[..len], &mut sockets),
                Ok(true)
            ));
            assert_eq!(sockets, [], "{len} bytes");
        }
    }
}
