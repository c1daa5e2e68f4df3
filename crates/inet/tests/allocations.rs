//! Checks that in steady state a segment costs no allocation on its way from one application through a frame to the other application, in
//! bulk transfers and in ping-pong.

mod common;

use baton_inet::Host;
use baton_iolib::Arena;
use baton_tcp::{Config, ConnId, Event};
use baton_testkit::{Counting, allocations_of};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use common::{V4, V6, interface};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BLOCK: [u8; 16_384] = [9; 16_384];

struct Pair {
    hosts: [Host; 2],
    arenas: [Arena; 2],
    frame: Vec<u8>,
    /// Whether frames are sent and received in batches.
    batches: bool,
    batch: Vec<Bytes>,
    now: Time,
    conns: [Option<ConnId>; 2],
    received: [u64; 2],
    frames: u64,
}

impl Pair {
    fn new(networks: [&str; 2], batches: bool) -> Self {
        let host = |side: usize| {
            let interface = interface(side, networks[side]);
            Host::new(interface, Config::default(), side as u64).expect("the parameters are valid")
        };
        let mut hosts = [host(0), host(1)];
        let [local, remote] = [0, 1].map(|side: usize| {
            let addr = hosts[side].interface().config().addresses[0].addr();
            Endpoint::new(addr, 80)
        });
        hosts[1].stack_mut().listen(remote, 1);
        let conn = hosts[0]
            .stack_mut()
            .connect(Time::ZERO, Flow { local, remote });
        Self {
            hosts,
            arenas: Default::default(),
            frame: Vec::new(),
            batches,
            batch: Vec::new(),
            now: Time::ZERO,
            conns: [conn, None],
            received: [0, 0],
            frames: 0,
        }
    }

    /// Carries all frames to the other host, reads the data that arrives, and advances time.
    fn turn(&mut self) {
        for side in [0, 1] {
            while let Some((id, event)) = self.hosts[side].stack_mut().poll_event() {
                let stack = self.hosts[side].stack_mut();
                match event {
                    Event::Acceptable(listener) => self.conns[side] = stack.accept(listener),
                    Event::Readable => {
                        while let Some(piece) = stack.read(id, usize::MAX) {
                            stack.consume(id, piece.len());
                            self.received[side] += piece.len() as u64;
                        }
                    }
                    _ => {}
                }
            }
            if self.batches {
                self.transmit_batch(side);
            }
            while self.hosts[side].poll_frame(self.now, &mut self.frame) {
                let frame = self.arenas[1 - side].copy(&self.frame);
                self.frame.clear();
                self.frames += 1;
                self.hosts[1 - side].handle_frame(self.now, frame);
            }
        }
        self.now += Span::from_us(100);
        for host in &mut self.hosts {
            host.handle_timeouts(self.now);
        }
    }

    fn transmit_batch(&mut self, side: usize) {
        let (batch, arena) = (&mut self.batch, &mut self.arenas[1 - side]);
        let end = |frame: &mut Vec<u8>| {
            batch.push(arena.copy(frame));
            frame.clear();
        };
        let sent = self.hosts[side].poll_frames(self.now, usize::MAX, &mut self.frame, end);
        self.frames += sent as u64;
        self.hosts[1 - side].handle_frames(self.now, self.batch.drain(..));
    }

    fn write(&mut self, side: usize, data: Bytes) {
        let conn = self.conns[side].expect("it is open");
        self.hosts[side]
            .stack_mut()
            .write(conn, data)
            .expect("it is open");
    }

    fn bulk(&mut self, turns: usize) {
        for _ in 0..turns {
            self.write(0, Bytes::from_static(&BLOCK));
            self.turn();
        }
    }

    fn ping_pong(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for side in [0, 1] {
                self.write(side, Bytes::from_static(&BLOCK[..100]));
                let before = self.received[1 - side];
                while self.received[1 - side] == before {
                    self.turn();
                }
            }
        }
    }
}

#[test]
fn segments_cost_no_allocations() {
    for (networks, batches) in [(V4, false), (V4, true), (V6, false), (V6, true)] {
        let mut pair = Pair::new(networks, batches);
        while pair.conns[1].is_none() {
            pair.turn();
        }
        for (what, work) in [
            ("bulk", Pair::bulk as fn(&mut Pair, usize)),
            ("ping-pong", Pair::ping_pong),
        ] {
            // Let queues and tables reach their final size.
            work(&mut pair, 4000);
            let before = pair.frames;
            let allocations = allocations_of(|| work(&mut pair, 2000));
            let frames = pair.frames - before;
            assert!(frames >= 4000, "{what}: {frames} frames were sent");
            assert_eq!(allocations, 0, "{what}: allocations for {frames} frames");
            assert_eq!(pair.arenas.each_ref().map(Arena::alone), [0, 0]);
        }
    }
}
