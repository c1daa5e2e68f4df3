//! Several engines of one adapter, of which a random one receives each frame: the worst that an interface may do.

use super::*;
use crate::adapter::Siblings;
use crate::port::{MemoryPort, Port, memory_pair};
use crate::{Clock, Engine};
use baton_host::adapter::ListenOptions;
use baton_host::{Ready, Receive, Sockets};
use baton_inet::InterfaceConfig;
use baton_tcp::{ConnId, ListenerId};
use baton_testkit::Pattern;
use bytes::{Buf, Bytes};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tempfile::TempDir;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEERS_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const SHARED_PORT: u16 = 80;
const LONE_PORT: u16 = 81;
const PEERS_PORT: u16 = 90;
/// Bytes that each connection carries in each direction.
const LENGTH: usize = 5_000;

/// One engine and its end of the cable.
struct Member {
    engine: Engine<MemoryPort>,
    service: AdapterService,
    far: MemoryPort,
}

/// The engines of an adapter, a peer, and the network between them.
struct Engines {
    folder: TempDir,
    members: Vec<Member>,
    peer: Engine<MemoryPort>,
    far: MemoryPort,
    random: Pcg64Mcg,
    now: Time,
}

fn engine(port: MemoryPort, last: u8, is_first: bool, seed: u64) -> Engine<MemoryPort> {
    let address = format!("10.9.0.{last}/24").parse().expect("an address");
    let config = InterfaceConfig {
        announce: false,
        answers: is_first,
        ..InterfaceConfig::new(port.link().mac, vec![address])
    };
    let host = Host::new(config, baton_tcp::Config::default(), seed).expect("a host");
    Engine::new(host, port, Clock::start())
}

impl Engines {
    fn new(engines: usize, firmware: Option<&Config>, seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let siblings = Siblings::of(engines).expect("descriptors");
        let members = siblings.into_iter().enumerate().map(|(number, siblings)| {
            let (near, far) = memory_pair([MAC, PEERS_MAC], 1500);
            let mut engine = engine(near, 2, number == 0, number as u64);
            let mut config = AdapterServiceConfig {
                firmware: firmware.cloned(),
                ..AdapterServiceConfig::default()
            };
            config.adapter.port_seed = seed;
            let listeners = (number == 0)
                .then(|| Listeners::open(&folder.path().join("adapter"), None, config.limits));
            let listeners = listeners.transpose().expect("a socket");
            let service = AdapterService::new(config, listeners, engine.host_mut());
            let mut service = service.expect("an adapter");
            service.set_siblings(siblings).expect("descriptors");
            Member {
                engine,
                service,
                far,
            }
        });
        let members = members.collect();
        let (far, near) = memory_pair([MAC, PEERS_MAC], 1500);
        Self {
            folder,
            members,
            peer: engine(near, 1, true, 99),
            far,
            random: Pcg64Mcg::seed_from_u64(seed),
            now: Time::ZERO,
        }
    }

    /// Runs one turn of all engines and of the peer, and carries their frames. Each frame of the peer reaches a random engine.
    fn step(&mut self) {
        for member in &mut self.members {
            let turned = member.engine.turn_at(self.now, &mut member.service);
            turned.expect("memory does not fail");
            member.service.adapter().check();
            member.engine.host().check();
            for frame in received(&mut member.far) {
                send(&mut self.far, frame);
            }
        }
        let turned = self.peer.turn_at(self.now, &mut Nobody);
        turned.expect("memory does not fail");
        for frame in received(&mut self.far) {
            let member = self.random.random_range(0..self.members.len());
            send(&mut self.members[member].far, frame);
        }
        self.now += Span::from_us(100);
    }

    /// Attaches an application to the engine with the fewest.
    fn attach(&mut self) -> Driver {
        let address = AdapterAddress::Unix(self.folder.path().join("adapter"));
        let config = DriverConfig {
            most_spin_us: 0,
            ..DriverConfig::default()
        };
        let attaching = thread::spawn(move || Driver::open(address, config));
        while !attaching.is_finished() {
            self.step();
        }
        attaching.join().expect("no panic").expect("there is room")
    }

    fn sum(&self, name: &str) -> u64 {
        let snapshots = self
            .members
            .iter()
            .map(|it| Snapshot::take(&it.engine, &it.service));
        let whole = snapshots.reduce(Snapshot::joined).expect("an engine");
        whole.counters[name]
    }

    fn connect(&mut self, port: u16) -> ConnId {
        let local_port = self.random.random_range(10_000..60_000);
        let flow = Flow {
            local: Endpoint::new([10, 9, 0, 1].into(), local_port),
            remote: Endpoint::new([10, 9, 0, 2].into(), port),
        };
        let stack = self.peer.host_mut().stack_mut();
        stack.connect(self.now, flow).expect("a free port")
    }
}

fn received(port: &mut MemoryPort) -> Vec<Bytes> {
    let mut frames = Vec::new();
    port.receive(Time::ZERO, &mut frames)
        .expect("memory does not fail");
    frames
}

fn send(port: &mut MemoryPort, frame: Bytes) {
    let mut batch = crate::port::Batch::default();
    batch.push_many(|bytes, end| {
        bytes.extend_from_slice(&frame);
        end(bytes);
    });
    port.send(Time::ZERO, &mut batch)
        .expect("memory does not fail");
    assert!(batch.is_empty(), "the cable has room");
}

/// An application that returns what it receives on accepted connections, and sends a pattern on the one that it opens.
struct Echo {
    driver: Driver,
    listener: baton_host::SocketId,
    /// Received data that did not fit, by socket.
    pending: Vec<(baton_host::SocketId, Bytes)>,
    accepted: usize,
}

impl Echo {
    fn new(mut driver: Driver, port: u16, share: u32) -> Self {
        let now = driver.now();
        let at = Endpoint::new([10, 9, 0, 2].into(), port);
        let options = ListenOptions {
            share,
            ..ListenOptions::default()
        };
        let listener = driver.os_mut().listen_with(now, at, 64, options);
        driver.turn();
        Self {
            driver,
            listener: listener.expect("a free socket"),
            pending: Vec::new(),
            accepted: 0,
        }
    }

    fn turn(&mut self) {
        self.driver.turn();
        while let Some(ready) = self.driver.next_ready() {
            let mut calls = self.driver.calls();
            match ready {
                Ready::Acceptable => {
                    while calls.accept().is_some() {
                        self.accepted += 1;
                    }
                }
                // It cannot listen.
                Ready::Readable(socket) if socket == self.listener => {}
                Ready::Readable(socket) => match calls.receive(socket, 1 << 16) {
                    Receive::Data(data) => self.pending.push((socket, data)),
                    Receive::WouldBlock => {}
                    Receive::EndOfStream | Receive::Gone => calls.close(socket),
                },
                Ready::Writable(_) => {}
            }
        }
        let mut calls = self.driver.calls();
        self.pending.retain_mut(|(socket, data)| {
            let Ok(taken) = calls.send_some(*socket, data) else {
                return false;
            };
            data.advance(taken);
            !data.is_empty()
        });
        self.driver.transmit();
    }
}

/// The peer's view of a connection.
struct Ends {
    conn: ConnId,
    written: usize,
    read: Vec<u8>,
    closed: Option<CloseReason>,
}

/// Lets the peer send a pattern on its connections, and close each once the pattern has come back.
fn drive_peer(engines: &mut Engines, conns: &mut [Ends], pattern: &[u8]) {
    let stack = engines.peer.host_mut().stack_mut();
    while let Some((conn, event)) = stack.poll_event() {
        if let Event::Closed(reason) = event
            && let Some(ends) = conns.iter_mut().find(|ends| ends.conn == conn)
        {
            ends.closed = Some(reason);
        }
    }
    for ends in conns.iter_mut().filter(|ends| ends.closed.is_none()) {
        if ends.written < pattern.len() {
            let next = (ends.written + 700).min(pattern.len());
            let part = Bytes::copy_from_slice(&pattern[ends.written..next]);
            ends.written += stack.write(ends.conn, part).unwrap_or(0);
        }
        while let Some(data) = stack.read(ends.conn, 1 << 16) {
            ends.read.extend_from_slice(&data);
            if ends.read.len() == pattern.len() {
                stack.close(ends.conn);
            }
        }
    }
}

#[test]
fn connections_work_whichever_engine_receives_their_frames() {
    for (seed, firmware) in (0..).zip(both_ways()) {
        let mut engines = Engines::new(3, firmware.as_ref(), seed);
        let pattern = Pattern::new(7).bytes(LENGTH);
        // Three applications share a port, each on an engine of its own. The fourth listens alone.
        let mut applications: Vec<Echo> = (0..4)
            .map(|number| match number {
                3 => Echo::new(engines.attach(), LONE_PORT, 0),
                _ => Echo::new(engines.attach(), SHARED_PORT, 7),
            })
            .collect();
        let counts = (engines.members.iter()).map(|it| it.service.attached().count());
        assert_eq!(counts.collect::<Vec<_>>(), [2, 1, 1]);
        for _ in 0..20 {
            applications.iter_mut().for_each(Echo::turn);
            engines.step();
        }
        let mut conns: Vec<Ends> = (0..40)
            .map(|number| Ends {
                conn: engines.connect(if number % 4 == 0 {
                    LONE_PORT
                } else {
                    SHARED_PORT
                }),
                written: 0,
                read: Vec::new(),
                closed: None,
            })
            .collect();
        let mut steps = 0;
        while conns.iter().any(|ends| ends.closed.is_none()) {
            applications.iter_mut().for_each(Echo::turn);
            engines.step();
            drive_peer(&mut engines, &mut conns, &pattern);
            steps += 1;
            assert!(steps < 100_000, "the connections do not end");
        }
        for ends in &conns {
            assert_eq!(ends.closed, Some(CloseReason::Normal));
            assert!(ends.read == pattern, "the data comes back unchanged");
        }
        let accepted: Vec<usize> = applications.iter().map(|it| it.accepted).collect();
        assert_eq!(accepted.iter().sum::<usize>(), 40);
        assert_eq!(accepted[3], 10);
        assert!(accepted.iter().all(|&count| count > 0), "{accepted:?}");
        assert!(engines.sum("engines.forwarded") > 100);
        assert_eq!(engines.sum("engines.dropped"), 0);
        assert_eq!(engines.sum("tcp.resets_sent"), 0);
        // The peer asked for the address once or more often, and got one answer each time.
        let asked = engines.peer.host().interface().stats().solicitations_sent;
        assert_eq!(engines.sum("inet.advertisements_sent"), asked);
    }
}

#[test]
fn a_port_without_a_listener_is_refused_once() {
    for firmware in both_ways() {
        let mut engines = Engines::new(3, firmware.as_ref(), 5);
        let _application = Echo::new(engines.attach(), SHARED_PORT, 0);
        // For a while after the start, applications may yet attach, and nothing is refused.
        engines.now += Span::from_secs(3);
        engines.step();
        let conn = engines.connect(4444);
        for _ in 0..20 {
            engines.step();
        }
        let stack = engines.peer.host_mut().stack_mut();
        let events: Vec<_> = std::iter::from_fn(|| stack.poll_event()).collect();
        assert_eq!(events, [(conn, Event::Closed(CloseReason::Refused))]);
        assert_eq!(engines.sum("tcp.resets_sent"), 1);
        // The segment visited each engine twice.
        assert_eq!(engines.sum("engines.forwarded"), 5);
    }
}

#[test]
fn applications_of_different_engines_open_connections_from_ports_of_their_own() {
    let mut engines = Engines::new(3, None, 6);
    let at = Endpoint::new([10, 9, 0, 1].into(), PEERS_PORT);
    let listener: ListenerId = (engines.peer.host_mut().stack_mut()).listen(at, 64);
    let mut drivers: Vec<Driver> = (0..3).map(|_| engines.attach()).collect();
    for driver in &mut drivers {
        for _ in 0..20 {
            let now = driver.now();
            let connected = driver.os_mut().connect(now, at);
            connected.expect("a free socket");
        }
    }
    let mut remotes = Vec::new();
    let is_open = |driver: &Driver| driver.os().stats().connected == 20;
    // Requests for the peer's address delay some segments until they are sent again.
    for _ in 0..20_000 {
        if remotes.len() == 60 && drivers.iter().all(is_open) {
            break;
        }
        for driver in &mut drivers {
            driver.turn();
            driver.transmit();
        }
        engines.step();
        let stack = engines.peer.host_mut().stack_mut();
        while let Some(conn) = stack.accept(listener) {
            remotes.push(stack.flow(conn).remote.port);
        }
    }
    let mut by_engine = [0; 3];
    for port in &remotes {
        by_engine[usize::from(*port) % 3] += 1;
    }
    assert_eq!(by_engine, [20; 3]);
    remotes.sort_unstable();
    remotes.dedup();
    assert_eq!(remotes.len(), 60, "no port is used twice");
    assert!(drivers.iter().all(is_open));
}

#[test]
fn a_listener_of_another_engine_is_respected_until_it_closes() {
    let mut engines = Engines::new(2, None, 8);
    let mut first = Echo::new(engines.attach(), SHARED_PORT, 0);
    let mut second = Echo::new(engines.attach(), SHARED_PORT, 0);
    let run = |engines: &mut Engines, applications: [&mut Echo; 2]| {
        for _ in 0..20 {
            engines.step();
            applications[0].turn();
            applications[1].turn();
        }
    };
    run(&mut engines, [&mut first, &mut second]);
    assert!(first.driver.os().is_listening(first.listener));
    let refused = second.driver.os().error_of(second.listener);
    assert_eq!(refused, Some(Status::AddressInUse));
    drop(first);
    for _ in 0..20 {
        engines.step();
    }
    let mut third = Echo::new(engines.attach(), SHARED_PORT, 0);
    run(&mut engines, [&mut second, &mut third]);
    assert!(third.driver.os().is_listening(third.listener));
}
