//! Data both ways: acknowledgments, acceptability, Nagle and cork (RFC 9293 3.7.4, 3.8.6.3, 3.10.7.4).

use crate::script::{Dialogue, OURS, plain, with_sack};
use baton_tcp::{Config, Event, Refusal, Symbolic, WriteError};

#[test]
fn a_lone_segment_is_acknowledged_a_little_later() {
    let mut d = Dialogue::accepted(plain());
    let handled = d.inject("PA 1:101 ack 1");
    assert_eq!(
        (handled.data_len, handled.refused, handled.conn),
        (100, None, Some(d.id))
    );
    assert_eq!(d.events(), [Event::Readable]);
    d.quiet();
    d.wait_ms(39);
    d.quiet();
    d.wait_ms(1);
    d.expect(&["A 1:1 ack 101"]);
}

#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let mut d = Dialogue::accepted(plain());
    for start in [1, 2001] {
        d.inject(&format!("A {start}:{} ack 1", start + 1000));
        d.quiet();
        d.inject(&format!("A {}:{} ack 1", start + 1000, start + 2000));
        d.expect(&[&format!("A 1:1 ack {}", start + 2000)]);
    }
}

#[test]
fn a_delay_of_zero_acknowledges_each_segment_without_moving_time() {
    let mut d = Dialogue::accepted(Config {
        delayed_ack_ms: 0,
        ..plain()
    });
    d.inject("PA 1:101 ack 1");
    d.wait_ms(0);
    d.expect(&["A 1:1 ack 101"]);
}

#[test]
fn an_answer_carries_the_acknowledgment() {
    let mut d = Dialogue::accepted(plain());
    d.inject("PA 1:101 ack 1");
    d.write(50);
    d.expect(&["PA 1:51 ack 101"]);
    d.wait_ms(100);
    d.quiet();
}

#[test]
fn readable_is_told_once_until_something_is_read() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:101 ack 1");
    d.inject("A 101:201 ack 1");
    assert_eq!(d.events(), [Event::Readable]);
    assert_eq!(d.stack.read(d.id, 50).map(|piece| piece.len), Some(50));
    d.inject("A 201:301 ack 1");
    assert_eq!(d.events(), [Event::Readable]);
    assert_eq!(d.stack.readable_len(d.id), 250);
    assert_eq!(
        d.stack
            .read(d.id, usize::MAX)
            .map(|piece| (piece.offset, piece.len)),
        Some((51, 250))
    );
    assert_eq!(d.stack.read(d.id, usize::MAX), None);
}

#[test]
fn data_ahead_of_a_hole_is_reported_and_kept() {
    let mut d = Dialogue::accepted_with(with_sack(), "mss 1000 sackOK");
    d.inject("A 1001:2001 ack 1");
    d.expect(&["A 1:1 ack 1 sack 1001:2001"]);
    d.inject("A 3001:4001 ack 1");
    d.expect(&["A 1:1 ack 1 sack 3001:4001,1001:2001"]);
    d.inject("A 5001:6001 ack 1");
    d.expect(&["A 1:1 ack 1 sack 5001:6001,3001:4001,1001:2001"]);
    d.inject("A 2001:3001 ack 1");
    d.expect(&["A 1:1 ack 1 sack 1001:4001,5001:6001"]);
    assert_eq!(d.events(), []);
    d.inject("A 1:1001 ack 1");
    d.expect(&["A 1:1 ack 4001 sack 5001:6001"]);
    d.inject("A 4001:5001 ack 1");
    d.expect(&["A 1:1 ack 6001"]);
    assert_eq!((d.events(), d.read_all()), (vec![Event::Readable], 6000));
}

#[test]
fn each_segment_ahead_of_a_hole_gets_an_ack_of_its_own() {
    let mut d = Dialogue::accepted(plain());
    for start in [1001, 2001, 3001] {
        d.inject(&format!("A {start}:{} ack 1", start + 1000));
    }
    d.expect(&["A 1:1 ack 1", "A 1:1 ack 1", "A 1:1 ack 1"]);
}

#[test]
fn sack_blocks_take_their_room_from_the_data() {
    let mut d = Dialogue::accepted_with(with_sack(), "mss 1000 sackOK");
    d.inject("A 1001:2001 ack 1");
    d.write(1000);
    d.expect(&[
        "A 1:989 ack 1 sack 1001:2001",
        "PA 989:1001 ack 1 sack 1001:2001",
    ]);
}

#[test]
fn old_data_is_acknowledged_and_dropped() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:1001 ack 1");
    d.inject("A 1001:2001 ack 1");
    d.expect(&["A 1:1 ack 2001"]);
    assert_eq!(
        d.inject("A 1:1001 ack 1").refused,
        Some(Refusal::OutOfWindow)
    );
    d.expect(&["A 1:1 ack 2001"]);
    assert_eq!(d.read_all(), 2000);
}

#[test]
fn the_new_part_of_an_overlapping_segment_counts() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:1001 ack 1");
    assert_eq!(d.inject("A 501:1501 ack 1").refused, None);
    d.expect(&["A 1:1 ack 1501"]);
    assert_eq!(d.read_all(), 1500);
}

#[test]
fn data_beyond_the_window_is_cut_or_dropped() {
    let mut d = Dialogue::accepted(plain());
    assert_eq!(
        d.inject("A 10001:11001 ack 1").refused,
        Some(Refusal::OutOfWindow)
    );
    d.expect(&["A 1:1 ack 1"]);
    d.inject("FPA 1:12001 ack 1");
    d.expect(&["A 1:1 ack 10001"]);
    assert_eq!(d.read_all(), 10_000);
    assert_eq!(d.events(), [Event::Readable], "the FIN was cut off as well");
}

#[test]
fn an_ack_of_the_future_or_the_far_past_is_refused() {
    let mut d = Dialogue::accepted(plain());
    d.write(100);
    d.sent();
    assert_eq!(d.inject("A 1:1 ack 102").refused, Some(Refusal::BadAck));
    d.expect(&["A 101:101 ack 1"]);
    let mut old = d.parse("A 1:1 ack 1");
    old.header.ack = old.header.ack - 100_000;
    assert_eq!(
        d.stack.handle_segment(d.now, old).refused,
        Some(Refusal::BadAck)
    );
    d.expect(&["A 101:101 ack 1"]);
    assert_eq!(d.stack.stats().refused.get(Refusal::BadAck), 2);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut d = Dialogue::accepted(plain());
    assert_eq!(d.inject("P 1:101").refused, Some(Refusal::NoAck));
    d.quiet();
}

#[test]
fn a_timestamp_of_the_past_is_refused_and_answered() {
    let mut d = Dialogue::accepted_with_timestamps(Config {
        timestamps: true,
        ..plain()
    });
    let echo = d.timestamps.expect("they are in use").1;
    d.inject(&format!("A 1:101 ack 1 ts 200 {echo}"));
    assert_eq!(
        d.inject(&format!("A 101:201 ack 1 ts 199 {echo}")).refused,
        Some(Refusal::Paws)
    );
    d.expect(&["A 1:1 ack 101"]);
    assert_eq!(
        d.last_options()
            .timestamps
            .map(|timestamps| timestamps.echo),
        Some(200)
    );
    assert_eq!(d.read_all(), 100);
}

/// RFC 7323 5.5.
#[test]
fn after_24_days_of_silence_an_old_timestamp_is_taken() {
    let mut d = Dialogue::accepted_with_timestamps(Config {
        timestamps: true,
        ..plain()
    });
    let echo = d.timestamps.expect("they are in use").1;
    d.inject(&format!("A 1:101 ack 1 ts 200 {echo}"));
    d.wait_ms(24 * 24 * 3600 * 1000 + 1);
    d.sent();
    assert_eq!(
        d.inject(&format!("A 101:201 ack 1 ts 5 {echo}")).refused,
        None
    );
}

/// RFC 7323 4.3: a segment ahead of a hole must not raise TS.Recent, or the hole's filler would be refused.
#[test]
fn only_the_next_segment_in_order_sets_the_echo() {
    let mut d = Dialogue::accepted_with_timestamps(Config {
        timestamps: true,
        ..plain()
    });
    let echo = d.timestamps.expect("they are in use").1;
    d.inject(&format!("A 1001:2001 ack 1 ts 300 {echo}"));
    d.sent();
    assert_eq!(
        d.last_options()
            .timestamps
            .map(|timestamps| timestamps.echo),
        Some(100)
    );
    assert_eq!(
        d.inject(&format!("A 1:1001 ack 1 ts 250 {echo}")).refused,
        None
    );
    d.sent();
    assert_eq!(
        d.last_options()
            .timestamps
            .map(|timestamps| timestamps.echo),
        Some(250)
    );
}

/// RFC 7323 3.2.
#[test]
fn a_segment_that_lacks_agreed_timestamps_is_dropped() {
    let mut d = Dialogue::accepted_with_timestamps(Config {
        timestamps: true,
        ..plain()
    });
    d.timestamps = None;
    assert_eq!(
        d.inject("A 1:101 ack 1").refused,
        Some(Refusal::NoTimestamp)
    );
    d.quiet();
}

#[test]
fn nagle_holds_a_second_partial_segment_until_the_first_is_acknowledged() {
    let mut d = Dialogue::accepted(Config {
        nagle: true,
        ..plain()
    });
    d.write(100);
    d.expect(&["PA 1:101 ack 1"]);
    d.write(100);
    d.quiet();
    d.write(1000);
    d.expect(&["A 101:1101 ack 1"]);
    d.inject("A 1:1 ack 101");
    d.expect(&["PA 1101:1201 ack 1"]);
    assert_eq!(d.events(), [Event::Acknowledged(100)]);
}

#[test]
fn a_full_segment_in_flight_holds_nothing_back() {
    let mut d = Dialogue::accepted(Config {
        nagle: true,
        ..plain()
    });
    d.write(1500);
    d.expect(&["A 1:1001 ack 1", "PA 1001:1501 ack 1"]);
}

#[test]
fn nodelay_sends_what_nagle_holds() {
    let mut d = Dialogue::accepted(Config {
        nagle: true,
        ..plain()
    });
    d.write(100);
    d.sent();
    d.write(100);
    d.quiet();
    d.stack.set_nodelay(d.id, true);
    d.expect(&["PA 101:201 ack 1"]);
}

#[test]
fn cork_holds_partial_segments_until_it_is_pulled() {
    let mut d = Dialogue::accepted(plain());
    d.stack.set_cork(d.id, true);
    d.write(300);
    d.quiet();
    d.wait_ms(60_000);
    d.quiet();
    d.write(1000);
    d.expect(&["A 1:1001 ack 1"]);
    d.stack.set_cork(d.id, false);
    d.expect(&["PA 1001:1301 ack 1"]);
}

#[test]
fn a_fin_waits_for_neither_nagle_nor_cork() {
    let mut d = Dialogue::accepted(Config {
        nagle: true,
        ..plain()
    });
    d.write(100);
    d.sent();
    d.stack.set_cork(d.id, true);
    d.write(100);
    d.stack.shutdown(d.id);
    d.expect(&["FPA 101:201 ack 1"]);
}

#[test]
fn pieces_share_a_segment_and_the_last_one_is_pushed() {
    let mut d = Dialogue::accepted(plain());
    d.stack.set_cork(d.id, true);
    let header = Symbolic {
        source: OURS,
        offset: 0,
        len: 300,
    };
    let content = Symbolic {
        source: 55,
        offset: 4096,
        len: 1000,
    };
    d.stack.write(d.id, header).expect("open");
    d.stack.write(d.id, content).expect("open");
    d.stack.set_cork(d.id, false);
    d.expect(&["A 1:1001 ack 1", "PA 1001:1301 ack 1"]);
    let first = &d.last_sent()[0].payload;
    assert_eq!(
        first.as_slice(),
        [
            header,
            Symbolic {
                len: 700,
                ..content
            }
        ]
    );
    let second = &d.last_sent()[1].payload;
    assert_eq!(
        second.as_slice(),
        [Symbolic {
            offset: 4796,
            len: 300,
            ..content
        }]
    );
}

#[test]
fn a_full_send_buffer_takes_what_fits() {
    let mut d = Dialogue::accepted(Config {
        send_buffer: 1500,
        ..plain()
    });
    let data = Symbolic {
        source: OURS,
        offset: 0,
        len: 2000,
    };
    assert_eq!(d.stack.write(d.id, data), Ok(1500));
    assert_eq!(
        (d.stack.send_space(d.id), d.stack.unacknowledged(d.id)),
        (0, 1500)
    );
    assert_eq!(d.stack.write(d.id, data), Ok(0));
    d.sent();
    d.inject("A 1:1 ack 1001");
    assert_eq!(d.stack.send_space(d.id), 1000);
    d.stack.shutdown(d.id);
    assert_eq!(d.stack.write(d.id, data), Err(WriteError::Closed));
    assert_eq!(d.stack.send_space(d.id), 0);
}

#[test]
fn acknowledgments_in_a_row_are_one_event() {
    let mut d = Dialogue::accepted(plain());
    d.write(3000);
    d.sent();
    assert!(d.inject("A 1:1 ack 1001").new_ack);
    d.inject("A 1:1 ack 2001");
    assert_eq!(d.events(), [Event::Acknowledged(2000)]);
}

#[test]
fn an_old_ack_is_answered_but_still_counts() {
    let mut d = Dialogue::accepted(plain());
    d.inject("A 1:1001 ack 1");
    d.inject("A 1001:2001 ack 1");
    d.sent();
    d.write(1000);
    d.sent();
    assert_eq!(d.inject("A 1:1 ack 1001").refused, None);
    assert_eq!(d.stack.unacknowledged(d.id), 0);
    d.expect(&["A 1001:1001 ack 2001"]);
}
