//! Measures how many segments per second two stacks exchange in memory, for several numbers of connections. One stack builds each segment and
//! the other one processes it, so the time per segment is the cost of both sides.

use baton_tcp::{Config, Congestion, ConnId, EcnMode, Event, Stack};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::net::{IpAddr, Ipv4Addr};

const CONNECTIONS: [u32; 3] = [16, 1024, 8192];
const SEGMENTS: u64 = 100_000;

/// What the applications do.
#[derive(Clone, Copy)]
enum Load {
    /// The client always has data to send.
    Bulk,
    /// The client sends a request of 300 bytes, and the next one after a response of 8 KiB.
    RequestResponse,
}

/// The mechanisms for congestion control and loss recovery that are enabled.
#[derive(Clone, Copy)]
enum Recovery {
    /// All mechanisms.
    Modern,
    /// The mechanisms of 2006: losses are detected by counting duplicate ACKs.
    Counting,
}

impl Recovery {
    fn config(self) -> Config {
        match self {
            Self::Modern => Config::default(),
            Self::Counting => Config {
                congestion: Congestion::NewReno,
                hystart: false,
                rack_tlp: false,
                rate_reduction: false,
                duplicate_sack: false,
                forward_rto: false,
                undo: false,
                ecn: EcnMode::Off,
                ..Config::default()
            },
        }
    }
}

struct Pair {
    client: Stack<Symbolic>,
    server: Stack<Symbolic>,
    load: Load,
    now: Time,
    segments: u64,
    /// Number of bytes that each connection of the client has written.
    written: Vec<u64>,
    /// Number of bytes that each connection of the client has received.
    received: Vec<u64>,
}

impl Pair {
    fn new(connections: u32, load: Load, recovery: Recovery) -> Self {
        let config = Config {
            send_buffer: 64 * 1024,
            receive_buffer: 64 * 1024,
            ..recovery.config()
        };
        let mut pair = Self {
            client: Stack::new(config.clone(), 1),
            server: Stack::new(config, 2),
            load,
            now: Time::ZERO,
            segments: 0,
            written: vec![0; connections as usize],
            received: vec![0; connections as usize],
        };
        let to = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
        pair.server.listen(to, connections as usize);
        for number in 0..connections {
            let addr = IpAddr::V4(Ipv4Addr::from_bits(0x0a01_0000 + (number >> 10)));
            let local = Endpoint::new(addr, 1024 + (number & 1023) as u16);
            pair.client
                .connect(pair.now, Flow { local, remote: to })
                .expect("a free four-tuple");
        }
        pair.run(20 * u64::from(connections));
        pair
    }

    fn run(&mut self, segments: u64) {
        let until = self.segments + segments;
        while self.segments < until {
            let before = self.segments;
            while let Some((_, segment)) = self.client.poll_transmit(self.now) {
                self.count();
                self.server.handle_segment(self.now, segment);
                self.serve();
            }
            while let Some((_, segment)) = self.server.poll_transmit(self.now) {
                self.count();
                self.client.handle_segment(self.now, segment);
                self.ask();
            }
            if self.segments == before {
                let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
                self.now = timers
                    .into_iter()
                    .flatten()
                    .min()
                    .expect("a timer runs")
                    .max(self.now);
            }
            self.client.handle_timeouts(self.now);
            self.server.handle_timeouts(self.now);
        }
    }

    fn count(&mut self) {
        self.segments += 1;
        self.now += Span::from_ns(1_200);
    }

    /// Runs the server's application.
    fn serve(&mut self) {
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Acceptable(listener) => {
                    self.server.accept(listener);
                }
                Event::Readable => {
                    while let Some(piece) = self.server.read(id, usize::MAX) {
                        self.server.consume(id, piece.len as usize);
                        if matches!(self.load, Load::RequestResponse)
                            && (piece.offset + u64::from(piece.len)).is_multiple_of(300)
                        {
                            let data = Symbolic {
                                source: 1,
                                offset: 0,
                                len: 8192,
                            };
                            self.server.write(id, data).expect("it is open");
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Runs the client's application.
    fn ask(&mut self) {
        while let Some((id, event)) = self.client.poll_event() {
            match (event, self.load) {
                (Event::Connected, Load::Bulk) => self.write(id, 64 * 1024),
                (Event::Connected, Load::RequestResponse) => self.write(id, 300),
                (Event::Acknowledged(len), Load::Bulk) => self.write(id, len),
                (Event::Readable, _) => {
                    while let Some(piece) = self.client.read(id, usize::MAX) {
                        self.client.consume(id, piece.len as usize);
                        let received = &mut self.received[id.0 as usize];
                        *received += u64::from(piece.len);
                        if received.is_multiple_of(8192) {
                            self.write(id, 300);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn write(&mut self, id: ConnId, len: u32) {
        let offset = &mut self.written[id.0 as usize];
        let data = Symbolic {
            source: 0,
            offset: *offset,
            len,
        };
        *offset += self.client.write(id, data).expect("it is open") as u64;
    }
}

fn engine(criterion: &mut Criterion) {
    for (name, load, recovery) in [
        ("bulk", Load::Bulk, Recovery::Modern),
        ("bulk-counting", Load::Bulk, Recovery::Counting),
        ("request-response", Load::RequestResponse, Recovery::Modern),
    ] {
        let mut group = criterion.benchmark_group(name);
        group
            .throughput(Throughput::Elements(SEGMENTS))
            .sample_size(10);
        for connections in CONNECTIONS {
            let mut pair = Pair::new(connections, load, recovery);
            group.bench_function(BenchmarkId::from_parameter(connections), |bencher| {
                bencher.iter(|| pair.run(SEGMENTS));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, engine);
criterion_main!(benches);
