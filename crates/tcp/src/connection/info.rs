//! State of a connection for tools like ss.

use super::{Connection, Marks};
use crate::config::Config;
use crate::info::{CongestionPhase, Info, Limit};
use crate::types::State;
use baton_wire::{Payload, Span, Time};
use std::net::IpAddr;

impl<P: Payload> Connection<P> {
    /// Bytes of IP and TCP headers without options.
    pub(super) fn base_header_len(&self) -> u32 {
        match self.flow.remote.addr {
            IpAddr::V4(_) => 40,
            IpAddr::V6(_) => 60,
        }
    }

    /// Bytes written and not yet sent.
    pub(crate) fn not_sent(&self) -> u32 {
        self.data_end().saturating_since(self.tx.max)
    }

    /// Reports whether the peer closed its sending direction.
    pub(crate) fn peer_closed(&self) -> bool {
        matches!(
            self.state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        )
    }

    /// Returns what keeps the connection from sending more, once it has sent all it may.
    fn limited_by(&self) -> Option<Limit> {
        let not_sent = self.not_sent();
        if not_sent == 0 || !self.is_synchronized() {
            return self.may_write().then_some(Limit::Application);
        }
        let wanted = not_sent.min(self.smss());
        let flight = self.flight();
        let in_network = (flight + self.sent_again()).saturating_sub(self.reported() + self.lost());
        let offered = self.tx.window.saturating_sub(flight);
        let allowed = self.congestion.window().saturating_sub(in_network);
        Some(if offered.min(allowed) >= wanted {
            match self.feedback {
                Some(_) => Limit::Pacing,
                None => Limit::Coalescing,
            }
        } else if offered <= allowed {
            Limit::PeerWindow
        } else {
            Limit::CongestionWindow
        })
    }

    /// Bytes of data and options that a segment may hold as far as the network has reported.
    pub(super) fn told_path_room(&self) -> u16 {
        let search = self.search.as_ref();
        search.map_or(self.options.path_mss, |search| search.told)
    }

    /// Returns a snapshot of the connection's state.
    pub(crate) fn info(&self, now: Time, config: &Config) -> Info {
        let counts = &self.counts;
        let smoothed = self.rtt.smoothed();
        let flight = self.flight();
        let reported = match self.options.sack {
            true => self.reported(),
            false => self.counted_by_duplicates(),
        };
        let inflation = match self.reduces_without_reports() {
            true => reported,
            false => 0,
        };
        Info {
            state: self.state,
            phase: CongestionPhase::of(self.congestion.phase, self.congestion.duplicates > 0),
            retransmits: self.timers.retries,
            probes: self.timers.unanswered.max(self.timers.keepalive_probes),
            backoff: self.timers.retries.max(self.timers.probes),
            timestamps: self.options.timestamps,
            sack: self.options.sack,
            window_scaling: self.options.window_scaling,
            ecn: self.notification.is_agreed(),
            syn_data: self.marks.contains(Marks::SYN_DATA),
            send_shift: self.options.send_shift,
            receive_shift: self.options.receive_shift,
            rto: self.rtt.rto(config),
            timer: self.timers.first(now),
            ato: Span::from_ms(config.delayed_ack_ms.into()),
            send_mss: self.smss(),
            receive_mss: self.rx.largest_segment.into(),
            advertised_mss: config.advertised_mss(),
            path_mtu: u32::from(self.told_path_room().min(config.mss)) + self.base_header_len(),
            unacked_segments: flight.div_ceil(self.smss()),
            sacked: reported,
            lost: self.lost(),
            retransmitted: self.sent_again(),
            last_data_sent: self.last_sent.elapsed(now),
            last_data_received: self.last_data_at.elapsed(now),
            last_ack_received: self.last_received_at.elapsed(now),
            slow_start_threshold: self.congestion.threshold(),
            congestion_window: self.congestion.window() - inflation,
            srtt: smoothed.map(|(srtt, _)| srtt),
            rttvar: smoothed.map(|(_, rttvar)| rttvar),
            min_rtt: self.repair.rack.min_rtt(),
            reordering_segments: self.repair.duplicate_threshold(),
            reordering_seen: self.repair.rack.reordering_seen(),
            send_window: self.tx.window,
            receive_window: self.rx.edge.saturating_since(self.rx.next),
            not_sent: self.not_sent(),
            limited_by: self.limited_by(),
            bytes_acked: counts.bytes_acked,
            bytes_received: counts.bytes_received,
            bytes_sent: counts.bytes_sent,
            bytes_retransmitted: counts.bytes_retransmitted,
            segments_in: counts.segments_in,
            segments_out: counts.segments_out,
            data_segments_in: counts.data_segments_in,
            data_segments_out: counts.data_segments_out,
            total_retransmissions: counts.total_retransmissions,
            out_of_order_segments: counts.out_of_order_segments,
            delivered: self.repair.delivered,
            delivered_ce: self.repair.delivered_marked,
            duplicate_sacks: self.repair.duplicates,
            delivery_rate: self.repair.rate.per_second(),
        }
    }
}
