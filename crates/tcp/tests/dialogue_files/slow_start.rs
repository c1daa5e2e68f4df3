//! Tests how slow start ends before a loss, on a path that carries one segment per millisecond with a round-trip time of 20 ms.

use crate::play::Player;
use baton_testkit::symbolic;
use baton_wire::{Span, Time};
use std::collections::VecDeque;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    it_goes_on_without_hystart,
    a_train_ends_it,
    longer_round_trips_end_it,
];

const SEGMENT_TIME: Span = Span::from_ms(1);
const ROUND_TRIP: Span = Span::from_ms(20);

/// Returns ssthresh in segments after this many were acknowledged one by one, or `None` while slow start continues.
fn threshold_after(config: &str, segments: u32) -> Option<u32> {
    let text = "config send_buffer = 2097152\nconfig timestamps = false\nconfig window_counting = \"linux\"";
    let opened = "accepted <mss 1000,sackOK,wscale 7> win 60000";
    let mut player = Player::after(&format!("{text}\n{config}\n{opened}"));
    let id = player.id().expect("it is open");
    let data = symbolic(1, 0, 2_000_000);
    player.stack.write(id, data).expect("it is open");
    let mut acks: VecDeque<Time> = VecDeque::new();
    let mut link_free = player.now;
    for acked in 1..=segments {
        while player.stack.poll_transmit(player.now).is_some() {
            link_free = link_free.max(player.now) + SEGMENT_TIME;
            acks.push_back(link_free + (ROUND_TRIP - SEGMENT_TIME));
        }
        player.now = acks.pop_front().expect("something is in flight");
        player.arrives(&format!(". 1:1(0) ack {} win 60000", acked * 1000 + 1));
    }
    let threshold = player.stack.info(player.now, id).slow_start_threshold;
    (threshold != u32::MAX).then_some(threshold / 1000)
}

fn it_goes_on_without_hystart() {
    assert_eq!(threshold_after("config hystart = false", 300), None);
}

/// A train of ACKs ends slow start once it has lasted half a round trip, plus half a millisecond for merging. In the second round, 11 of 20
/// ACKs have arrived by then.
fn a_train_ends_it() {
    let rule = "config linux = { hystart = true }";
    assert_eq!(threshold_after(rule, 20), None);
    assert_eq!(threshold_after(rule, 300), Some(31));
    let other = format!("{rule}\nconfig congestion = \"new-reno\"");
    assert_eq!(
        threshold_after(&other, 300),
        None,
        "only CUBIC has this rule"
    );
}

/// Five rounds of conservative slow start follow the first round with a longer round-trip time (RFC 9406 4.2).
fn longer_round_trips_end_it() {
    let threshold = threshold_after("", 1000).expect("slow start is over");
    assert!((200..300).contains(&threshold), "{threshold}");
    assert_eq!(threshold_after("", 500), None);
}
