//! `struct tcp_info` of Linux 6.18, field by field in its order (linux/tcp.h).

use baton_tcp::{CongestionPhase, Info, State};
use baton_wire::Span;

/// Bytes of the whole structure; fields that are unknown here are zero.
pub const LEN: usize = 280;
/// Offset of the path's MTU, 4 bytes.
pub const PATH_MTU_AT: usize = 60;
/// Offset of the advertised MSS, 4 bytes.
pub const ADVERTISED_MSS_AT: usize = 84;

/// TCPI_OPT_*.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALING: u8 = 4;
const ECN: u8 = 8;
const SYN_DATA: u8 = 32;

/// `snd_ssthresh` before the first loss (TCP_INFINITE_SSTHRESH).
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// `min_rtt` before the first measurement.
const NO_MIN_RTT: u32 = u32::MAX;
/// TCP_MSS_DEFAULT.
const DEFAULT_MSS: u32 = 536;
/// Bytes of the timestamps option in each segment.
const TIMESTAMPS_LEN: u32 = 12;
/// Initial degree of reordering (tcp_reordering).
const USUAL_REORDERING: u32 = 3;

/// State of a TCP socket, with the numbers of Linux (tcp_states.h). Half-open connections at a listener have no socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TcpState {
    Established = 1,
    SynSent = 2,
    SynReceived = 3,
    FinWait1 = 4,
    FinWait2 = 5,
    TimeWait = 6,
    Close = 7,
    CloseWait = 8,
    LastAck = 9,
    Listen = 10,
    Closing = 11,
}

impl From<State> for TcpState {
    fn from(state: State) -> Self {
        match state {
            State::SynSent => Self::SynSent,
            State::SynReceived => Self::SynReceived,
            State::Established => Self::Established,
            State::FinWait1 => Self::FinWait1,
            State::FinWait2 => Self::FinWait2,
            State::CloseWait => Self::CloseWait,
            State::Closing => Self::Closing,
            State::LastAck => Self::LastAck,
            State::TimeWait => Self::TimeWait,
        }
    }
}

/// What the socket layer knows of a connection, in addition to the engine.
#[derive(Clone, Copy, Debug)]
pub struct SocketInfo {
    /// State of the socket.
    pub state: TcpState,
    /// Whether the socket opened the connection itself: its SYN counts as acknowledged.
    pub is_active: bool,
    /// Bytes of the receive window that are offered at most.
    pub receive_space: u32,
    /// Round-trip time that the receiver has measured.
    pub receive_rtt: Span,
    /// Pacing rate and its limit (SO_MAX_PACING_RATE), bytes a second.
    pub pacing_rates: [Option<u64>; 2],
    /// Time busy sending, and time limited by the receiver's window and by the send buffer, microseconds.
    pub limited_us: [u64; 3],
    /// Bytes of written data that the engine's send buffer has no space for yet.
    pub unsent: u32,
}

/// A `tcp_info` under construction.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn bytes(&mut self, values: &[u8]) {
        self.0.extend_from_slice(values);
    }

    fn ints(&mut self, values: &[u32]) {
        self.0
            .extend(values.iter().flat_map(|value| value.to_ne_bytes()));
    }

    fn longs(&mut self, values: &[u64]) {
        self.0
            .extend(values.iter().flat_map(|value| value.to_ne_bytes()));
    }

    fn finish(mut self) -> Vec<u8> {
        debug_assert!(self.0.len() <= LEN, "no more than Linux has");
        self.0.resize(LEN, 0);
        self.0
    }
}

fn us(span: Span) -> u32 {
    u32::try_from(span.as_us()).unwrap_or(u32::MAX)
}

/// Returns the value of a timer in microseconds, rounded up to whole milliseconds (the timer's ticks).
fn in_ticks(span: Span) -> u32 {
    us(span).next_multiple_of(1000)
}

fn ms(span: Span) -> u32 {
    us(span) / 1000
}

/// Returns the structure of a socket that has no connection, or whose connection has ended. If it listens, `queued` connections wait in its
/// queue of at most `backlog`.
pub fn without_connection(
    state: TcpState,
    probes: u8,
    syn_data: bool,
    [queued, backlog]: [u32; 2],
) -> Vec<u8> {
    let mut fields = Fields::default();
    let options = if syn_data { SYN_DATA } else { 0 };
    fields.bytes(&[state as u8, 0, 0, probes, 0, options, 0, 0]);
    // For a listener, these fields contain the length of its queue and the queue's limit (`tcpi_unacked` and `tcpi_sacked`).
    fields.ints(&[0, 0, 0, 0, queued, backlog, 0, 0, 0]);
    fields.ints(&[0, 0, 0, 0]);
    fields.ints(&[0, 0, 0, 0, NO_THRESHOLD, 0, 0, USUAL_REORDERING]);
    fields.finish()
}

/// Returns the structure of a connection.
pub fn of_connection(info: &Info, socket: &SocketInfo) -> Vec<u8> {
    let mut fields = Fields::default();
    put_state(&mut fields, info, socket);
    put_segments(&mut fields, info);
    put_path(&mut fields, info, socket);
    put_totals(&mut fields, info, socket);
    fields.finish()
}

fn put_state(fields: &mut Fields, info: &Info, socket: &SocketInfo) {
    let phase = match info.phase {
        // Disorder: SACK has reported holes, but they do not count as losses yet.
        CongestionPhase::Open if info.sacked + info.lost > 0 => 1,
        CongestionPhase::Open => 0,
        CongestionPhase::Disorder => 1,
        // CWR: the congestion window is reduced, but nothing is missing.
        CongestionPhase::Recovery if info.sacked + info.lost + info.retransmitted == 0 => 2,
        CongestionPhase::Recovery => 3,
        CongestionPhase::Loss => 4,
    };
    let options = [
        (info.timestamps, TIMESTAMPS),
        (info.sack, SACK),
        (info.window_scaling, WINDOW_SCALING),
        (info.ecn, ECN),
        (info.syn_data, SYN_DATA),
    ];
    let options = options.iter().filter(|(is_on, _)| *is_on);
    fields.bytes(&[
        socket.state as u8,
        phase,
        info.retransmits,
        info.probes,
        info.backoff,
        options.fold(0, |bits, (_, bit)| bits | bit),
        info.send_shift | info.receive_shift << 4,
        0,
    ]);
    // Until the first data segment of the peer arrives, its segments are assumed to have the default size.
    let guess = u32::from(info.advertised_mss).min(DEFAULT_MSS);
    let receive_mss = match info.data_segments_in {
        0 => guess,
        _ => info.receive_mss,
    };
    fields.ints(&[in_ticks(info.rto), us(info.ato), info.send_mss, receive_mss]);
}

/// Writes sizes that Linux counts in segments.
fn put_segments(fields: &mut Fields, info: &Info) {
    let mss = info.send_mss.max(1);
    let segments = |bytes: u32| bytes.div_ceil(mss);
    // Retransmitted data counts as lost until it is acknowledged; a tail loss probe does not.
    let lost = match info.phase {
        CongestionPhase::Open | CongestionPhase::Disorder => info.lost,
        CongestionPhase::Recovery | CongestionPhase::Loss => info.lost + info.retransmitted,
    };
    fields.ints(&[
        info.unacked_segments,
        segments(info.sacked),
        segments(lost),
        segments(info.retransmitted),
        0,
    ]);
    fields.ints(&[
        ms(info.last_data_sent),
        0,
        ms(info.last_data_received),
        ms(info.last_ack_received),
    ]);
}

fn put_path(fields: &mut Fields, info: &Info, socket: &SocketInfo) {
    let mss = info.send_mss.max(1);
    let threshold = match info.slow_start_threshold {
        bytes if bytes >= 1 << 30 => NO_THRESHOLD,
        bytes => bytes / mss,
    };
    let options_len = if info.timestamps { TIMESTAMPS_LEN } else { 0 };
    fields.ints(&[
        info.path_mtu,
        socket.receive_space,
        info.srtt.map_or(0, us),
        info.rttvar.map_or(0, us),
        threshold,
        info.congestion_window / mss,
        u32::from(info.advertised_mss).saturating_sub(options_len),
        info.reordering_segments,
        us(socket.receive_rtt),
        socket.receive_space,
        info.total_retransmissions,
    ]);
}

fn put_totals(fields: &mut Fields, info: &Info, socket: &SocketInfo) {
    // An acknowledged SYN counts as a delivered segment and, if this end sent the first SYN, as an acknowledged byte.
    let established = !matches!(info.state, State::SynSent | State::SynReceived);
    let own_syn = established && socket.is_active;
    fields.longs(&socket.pacing_rates.map(|rate| rate.unwrap_or(u64::MAX)));
    fields.longs(&[info.bytes_acked + u64::from(own_syn), info.bytes_received]);
    fields.ints(&[
        info.segments_out,
        info.segments_in,
        info.not_sent.saturating_add(socket.unsent),
        info.min_rtt.map_or(NO_MIN_RTT, us),
        info.data_segments_in,
        info.data_segments_out,
    ]);
    fields.longs(&[info.delivery_rate]);
    fields.longs(&socket.limited_us);
    fields.ints(&[info.delivered + u32::from(established), info.delivered_ce]);
    fields.longs(&[info.bytes_sent, info.bytes_retransmitted]);
    fields.ints(&[
        info.duplicate_sacks,
        info.reordering_seen,
        info.out_of_order_segments,
        info.send_window,
        info.receive_window,
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C library defines only the first fields of the structure, so only these are compared.
    #[test]
    fn fields_have_the_offsets_of_the_c_library() {
        let info = without_connection(TcpState::Close, 0, false, [0, 0]);
        assert_eq!((info.len(), info[0]), (LEN, 7));
        let at = std::mem::offset_of!(libc::tcp_info, tcpi_snd_ssthresh);
        assert_eq!(info[at..at + 4], NO_THRESHOLD.to_ne_bytes());
        let at = std::mem::offset_of!(libc::tcp_info, tcpi_reordering);
        assert_eq!(info[at..at + 4], USUAL_REORDERING.to_ne_bytes());
        let (mtu, mss) = (PATH_MTU_AT, ADVERTISED_MSS_AT);
        assert_eq!(mtu, std::mem::offset_of!(libc::tcp_info, tcpi_pmtu));
        assert_eq!(mss, std::mem::offset_of!(libc::tcp_info, tcpi_advmss));
    }
}
