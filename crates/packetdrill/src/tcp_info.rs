//! `struct tcp_info` of Linux 6.x, field by field in its order (linux/tcp.h).

use crate::network::Link;
use crate::sockets::{Socket, TcpState};
use baton_tcp::{CongestionPhase, Info, State};
use baton_wire::{Span, Time};

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

/// The structure while it is being filled.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn bytes(&mut self, values: &[u8]) {
        self.0.extend_from_slice(values);
    }

    fn ints(&mut self, values: &[u32]) {
        for value in values {
            self.0.extend(value.to_ne_bytes());
        }
    }

    fn longs(&mut self, values: &[u64]) {
        for value in values {
            self.0.extend(value.to_ne_bytes());
        }
    }
}

fn us(span: Span) -> u32 {
    u32::try_from(span.as_us()).unwrap_or(u32::MAX)
}

/// Microseconds of a timer, which ticks in milliseconds.
fn in_ticks(span: Span) -> u32 {
    us(span).next_multiple_of(1000)
}

fn ms(span: Span) -> u32 {
    us(span) / 1000
}

/// The structure of a socket whose connection the engine does not have, or no longer.
pub(crate) fn without_connection(state: TcpState, socket: &Socket) -> Vec<u8> {
    let mut fields = Fields::default();
    let options = if socket.syn_data { SYN_DATA } else { 0 };
    fields.bytes(&[state as u8, 0, 0, socket.probes, 0, options, 0, 0]);
    let queued = socket
        .listening
        .as_ref()
        .map_or(0, |listening| listening.queue.len());
    let backlog = socket
        .listening
        .as_ref()
        .map_or(0, |listening| listening.backlog);
    // A listener shows its queue and its limit where a connection shows segments in flight and reported ones.
    fields.ints(&[0, 0, 0, 0, queued as u32, backlog as u32, 0, 0, 0]);
    fields.ints(&[0, 0, 0, 0]);
    fields.ints(&[0, 0, 0, 0, NO_THRESHOLD, 0, 0, USUAL_REORDERING]);
    fields.0.resize(FULL_LEN, 0);
    fields.0
}

/// Bytes of the whole structure in Linux 6.18; unknown fields are zero.
const FULL_LEN: usize = 280;

/// The structure of a connection.
pub(crate) fn of_connection(
    now: Time,
    state: TcpState,
    info: &Info,
    socket: &Socket,
    link: &Link,
) -> Vec<u8> {
    let mut fields = Fields::default();
    put_state(&mut fields, state, info);
    put_segments(&mut fields, info);
    put_path(&mut fields, info, socket);
    put_totals(&mut fields, now, info, socket, link);
    debug_assert!(fields.0.len() <= FULL_LEN, "no more than Linux has");
    fields.0.resize(FULL_LEN, 0);
    fields.0
}

fn put_state(fields: &mut Fields, state: TcpState, info: &Info) {
    let phase = match info.phase {
        // Reports of holes do not count as losses yet: disorder.
        CongestionPhase::Open if info.sacked + info.lost > 0 => 1,
        CongestionPhase::Open => 0,
        CongestionPhase::Disorder => 1,
        // The window is reduced, but nothing is missing: CWR.
        CongestionPhase::Recovery if info.sacked + info.lost + info.retransmitted == 0 => 2,
        CongestionPhase::Recovery => 3,
        CongestionPhase::Loss => 4,
    };
    let mut options = 0;
    for (on, bit) in [
        (info.timestamps, TIMESTAMPS),
        (info.sack, SACK),
        (info.window_scaling, WINDOW_SCALING),
        (info.ecn, ECN),
        (info.syn_data, SYN_DATA),
    ] {
        options |= if on { bit } else { 0 };
    }
    let scales = info.send_shift | info.receive_shift << 4;
    fields.bytes(&[
        state as u8,
        phase,
        info.retransmits,
        info.probes,
        info.backoff,
    ]);
    fields.bytes(&[options, scales, 0]);
    // Before the peer's segments are known, they are assumed to have the default size.
    let guess = u32::from(info.advertised_mss).min(DEFAULT_MSS);
    let receive_mss = if info.data_segments_in == 0 {
        guess
    } else {
        info.receive_mss
    };
    fields.ints(&[in_ticks(info.rto), us(info.ato), info.send_mss, receive_mss]);
}

/// Sizes that Linux counts in segments.
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

fn put_path(fields: &mut Fields, info: &Info, socket: &Socket) {
    let mss = info.send_mss.max(1);
    let threshold = match info.slow_start_threshold {
        bytes if bytes >= 1 << 30 => NO_THRESHOLD,
        bytes => bytes / mss,
    };
    fields.ints(&[
        info.path_mtu,
        socket.window.offered(),
        info.srtt.map_or(0, us),
        info.rttvar.map_or(0, us),
        threshold,
        info.congestion_window / mss,
        u32::from(info.advertised_mss) - if info.timestamps { TIMESTAMPS_LEN } else { 0 },
        info.reordering_segments,
        us(socket.window.round_trip()),
        socket.window.offered(),
        info.total_retransmissions,
    ]);
}

fn put_totals(fields: &mut Fields, now: Time, info: &Info, socket: &Socket, link: &Link) {
    // A SYN counts as delivered, and as a byte acknowledged when the socket connected.
    let established = !matches!(info.state, State::SynSent | State::SynReceived);
    let own_syn = established && socket.active;
    fields.longs(&[
        link.pacing.rate().unwrap_or(u64::MAX),
        socket.options.max_pacing_rate.unwrap_or(u64::MAX),
        info.bytes_acked + u64::from(own_syn),
        info.bytes_received,
    ]);
    fields.ints(&[
        info.segments_out,
        info.segments_in,
        info.not_sent,
        info.min_rtt.map_or(NO_MIN_RTT, us),
        info.data_segments_in,
        info.data_segments_out,
    ]);
    fields.longs(&[info.delivery_rate]);
    fields.longs(&link.limits.totals_us(now));
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
    use crate::address::Family;
    use crate::flags::Settings;

    #[test]
    fn a_closed_socket_has_a_whole_structure() {
        let socket = Socket::new(Family::V4, &Settings::default());
        let info = without_connection(TcpState::Close, &socket);
        assert_eq!((info.len(), info[0]), (FULL_LEN, 7));
    }

    /// The C library defines the start of the structure: offsets of fields agree.
    #[test]
    fn fields_have_the_offsets_of_the_c_library() {
        let socket = Socket::new(Family::V4, &Settings::default());
        let info = without_connection(TcpState::Close, &socket);
        let at = std::mem::offset_of!(libc::tcp_info, tcpi_snd_ssthresh);
        assert_eq!(info[at..at + 4], NO_THRESHOLD.to_ne_bytes());
        let at = std::mem::offset_of!(libc::tcp_info, tcpi_reordering);
        assert_eq!(info[at..at + 4], USUAL_REORDERING.to_ne_bytes());
    }
}
