//! Losses: timers, fast retransmit, NewReno and SACK recovery (RFC 6298, 5681, 6582, 6675, 3042).

use crate::script::{Dialogue, plain, with_sack};
use baton_tcp::{CloseReason, Config, Event};

/// Ten full segments in flight.
fn ten_in_flight(config: Config, options: &str) -> Dialogue {
    let mut d = Dialogue::accepted_with(config, &format!("mss 1000 {options}"));
    d.write(20_000);
    assert_eq!(d.sent().len(), 10);
    d
}

fn segment(start: u32) -> String {
    format!("A {start}:{} ack 1", start + 1000)
}

#[test]
fn the_third_duplicate_ack_brings_the_lost_segment_back() {
    let mut d = ten_in_flight(plain(), "");
    d.inject("A 1:1 ack 1001");
    assert_eq!(d.sent(), [segment(10_001), segment(11_001)], "slow start");
    d.inject("A 1:1 ack 1001");
    assert_eq!(d.sent(), [segment(12_001)], "limited transmit");
    d.inject("A 1:1 ack 1001");
    assert_eq!(d.sent(), [segment(13_001)], "limited transmit");
    d.inject("A 1:1 ack 1001");
    // 13 segments in flight: ssthresh 6500, cwnd 9500.
    assert_eq!(d.sent(), [segment(1001)]);
    assert_eq!(d.stack.stats().fast_retransmits, 1);
    for _ in 0..3 {
        d.inject("A 1:1 ack 1001");
        d.quiet();
    }
    d.inject("A 1:1 ack 1001");
    d.quiet();
    d.inject("A 1:1 ack 1001");
    assert_eq!(
        d.sent(),
        [segment(14_001)],
        "the inflated window passes what is in flight"
    );
}

/// RFC 6582 3.2.
#[test]
fn a_partial_ack_brings_the_next_lost_segment_back() {
    let mut d = ten_in_flight(plain(), "");
    for _ in 0..3 {
        d.inject("A 1:1 ack 1");
    }
    assert_eq!(d.sent(), [segment(1)]);
    d.inject("A 1:1 ack 4001");
    assert_eq!(d.sent(), [segment(4001)]);
    d.inject("A 1:1 ack 7001");
    assert_eq!(d.sent()[0], segment(7001));
    d.inject("A 1:1 ack 10001");
    assert_eq!(
        d.sent().len(),
        2,
        "little is in flight: no burst up to ssthresh, which is 5"
    );
    assert_eq!(d.stack.stats().fast_retransmits, 1);
}

#[test]
fn duplicate_acks_for_the_same_loss_do_not_start_over() {
    let mut d = ten_in_flight(plain(), "");
    assert_eq!(d.wait_for_output().1, [segment(1)]);
    for _ in 0..5 {
        d.inject("A 1:1 ack 1");
    }
    d.quiet();
    assert_eq!(d.stack.stats().fast_retransmits, 0);
}

#[test]
fn data_window_changes_and_idle_acks_are_no_duplicates() {
    let mut d = ten_in_flight(plain(), "");
    d.inject("A 1:101 ack 1");
    d.inject("A 101:201 ack 1");
    d.inject("A 201:301 ack 1");
    d.inject("A 301:301 ack 1 win 50000");
    d.inject("A 301:301 ack 1 win 40000");
    d.inject("A 301:301 ack 1 win 30000");
    assert_eq!(d.stack.stats().fast_retransmits, 0);
    let mut idle = Dialogue::accepted(plain());
    for _ in 0..5 {
        idle.inject("A 1:1 ack 1");
    }
    assert_eq!(idle.stack.stats().fast_retransmits, 0);
}

#[test]
fn sack_recovery_fills_the_holes_and_only_them() {
    let mut d = ten_in_flight(with_sack(), "sackOK");
    d.inject("A 1:1 ack 1 sack 1001:2001");
    d.inject("A 1:1 ack 1 sack 1001:3001");
    assert_eq!(
        d.sent(),
        [segment(10_001), segment(11_001)],
        "limited transmit"
    );
    d.inject("A 1:1 ack 1 sack 4001:5001,1001:3001");
    // 12 in flight, ssthresh 6000; pipe is 12 - 3 reported - 1 lost = 8.
    assert_eq!(d.sent(), [segment(1)]);
    d.inject("A 1:1 ack 1 sack 4001:6001,1001:3001");
    d.inject("A 1:1 ack 1 sack 4001:7001,1001:3001");
    // The second hole is lost now; pipe is 12 - 5 - 2 lost + 1 sent again = 6.
    d.quiet();
    d.inject("A 1:1 ack 1 sack 4001:8001,1001:3001");
    assert_eq!(d.sent(), [segment(3001)]);
    d.inject("A 1:1 ack 1 sack 4001:9001,1001:3001");
    assert_eq!(
        d.sent(),
        [segment(12_001)],
        "nothing else is lost: new data"
    );
    d.inject("A 1:1 ack 3001 sack 4001:9001");
    assert_eq!(d.sent(), [segment(13_001)]);
    d.inject("A 1:1 ack 12001");
    assert_eq!(d.stack.stats().retransmissions, 2);
    assert_eq!(d.stack.stats().timeouts, 0);
}

/// RFC 6675 5: three segments' worth of reports will do even without three duplicate ACKs.
#[test]
fn enough_reported_bytes_show_a_loss() {
    let mut d = ten_in_flight(with_sack(), "sackOK");
    d.inject("A 1:1 ack 1 sack 1001:4001");
    assert_eq!(d.sent()[0], segment(1));
    assert_eq!(d.stack.stats().fast_retransmits, 1);
}

/// RFC 6675 4, rule 4.
#[test]
fn the_last_segment_is_rescued_once() {
    let mut d = Dialogue::accepted_with(with_sack(), "mss 1000 sackOK");
    d.write(10_000);
    assert_eq!(d.sent().len(), 10);
    // The first and the last are lost.
    for end in [4001, 5001, 6001, 7001, 8001, 9001] {
        d.inject(&format!("A 1:1 ack 1 sack 1001:{end}"));
    }
    assert_eq!(d.sent(), [segment(1), "PA 9001:10001 ack 1".into()]);
    d.quiet();
    d.inject("A 1:1 ack 9001");
    d.quiet();
    assert_eq!(d.stack.stats().timeouts, 0);
}

#[test]
fn a_duplicate_ack_without_report_is_none_when_sack_is_in_use() {
    let mut d = ten_in_flight(with_sack(), "sackOK");
    for _ in 0..6 {
        d.inject("A 1:1 ack 1");
    }
    d.quiet();
    d.inject("A 1:1 ack 1 sack 1001:2001");
    for _ in 0..6 {
        d.inject("A 1:1 ack 1 sack 1001:2001");
    }
    assert_eq!(
        d.sent(),
        [segment(10_001)],
        "the same report again says nothing"
    );
}

#[test]
fn nonsense_reports_are_ignored() {
    let mut d = ten_in_flight(with_sack(), "sackOK");
    d.inject("A 1:1 ack 2001 sack 1:1001,2001:3001,9001:9001");
    d.inject("A 1:1 ack 2001 sack 9001:90001,5001:4001");
    d.stack.check();
    assert_eq!(d.stack.stats().fast_retransmits, 0);
}

#[test]
fn a_timeout_goes_back_to_the_start_with_one_segment() {
    let mut d = ten_in_flight(plain(), "");
    assert_eq!(d.wait_for_output(), (200, vec![segment(1)]));
    assert_eq!(d.wait_for_output(), (400, vec![segment(1)]));
    assert_eq!(d.wait_for_output(), (800, vec![segment(1)]));
    d.inject("A 1:1 ack 1001");
    assert_eq!(d.sent(), [segment(1001), segment(2001)], "slow start");
    d.inject("A 1:1 ack 10001");
    assert_eq!(d.sent().len(), 3);
    assert_eq!(d.stack.stats().timeouts, 3);
}

#[test]
fn after_a_timeout_reported_data_is_not_sent_again() {
    let mut d = ten_in_flight(with_sack(), "sackOK");
    assert_eq!(d.wait_for_output().1, [segment(1)]);
    d.inject("A 1:1 ack 1001 sack 2001:9001");
    assert_eq!(d.sent(), [segment(1001), segment(9001)]);
}

#[test]
fn a_report_is_forgotten_at_a_timeout() {
    let mut d = ten_in_flight(with_sack(), "sackOK");
    d.inject("A 1:1 ack 1 sack 1001:2001");
    d.sent();
    assert_eq!(d.wait_for_output().1, [segment(1)]);
    d.inject("A 1:1 ack 1001");
    assert_eq!(
        d.sent(),
        [segment(1001), segment(2001)],
        "the peer may have dropped it"
    );
}

#[test]
fn the_timeout_follows_the_measured_round_trip() {
    let mut d = Dialogue::accepted(Config {
        rto_min_ms: 110,
        ..plain()
    });
    d.write(1000);
    d.sent();
    d.wait_ms(100);
    // The handshake took no time: SRTT 0, RTTVAR 0. Now R is 100 ms: RTTVAR 25, SRTT 12.5.
    d.inject("A 1:1 ack 1001");
    d.write(1000);
    d.sent();
    assert_eq!(d.wait_for_output().0, 112);
}

/// Karn's algorithm: what was sent twice is not measured, and the timeout stays doubled.
#[test]
fn without_timestamps_a_retransmission_is_not_measured() {
    let mut d = Dialogue::accepted(plain());
    d.write(1000);
    d.sent();
    assert_eq!(d.wait_for_output().0, 200);
    d.wait_ms(50);
    d.inject("A 1:1 ack 1001");
    d.write(1000);
    d.sent();
    assert_eq!(d.wait_for_output().0, 400);
}

#[test]
fn with_timestamps_a_retransmission_is_measured() {
    let mut d = Dialogue::accepted_with_timestamps(Config {
        timestamps: true,
        ..plain()
    });
    d.write(500);
    d.sent();
    assert_eq!(d.wait_for_output().0, 200);
    let echo = d.last_options().timestamps.expect("they are in use").value;
    d.wait_ms(80);
    d.inject(&format!("A 1:1 ack 501 ts 300 {echo}"));
    d.write(500);
    d.sent();
    // SRTT 10 ms, RTTVAR 20 ms: the least timeout rules.
    assert_eq!(d.wait_for_output().0, 200);
}

#[test]
fn data_that_is_never_acknowledged_ends_the_connection() {
    let mut d = Dialogue::accepted(Config {
        data_retries: 2,
        ..plain()
    });
    d.write(100);
    d.sent();
    for _ in 0..2 {
        assert_eq!(d.wait_for_output().1, ["PA 1:101 ack 1"]);
    }
    d.wait_ms(60_000);
    assert_eq!(d.events(), [Event::Closed(CloseReason::TimedOut)]);
    d.quiet();
}

#[test]
fn the_timer_starts_anew_with_each_new_ack_and_stops_with_the_last() {
    let mut d = Dialogue::accepted(plain());
    d.write(2000);
    d.sent();
    d.wait_ms(150);
    d.inject("A 1:1 ack 1001");
    d.wait_ms(150);
    d.quiet();
    d.inject("A 1:1 ack 2001");
    d.wait_ms(60_000);
    d.quiet();
    assert_eq!(d.stack.stats().timeouts, 0);
}

/// Acknowledges all that is in flight, segment by segment; gives how many segments follow.
fn round(d: &mut Dialogue, acked: &mut u32, in_flight: usize) -> usize {
    let mut sent = 0;
    for _ in 0..in_flight {
        *acked += 1000;
        d.inject(&format!("A 1:1 ack {acked}"));
        sent += d.sent().len();
    }
    sent
}

/// RFC 5681 3.1, RFC 3465.
#[test]
fn the_window_grows_fast_and_then_slowly() {
    let config = Config {
        initial_window_segments: 2,
        send_buffer: 1 << 20,
        ..plain()
    };
    let mut d = Dialogue::accepted(config);
    d.write(1_000_000);
    let mut acked = 1;
    let mut rounds = vec![d.sent().len()];
    for _ in 0..3 {
        let next = round(&mut d, &mut acked, rounds[rounds.len() - 1]);
        rounds.push(next);
    }
    assert_eq!(rounds, [2, 4, 8, 16], "slow start");
    for _ in 0..3 {
        d.inject(&format!("A 1:1 ack {acked}"));
    }
    let again = d.sent();
    assert_eq!(again, [segment(acked)]);
    acked += 16_000;
    d.inject(&format!("A 1:1 ack {acked}"));
    // ssthresh is 8, but nothing is in flight: it starts with two and climbs to 8 fast.
    let mut rounds = vec![d.sent().len()];
    for _ in 0..6 {
        let next = round(&mut d, &mut acked, rounds[rounds.len() - 1]);
        rounds.push(next);
    }
    assert_eq!(
        rounds,
        [2, 4, 8, 9, 10, 11, 12],
        "slow start up to ssthresh, then one more each round trip"
    );
}

/// RFC 5681 4.1.
#[test]
fn after_an_idle_time_the_window_is_the_initial_one() {
    let mut d = Dialogue::accepted(Config {
        initial_window_segments: 2,
        ..plain()
    });
    d.write(6000);
    d.sent();
    d.inject("A 1:1 ack 2001");
    d.sent();
    d.inject("A 1:1 ack 6001");
    d.wait_ms(201);
    d.write(6000);
    assert_eq!(d.sent().len(), 2);
}
