//! Frames that a host and a router receive from a link.

mod router;

use arbitrary::{Arbitrary, Unstructured};
use baton_inet::{Arrived, Host, InterfaceConfig, Router};
use baton_tcp::Config;
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;

/// Length of the longest frame.
const MOST_BYTES: usize = 1514;
/// Maximum number of frames that one frame may cause.
const MOST_OUTPUT: usize = 10_000;
/// Maximum number of steps in a run.
const MOST_STEPS: usize = 100;

/// An event for the host.
#[derive(Debug, Arbitrary)]
enum Step {
    /// Arbitrary bytes in a frame to the host's own address.
    Frame {
        ether_type: EtherType,
        len: u16,
    },
    /// Arbitrary bytes.
    Bytes {
        len: u16,
    },
    /// A valid frame with some bytes changed, and possibly truncated.
    Spoiled {
        which: u8,
        changes: [(u16, u8); 3],
        cut: Option<u16>,
    },
    /// The host's own last frame, returned with addresses swapped and a byte changed.
    Echo {
        place: u16,
        pattern: u8,
    },
    Wait {
        ms: u16,
    },
}

#[derive(Debug, Arbitrary)]
enum EtherType {
    V4,
    V6,
    Arp,
    Any(u16),
}

impl EtherType {
    fn number(&self) -> u16 {
        match *self {
            Self::V4 => 0x0800,
            Self::V6 => 0x86dd,
            Self::Arp => 0x0806,
            Self::Any(number) => number,
        }
    }
}

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const NEIGHBOUR: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Frames between two hosts in the formats that the RFCs define.
const RIGHT: &str = include_str!("../../inet/tests/formats.txt");
/// Offset of the type in an Ethernet header. Changes usually spare the bytes before it, since the host would otherwise discard the frame.
const ETHER_TYPE: usize = 12;

/// Passes the frames of the input to a host with a listener and connections that are being established. Checksum verification may be
/// disabled, because the fuzzer would hardly ever produce valid ones.
pub fn frame(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(switches) = <[bool; 2]>::arbitrary(&mut input) else {
        return;
    };
    let mut world = World::new(switches);
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        let Ok(step) = Step::arbitrary(&mut input) else {
            break;
        };
        world.step(&step, &mut input);
        world.settle();
    }
}

struct World {
    host: Host,
    router: Router,
    now: Time,
    last_sent: Vec<u8>,
}

impl World {
    fn new([verify_checksums, duplicate_address_detection]: [bool; 2]) -> Self {
        let addresses = ["10.0.0.2/24", "fd00::2/64"].map(|cidr| cidr.parse().expect("a network"));
        let config = InterfaceConfig {
            verify_checksums,
            router_discovery: true,
            duplicate_address_detection,
            ..InterfaceConfig::new(MAC, addresses.to_vec())
        };
        let mut host = Host::new(config, Config::default(), 7).expect("the parameters are valid");
        let end = |addr: &str, port| Endpoint::new(addr.parse().expect("an address"), port);
        host.stack_mut().listen(end("0.0.0.0", 80), 4);
        host.stack_mut().listen(end("::", 80), 4);
        for (local, remote) in [("10.0.0.2", "10.0.0.1"), ("fd00::2", "fd00::1")] {
            let flow = Flow {
                local: end(local, 5000),
                remote: end(remote, 80),
            };
            host.stack_mut().connect(Time::ZERO, flow);
        }
        let mut world = Self {
            host,
            router: router::router(verify_checksums),
            now: Time::ZERO,
            last_sent: Vec::new(),
        };
        world.settle();
        world
    }

    fn step(&mut self, step: &Step, input: &mut Unstructured<'_>) {
        let mut frame = Vec::new();
        match *step {
            Step::Frame {
                ref ether_type,
                len,
            } => {
                frame.extend_from_slice(&MAC);
                frame.extend_from_slice(&NEIGHBOUR);
                frame.extend_from_slice(&ether_type.number().to_be_bytes());
                take(input, len, &mut frame);
            }
            Step::Bytes { len } => take(input, len, &mut frame),
            Step::Spoiled {
                which,
                changes,
                cut,
            } => frame = spoiled(which, changes, cut),
            Step::Echo { place, pattern } => {
                frame = self.returned();
                if !frame.is_empty() {
                    let place = usize::from(place) % frame.len();
                    frame[place] ^= pattern;
                }
            }
            Step::Wait { ms } => {
                self.now += Span::from_ms(ms.into());
                self.host.handle_timeouts(self.now);
                self.router.handle_timeouts(self.now);
                router::settle(&mut self.router, self.now);
                return;
            }
        }
        router::route(&mut self.router, self.now, &frame);
        let refused = |host: &Host| host.interface().stats().refused.total();
        let before = refused(&self.host);
        let arrived = self.host.handle_frame(self.now, Bytes::from(frame));
        let counted = refused(&self.host) - before;
        assert_eq!(
            u64::from(matches!(arrived, Arrived::Refused(_))),
            counted,
            "{arrived:?} is counted"
        );
    }

    /// Returns the host's last frame as if a neighbour had sent it: with Ethernet and IP addresses and TCP ports swapped.
    fn returned(&self) -> Vec<u8> {
        let mut frame = self.last_sent.clone();
        let fields: &[(usize, usize, usize)] = match frame.get(12..14) {
            Some([0x08, 0x00]) => &[(0, 6, 6), (26, 30, 4), (34, 36, 2)],
            Some([0x86, 0xdd]) => &[(0, 6, 6), (22, 38, 16), (54, 56, 2)],
            Some([0x08, 0x06]) => &[(0, 6, 6), (22, 32, 10)],
            _ => &[],
        };
        for &(first, second, len) in fields {
            if second + len <= frame.len() {
                for index in 0..len {
                    frame.swap(first + index, second + index);
                }
            }
        }
        frame
    }

    fn settle(&mut self) {
        self.host.check();
        let mut frame = Vec::new();
        for count in 0.. {
            frame.clear();
            if !self.host.poll_frame(self.now, &mut frame) {
                break;
            }
            assert!(count < MOST_OUTPUT, "the host must stop sending");
            assert!(!frame.is_empty(), "a frame has bytes");
            self.last_sent.clone_from(&frame);
        }
        while self.host.stack_mut().poll_event().is_some() {}
        self.host.check();
    }
}

fn spoiled(which: u8, changes: [(u16, u8); 3], cut: Option<u16>) -> Vec<u8> {
    let lines: Vec<&str> = RIGHT
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let (_, hex) = lines[usize::from(which) % lines.len()]
        .split_once(' ')
        .expect("a name and bytes");
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    let mut frame: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    for (place, pattern) in changes {
        let place = usize::from(place) % frame.len();
        if place >= ETHER_TYPE {
            frame[place] ^= pattern;
        }
    }
    frame[..MAC.len()].copy_from_slice(&MAC);
    frame.truncate(cut.map_or(usize::MAX, usize::from));
    frame
}

/// Appends at most `len` bytes of the input.
fn take(input: &mut Unstructured<'_>, len: u16, frame: &mut Vec<u8>) {
    let len = usize::from(len)
        .min(MOST_BYTES - frame.len())
        .min(input.len());
    frame.extend_from_slice(input.bytes(len).unwrap_or_default());
}
