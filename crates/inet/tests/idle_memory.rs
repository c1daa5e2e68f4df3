//! Checks that an idle connection takes at most 1 KiB, including its share of every table.

use baton_tcp::{Config, Event, Stack};
use baton_testkit::{Counting, Stacks, in_use};
use baton_wire::{Endpoint, Flow, Span};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONNECTIONS: u32 = 100_000;

/// Number of connections that are opened at a time.
const BATCH: u32 = 1000;

/// Delivers all segments, and accepts all connections.
fn settle(pair: &mut Stacks<Bytes>) {
    pair.settle();
    for stack in &mut pair.ends {
        while let Some((_, event)) = stack.poll_event() {
            if let Event::Acceptable(listener) = event {
                stack.accept(listener).expect("a connection is pending");
            }
        }
    }
}

#[test]
fn an_idle_connection_takes_at_most_a_kibibyte() {
    let before = in_use();
    let mut pair = Stacks::joined([1, 2].map(|secret| Stack::new(Config::default(), secret)));
    let remote = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
    pair.ends[1].listen(remote, BATCH as usize);
    for number in 0..CONNECTIONS {
        let addr = IpAddr::V4(Ipv4Addr::from_bits(0x0a01_0000 + number / 50_000));
        let local = Endpoint::new(addr, 10_000 + (number % 50_000) as u16);
        let conn = pair.ends[0].connect(pair.now, Flow { local, remote });
        conn.expect("a free four-tuple");
        if (number + 1) % BATCH == 0 {
            settle(&mut pair);
            pair.now += Span::from_ms(1);
        }
    }
    // Delayed acknowledgments are sent, and then all connections are idle.
    pair.now += Span::from_secs(1);
    settle(&mut pair);
    let in_use = in_use().wrapping_sub(before);
    assert_eq!(
        pair.ends.each_ref().map(Stack::len),
        [CONNECTIONS as usize; 2]
    );
    let ends = 2 * u64::from(CONNECTIONS);
    println!("{} bytes for each of {ends} ends", in_use / ends);
    assert!(
        in_use <= 1024 * ends,
        "{} bytes for each end",
        in_use / ends
    );
}
