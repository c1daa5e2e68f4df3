//! Effects of ICMP errors on a connection (RFC 9293 3.9.2.2, RFC 5927, RFC 1191, RFC 8201).

use super::{Connection, Context, Effects, End, LEAST_MSS, Marks};
use crate::config::Config;
use crate::path_error::{PathError, plateau_below};
use crate::types::{CloseReason, Refusal, State};
use baton_wire::{Payload, SeqNr};
use std::net::IpAddr;

/// Least MTU that a path can have (RFC 791, RFC 8200 5).
const LEAST_MTU_V4: u16 = 68;
const LEAST_MTU_V6: u16 = 1280;

impl<P: Payload> Connection<P> {
    /// Processes an error about a segment of this connection that started at `seq`.
    pub(crate) fn handle_path_error(
        &mut self,
        cx: &mut Context<'_>,
        seq: SeqNr,
        error: PathError,
    ) -> Effects {
        let mut effects = Effects::default();
        // RFC 5927 4.1: only errors about data in flight count. The SYN-ACK is in flight until the handshake is complete.
        let first = match self.is_opened_fast() {
            true => self.tx.iss,
            false => self.tx.una,
        };
        if self.ended.is_some() || seq.before(first) || seq.at_or_after(self.tx.max) {
            effects.refused = Some(Refusal::OutOfWindow);
            return effects;
        }
        match error {
            PathError::FragmentationNeeded { mtu } => {
                if !cx.config.path_mtu_discovery || !self.narrow_path(seq, mtu) {
                    effects.refused = Some(Refusal::Malformed);
                }
            }
            // The connection is not open yet: report the error to the owner immediately, as Linux does. RFC 1122 4.2.3.9 lets the
            // owner decide after the report; an owner that wants to continue connects again.
            _ if self.state == State::SynSent => {
                self.fast_open_failed(cx, false);
                effects.end = Some(End::Closed(CloseReason::Unreachable(error)));
            }
            // No application knows the connection yet.
            PathError::NetUnreachable
            | PathError::HostUnreachable
            | PathError::TimeExceeded
            | PathError::ParameterProblem
                if self.answers_request() && cx.config.linux.unreachable_ends_half_open =>
            {
                effects.end = Some(End::Closed(CloseReason::Unreachable(error)));
            }
            // RFC 5927 5.2: even hard errors are soft ones once a connection is synchronised.
            _ => self.soft_error = Some(error),
        }
        effects
    }

    /// Reduces the path's MTU after a router reported that it dropped the packet that starts at `seq`. Returns false if the report
    /// is implausible.
    fn narrow_path(&mut self, seq: SeqNr, mtu: u16) -> bool {
        let headers = self.base_header_len();
        let least = match self.flow.remote.addr {
            IpAddr::V4(_) => LEAST_MTU_V4,
            IpAddr::V6(_) => LEAST_MTU_V6,
        };
        let probe = self.mtu_probe_at(seq);
        let known = u32::from(probe.map_or(self.segment_room(), |(_, size)| size)) + headers;
        let mtu = match mtu {
            0 => plateau_below(known),
            // RFC 8201 4: packets need not be smaller than the least MTU.
            _ => mtu.max(least),
        };
        if u32::from(mtu) >= known {
            return false;
        }
        let before = self.segment_room();
        let room = (u32::from(mtu) - headers).max(LEAST_MSS.into()) as u16;
        self.limit_path(room);
        self.marks.insert(Marks::PATH_TOLD);
        // RFC 1191 6.5, RFC 8201 5.4: send again immediately, in smaller segments, and keep the congestion window.
        match probe {
            Some((probe, _)) if self.segment_room() == before => self.repeat_mtu_probe(probe),
            _ => self.repeat_in_smaller_pieces(),
        }
        true
    }

    /// The path's MTU, if an ICMP message reported it to this connection and the route has not changed since.
    pub(crate) fn told_path_mtu(&self) -> Option<u16> {
        let mtu = u32::from(self.told_path_room()) + self.base_header_len();
        let told = self.marks.contains(Marks::PATH_TOLD);
        told.then(|| mtu.min(u16::MAX.into()) as u16)
    }

    /// Takes the path's MTU that was reported to another connection. Data in flight is left to its timers.
    pub(crate) fn hear_of_path(&mut self, config: &Config, mtu: u16) {
        let room = u32::from(mtu) - self.base_header_len();
        let room = room.max(LEAST_MSS.into()) as u16;
        if config.path_mtu_discovery && self.ended.is_none() && room < self.told_path_room() {
            self.doubt_mtu_probe();
            self.limit_path(room);
        }
    }

    /// Sends outstanding data again in smaller segments, and a SYN without its data (RFC 7413 4.2.1).
    pub(super) fn repeat_in_smaller_pieces(&mut self) {
        if self.state == State::SynSent && self.tx.max.after(self.tx.iss + 1) {
            self.send_syn_again();
        }
        if self.is_synchronized() && self.flight() > 0 {
            self.doubt_mtu_probe();
            if self.keeps_times() {
                self.repair.flight.lose_all(self.tx.una);
            } else {
                self.tx.next = self.tx.una;
            }
            self.marks.insert(Marks::SEND_FIRST_AGAIN);
        }
    }
}
