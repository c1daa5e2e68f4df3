//! Checks that an idle connection takes at most 1 KiB, including its share of every table.

use baton_tcp::{Config, Event, Stack};
use baton_testkit::{Counting, in_use};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONNECTIONS: u32 = 100_000;

/// Number of connections that are opened at a time.
const BATCH: u32 = 1000;

/// Delivers the segments of both stacks to each other until neither sends any more.
fn settle(stacks: &mut [Stack<Bytes>; 2], now: Time) {
    let mut busy = true;
    while std::mem::take(&mut busy) {
        for side in [0, 1] {
            while let Some((_, event)) = stacks[side].poll_event() {
                if let Event::Acceptable(listener) = event {
                    stacks[side]
                        .accept(listener)
                        .expect("a connection is pending");
                }
            }
            while let Some((_, segment)) = stacks[side].poll_transmit(now) {
                stacks[1 - side].handle_segment(now, segment);
                busy = true;
            }
        }
    }
}

#[test]
fn an_idle_connection_takes_at_most_a_kibibyte() {
    let before = in_use();
    let mut stacks = [1, 2].map(|secret| Stack::new(Config::default(), secret));
    let remote = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
    stacks[1].listen(remote, BATCH as usize);
    let mut now = Time::ZERO;
    for number in 0..CONNECTIONS {
        let addr = IpAddr::V4(Ipv4Addr::from_bits(0x0a01_0000 + number / 50_000));
        let local = Endpoint::new(addr, 10_000 + (number % 50_000) as u16);
        stacks[0]
            .connect(now, Flow { local, remote })
            .expect("a free four-tuple");
        if (number + 1) % BATCH == 0 {
            settle(&mut stacks, now);
            now += Span::from_ms(1);
        }
    }
    // Delayed acknowledgments are sent, and then all connections are idle.
    now += Span::from_secs(1);
    stacks.iter_mut().for_each(|stack| {
        stack.handle_timeouts(now);
    });
    settle(&mut stacks, now);
    let in_use = in_use() - before;
    assert_eq!(stacks.each_ref().map(Stack::len), [CONNECTIONS as usize; 2]);
    let ends = 2 * u64::from(CONNECTIONS);
    println!("{} bytes for each of {ends} ends", in_use / ends);
    assert!(
        in_use <= 1024 * ends,
        "{} bytes for each end",
        in_use / ends
    );
}
