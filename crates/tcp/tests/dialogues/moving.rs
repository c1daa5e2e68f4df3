//! Exporting and importing in particular states; the random runs are in `tests/moving.rs`.

use crate::script::{Dialogue, endpoint, plain, with_sack};
use baton_tcp::{Config, ConnId, Event, Portable, Stack, State, Symbolic};
use baton_wire::{Span, Time};

/// Moves the connection to a stack with other parameters, another secret and another clock, through JSON.
fn move_away(d: &mut Dialogue, listens: bool) -> Portable<Symbolic> {
    let state = d.stack.export(d.now, d.id);
    let text = serde_json::to_string(&state).expect("a state can be written");
    let read: Portable<Symbolic> = serde_json::from_str(&text).expect("a state can be read");
    assert_eq!(read, state);
    d.stack.check();
    assert_eq!(
        (d.stack.find(&d.flow), d.stack.poll_event(), d.sent()),
        (None, None, vec![])
    );
    d.stack = Stack::new(
        Config {
            nagle: true,
            rto_min_ms: 3000,
            mss: 100,
            ..Config::default()
        },
        4711,
    );
    if listens {
        d.listener = Some(d.stack.listen(d.flow.local, 5));
    }
    d.now = Time::ZERO + Span::from_secs(3);
    d.id = d.stack.import(d.now, read).expect("it is not there yet");
    d.stack.check();
    state
}

#[test]
fn an_established_connection_goes_on_with_its_own_parameters() {
    let mut d = Dialogue::accepted(plain());
    d.write(500);
    d.sent();
    d.wait_ms(150);
    let state = move_away(&mut d, false);
    assert_eq!(
        (state.state, state.unacknowledged(), state.unread()),
        (State::Established, 500, 0)
    );
    assert_eq!(state.memory_len(), 1024);
    d.quiet();
    assert_eq!(
        d.wait_for_output(),
        (50, vec!["PA 1:501 ack 1".into()]),
        "the timer went on"
    );
    d.write(3000);
    assert_eq!(d.last_sent().len(), 1);
    d.inject("A 1:1 ack 501");
    assert_eq!(
        d.sent()[0],
        "A 501:1501 ack 1",
        "segments are as long as ever"
    );
}

#[test]
fn the_timestamp_clock_goes_on() {
    let mut d = Dialogue::accepted_with_timestamps(Config {
        timestamps: true,
        ..plain()
    });
    d.write(10);
    d.sent();
    let before = d.last_options().timestamps.expect("they are in use").value;
    d.wait_ms(17);
    move_away(&mut d, false);
    d.wait_ms(4);
    d.write(10);
    d.sent();
    assert_eq!(
        d.last_options()
            .timestamps
            .map(|timestamps| timestamps.value),
        Some(before + 21)
    );
}

#[test]
fn a_handshake_may_be_finished_elsewhere() {
    let mut d = Dialogue::connecting(plain());
    d.expect(&["S 0:0"]);
    d.wait_ms(600);
    move_away(&mut d, false);
    assert_eq!(d.wait_for_output(), (400, vec!["S 0:0".into()]));
    d.inject("SA 0:0 ack 1");
    assert_eq!(d.events(), [Event::Connected]);
    d.expect(&["A 1:1 ack 1"]);
}

#[test]
fn a_half_open_connection_finds_the_listener_of_its_new_stack() {
    let mut d = Dialogue::listening(plain(), 5);
    d.id = d.inject("S 0:0").conn.expect("one was made");
    d.expect(&["SA 0:0 ack 1"]);
    let state = move_away(&mut d, true);
    assert!(state.unaccepted);
    d.inject("A 1:1 ack 1");
    let listener = d.listener.expect("it listens");
    assert_eq!(d.events(), [Event::Acceptable(listener)]);
    assert_eq!(d.stack.accept(listener), Some(d.id));
}

#[test]
fn a_half_open_connection_without_listener_belongs_to_who_brought_it() {
    let mut d = Dialogue::listening(plain(), 5);
    d.id = d.inject("S 0:0").conn.expect("one was made");
    d.sent();
    move_away(&mut d, false);
    d.inject("PA 1:101 ack 1");
    assert_eq!(d.events(), [Event::Connected, Event::Readable]);
    assert_eq!(d.read_all(), 100);
}

#[test]
fn one_that_waits_for_accept_waits_elsewhere() {
    let mut d = Dialogue::listening(plain(), 1);
    d.inject("S 0:0");
    d.sent();
    d.id = d.inject("A 1:1 ack 1").conn.expect("it is known");
    move_away(&mut d, true);
    let listener = d.listener.expect("it listens");
    assert_eq!(d.events(), [Event::Acceptable(listener)]);
    assert_eq!(d.stack.accept(listener), Some(d.id));
}

#[test]
fn what_was_not_polled_moves_along() {
    let mut d = Dialogue::accepted(plain());
    d.write(500);
    d.sent();
    d.inject("FPA 1:101 ack 501");
    let state = move_away(&mut d, false);
    assert_eq!((state.state, state.unread()), (State::CloseWait, 100));
    assert_eq!(
        d.events(),
        [Event::Acknowledged(500), Event::Readable, Event::PeerClosed]
    );
    d.expect(&["A 501:501 ack 102"]);
}

#[test]
fn unconsumed_room_moves_along() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:4001 ack 1");
    d.sent();
    assert_eq!(d.stack.read(d.id, 3000).map(|piece| piece.len), Some(3000));
    d.stack.consume(d.id, 500);
    move_away(&mut d, false);
    d.inject("A 4001:5001 ack 1");
    d.wait_ms(40);
    d.sent();
    assert_eq!(d.last_window(), 5500, "5000 less the 500 given back");
    d.stack.consume(d.id, 2500);
    assert_eq!(d.read_all(), 2000);
    d.expect(&["A 1:1 ack 5001"]);
    assert_eq!(d.last_window(), 10_000);
}

#[test]
fn holes_and_reports_move_along() {
    let mut d = Dialogue::accepted_with(with_sack(), "mss 1000 sackOK");
    d.write(10_000);
    d.sent();
    d.inject("A 1001:2001 ack 1 sack 1001:3001");
    d.expect(&["A 10001:10001 ack 1 sack 1001:2001"]);
    d.inject("FA 3001:3101 ack 1 sack 5001:6001,1001:3001");
    move_away(&mut d, false);
    d.expect(&["A 1:981 ack 1 sack 3001:3102,1001:2001"]);
    d.inject("A 1:1001 ack 1");
    d.expect(&["A 10001:10001 ack 2001 sack 3001:3102"]);
    d.inject("A 2001:3001 ack 1");
    d.expect(&["A 10001:10001 ack 3102"]);
    assert_eq!(d.read_all(), 3100);
}

#[test]
fn one_that_is_over_but_not_read_moves_too() {
    let mut d = Dialogue::accepted(plain());
    d.stack.shutdown(d.id);
    d.sent();
    d.inject("FPA 1:101 ack 2");
    d.events();
    d.sent();
    let state = d.stack.export(d.now, d.id);
    assert_eq!((state.state, d.stack.len()), (State::TimeWait, 0));
    d.id = d
        .stack
        .import(d.now, state)
        .expect("the wire is done with it");
    assert_eq!(d.read_all(), 100);
    assert_eq!(d.events().len(), 1);
}

#[test]
fn a_state_that_cannot_be_taken_is_given_back() {
    let mut d = Dialogue::accepted(plain());
    d.write(500);
    d.sent();
    let state = d.stack.export(d.now, d.id);
    let mut newer = state.clone();
    newer.version += 1;
    assert_eq!(
        d.stack
            .import(d.now, newer.clone())
            .expect_err("another format"),
        Box::new(newer)
    );
    let mut broken = state.clone();
    broken.send_buffer.clear();
    let given_back = d
        .stack
        .import(d.now, broken.clone())
        .expect_err("more was sent than was written");
    assert_eq!(*given_back, broken);
    let id = d
        .stack
        .import(d.now, state.clone())
        .expect("nothing is wrong with it");
    assert_eq!(
        *d.stack
            .import(d.now, state.clone())
            .expect_err("it is here"),
        state
    );
    assert_eq!(d.stack.find(&d.flow), Some(id));
    d.stack.check();
}

#[test]
fn a_slot_is_free_at_once_after_an_export() {
    let mut d = Dialogue::accepted(plain());
    d.inject("PA 1:101 ack 1");
    d.stack.export(d.now, d.id);
    assert_eq!((d.stack.len(), d.stack.poll_event()), (0, None));
    d.flow.remote = endpoint(3, 1);
    assert_eq!(d.inject("S 0:0").conn, Some(ConnId(d.id.0)));
    assert_eq!(
        d.sent().len(),
        1,
        "what the old owner of the slot had to send went with it"
    );
}
