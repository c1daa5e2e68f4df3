//! Describes what a connection waits for.

use baton_tcp::{Info, Limit, State, TimerKind};
use baton_wire::Span;

/// Returns everything that the connection waits for, most pressing first; empty if it can continue immediately, or is idle.
pub fn waits_for(state: State, receive_queue: u64, send_queue: u64, info: &Info) -> Vec<String> {
    let mut waits = Vec::new();
    if receive_queue > 0 {
        waits.push("the application to read".to_owned());
    }
    let again = fires(info, &[TimerKind::Retransmission, TimerKind::Loss]);
    let again = again.map_or_else(String::new, |after| format!("; retransmits in {after}"));
    match state {
        State::SynSent | State::SynReceived => {
            waits.push(format!("the peer to complete the handshake{again}"));
            return waits;
        }
        State::FinWait2 => waits.push("the peer to close".to_owned()),
        State::TimeWait => {
            let left = fires(info, &[TimerKind::TimeWait]);
            waits.push(left.map_or_else(
                || "old segments to expire".to_owned(),
                |left| format!("old segments to expire, in {left}"),
            ));
            return waits;
        }
        _ => {}
    }
    let in_flight = info.unacked_segments > 0 || matches!(state, State::LastAck | State::Closing);
    let probe = fires(info, &[TimerKind::WindowProbe]);
    let is_closed = info.limited_by == Some(Limit::PeerWindow) || probe.is_some();
    if is_closed {
        waits.push(match probe {
            Some(after) => format!("the peer's window to open; probes it in {after}"),
            None => "the peer's window to open".to_owned(),
        });
    }
    match info.limited_by {
        Some(Limit::Coalescing) => waits.push("more data to fill a segment".to_owned()),
        Some(Limit::Pacing) => waits.push("its pacing to let it send".to_owned()),
        Some(Limit::CongestionWindow) => {
            waits.push(format!("the congestion window to open{again}"));
        }
        _ if in_flight || send_queue > u64::from(info.not_sent) => {
            waits.push(format!("the peer to acknowledge{again}"));
        }
        _ => {}
    }
    if state == State::CloseWait {
        waits.push("the application to close".to_owned());
    }
    waits
}

/// Returns the time until a timer of one of these kinds fires, if the next timer is one of them.
fn fires(info: &Info, kinds: &[TimerKind]) -> Option<String> {
    let timer = info.timer.filter(|timer| kinds.contains(&timer.kind))?;
    Some(duration(timer.after))
}

/// Formats a duration for people, with about three digits.
pub fn duration(span: Span) -> String {
    let ms = span.as_us_f64() / 1000.0;
    match ms {
        ..10.0 => format!("{ms:.2} ms"),
        ..1000.0 => format!("{ms:.0} ms"),
        ..60_000.0 => format!("{:.1} s", ms / 1000.0),
        _ => format!("{:.0} min", ms / 60_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_tcp::{Config, Stack, Timer};
    use baton_wire::{Endpoint, Flow, Time};
    use bytes::Bytes;

    /// Returns the state of an idle connection.
    fn idle() -> Info {
        let end = |last, port| Endpoint::new([10, 0, 0, last].into(), port);
        let mut stack = Stack::<Bytes>::new(Config::default(), 1);
        let (local, remote) = (end(1, 5000), end(2, 80));
        let conn = stack.connect(Time::ZERO, Flow { local, remote });
        Info {
            unacked_segments: 0,
            timer: None,
            limited_by: None,
            ..stack.info(Time::ZERO, conn.expect("a free flow"))
        }
    }

    fn timer(kind: TimerKind, ms: u64) -> Option<Timer> {
        let after = Span::from_ms(ms);
        Some(Timer { kind, after })
    }

    #[test]
    fn an_idle_connection_waits_for_nothing() {
        let none: [String; 0] = [];
        assert_eq!(waits_for(State::Established, 0, 0, &idle()), none);
        let keepalive = Info {
            timer: timer(TimerKind::Keepalive, 7_000_000),
            ..idle()
        };
        assert_eq!(waits_for(State::Established, 0, 0, &keepalive), none);
    }

    #[test]
    fn each_reason_to_wait_is_named() {
        let again = timer(TimerKind::Retransmission, 300);
        let sent = Info {
            unacked_segments: 2,
            timer: again,
            ..idle()
        };
        let closed = Info {
            not_sent: 100,
            limited_by: Some(Limit::PeerWindow),
            timer: timer(TimerKind::WindowProbe, 1500),
            ..idle()
        };
        let (open, rest) = (State::Established, "the peer to close");
        for (state, queues, info, expected) in [
            (open, (9, 0), &idle(), &["the application to read"][..]),
            (
                open,
                (0, 9),
                &sent,
                &["the peer to acknowledge; retransmits in 300 ms"],
            ),
            (
                open,
                (0, 100),
                &closed,
                &["the peer's window to open; probes it in 1.5 s"],
            ),
            (
                State::CloseWait,
                (0, 0),
                &idle(),
                &["the application to close"],
            ),
            (
                State::FinWait2,
                (3, 0),
                &idle(),
                &["the application to read", rest],
            ),
            (
                State::SynSent,
                (0, 0),
                &sent,
                &["the peer to complete the handshake; retransmits in 300 ms"],
            ),
        ] {
            let waits = waits_for(state, queues.0, queues.1, info);
            assert_eq!(waits, expected, "{state:?}");
        }
    }
}
