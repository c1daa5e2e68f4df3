//! TIME-WAIT (RFC 9293 3.6.1, 3.10.7.4; RFC 6191; RFC 1337).

use crate::script::{Dialogue, endpoint, plain};
use baton_tcp::{Config, Event, Refusal, Stack, Symbolic};
use baton_wire::{Flow, Span};

/// A connection that was accepted and closed by this end first: SND.NXT is 2, RCV.NXT is 2.
fn waiting(config: Config) -> Dialogue {
    let mut d = Dialogue::accepted(config);
    d.stack.close(d.id);
    d.sent();
    d.inject("FA 1:1 ack 2");
    d.expect(&["A 2:2 ack 2"]);
    assert_eq!(d.events().len(), 1);
    d
}

#[test]
fn a_fin_that_comes_again_is_acknowledged_and_the_wait_starts_anew() {
    let mut d = waiting(plain());
    d.wait_ms(59_000);
    assert_eq!(d.inject("FA 1:1 ack 2").refused, Some(Refusal::TimeWait));
    d.expect(&["A 2:2 ack 2"]);
    d.wait_ms(59_999);
    assert!(d.stack.in_time_wait(d.now, &d.flow));
    d.wait_ms(1);
    assert!(!d.stack.in_time_wait(d.now, &d.flow));
}

#[test]
fn after_two_lifetimes_nothing_is_known_any_more() {
    let mut d = waiting(plain());
    d.wait_ms(60_000);
    d.inject("FA 1:1 ack 2");
    d.expect(&["R 2:2"]);
}

#[test]
fn a_reset_does_not_cut_it_short() {
    let mut d = waiting(plain());
    assert_eq!(d.inject("R 2:2").refused, Some(Refusal::TimeWait));
    d.quiet();
    assert!(d.stack.in_time_wait(d.now, &d.flow));
}

#[test]
fn what_is_in_its_place_is_not_answered() {
    let mut d = waiting(plain());
    d.inject("A 2:2 ack 2");
    d.quiet();
    d.inject("A 1:1 ack 2");
    d.expect(&["A 2:2 ack 2"]);
}

#[test]
fn a_later_syn_opens_anew_beyond_the_old_numbers() {
    let mut d = waiting(plain());
    assert_eq!(d.inject("S 1:1").refused, Some(Refusal::TimeWait));
    d.expect(&["A 2:2 ack 2"]);
    let old = d.last_sent()[0].header.seq;
    assert_eq!(d.inject("S 3:3").refused, None);
    assert!(!d.stack.in_time_wait(d.now, &d.flow));
    assert_eq!(d.sent(), ["SA 0:0 ack 4"]);
    assert!(d.last_sent()[0].header.seq.after(old));
}

#[test]
fn a_later_timestamp_opens_anew_too() {
    let mut d = Dialogue::accepted_with_timestamps(Config {
        timestamps: true,
        ..plain()
    });
    d.stack.close(d.id);
    d.sent();
    let echo = d.timestamps.expect("they are in use").1;
    d.inject(&format!("FA 1:1 ack 2 ts 110 {echo}"));
    d.sent();
    assert_eq!(
        d.last_options()
            .timestamps
            .map(|timestamps| timestamps.echo),
        Some(110)
    );
    assert_eq!(d.inject("S 0:0 ts 110 0").refused, Some(Refusal::TimeWait));
    d.sent();
    assert_eq!(d.inject("S 0:0 ts 111 0").refused, None);
    assert_eq!(d.sent(), ["SA 0:0 ack 1"]);
}

#[test]
fn it_is_not_left_for_a_backlog_that_is_full() {
    let mut d = waiting(plain());
    for port in 1..=5 {
        let flow = d.flow;
        d.flow.remote.port = port;
        d.inject("S 0:0");
        d.flow = flow;
    }
    d.sent();
    assert_eq!(d.inject("S 3:3").refused, Some(Refusal::TimeWait));
    assert!(d.stack.in_time_wait(d.now, &d.flow));
}

#[test]
fn no_connection_is_opened_over_it() {
    let mut d = waiting(plain());
    assert_eq!(d.stack.connect(d.now, d.flow), None);
    d.wait_ms(60_000);
    assert!(d.stack.connect(d.now, d.flow).is_some());
}

#[test]
fn it_can_move_to_another_stack() {
    let mut d = waiting(plain());
    d.wait_ms(20_000);
    let moved = d
        .stack
        .export_time_wait(d.now, &d.flow)
        .expect("it is here");
    assert!(!d.stack.in_time_wait(d.now, &d.flow));
    let mut other: Stack<Symbolic> = Stack::new(plain(), 99);
    // The other stack's clock shows something else.
    let now = d.now + Span::from_secs(5000);
    other.import_time_wait(now, moved);
    other.check();
    assert!(other.in_time_wait(now + Span::from_ms(39_999), &d.flow));
    assert!(!other.in_time_wait(now + Span::from_ms(40_000), &d.flow));
    other.handle_segment(now, d.parse("FA 1:1 ack 2"));
    let (id, answer) = other.poll_transmit(now).expect("an ACK");
    assert_eq!(id, None);
    assert_eq!(answer.header.ack, d.parse("A 2:2 ack 2").header.seq);
}

#[test]
fn half_a_million_are_nearly_free() {
    let mut d = Dialogue::listening(plain(), 10);
    let mut now = d.now;
    for number in 0..500_000u32 {
        d.flow.remote = endpoint((number >> 16) as u8, number as u16);
        d.now = now;
        let syn = d.parse("S 0:0");
        d.stack.handle_segment(now, syn);
        let (_, answer) = d.stack.poll_transmit(now).expect("an answer");
        let mut ack = d.parse("A 1:1");
        ack.header.ack = answer.header.seq + 1;
        d.stack.handle_segment(now, ack);
        let id = d
            .stack
            .accept(d.listener.expect("it listens"))
            .expect("one waits");
        d.stack.close(id);
        d.stack.poll_transmit(now).expect("a FIN");
        let mut fin = d.parse("FA 1:1");
        fin.header.ack = answer.header.seq + 2;
        d.stack.handle_segment(now, fin);
        d.stack.poll_transmit(now).expect("an ACK");
        while let Some((_, event)) = d.stack.poll_event() {
            assert!(matches!(event, Event::Acceptable(_) | Event::Closed(_)));
        }
        now += Span::from_us(100);
    }
    d.stack.check();
    assert_eq!((d.stack.len(), d.stack.time_wait_len()), (0, 500_000));
    // Later ones push the expired ones out.
    d.now = now + Span::from_secs(60);
    let mut fresh = waiting(plain());
    fresh.stack.check();
    for port in 0..1000 {
        let flow = Flow {
            local: d.flow.local,
            remote: endpoint(200, port),
        };
        let template = fresh.stack.export_time_wait(fresh.now, &fresh.flow);
        let moved = template.map(|mut moved| {
            moved.flow = flow;
            moved
        });
        if let Some(moved) = moved {
            d.stack.import_time_wait(d.now, moved);
        }
    }
    d.stack.check();
    assert!(d.stack.time_wait_len() < 500_000);
}

#[test]
fn a_stack_whose_listeners_are_elsewhere_can_tell_a_reopening() {
    let mut d = waiting(plain());
    for no in ["S 1:1", "SA 3:3 ack 2", "R 3:3", "A 2:2 ack 2"] {
        let segment = d.parse(no);
        assert!(!d.stack.reopens_time_wait(d.now, &segment), "{no}");
    }
    let syn = d.parse("S 3:3");
    assert!(d.stack.reopens_time_wait(d.now, &syn));
    assert!(!d.stack.in_time_wait(d.now, &d.flow));
    assert!(!d.stack.reopens_time_wait(d.now, &syn));
    d.quiet();
}
