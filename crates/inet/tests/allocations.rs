//! Checks that in steady state a segment costs no allocation on its way from one application through a frame to the other application, in
//! bulk transfers and in ping-pong.

mod common;

use baton_iolib::Arena;
use baton_testkit::{Counting, allocations_of};
use baton_wire::Span;
use bytes::Bytes;
use common::{Link, V4, V6};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BLOCK: &[u8] = &[9; 16_384];

fn write(link: &mut Link, side: usize, data: &'static [u8]) {
    let (conn, stack) = (link.conns[side][0], link.hosts[side].stack_mut());
    let taken = stack.write(conn, Bytes::from_static(data));
    taken.expect("it is open");
}

fn bulk(link: &mut Link, turns: usize) {
    for _ in 0..turns {
        write(link, 0, BLOCK);
        link.run_for(Span::from_us(100), |_| false);
    }
}

fn ping_pong(link: &mut Link, rounds: usize) {
    for _ in 0..rounds {
        for side in [0, 1] {
            write(link, side, &BLOCK[..100]);
            let before = link.received_len[1 - side];
            assert!(link.run(1, |link| link.received_len[1 - side] > before));
        }
    }
}

#[test]
fn segments_cost_no_allocations() {
    for (networks, batches) in [(V4, false), (V4, true), (V6, false), (V6, true)] {
        let mut link = Link::between(networks);
        (link.batches, link.keeps) = (batches, false);
        link.connect();
        assert!(link.run(1, |link| !link.conns[1].is_empty()));
        for (what, work) in [
            ("bulk", bulk as fn(&mut Link, usize)),
            ("ping-pong", ping_pong),
        ] {
            // Let queues and tables reach their final size.
            work(&mut link, 4000);
            let before = link.frames;
            let allocations = allocations_of(|| work(&mut link, 2000));
            let frames = link.frames - before;
            assert!(frames >= 4000, "{what}: {frames} frames were sent");
            assert_eq!(allocations, 0, "{what}: allocations for {frames} frames");
            assert_eq!(link.arenas.each_ref().map(Arena::alone), [0, 0]);
        }
    }
}
