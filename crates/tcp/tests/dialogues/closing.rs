//! Ending connections: FINs in every order, resets, aborts (RFC 9293 3.6, 3.10.4, 3.10.5; RFC 5961).

use crate::script::{Dialogue, plain};
use baton_tcp::{CloseReason, Config, Event, Refusal, State};

const CLOSED: Event = Event::Closed(CloseReason::Normal);

#[test]
fn the_end_that_closes_first_goes_to_time_wait_and_gives_up_its_slot() {
    let mut d = Dialogue::accepted(plain());
    d.stack.close(d.id);
    d.expect(&["FA 1:1 ack 1"]);
    assert_eq!(d.state(), State::FinWait1);
    d.inject("A 1:1 ack 2");
    assert_eq!((d.state(), d.events()), (State::FinWait2, vec![]));
    d.inject("FA 1:1 ack 2");
    assert_eq!(d.events(), [CLOSED]);
    d.expect(&["A 2:2 ack 2"]);
    assert!(d.stack.is_empty());
    assert!(d.stack.in_time_wait(d.now, &d.flow));
    assert_eq!((d.stack.find(&d.flow), d.stack.time_wait_len()), (None, 1));
}

#[test]
fn the_end_that_closes_second_is_done_with_the_last_ack() {
    let mut d = Dialogue::accepted(plain());
    d.inject("FA 1:1 ack 1");
    d.expect(&["A 1:1 ack 2"]);
    assert_eq!(
        (d.state(), d.events()),
        (State::CloseWait, vec![Event::PeerClosed])
    );
    d.stack.close(d.id);
    d.expect(&["FA 1:1 ack 2"]);
    assert_eq!(d.state(), State::LastAck);
    d.inject("A 2:2 ack 2");
    assert_eq!(d.events(), [CLOSED]);
    d.quiet();
    assert!(!d.stack.in_time_wait(d.now, &d.flow));
}

#[test]
fn a_fin_and_its_acknowledgment_may_share_a_segment() {
    let mut d = Dialogue::accepted(plain());
    d.stack.close(d.id);
    d.expect(&["FA 1:1 ack 1"]);
    d.inject("FA 1:1 ack 2");
    assert_eq!(d.events(), [CLOSED]);
    d.expect(&["A 2:2 ack 2"]);
}

#[test]
fn both_ends_may_close_at_once() {
    let mut d = Dialogue::accepted(plain());
    d.stack.shutdown(d.id);
    d.expect(&["FA 1:1 ack 1"]);
    d.inject("FA 1:1 ack 1");
    assert_eq!(
        (d.state(), d.events()),
        (State::Closing, vec![Event::PeerClosed])
    );
    d.expect(&["A 2:2 ack 2"]);
    d.inject("A 2:2 ack 2");
    assert_eq!(d.events(), [CLOSED]);
    assert!(d.stack.in_time_wait(d.now, &d.flow));
}

#[test]
fn after_a_half_close_data_still_comes() {
    let mut d = Dialogue::accepted(plain());
    d.stack.shutdown(d.id);
    d.expect(&["FA 1:1 ack 1"]);
    d.inject("A 1:1 ack 2");
    d.inject("A 1:1001 ack 2");
    d.inject("A 1001:2001 ack 2");
    d.expect(&["A 2:2 ack 2001"]);
    assert_eq!((d.events(), d.read_all()), (vec![Event::Readable], 2000));
    d.inject("FA 2001:2001 ack 2");
    assert_eq!(d.events(), [Event::PeerClosed, CLOSED]);
}

#[test]
fn after_the_peers_half_close_data_still_goes() {
    let mut d = Dialogue::accepted(plain());
    d.inject("FA 1:1 ack 1");
    d.expect(&["A 1:1 ack 2"]);
    d.write(1500);
    d.expect(&["A 1:1001 ack 2", "PA 1001:1501 ack 2"]);
    d.inject("A 2:2 ack 1501");
    assert_eq!(d.events(), [Event::PeerClosed, Event::Acknowledged(1500)]);
}

#[test]
fn a_fin_follows_what_was_written() {
    let mut d = Dialogue::accepted(Config {
        initial_window_segments: 2,
        ..plain()
    });
    d.write(2500);
    d.stack.shutdown(d.id);
    d.expect(&["A 1:1001 ack 1", "A 1001:2001 ack 1"]);
    assert_eq!(d.state(), State::FinWait1);
    d.inject("A 1:1 ack 2001");
    d.expect(&["FPA 2001:2501 ack 1"]);
    d.inject("A 1:1 ack 2502");
    assert_eq!(
        (d.state(), d.events()),
        (State::FinWait2, vec![Event::Acknowledged(2500)])
    );
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut d = Dialogue::accepted(plain());
    d.write(100);
    d.stack.shutdown(d.id);
    d.expect(&["FPA 1:101 ack 1"]);
    assert_eq!(d.wait_for_output().1, ["FPA 1:101 ack 1"]);
    d.inject("A 1:1 ack 101");
    assert_eq!(d.wait_for_output().1, ["FA 101:101 ack 1"]);
}

#[test]
fn a_fin_ahead_of_its_data_waits() {
    let mut d = Dialogue::accepted(plain());
    d.inject("FA 1001:1101 ack 1");
    d.expect(&["A 1:1 ack 1"]);
    assert_eq!((d.state(), d.events()), (State::Established, vec![]));
    d.inject("A 1:1001 ack 1");
    d.expect(&["A 1:1 ack 1102"]);
    assert_eq!(
        (d.state(), d.events()),
        (State::CloseWait, vec![Event::Readable, Event::PeerClosed])
    );
    assert_eq!(d.read_all(), 1100);
}

#[test]
fn a_fin_is_taken_at_the_edge_of_a_closed_window() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:10001 ack 1");
    d.expect(&["A 1:1 ack 10001"]);
    d.inject("FA 10001:10001 ack 1");
    d.expect(&["A 1:1 ack 10002"]);
    assert_eq!(d.state(), State::CloseWait);
    assert_eq!(d.last_window(), 0);
}

#[test]
fn what_the_owner_has_not_read_outlives_the_connection() {
    let mut d = Dialogue::accepted(plain());
    d.stack.shutdown(d.id);
    d.sent();
    d.inject("FPA 1:101 ack 2");
    assert_eq!(d.events(), [Event::Readable, Event::PeerClosed]);
    assert_eq!((d.state(), d.stack.find(&d.flow)), (State::TimeWait, None));
    d.expect(&["A 2:2 ack 102"]);
    assert_eq!(d.stack.read(d.id, 60).map(|piece| piece.len), Some(60));
    assert_eq!(d.events(), []);
    assert_eq!(d.stack.read(d.id, 60).map(|piece| piece.len), Some(40));
    d.stack.consume(d.id, 100);
    assert_eq!(d.events(), [CLOSED]);
    assert!(d.stack.is_empty());
}

#[test]
fn an_owner_may_not_want_what_is_left() {
    let mut d = Dialogue::accepted(plain());
    d.stack.shutdown(d.id);
    d.sent();
    d.inject("FPA 1:101 ack 2");
    d.events();
    d.stack.close(d.id);
    assert_eq!(d.events(), [CLOSED]);
}

#[test]
fn data_for_a_closed_end_is_answered_by_a_reset() {
    let mut d = Dialogue::accepted(plain());
    d.stack.close(d.id);
    d.expect(&["FA 1:1 ack 1"]);
    assert_eq!(
        d.inject("PA 1:101 ack 2").refused,
        Some(Refusal::DataAfterClose)
    );
    d.expect(&["R 2:2"]);
    assert_eq!(d.events(), [Event::Closed(CloseReason::Aborted)]);
}

#[test]
fn closing_with_data_unread_resets() {
    let mut d = Dialogue::accepted(plain());
    d.inject("PA 1:101 ack 1");
    d.events();
    d.stack.close(d.id);
    d.expect(&["RA 1:1 ack 101"]);
    assert_eq!(d.events(), [Event::Closed(CloseReason::Aborted)]);
}

#[test]
fn an_abort_resets_and_drops_everything() {
    let mut d = Dialogue::accepted(plain());
    d.write(500);
    d.stack.abort(d.id);
    d.expect(&["RA 1:1 ack 1"]);
    assert_eq!(d.events(), [Event::Closed(CloseReason::Aborted)]);
    assert_eq!(d.stack.poll_event(), None);
    d.wait_ms(100_000);
    d.quiet();
}

/// RFC 5961 3.2.
#[test]
fn only_the_very_next_number_resets() {
    let mut d = Dialogue::accepted(plain());
    assert_eq!(d.inject("R 2:2").refused, Some(Refusal::BlindReset));
    d.expect(&["A 1:1 ack 1"]);
    assert_eq!(
        d.inject("R 20000:20000").refused,
        Some(Refusal::OutOfWindow)
    );
    assert_eq!(d.inject("R 0:0").refused, Some(Refusal::OutOfWindow));
    d.quiet();
    d.inject("PA 1:101 ack 1");
    d.inject("R 101:101");
    assert_eq!(
        d.events(),
        [Event::Readable, Event::Closed(CloseReason::Reset)]
    );
    d.quiet();
}

#[test]
fn a_reset_ends_a_connection_in_every_state() {
    type Go = fn(&mut Dialogue);
    let to_state: [(State, Go); 6] = [
        (State::Established, |_| {}),
        (State::FinWait1, |d| d.stack.shutdown(d.id)),
        (State::FinWait2, |d| {
            d.stack.shutdown(d.id);
            d.sent();
            d.inject("A 1:1 ack 2");
        }),
        (State::CloseWait, |d| {
            d.inject("FA 1:1 ack 1");
        }),
        (State::Closing, |d| {
            d.stack.shutdown(d.id);
            d.sent();
            d.inject("FA 1:1 ack 1");
        }),
        (State::LastAck, |d| {
            d.inject("FA 1:1 ack 1");
            d.stack.shutdown(d.id);
        }),
    ];
    for (state, go) in to_state {
        let mut d = Dialogue::accepted(plain());
        go(&mut d);
        d.sent();
        d.events();
        assert_eq!(d.state(), state);
        let fin_taken = !matches!(
            state,
            State::Established | State::FinWait1 | State::FinWait2
        );
        d.inject(if fin_taken { "R 2:2" } else { "R 1:1" });
        assert_eq!(
            d.events(),
            [Event::Closed(CloseReason::Reset)],
            "in {state:?}"
        );
        assert!(d.stack.is_empty());
    }
}

/// RFC 5961 4.2.
#[test]
fn a_syn_in_a_connection_is_challenged() {
    let mut d = Dialogue::accepted(plain());
    assert_eq!(d.inject("S 5:5").refused, Some(Refusal::SynInConnection));
    d.expect(&["A 1:1 ack 1"]);
    assert_eq!(d.inject("S 0:0").refused, Some(Refusal::OutOfWindow));
    d.expect(&["A 1:1 ack 1"]);
    assert_eq!(d.state(), State::Established);
}

#[test]
fn a_closed_end_waits_for_the_peers_fin_no_longer_than_time_wait() {
    let mut d = Dialogue::accepted(plain());
    d.stack.close(d.id);
    d.sent();
    d.inject("A 1:1 ack 2");
    d.quiet();
    d.wait_ms(59_999);
    assert_eq!(d.events(), []);
    d.wait_ms(1);
    assert_eq!(d.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn a_half_closed_end_waits_for_ever() {
    let mut d = Dialogue::accepted(plain());
    d.stack.shutdown(d.id);
    d.sent();
    d.inject("A 1:1 ack 2");
    d.quiet();
    d.wait_ms(10_000_000);
    assert_eq!((d.events(), d.state()), (vec![], State::FinWait2));
}

#[test]
fn closing_twice_is_closing_once() {
    let mut d = Dialogue::accepted(plain());
    d.stack.close(d.id);
    d.stack.close(d.id);
    d.stack.shutdown(d.id);
    d.expect(&["FA 1:1 ack 1"]);
    d.quiet();
}

#[test]
fn slots_are_used_again_last_freed_first() {
    let mut d = Dialogue::listening(plain(), 10);
    let mut ids = Vec::new();
    for port in 1..=3 {
        d.flow.remote.port = port;
        d.inject("S 0:0");
        d.sent();
        d.inject("A 1:1 ack 1");
        ids.push(
            d.stack
                .accept(d.listener.expect("it listens"))
                .expect("one waits"),
        );
    }
    d.events();
    for id in [ids[0], ids[2], ids[1]] {
        d.stack.abort(id);
        d.events();
    }
    d.sent();
    let mut again = Vec::new();
    for port in 11..=13 {
        d.flow.remote.port = port;
        again.push(d.inject("S 0:0").conn.expect("one was made"));
    }
    assert_eq!(again, [ids[1], ids[2], ids[0]]);
}

#[test]
fn a_waiting_connection_that_is_reset_leaves_the_queue_unheard() {
    let mut d = Dialogue::listening(plain(), 10);
    let listener = d.listener.expect("it listens");
    for port in 1..=2 {
        d.flow.remote.port = port;
        d.inject("S 0:0");
        d.sent();
        d.inject("A 1:1 ack 1");
    }
    assert_eq!(
        d.events(),
        [Event::Acceptable(listener), Event::Acceptable(listener)]
    );
    d.flow.remote.port = 1;
    d.inject("R 1:1");
    assert_eq!(d.events(), []);
    let id = d.stack.accept(listener).expect("one waits");
    assert_eq!(d.stack.flow(id).remote.port, 2);
    assert_eq!(d.stack.accept(listener), None);
}
