//! Opening connections (RFC 9293 3.5, 3.10.7.2, 3.10.7.3).

use crate::script::{Dialogue, endpoint, plain};
use baton_tcp::{CloseReason, Config, Event, Refusal, Stack, State, Symbolic};
use baton_wire::{Flow, Span, Time};

#[test]
fn an_active_open_offers_options_and_completes() {
    let mut d = Dialogue::connecting(Config::default());
    d.expect(&["S 0:0"]);
    let options = *d.last_options();
    assert_eq!(
        (options.mss, options.window_scale, options.sack_permitted),
        (Some(1460), Some(3), true)
    );
    assert_eq!(
        options.timestamps.map(|timestamps| timestamps.echo),
        Some(0)
    );
    assert_eq!(d.last_window(), 65535);
    d.inject("SA 0:0 ack 1 win 5000 mss 1460 wscale 2 sackOK ts 100 1");
    d.expect(&["A 1:1 ack 1"]);
    assert_eq!(
        d.last_options()
            .timestamps
            .map(|timestamps| timestamps.echo),
        Some(100)
    );
    assert_eq!(
        (d.events(), d.state()),
        (vec![Event::Connected], State::Established)
    );
}

#[test]
fn a_passive_open_answers_with_what_was_offered() {
    let mut d = Dialogue::listening(Config::default(), 5);
    let handled = d.inject("S 0:0 win 1000 mss 1200 wscale 5 sackOK ts 77 0");
    assert!(handled.syn && handled.conn.is_some());
    d.expect(&["SA 0:0 ack 1"]);
    let options = *d.last_options();
    assert_eq!(
        (options.mss, options.window_scale, options.sack_permitted),
        (Some(1460), Some(3), true)
    );
    assert_eq!(
        options.timestamps.map(|timestamps| timestamps.echo),
        Some(77)
    );
    d.inject("A 1:1 ack 1 win 1000 ts 78 1");
    let listener = d.listener.expect("it listens");
    assert_eq!(d.events(), [Event::Acceptable(listener)]);
    let id = d.stack.accept(listener).expect("one waits");
    assert_eq!(
        (d.stack.state(id), d.stack.flow(id)),
        (State::Established, d.flow)
    );
    assert_eq!(d.stack.accept(listener), None);
    d.quiet();
}

#[test]
fn options_that_were_not_offered_are_not_used() {
    let mut d = Dialogue::listening(Config::default(), 5);
    d.inject("S 0:0 win 1000");
    d.expect(&["SA 0:0 ack 1"]);
    let options = *d.last_options();
    assert_eq!(
        (
            options.window_scale,
            options.sack_permitted,
            options.timestamps
        ),
        (None, false, None)
    );
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    let options = *d.last_options();
    assert_eq!(
        (
            options.window_scale,
            options.sack_permitted,
            options.timestamps
        ),
        (None, false, None)
    );
}

#[test]
fn segments_are_no_longer_than_either_mss() {
    for (ours, theirs, expected) in [
        (1000, "mss 400", 400),
        (1000, "mss 2000", 1000),
        (1000, "", 536),
    ] {
        let config = Config {
            mss: ours,
            ..plain()
        };
        let mut d = Dialogue::accepted_with(config, theirs);
        d.write(expected + 100);
        let sent = d.sent();
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert_eq!(d.last_sent()[0].payload_len(), expected as usize);
    }
}

#[test]
fn timestamps_take_their_room_from_the_segment() {
    let config = Config {
        timestamps: true,
        ..plain()
    };
    let mut d = Dialogue::accepted_with_timestamps(config);
    d.write(2000);
    d.expect(&["A 1:989 ack 1", "A 989:1977 ack 1", "PA 1977:2001 ack 1"]);
}

#[test]
fn window_scale_applies_after_the_handshake_only() {
    let config = Config {
        window_scaling: true,
        receive_buffer: 1 << 20,
        ..plain()
    };
    let mut d = Dialogue::listening(config, 5);
    d.inject("S 0:0 win 500 mss 1000 wscale 3");
    d.expect(&["SA 0:0 ack 1"]);
    assert_eq!(
        (d.last_options().window_scale, d.last_window()),
        (Some(5), 65535)
    );
    d.inject("A 1:1 ack 1 win 500");
    d.id = d
        .stack
        .accept(d.listener.expect("it listens"))
        .expect("one waits");
    d.write(8000);
    assert_eq!(d.sent().len(), 4, "4000 bytes of window: 500 times 8");
    assert_eq!(d.last_window(), 32_768, "2^20 bytes in units of 2^5");
}

#[test]
fn a_window_scale_beyond_14_counts_as_14() {
    let config = Config {
        window_scaling: true,
        initial_window_segments: 100,
        ..plain()
    };
    let mut d = Dialogue::listening(config, 5);
    d.inject("S 0:0 win 500 mss 1000 wscale 15");
    d.sent();
    d.inject("A 1:1 ack 1 win 2");
    d.id = d
        .stack
        .accept(d.listener.expect("it listens"))
        .expect("one waits");
    d.write(60_000);
    assert_eq!(d.sent().len(), 32, "32768 bytes but for a partial segment");
}

#[test]
fn simultaneous_opens_meet() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    d.inject("S 0:0 win 5000 mss 1000");
    assert_eq!(d.state(), State::SynReceived);
    d.expect(&["SA 0:0 ack 1"]);
    d.inject("SA 0:0 ack 1 win 5000 mss 1000");
    assert_eq!(
        (d.events(), d.state()),
        (vec![Event::Connected], State::Established)
    );
    d.write(10);
    d.expect(&["PA 1:11 ack 1"]);
}

#[test]
fn simultaneous_opens_meet_with_a_plain_ack_too() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    d.inject("S 0:0 win 5000 mss 1000");
    d.expect(&["SA 0:0 ack 1"]);
    d.inject("A 1:1 ack 1");
    assert_eq!(
        (d.events(), d.state()),
        (vec![Event::Connected], State::Established)
    );
}

#[test]
fn a_syn_is_sent_again_ever_more_slowly_and_then_given_up() {
    let config = Config {
        syn_retries: 3,
        ..plain()
    };
    let mut d = Dialogue::connecting(config);
    d.expect(&["S 0:0"]);
    for expected_ms in [1000, 2000, 4000] {
        assert_eq!(d.wait_for_output(), (expected_ms, vec!["S 0:0".into()]));
    }
    d.wait_ms(7999);
    assert_eq!(d.events(), []);
    d.wait_ms(1);
    assert_eq!(d.events(), [Event::Closed(CloseReason::TimedOut)]);
    d.quiet();
    assert!(d.stack.is_empty());
}

#[test]
fn after_a_lost_syn_one_segment_is_sent_first_and_the_timeout_is_three_seconds() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    d.wait_for_output();
    d.inject("SA 0:0 ack 1 mss 1000");
    d.write(5000);
    d.expect(&["A 1:1001 ack 1"]);
    assert_eq!(d.wait_for_output(), (3000, vec!["A 1:1001 ack 1".into()]));
}

#[test]
fn a_lost_answer_is_sent_again_by_timer_and_when_asked() {
    let mut d = Dialogue::listening(plain(), 5);
    d.inject("S 0:0 mss 1000");
    d.expect(&["SA 0:0 ack 1"]);
    assert_eq!(d.wait_for_output(), (1000, vec!["SA 0:0 ack 1".into()]));
    d.inject("S 0:0 mss 1000");
    d.expect(&["SA 0:0 ack 1"]);
}

#[test]
fn a_reset_refuses_an_open_only_if_it_acknowledges_the_syn() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    assert_eq!(d.inject("R 0:0").refused, Some(Refusal::Malformed));
    assert_eq!(d.inject("RA 0:0 ack 5").refused, Some(Refusal::BadAck));
    assert_eq!((d.events(), d.state()), (vec![], State::SynSent));
    d.inject("RA 0:0 ack 1");
    assert_eq!(d.events(), [Event::Closed(CloseReason::Refused)]);
    d.quiet();
}

#[test]
fn an_ack_of_what_was_never_sent_is_answered_by_a_reset() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    assert_eq!(d.inject("SA 0:0 ack 9").refused, Some(Refusal::BadAck));
    d.expect(&["R 9:9"]);
    assert_eq!(d.state(), State::SynSent);
    let mut d = Dialogue::listening(plain(), 5);
    d.inject("S 0:0");
    d.sent();
    assert_eq!(d.inject("A 1:1 ack 9").refused, Some(Refusal::BadAck));
    d.expect(&["R 9:9"]);
}

#[test]
fn a_reset_ends_a_half_open_connection_that_nobody_heard_of() {
    let mut d = Dialogue::listening(plain(), 1);
    d.inject("S 0:0");
    d.sent();
    d.inject("R 1:1");
    assert!(d.stack.is_empty());
    assert_eq!(d.events(), []);
    assert_eq!(
        d.inject("S 0:0").refused,
        None,
        "its place in the backlog is free"
    );
}

#[test]
fn segments_for_nobody_are_answered_by_resets() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    d.flow.local.port = 9;
    assert_eq!(d.inject("S 0:0").refused, Some(Refusal::NoConnection));
    let sent = d.sent();
    assert!(
        sent[0].starts_with("RA ") && sent[0].ends_with(" ack 1"),
        "{sent:?}"
    );
    d.inject("A 1:1 ack 55");
    d.expect(&["R 55:55"]);
    d.inject("R 1:1");
    d.quiet();
    assert_eq!(d.stack.stats().resets_sent, 2);
    assert_eq!(d.stack.stats().refused.get(Refusal::NoConnection), 3);
}

#[test]
fn a_full_backlog_drops_syns_and_counts_them() {
    let mut d = Dialogue::listening(plain(), 2);
    for port in [1, 2] {
        d.flow.remote.port = port;
        assert_eq!(d.inject("S 0:0").refused, None);
    }
    d.flow.remote.port = 3;
    assert_eq!(d.inject("S 0:0").refused, Some(Refusal::BacklogFull));
    assert_eq!(d.stack.stats().refused.get(Refusal::BacklogFull), 1);
    assert_eq!(d.sent().len(), 2, "two answers and nothing for the third");
}

#[test]
fn a_full_accept_queue_delays_the_end_of_the_handshake() {
    let mut d = Dialogue::listening(plain(), 1);
    let listener = d.listener.expect("it listens");
    d.flow.remote.port = 1;
    d.inject("S 0:0");
    d.sent();
    d.inject("A 1:1 ack 1");
    d.flow.remote.port = 2;
    assert_eq!(d.inject("S 0:0").refused, Some(Refusal::AcceptQueueFull));
    d.stack.accept(listener).expect("one waits");
    d.inject("S 0:0");
    d.expect(&["SA 0:0 ack 1"]);
    d.inject("A 1:1 ack 1");
    assert_eq!(d.events().len(), 2);
    assert!(d.stack.accept(listener).is_some());
}

#[test]
fn the_last_ack_of_a_handshake_is_ignored_while_the_accept_queue_is_full() {
    let mut d = Dialogue::listening(plain(), 2);
    let listener = d.listener.expect("it listens");
    let mut established = Vec::new();
    for port in 1..=2 {
        d.flow.remote.port = port;
        d.inject("S 0:0");
        d.sent();
        established.push(d.inject("A 1:1 ack 1").refused);
        if port == 1 {
            // Two more begin while there is room.
            d.flow.remote.port = 3;
            d.inject("S 0:0");
            d.sent();
        }
    }
    assert_eq!(established, [None, None]);
    d.flow.remote.port = 3;
    assert_eq!(
        d.inject("A 1:1 ack 1").refused,
        Some(Refusal::AcceptQueueFull)
    );
    assert_eq!(d.events().len(), 2);
    d.stack.accept(listener).expect("one waits");
    // Its answer goes again, and now the handshake can be completed.
    let (_, sent) = d.wait_for_output();
    assert_eq!(sent, ["SA 0:0 ack 1"]);
    assert_eq!(d.inject("A 1:1 ack 1").refused, None);
}

#[test]
fn data_on_a_syn_is_left_to_be_sent_again() {
    let mut d = Dialogue::listening(plain(), 5);
    d.inject("S 0:10");
    d.expect(&["SA 0:0 ack 1"]);
}

#[test]
fn data_with_the_last_ack_of_the_handshake_is_taken() {
    let mut d = Dialogue::listening(plain(), 5);
    d.inject("S 0:0 mss 1000");
    d.sent();
    d.inject("PA 1:101 ack 1");
    let listener = d.listener.expect("it listens");
    assert_eq!(d.events(), [Event::Acceptable(listener)]);
    d.id = d.stack.accept(listener).expect("one waits");
    assert_eq!(
        d.events(),
        [Event::Readable],
        "told once there is somebody to tell"
    );
    assert_eq!(d.read_all(), 100);
}

#[test]
fn what_is_written_before_the_handshake_follows_it() {
    let mut d = Dialogue::connecting(plain());
    d.write(100);
    d.stack.shutdown(d.id);
    d.expect(&["S 0:0"]);
    d.inject("SA 0:0 ack 1 mss 1000");
    d.expect(&["FPA 1:101 ack 1"]);
    assert_eq!(d.state(), State::FinWait1);
}

#[test]
fn closing_before_the_handshake_ends_it() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    d.stack.close(d.id);
    assert_eq!(d.events(), [Event::Closed(CloseReason::Aborted)]);
    d.quiet();
    d.inject("SA 0:0 ack 1");
    d.expect(&["R 1:1"]);
}

#[test]
fn a_four_tuple_is_used_once_at_a_time() {
    let mut d = Dialogue::connecting(plain());
    assert_eq!(d.stack.connect(d.now, d.flow), None);
    assert_eq!(d.stack.find(&d.flow), Some(d.id));
    assert_eq!(d.stack.len(), 1);
}

/// RFC 6528 3.
#[test]
fn initial_sequence_numbers_depend_on_flow_secret_and_time() {
    let isn = |secret: u64, port: u16, now: Time| {
        let mut stack: Stack<Symbolic> = Stack::new(plain(), secret);
        stack.connect(
            now,
            Flow {
                local: endpoint(1, port),
                remote: endpoint(2, 80),
            },
        );
        stack.poll_transmit(now).expect("a SYN").1.header.seq
    };
    let start = Time::ZERO;
    assert_eq!(isn(1, 5000, start), isn(1, 5000, start));
    assert_ne!(isn(1, 5000, start), isn(2, 5000, start));
    assert_ne!(isn(1, 5000, start), isn(1, 5001, start));
    let later = isn(1, 5000, start + Span::from_us(400));
    assert_eq!(
        later - isn(1, 5000, start),
        100,
        "one every four microseconds"
    );
}
