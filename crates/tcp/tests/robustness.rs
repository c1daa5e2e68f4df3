//! A peer may send anything and an owner may do anything, in any order: every invariant holds after every step, and
//! what belongs to nobody is freed.

mod common;

use baton_tcp::{
    Config, Congestion, ConnId, EcnMode, Event, ListenerId, PathError, Pieces, Segment, Stack,
    Symbolic, WriteFlags,
};
use baton_wire::{
    Ecn, Endpoint, Flags, Flow, Header, Options, SackBlock, SeqNr, Span, Time, Timestamps,
};
use common::rules::with_any_rules;
use common::{Seed, seeds};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::net::{IpAddr, Ipv4Addr};

/// Peers, and so four-tuples, in a run.
const PEERS: u16 = 3;
const STEPS: usize = 400;

/// A hostile world around one stack.
struct Chaos {
    rng: Pcg64Mcg,
    stack: Stack<Symbolic>,
    listener: ListenerId,
    now: Time,
    ids: Vec<ConnId>,
    /// What the stack last sent to each peer: a hint at what would be taken.
    heard: Vec<Option<Header>>,
    /// The next sequence number of each peer, about.
    peers_next: Vec<SeqNr>,
    /// Handshakes that were completed.
    established: usize,
}

fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let config = Config {
            mss: 500,
            send_buffer: rng.random_range(1..20_000),
            receive_buffer: rng.random_range(1..20_000),
            timestamps: rng.random_bool(0.5),
            sack: rng.random_bool(0.7),
            data_retries: rng.random_range(0..6),
            syn_retries: rng.random_range(0..3),
            msl_ms: rng.random_range(1..3_000),
            congestion: [Congestion::NewReno, Congestion::Cubic][rng.random_range(0..2)],
            rack_tlp: rng.random_bool(0.7),
            rate_reduction: rng.random_bool(0.7),
            duplicate_sack: rng.random_bool(0.7),
            forward_rto: rng.random_bool(0.7),
            undo: rng.random_bool(0.7),
            ecn: [EcnMode::Off, EcnMode::Accept, EcnMode::Request][rng.random_range(0..3)],
            ..Config::default()
        };
        let config = with_any_rules(&mut rng, config);
        let mut stack = Stack::new(config, seed);
        let listener = stack.listen(endpoint(1, 80), rng.random_range(1..4));
        let peers = usize::from(PEERS);
        Self {
            rng,
            stack,
            listener,
            now: Time::ZERO,
            ids: Vec::new(),
            heard: vec![None; peers],
            peers_next: vec![SeqNr(u32::MAX - 5000); peers],
            established: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            match self.rng.random_range(0..11) {
                10 => self.disturb(),
                0..=5 => self.arrive(),
                6..=7 => self.act(),
                8 => self.relocate(),
                _ => self.wait(),
            }
            self.settle();
        }
        self.abandon();
    }

    /// A segment, more often than not about right.
    fn arrive(&mut self) {
        let peer = self.rng.random_range(0..usize::from(PEERS));
        let heard = self.heard[peer].unwrap_or_default();
        let rng = &mut self.rng;
        let near = |rng: &mut Pcg64Mcg, number: SeqNr| match rng.random_range(0..8) {
            0..=4 => number,
            5 => number + rng.random_range(0..3000),
            6 => number - rng.random_range(0..3000),
            _ => SeqNr(rng.random()),
        };
        let right = if heard.flags.contains(Flags::ACK) {
            heard.ack
        } else {
            self.peers_next[peer]
        };
        let flags = match rng.random_range(0..12) {
            0..=5 => Flags::ACK,
            6 => Flags::ACK | Flags::FIN,
            7 => Flags::SYN,
            8 => Flags::SYN | Flags::ACK,
            9 => Flags::RST,
            _ => Flags::from_bits_truncate(rng.random()),
        };
        let len = if rng.random_bool(0.5) {
            0
        } else {
            rng.random_range(0..1500)
        };
        let value = rng.random_range(0..100_000);
        let echo = heard
            .options
            .timestamps
            .map_or(0, |timestamps| timestamps.value);
        let syn = flags.contains(Flags::SYN);
        let mut options = Options {
            mss: rng.random_bool(0.5).then(|| rng.random()),
            window_scale: (syn && rng.random_bool(0.5)).then(|| rng.random_range(0..20)),
            sack_permitted: syn && rng.random_bool(0.8),
            timestamps: rng.random_bool(0.7).then_some(Timestamps { value, echo }),
            ..Options::default()
        };
        for _ in 0..rng.random_range(0..3) {
            let start = near(rng, heard.seq);
            options.sack.push(SackBlock {
                start,
                end: start + rng.random_range(0..2000),
            });
        }
        let syn_heard = heard.flags.contains(Flags::SYN);
        let sent = heard.seq
            + if syn_heard {
                1
            } else {
                rng.random_range(0..2) * 500
            };
        let header = Header {
            seq: near(rng, right),
            ack: near(rng, sent),
            flags,
            window: [0, 100, 3000, rng.random()][rng.random_range(0..4)],
            options,
        };
        self.peers_next[peer] = header.seq;
        let mut payload = Pieces::new();
        if len > 0 {
            payload.push(Symbolic {
                source: 1,
                offset: 0,
                len,
            });
        }
        let (src, dst) = (endpoint(2, peer as u16), endpoint(1, 80));
        self.stack.handle_segment(
            self.now,
            Segment {
                src,
                dst,
                ecn: Ecn::NotCapable,
                header,
                payload,
            },
        );
    }

    fn some_id(&mut self) -> Option<ConnId> {
        let count = self.ids.len();
        (count > 0).then(|| self.ids[self.rng.random_range(0..count)])
    }

    /// Something an owner might do.
    fn act(&mut self) {
        if self.rng.random_bool(0.2) {
            let peer = self.rng.random_range(0..PEERS);
            let flow = Flow {
                local: endpoint(1, 80),
                remote: endpoint(2, peer),
            };
            self.ids.extend(self.stack.connect(self.now, flow));
            return;
        }
        let Some(id) = self.some_id() else { return };
        let amount = self.rng.random_range(1..5_000);
        match self.rng.random_range(0..20) {
            0..=8 => {
                let data = Symbolic {
                    source: 2,
                    offset: 0,
                    len: amount,
                };
                let flags = WriteFlags {
                    more: self.rng.random_bool(0.2),
                    end_of_record: self.rng.random_bool(0.2),
                };
                let _ = self.stack.write_with(id, data, flags);
            }
            9..=14 => {
                let seen = self.stack.peek(id, 0, amount as usize);
                let piece = self.stack.read(id, amount as usize);
                assert_eq!(seen, piece, "what is seen is what is read");
                let _ = self.stack.info(self.now, id);
                if let Some(piece) = piece {
                    self.stack.consume(id, piece.len as usize);
                }
            }
            15 => self.stack.set_cork(id, amount % 2 == 0),
            16 => self.stack.set_nodelay(id, amount % 2 == 0),
            17 => self.stack.shutdown(id),
            18 => self.stack.close(id),
            _ => self.stack.abort(id),
        }
    }

    /// Something rarer: new parameters, a word from the network, another listener.
    fn disturb(&mut self) {
        let peer = self.rng.random_range(0..PEERS);
        let Some(id) = self.some_id() else { return };
        match self.rng.random_range(0..8) {
            0..=2 => {
                let Self {
                    rng, stack, now, ..
                } = self;
                stack.configure(*now, id, |config| {
                    config.receive_buffer = rng.random_range(1..20_000);
                    config.send_buffer = rng.random_range(1..20_000);
                    *config = with_any_rules(rng, config.clone());
                });
            }
            3 => self.stack.quick_ack(id),
            4 => self.stack.shutdown_receive(id),
            5 => {
                let seq = self.heard[usize::from(peer)].as_ref();
                let seq = seq.map_or(SeqNr(0), |header| header.seq);
                let flow = Flow {
                    local: endpoint(1, 80),
                    remote: endpoint(2, peer),
                };
                let mtu = self.rng.random_range(0..1000);
                let error = [
                    PathError::FragmentationNeeded { mtu },
                    PathError::HostUnreachable,
                ][usize::from(mtu % 3 == 0)];
                let _ = self.stack.handle_path_error(self.now, &flow, seq, error);
            }
            6 => {
                let backlog = self.rng.random_range(1..4);
                self.stack.set_backlog(self.listener, backlog);
            }
            _ => {
                self.stack.unlisten(self.now, self.listener);
                let config = with_any_rules(&mut self.rng, self.stack.config().clone());
                self.listener = self.stack.listen_with(endpoint(1, 80), 2, config);
            }
        }
    }

    fn relocate(&mut self) {
        let Some(id) = self.some_id() else { return };
        let portable = self.stack.export(self.now, id);
        self.stack.check();
        self.ids.retain(|&known| known != id);
        match self.stack.import(self.now, common::through_json(&portable)) {
            Ok(id) => self.ids.push(id),
            Err(state) => panic!("{state:?} was fine a moment ago"),
        }
    }

    fn wait(&mut self) {
        let exponent = self.rng.random_range(0..14);
        self.now += Span::from_us(self.rng.random_range(0..1u64 << (2 * exponent)));
        self.stack.handle_timeouts(self.now);
    }

    fn settle(&mut self) {
        self.stack.check();
        while let Some((id, event)) = self.stack.poll_event() {
            match event {
                Event::Acceptable(listener) => {
                    assert_eq!(listener, self.listener);
                    self.established += 1;
                    if self.rng.random_bool(0.8) {
                        self.ids.extend(self.stack.accept(listener));
                    }
                }
                Event::Closed(_) => {
                    let before = self.ids.len();
                    self.ids.retain(|&known| known != id);
                    assert_eq!(
                        before,
                        self.ids.len() + 1,
                        "{id:?} was alive and closes once"
                    );
                }
                _ => assert!(
                    self.ids.contains(&id),
                    "{event:?} is about somebody's connection"
                ),
            }
        }
        let mut burst = 0;
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            self.heard[usize::from(segment.dst.port)] = Some(segment.header);
            burst += 1;
            assert!(burst < 10_000, "output comes to an end");
        }
        self.stack.check();
    }

    /// The owner leaves everything and nobody answers any more.
    fn abandon(&mut self) {
        while let Some(id) = self.stack.accept(self.listener) {
            self.ids.push(id);
        }
        self.settle();
        for id in self.ids.clone() {
            self.stack.close(id);
        }
        self.settle();
        let end = self.now + Span::from_secs(100_000);
        while let Some(at) = self.stack.poll_timeout().filter(|&at| at < end) {
            self.now = self.now.max(at);
            self.stack.handle_timeouts(self.now);
            while let Some(id) = self.stack.accept(self.listener) {
                self.ids.push(id);
                self.stack.close(id);
            }
            self.settle();
        }
        assert!(
            self.stack.is_empty(),
            "{} connections are left",
            self.stack.len()
        );
    }
}

#[test]
fn nothing_that_peers_and_owners_do_breaks_an_invariant() {
    let mut established = 0;
    for seed in seeds(1500) {
        let _seed = Seed(seed);
        let mut chaos = Chaos::new(seed);
        chaos.run();
        established += chaos.established;
    }
    assert!(established > 0, "some handshakes succeed");
}
