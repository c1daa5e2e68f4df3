//! Flow control: opening and closing windows, silly windows, probes (RFC 9293 3.8.6).

use crate::script::{Dialogue, PEERS, plain};
use baton_tcp::{CloseReason, Config, Event, Symbolic};

#[test]
fn reading_does_not_open_the_window_but_consuming_does() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:1001 ack 1");
    d.inject("A 1001:2001 ack 1");
    d.expect(&["A 1:1 ack 2001"]);
    assert_eq!(d.last_window(), 8000);
    assert_eq!(
        d.stack.read(d.id, usize::MAX),
        Some(Symbolic {
            source: PEERS,
            offset: 1,
            len: 2000
        })
    );
    d.inject("A 2001:3001 ack 1");
    d.inject("A 3001:4001 ack 1");
    d.expect(&["A 1:1 ack 4001"]);
    assert_eq!(d.last_window(), 6000);
    d.stack.consume(d.id, 1999);
    d.quiet();
    d.stack.consume(d.id, 1);
    d.expect(&["A 1:1 ack 4001"]);
    assert_eq!(
        d.last_window(),
        8000,
        "two segments more: worth an ACK of its own"
    );
}

#[test]
fn half_the_buffer_is_worth_a_window_update_too() {
    let mut d = Dialogue::accepted(Config {
        receive_buffer: 2000,
        ..plain()
    });
    d.inject("A 1:1001 ack 1");
    d.inject("A 1001:2001 ack 1");
    d.expect(&["A 1:1 ack 2001"]);
    assert_eq!(d.last_window(), 0);
    d.stack.read(d.id, usize::MAX).expect("there is data");
    d.stack.consume(d.id, 999);
    d.quiet();
    d.stack.consume(d.id, 1);
    d.expect(&["A 1:1 ack 2001"]);
    assert_eq!(d.last_window(), 1000);
}

#[test]
fn a_silly_window_is_not_offered() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:9901 ack 1");
    d.sent();
    assert_eq!(d.last_window(), 100, "what was offered is not taken back");
    d.inject("A 9901:10001 ack 1");
    d.wait_ms(40);
    d.sent();
    assert_eq!(d.last_window(), 0);
    d.stack.read(d.id, 900).expect("there is data");
    d.stack.consume(d.id, 900);
    d.inject("A 10001:10002 ack 1");
    d.expect(&["A 1:1 ack 10001"]);
    assert_eq!(
        d.last_window(),
        0,
        "less than a segment and a quarter of the buffer"
    );
    d.stack.read(d.id, 100).expect("there is data");
    d.stack.consume(d.id, 100);
    d.inject("A 10001:10002 ack 1");
    d.expect(&["A 1:1 ack 10001"]);
    assert_eq!(d.last_window(), 1000);
}

#[test]
fn a_probe_of_a_closed_window_is_answered_and_its_ack_counts() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:10001 ack 1");
    d.expect(&["A 1:1 ack 10001"]);
    d.write(100);
    d.expect(&["PA 1:101 ack 10001"]);
    let handled = d.inject("A 10001:10002 ack 101");
    assert_eq!((handled.refused, handled.new_ack), (None, true));
    d.expect(&["A 101:101 ack 10001"]);
    assert_eq!(d.read_all(), 10_000);
}

#[test]
fn a_closed_window_is_probed_ever_more_slowly_for_as_long_as_it_is_answered() {
    let mut d = Dialogue::accepted(Config {
        data_retries: 3,
        rto_max_ms: 2000,
        ..plain()
    });
    d.write(1000);
    d.expect(&["PA 1:1001 ack 1"]);
    d.inject("A 1:1 ack 1001 win 0");
    d.write(2000);
    d.quiet();
    for expected_ms in [200, 400, 800, 1600, 2000, 2000, 2000] {
        assert_eq!(
            d.wait_for_output(),
            (expected_ms, vec!["A 1001:1002 ack 1".into()])
        );
        d.inject("A 1:1 ack 1001 win 0");
    }
    d.inject("A 1:1 ack 1001 win 5000");
    d.expect(&["A 1001:2001 ack 1", "PA 2001:3001 ack 1"]);
    d.inject("A 1:1 ack 3001 win 5000");
    d.wait_ms(60_000);
    d.quiet();
}

#[test]
fn a_probe_that_is_taken_moves_the_window() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:1 ack 1 win 0");
    d.write(1500);
    d.quiet();
    assert_eq!(d.wait_for_output().1, ["A 1:2 ack 1"]);
    d.inject("A 1:1 ack 2 win 5000");
    d.expect(&["A 2:1002 ack 1", "PA 1002:1501 ack 1"]);
}

#[test]
fn unanswered_probes_end_the_connection() {
    let mut d = Dialogue::accepted(Config {
        data_retries: 3,
        ..plain()
    });
    d.inject("A 1:1 ack 1 win 0");
    d.write(100);
    for _ in 0..3 {
        assert_eq!(d.wait_for_output().1, ["A 1:2 ack 1"]);
    }
    d.wait_ms(120_000);
    assert_eq!(d.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn a_fin_probes_a_closed_window_too() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:1 ack 1 win 0");
    d.stack.shutdown(d.id);
    d.quiet();
    assert_eq!(d.wait_for_output().1, ["FA 1:1 ack 1"]);
}

#[test]
fn a_small_window_waits_for_a_larger_one_but_not_for_ever() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:1 ack 1 win 300");
    d.write(5000);
    d.quiet();
    let (_, sent) = d.wait_for_output();
    assert_eq!(sent, ["A 1:301 ack 1"], "RFC 9293 3.8.6.2.1, rule 4");
    d.inject("A 1:1 ack 301 win 4000");
    d.expect(&[
        "A 301:1301 ack 1",
        "A 1301:2301 ack 1",
        "A 2301:3301 ack 1",
        "A 3301:4301 ack 1",
    ]);
}

#[test]
fn half_the_largest_window_is_worth_a_segment() {
    let mut d = Dialogue::listening(plain(), 5);
    d.inject("S 0:0 win 800 mss 1000");
    d.sent();
    d.inject("A 1:1 ack 1 win 800");
    d.id = d
        .stack
        .accept(d.listener.expect("it listens"))
        .expect("one waits");
    d.write(5000);
    d.expect(&["A 1:801 ack 1"]);
}

#[test]
fn a_window_taken_back_is_probed_instead_of_filled() {
    let mut d = Dialogue::accepted(plain());
    d.write(3000);
    assert_eq!(d.sent().len(), 3);
    d.inject("A 1:1 ack 1001 win 0");
    d.quiet();
    let (_, sent) = d.wait_for_output();
    assert_eq!(sent, ["A 1001:1002 ack 1"]);
    d.inject("A 1:1 ack 1001 win 5000");
    d.expect(&["A 1001:2001 ack 1"]);
    d.inject("A 1:1 ack 3001 win 5000");
    d.wait_ms(60_000);
    d.quiet();
}

#[test]
fn an_older_segment_does_not_set_the_window() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:101 ack 1 win 2000");
    d.inject("A 101:101 ack 1 win 5000");
    d.inject("A 1:1 ack 1 win 100");
    d.sent();
    d.write(5000);
    assert_eq!(d.sent().len(), 5);
}
