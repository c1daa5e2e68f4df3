//! Tests of the order of pieces of work and of full queues, with applications on links in memory.

use super::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Buffer, Request};
use baton_bus::link::{MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_inet::{InterfaceConfig, Medium};
use baton_nic::adapter::{AdapterConfig, Dispatch, OnBoardMemory, Piece, Ready};
use baton_nic::{Config, Heads, QueueLengths, Schedule, Scheduler, Source};
use baton_testkit::{Random, endpoint, for_each_seed};
use baton_wire::{Ecn, Endpoint, Flags, Header, Packet, SeqNr, encode_packet};
use std::sync::{Arc, Mutex};

/// Packets to this port are for the first application's host, which also sends packets of its own.
const HOST_PORT: u16 = 80;
/// Port on which the adapter listens.
const NIC_PORT: u16 = 81;
const PACKETS: u32 = 1;
const LISTENER: u32 = 2;

/// A scheduler of the handoff papers whose choices are recorded.
#[derive(Clone, Debug)]
struct Recorder {
    known: Scheduler,
    said: Arc<Mutex<Vec<Source>>>,
}

impl Recorder {
    fn new(known: Scheduler) -> Self {
        let said = Arc::default();
        Self { known, said }
    }

    fn take(&self) -> Vec<Source> {
        std::mem::take(&mut self.said.lock().expect("no panic"))
    }
}

impl Schedule for Recorder {
    fn next(&self, heads: &Heads) -> Option<Source> {
        let next = self.known.next(heads);
        self.said.lock().expect("no panic").extend(next);
        next
    }

    fn looks_up_first(&self) -> bool {
        self.known.looks_up_first()
    }
}

/// An event that gives the adapter work.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    /// A frame for the application's host or for the adapter's TCP.
    Frame { port: u16 },
    /// A packet that the host sends.
    HostPacket,
    /// A command.
    Command,
}

fn packet(src: Endpoint, dst: Endpoint) -> Bytes {
    let header = Header {
        seq: SeqNr(7),
        flags: Flags::SYN,
        window: 1000,
        ..Header::default()
    };
    let packet = Packet {
        src,
        dst,
        ecn: Ecn::NotCapable,
        header,
    };
    let mut bytes = Vec::new();
    encode_packet(&packet, b"", &mut bytes).expect("it fits");
    bytes.into()
}

struct App {
    session: SessionId,
    host: MemoryHost<Bytes>,
    link: MemoryAdapter<Bytes>,
    /// The next free socket number.
    next: u32,
}

struct Apps(Vec<App>);

impl Links<Bytes> for Apps {
    type Link = MemoryAdapter<Bytes>;

    fn link(&mut self, session: SessionId) -> Option<&mut Self::Link> {
        Some(&mut self.0[session.0 as usize].link)
    }
}

/// An adapter with its queues and applications.
struct Desk {
    host: Host,
    adapter: Adapter<Bytes>,
    apps: Apps,
    process: Process<Bytes>,
    next_port: u16,
}

impl Desk {
    fn new(firmware: &Config, memory: Option<OnBoardMemory>, applications: usize) -> Self {
        let address = endpoint(1, 0).addr;
        let interface = InterfaceConfig {
            medium: Medium::Ip,
            ..InterfaceConfig::new([0; 6], vec!["10.0.0.1/24".parse().expect("a network")])
        };
        let config = AdapterConfig {
            addresses: vec![address],
            memory,
            ..AdapterConfig::default()
        };
        let mut desk = Self {
            host: Host::new(interface, baton_tcp::Config::default(), 1).expect("a host"),
            adapter: Adapter::new(config).expect("right parameters"),
            apps: Apps(Vec::new()),
            process: Process::new(firmware),
            next_port: 1000,
        };
        for _ in 0..applications {
            let session = desk.adapter.attach().expect("there is room");
            desk.process.attach(session);
            let (host, link) = memory_link(MemoryConfig {
                ring_depth: 512,
                buffers: 600,
                buffer_bytes: 2048,
            });
            let next = 10;
            desk.apps.0.push(App {
                session,
                host,
                link,
                next,
            });
        }
        let at = |port| Action::Bind(endpoint(1, port));
        for (number, action) in [
            (PACKETS, Action::PacketSocket),
            (PACKETS, at(HOST_PORT)),
            (LISTENER, Action::Socket),
            (LISTENER, at(NIC_PORT)),
            (LISTENER, Action::Listen { backlog: 100 }),
        ] {
            desk.ask(0, number, action);
            desk.run();
        }
        for _ in 0..200 {
            let address = desk.apps.0[0].host.reserve().expect("a free buffer");
            let len = 2048;
            desk.ask(0, PACKETS, Action::Receive { address, len });
            desk.run();
        }
        desk
    }

    fn ask(&mut self, app: usize, socket: u32, action: Action) {
        let request = Request {
            socket,
            tag: 0,
            action,
        };
        let put = self.apps.0[app].host.put(Time::ZERO, &[request.encode()]);
        assert_eq!(put, Ok(1));
    }

    /// Makes an application ask for a new socket.
    fn command(&mut self, app: usize) {
        let number = self.apps.0[app].next;
        self.apps.0[app].next += 1;
        self.ask(app, number, Action::Socket);
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Frame { port } => {
                let frame = self.frame(port);
                let bytes = frame.len() as u32;
                let adapter = &mut self.adapter;
                // A dropped frame is counted.
                let _ = self.process.receive(Time::ZERO, adapter, frame, bytes);
            }
            Arrival::HostPacket => {
                let data = packet(endpoint(1, HOST_PORT), endpoint(2, 1000));
                let address = self.apps.0[0].host.place(data).expect("a free buffer");
                let (data, more) = (Buffer::Memory { address, len: 40 }, false);
                self.ask(0, PACKETS, Action::send(data, more));
                self.look();
            }
            Arrival::Command => {
                self.command(0);
                self.look();
            }
        }
    }

    /// Returns the first segment of a new connection.
    fn frame(&mut self, port: u16) -> Bytes {
        self.next_port += 1;
        packet(endpoint(2, self.next_port), endpoint(1, port))
    }

    fn look(&mut self) {
        self.run_process(0, |process, now, adapter, below, apps| {
            process.look(now, adapter, below, apps)
        });
    }

    /// Does up to `most` pieces of work and returns the number of frames sent.
    fn work(&mut self, most: usize) -> usize {
        let sent = self.run_process(most, |process, now, adapter, below, apps| {
            work(now, process, adapter, below, apps)
        });
        self.process.check();
        self.adapter.check();
        sent
    }

    /// Calls the process with room for up to `most` frames and returns the number of frames sent.
    fn run_process(
        &mut self,
        most: usize,
        what: impl FnOnce(
            &mut Process<Bytes>,
            Time,
            &mut Adapter<Bytes>,
            &mut Below<'_>,
            &mut Apps,
        ) -> Result<bool, (SessionId, LinkError)>,
    ) -> usize {
        let mut sent = 0;
        let mut below = Below {
            siblings: None,
            visits: 0,
            host: &mut self.host,
            beside: None,
            quiet: false,
            arrived: 0,
            unclaimed: 0,
            room: most,
            frames: &mut Vec::new(),
            end: &mut |_| sent += 1,
        };
        let (process, adapter) = (&mut self.process, &mut self.adapter);
        let did = what(process, Time::ZERO, adapter, &mut below, &mut self.apps);
        did.expect("they keep the rules");
        sent
    }

    /// Does all pending work.
    fn run(&mut self) {
        self.look();
        self.work(10_000);
        let waiting = self.process.queue_lengths();
        assert_eq!(waiting, QueueLengths::default());
    }

    /// Returns the number of sockets that an application has created.
    fn sockets(&self, app: usize) -> usize {
        self.adapter.row(self.apps.0[app].session).sockets
    }
}

fn firmware(scheduler: Scheduler) -> Config {
    Config {
        scheduler,
        ..Config::default()
    }
}

/// Returns whether an arrival caused a piece of work, rather than an earlier piece of work or a timer.
fn is_arrived(source: &Source) -> bool {
    !matches!(
        source,
        Source::Transfers | Source::Transmit | Source::Timers
    )
}

/// Whatever arrives, the live adapter takes up work in the order of the simulated adapter's queues.
#[test]
fn the_live_adapter_serves_in_the_simulated_order() {
    for_each_seed(100, |seed| {
        let mut random = Random::new(seed);
        let scheduler = match random.percent(50) {
            true => Scheduler::Fcfs,
            false => Scheduler::HostFirst,
        };
        let config = Config {
            arrival_queue_packets: 1 + random.below(12) as u32,
            receive_queue_packets: 1 + random.below(8) as u32,
            ..firmware(scheduler)
        };
        let mut live = Desk::new(&config, None, 1);
        let live_order = Recorder::new(scheduler);
        live.process.set_schedule(Box::new(live_order.clone()));
        // This adapter takes in the requests but never carries them out.
        let mut other = Desk::new(&config, None, 1);
        let order = Recorder::new(scheduler);
        let mut simulated: Dispatch<u16> = Dispatch::new(&config);
        simulated.set_schedule(Box::new(order.clone()));
        let session = other.apps.0[0].session;
        simulated.attach(session);
        for _ in 0..10 {
            for _ in 0..random.below(20) {
                let arrival = match random.below(4) {
                    0 => Arrival::Frame { port: NIC_PORT },
                    1 => Arrival::Frame { port: HOST_PORT },
                    2 => Arrival::HostPacket,
                    _ => Arrival::Command,
                };
                live.arrive(arrival);
                if let Arrival::Frame { port } = arrival {
                    simulated.handle_frame(port).ok();
                    continue;
                }
                match arrival {
                    Arrival::Command => other.command(0),
                    _ => {
                        let (data, more) = (
                            Buffer::Memory {
                                address: 0,
                                len: 40,
                            },
                            false,
                        );
                        other.ask(0, PACKETS, Action::send(data, more));
                    }
                }
                let link = &mut other.apps.0[0].link;
                let taken = simulated.take_requests(Time::ZERO, &other.adapter, session, link);
                taken.expect("it keeps the rules");
            }
            live.work(10_000);
            let ready = |_| Ready {
                requests: usize::MAX,
                is_over: false,
            };
            while let Some(piece) = simulated.next_piece(ready, false) {
                if let Piece::Lookup(port) = piece {
                    simulated.sort(port, port == NIC_PORT).ok();
                }
            }
            let [live_order, order] = [&live_order, &order].map(|recorder| {
                let said = recorder.take().into_iter().filter(is_arrived);
                said.collect::<Vec<_>>()
            });
            assert_eq!(live_order, order);
            assert_eq!(live.process.drops(), simulated.drops());
            let mut answers = Vec::new();
            let got = live.apps.0[0].host.get(Time::ZERO, &mut answers);
            got.expect("the adapter is there");
        }
    });
}

/// Waiting frames occupy on-board memory, whatever happens to them later.
#[test]
fn frames_without_memory_are_dropped_and_counted() {
    let config = Config {
        receive_queue_packets: 100,
        ..firmware(Scheduler::HostFirst)
    };
    let memory = OnBoardMemory {
        kib: 16,
        connection_bytes: 1024,
    };
    let mut desk = Desk::new(&config, Some(memory), 1);
    for round in 1..3 {
        for _ in 0..500 {
            desk.arrive(Arrival::Frame { port: HOST_PORT });
        }
        let dropped = desk.adapter.packets_without_memory();
        assert_eq!(dropped, round * (500 - 16 * 1024 / 40));
        desk.run();
        assert_eq!(desk.process.drops().arrival_queue, 0);
        assert_eq!(desk.process.drops().host_receive_queue, round * 309);
    }
}

/// An application with many requests delays another one by at most the requests in its queue. An application that takes no answers delays nobody.
#[test]
fn two_applications_take_turns() {
    let config = Config {
        descriptor_queue_entries: 8,
        ..firmware(Scheduler::HostFirst)
    };
    let mut desk = Desk::new(&config, None, 2);
    for _ in 0..100 {
        desk.command(0);
    }
    let before = desk.sockets(0);
    desk.command(1);
    desk.look();
    assert_eq!(desk.process.queue_lengths().commands, 9);
    desk.work(9);
    assert_eq!((desk.sockets(0), desk.sockets(1)), (before + 8, 1));
    while desk.sockets(0) < before + 100 {
        desk.look();
        desk.work(100);
    }
    // Enough answers to fill the first application's ring and queue.
    desk.apps.0[0].host.faults().refuse_responses(true);
    for _ in 0..400 {
        desk.command(0);
        desk.look();
        desk.work(100);
    }
    let first = desk.apps.0[0].session;
    assert_eq!(desk.adapter.room_for_requests(first), 0);
    let stuck = desk.sockets(0);
    desk.command(1);
    desk.look();
    desk.work(100);
    assert_eq!((desk.sockets(0), desk.sockets(1)), (stuck, 2));
}
