//! Taking over a connection from another system's TCP, and what that TCP needs to take it back.

use super::{Connection, Marks, Negotiated, ReceiveSequence, SendSequence};
use crate::clock::{Past, TimestampClock};
use crate::config::Config;
use crate::congestion::CongestionWindow;
use crate::essentials::{Essentials, WindowScaling};
use crate::portable::Portable;
use crate::rtt::RttEstimator;
use crate::types::State;
use baton_wire::{Flow, Payload, Pieces, Span, Time};

/// Age at which a timestamp is certainly no longer valid (RFC 7323 5.5): 25 days.
const STALE: Span = Span::from_secs(25 * 24 * 3600);

impl<P: Payload> Connection<P> {
    /// Creates the connection on a clock that shows zero. Everything outstanding counts as sent now. An acknowledgment is due, since it is
    /// unknown what the other TCP has acknowledged.
    pub(crate) fn resumed(told: Essentials<P>, config: &Config) -> Self {
        const NOW: Time = Time::ZERO;
        let iss = told.send_una - 1;
        let clock = TimestampClock::new(told.timestamp.unwrap_or_default());
        let mut conn = Self::connecting(NOW, told.flow, config, iss, clock);
        conn.state = told.state;
        let is_shut = matches!(told.state, State::FinWait1 | State::FinWait2);
        conn.marks.set(Marks::SEND_CLOSED, is_shut);
        conn.tx = SendSequence {
            iss,
            una: told.send_una,
            next: told.send_next,
            max: told.send_next,
            window: told.send_window,
            window_seq: told.send_window_seq,
            window_ack: told.send_una,
            largest_window: told.largest_send_window.max(told.send_window),
            partial_end: told.send_una,
        };
        let mss = told.mss.clamp(super::LEAST_MSS, config.mss);
        conn.rx = ReceiveSequence {
            irs: told.receive_next - 1,
            next: told.receive_next,
            edge: told.receive_edge.latest(told.receive_next),
            last_ack: told.receive_next,
            largest_segment: mss,
            acks_owed: 1,
            ..conn.rx
        };
        let scaling = told.window_scaling;
        conn.options = Negotiated {
            mss,
            path_mss: config.route_room(),
            send_shift: scaling.map_or(0, |shifts| shifts.send),
            receive_shift: scaling.map_or(0, |shifts| shifts.receive),
            window_scaling: scaling.is_some(),
            sack: told.sack,
            timestamps: told.timestamp.is_some(),
            recent: 0,
        };
        // Makes any timestamp of the peer count as newer.
        conn.recent_at = Past::ago(NOW, STALE);
        let mut unread: Pieces<P> = told.receive_buffer.into_iter().collect();
        conn.receive.append(&mut unread);
        for piece in told.send_buffer {
            conn.send.push(piece);
        }
        if let Some((srtt, rttvar)) = told.round_trip {
            conn.rtt.resume(srtt, rttvar, config);
        }
        let estimates = (told.congestion_window, told.slow_start_threshold);
        conn.resume_sending(estimates, config);
        conn
    }

    fn resume_sending(&mut self, (window, threshold): (Option<u32>, Option<u32>), config: &Config) {
        const NOW: Time = Time::ZERO;
        let moment = self.clock.moment(NOW);
        self.choose_mtu_probing(moment, config);
        let window = window.unwrap_or_else(|| self.initial_window(config));
        // The other TCP may have sent smaller segments, so that its window is smaller than one of ours.
        let window = window.max(self.smss());
        self.congestion.start(window, self.tx.una, config);
        if let Some(threshold) = threshold {
            self.congestion.set_threshold(threshold, self.smss());
        }
        self.introduce_controller(NOW);
        let (end, push) = (self.data_end(), true);
        if !self.send.is_empty() {
            self.boundaries.written(self.tx.una, end, push, false);
        }
        if self.flight() > 0 {
            self.timers.retransmit = NOW + self.rtt.rto(config);
            if self.keeps_times() {
                let (una, max) = (self.tx.una, self.tx.max);
                self.repair.flight.start(una, max, None, moment);
            }
        }
    }
}

impl<P: Payload> Portable<P> {
    /// Reports whether the connection has ended and only waits for its owner.
    pub(crate) fn is_over(&self) -> bool {
        self.inner.ended.is_some()
    }

    /// Received bytes that take up space of the receive window.
    pub(crate) fn unconsumed(&self) -> usize {
        self.inner.receive.unconsumed as usize
    }

    /// Returns all state that another system's TCP can take over.
    pub(crate) fn tell(&self) -> Essentials<P> {
        let inner = &self.inner;
        let clock = TimestampClock::showing(Time::ZERO, inner.timestamp_clock);
        let sequences = (&inner.tx, &inner.rx, &inner.options);
        let estimates = (&inner.rtt, &inner.congestion);
        Essentials {
            send_buffer: self.send_buffer.clone(),
            receive_buffer: self.receive_buffer.clone(),
            ..without_data(
                self.flow,
                self.state,
                sequences,
                estimates,
                clock.value(Time::ZERO),
            )
        }
    }
}

impl<P: Payload> Connection<P> {
    /// Returns the state that another system's TCP can take over, without data, if the connection has little data: it is open in both
    /// directions, at most `most` bytes are unacknowledged, and everything that arrived in order has been read and consumed.
    pub(crate) fn nearly_at_rest(&self, now: Time, most: u32) -> Option<Essentials<P>> {
        let is_open = self.state == State::Established && self.may_write();
        let is_at_rest = is_open
            && !self.marks.contains(Marks::RECEIVE_CLOSED)
            && self.send.len() <= most
            && self.receive.unconsumed() == 0;
        let sequences = (&self.tx, &self.rx, &self.options);
        let estimates = (&self.rtt, &self.congestion);
        let clock = self.clock.value(now);
        is_at_rest.then(|| without_data(self.flow, self.state, sequences, estimates, clock))
    }

    /// Pieces of written data that are not fully acknowledged, and how many bytes of each are acknowledged.
    pub(crate) fn unacknowledged_pieces(&self) -> impl Iterator<Item = (&P, usize)> {
        self.send.pieces()
    }
}

fn without_data<P>(
    flow: Flow,
    state: State,
    (tx, rx, options): (&SendSequence, &ReceiveSequence, &Negotiated),
    (rtt, congestion): (&RttEstimator, &CongestionWindow),
    clock: u32,
) -> Essentials<P> {
    let scaling = WindowScaling {
        send: options.send_shift,
        receive: options.receive_shift,
    };
    Essentials {
        flow,
        state,
        send_una: tx.una,
        send_next: tx.max,
        send_buffer: Vec::new(),
        send_window: tx.window,
        send_window_seq: tx.window_seq,
        largest_send_window: tx.largest_window,
        receive_next: rx.next,
        receive_edge: rx.edge,
        receive_buffer: Vec::new(),
        mss: options.mss,
        window_scaling: options.window_scaling.then_some(scaling),
        sack: options.sack,
        // The next tick: timestamps never decrease, and the present one may have been used.
        timestamp: options.timestamps.then(|| clock.wrapping_add(1)),
        round_trip: rtt.smoothed(),
        congestion_window: Some(congestion.window()),
        slow_start_threshold: Some(congestion.threshold()).filter(|&it| it < u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::{Endpoint, SeqNr, Symbolic};

    fn with_data_in_flight() -> Essentials<Symbolic> {
        let end = |last: u8| Endpoint::new([10, 0, 0, last].into(), 80);
        Essentials {
            flow: Flow {
                local: end(1),
                remote: end(2),
            },
            state: State::Established,
            send_una: SeqNr(0),
            send_next: SeqNr(0) + 3000,
            send_buffer: vec![Symbolic {
                source: 1,
                offset: 0,
                len: 5000,
            }],
            send_window: 10_000,
            send_window_seq: SeqNr(0),
            largest_send_window: 10_000,
            receive_next: SeqNr(7),
            receive_edge: SeqNr(7) + 20_000,
            receive_buffer: Vec::new(),
            mss: 1000,
            window_scaling: None,
            sack: true,
            timestamp: None,
            round_trip: None,
            congestion_window: None,
            slow_start_threshold: None,
        }
    }

    #[test]
    fn a_resumed_window_has_space_for_a_segment() {
        for told in [0, 536, 1000, 4000] {
            let essentials = Essentials {
                congestion_window: Some(told),
                ..with_data_in_flight()
            };
            let state = essentials.into_portable(&Config::default());
            let window = state.essentials().expect("it is sound").congestion_window;
            assert_eq!(window, Some(told.max(1000)));
        }
    }

    #[test]
    fn a_reduced_window_resumes_with_its_threshold() {
        for (told, expected) in [
            (None, None),
            (Some(0), Some(2000)),
            (Some(50_000), Some(50_000)),
            (Some(u32::MAX), None),
        ] {
            let essentials = Essentials {
                congestion_window: Some(60_000),
                slow_start_threshold: told,
                ..with_data_in_flight()
            };
            let state = essentials.into_portable(&Config::default());
            let again = state.essentials().expect("it is sound");
            assert_eq!(again.slow_start_threshold, expected);
        }
    }

    #[test]
    fn arrivals_beyond_the_data_in_flight_are_a_bad_state() {
        let config = Config::default();
        let mut conn = Connection::resumed(with_data_in_flight(), &config);
        assert_eq!(conn.verify(&config), Ok(()));
        let max = conn.tx.max;
        conn.repair.rack.note_duplicates(false, max + 1, max);
        assert!(conn.verify(&config).is_err());
    }
}
