//! A server and a client, both on the engine, connected by in-memory ports.

use crate::http::HttpConfig;
use crate::port::{Faults, MemoryPort, Port, memory_pair};
use crate::{Application, Clock, Engine, Fetch, ServiceConfig, Snapshot, Stop, WebService};
use baton_inet::{Host, InterfaceConfig};
use baton_tcp::Config;
use baton_testkit::Pattern;
use baton_wire::{Span, Time};
use std::convert::identity;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// Name of the file that the web server has.
const FILE: &str = "data.bin";
const URL: &str = "http://10.9.0.2/data.bin";

fn engine<T: Port>(port: T, addresses: [&str; 2], seed: u64) -> Engine<T> {
    let link = port.link().clone();
    let addresses = addresses.map(|text| text.parse().expect("an address"));
    let config = InterfaceConfig {
        mtu: link.mtu,
        ..InterfaceConfig::new(link.mac, addresses.to_vec())
    };
    let host = Host::new(config, Config::default(), seed).expect("a host");
    Engine::new(host, port, Clock::start())
}

/// A service at one end of a cable and a client at the other.
pub(crate) struct World<A, S = MemoryPort> {
    /// The service's files.
    pub(crate) folder: TempDir,
    /// The time of the next `step`, which does not use the engines' clocks.
    pub(crate) now: Time,
    pub(crate) server: Engine<S>,
    pub(crate) service: A,
    pub(crate) client: Engine<MemoryPort>,
}

impl<A: Application, S: Port> World<A, S> {
    /// Starts a service on the port that `port` makes of the server's end of the cable.
    pub(crate) fn of(
        port: impl FnOnce(MemoryPort) -> S,
        service: impl FnOnce(&Path, &mut Host) -> A,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (left, right) = memory_pair(MACS, 1500);
        let mut server = engine(port(left), ["10.9.0.2/24", "fd00:9::2/64"], 1);
        Self {
            service: service(folder.path(), server.host_mut()),
            folder,
            now: Time::ZERO,
            server,
            client: engine(right, ["10.9.0.1/24", "fd00:9::1/64"], 2),
        }
    }

    /// Runs one turn of both engines, then advances the time by 100 us.
    pub(crate) fn step(&mut self, application: &mut impl Application) {
        let server = self.server.turn_at(self.now, &mut self.service);
        server.expect("memory does not fail");
        let client = self.client.turn_at(self.now, application);
        client.expect("memory does not fail");
        self.server.host().check();
        self.client.host().check();
        self.now += Span::from_us(100);
    }
}

impl<S: Port> World<WebService, S> {
    /// Starts a web server with one file.
    fn serving(content: &[u8], port: impl FnOnce(MemoryPort) -> S) -> Self {
        Self::of(port, |folder, host| {
            fs::write(folder.join(FILE), content).expect("a file");
            let config = ServiceConfig::new(HttpConfig::new(folder));
            WebService::start(&config, host).expect("a folder")
        })
    }

    fn begin(&mut self, url: &str) -> Result<Fetch<Vec<u8>>, String> {
        let (url, host) = (url.parse().expect("a URL"), self.client.host_mut());
        let fetch = Fetch::start(url, Vec::new(), 7, self.now, host);
        fetch.map_err(|error| error.to_string())
    }

    fn fetch(&mut self, url: &str) -> Result<Vec<u8>, String> {
        let mut fetch = self.begin(url)?;
        for _ in 0..2_000_000 {
            self.step(&mut fetch);
            if let Some(outcome) = fetch.outcome() {
                outcome.map_err(|error| error.to_string())?;
                return Ok(fetch.into_inner());
            }
        }
        Err("it takes too long".to_owned())
    }
}

/// Returns a port with faults.
fn with_faults(spec: &str) -> impl FnOnce(MemoryPort) -> Faults<MemoryPort> {
    let spec = spec.parse().expect("a description");
    move |port| Faults::new(port, &spec, 3)
}

#[test]
fn a_file_comes_over_either_version_of_ip() {
    let content = Pattern::new(0).bytes(1_000_000);
    let mut world = World::serving(&content, identity);
    assert!(world.fetch(URL) == Ok(content.clone()));
    assert!(world.fetch("http://[fd00:9::2]/data.bin") == Ok(content));
    let refused = world
        .fetch("http://10.9.0.2/none")
        .expect_err("no such file");
    assert_eq!(refused, "the server answered 404 Not Found");
    let refused = world.fetch("http://10.9.0.2:81/").expect_err("no listener");
    let text = "cannot connect to 10.9.0.2:81: connection refused; start a server there, or name another port";
    assert_eq!(refused, text);
}

#[test]
fn no_byte_changes_over_a_bad_link() {
    let content = Pattern::new(0).bytes(2_000_000);
    let faults = "loss=2%,reorder=2%,duplicate=2%,corrupt=1%,delay=1ms";
    let mut world = World::serving(&content, with_faults(faults));
    assert!(world.fetch(URL) == Ok(content));
    let snapshot = Snapshot::take(&world.server, &world.service);
    assert!(snapshot.counters["faults.tx.lost"] > 10);
    assert!(snapshot.counters["faults.rx.corrupted"] > 0);
    assert!(snapshot.counters["inet.refused.tcp_checksum"] > 0);
    assert!(snapshot.counters["tcp.retransmissions"] > 10);
}

#[test]
fn a_capture_has_all_frames_and_the_time_of_day() {
    let content = Pattern::new(0).bytes(100_000);
    let mut world = World::serving(&content, identity);
    let file = world.folder.path().join("capture.pcapng");
    let writer = fs::File::create(&file).expect("a file");
    let epoch = world.server.clock().epoch();
    let captures = world.server.captures_mut();
    captures
        .capture_to(writer, "left")
        .expect("the file can be written");
    assert!(world.fetch(URL) == Ok(content));
    world
        .server
        .captures_mut()
        .flush()
        .expect("the file is written");
    let stats = world.server.host().interface().stats().clone();
    let bytes = fs::read(&file).expect("a file");
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&bytes[..]).expect("a capture");
    let mut frames = 0;
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.expect("a block") {
            frames += 1;
            assert!(packet.timestamp >= epoch);
        }
    }
    assert_eq!(frames, stats.frames_received + stats.frames_sent);
}

#[test]
fn a_snapshot_shows_the_connection_and_survives_json() {
    let mut world = World::serving(&Pattern::new(0).bytes(5_000_000), identity);
    let mut fetch = world.begin(URL).expect("a way to the server");
    while fetch.received() < 1_000_000 {
        world.step(&mut fetch);
    }
    let snapshot = Snapshot::take(&world.server, &world.service);
    assert_eq!(snapshot.connections.len(), 1);
    assert_eq!(snapshot.connections[0].local.port, 80);
    assert!(snapshot.connections[0].info.bytes_acked > 500_000);
    assert_eq!(snapshot.listeners.len(), 2);
    assert_eq!(
        snapshot.neighbours[0].mac.as_deref(),
        Some("02:00:00:00:00:02")
    );
    let text = serde_json::to_string(&snapshot).expect("JSON");
    let read: Snapshot = serde_json::from_str(&text).expect("a snapshot");
    let again = serde_json::to_string(&read).expect("JSON");
    assert_eq!(again, text);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rto = &value["connections"][0]["info"]["rto_us"];
    assert_eq!(rto, 200_000, "times are whole microseconds");
}

#[test]
fn shutdown_waits_for_responses_and_accepts_nothing_new() {
    let content = Pattern::new(0).bytes(3_000_000);
    let mut world = World::serving(&content, identity);
    let mut fetch = world.begin(URL).expect("a way to the server");
    while fetch.received() == 0 {
        world.step(&mut fetch);
    }
    let now = world.now;
    let server = world.server.host_mut();
    assert!(world.service.handle_stop(now, server, Stop::InOrder));
    let outcome = loop {
        world.step(&mut fetch);
        if let Some(outcome) = fetch.outcome() {
            break outcome;
        }
    };
    outcome.expect("the response is complete");
    assert_eq!(fetch.into_inner().len(), content.len());
    let refused = world.fetch(URL).expect_err("closed");
    assert!(refused.contains("connection refused"), "{refused}");
    assert!(world.service.has_ended(world.server.host()));
}

#[test]
fn connections_left_at_shutdown_are_reset() {
    let content = Pattern::new(0).bytes(20_000_000);
    let mut world = World::serving(&content, with_faults("tx:delay=30ms"));
    world.now = world.client.now();
    let mut fetch = world.begin(URL).expect("a way to the server");
    let World {
        mut server,
        mut service,
        mut client,
        ..
    } = world;
    while fetch.received() == 0 {
        server.turn(&mut service).expect("memory does not fail");
        client.turn(&mut fetch).expect("memory does not fail");
    }
    let (now, host) = (server.now(), server.host_mut());
    assert!(service.handle_stop(now, host, Stop::AtOnce));
    server
        .reset_all(&mut service)
        .expect("memory does not fail");
    assert!(server.host().stack().is_empty());
    // The server is gone: it sends nothing more.
    drop((server, service));
    let outcome = loop {
        client.turn(&mut fetch).expect("memory does not fail");
        if let Some(outcome) = fetch.outcome() {
            break outcome;
        }
    };
    let error = outcome.expect_err("the response is cut off").to_string();
    assert!(error.contains("connection reset by the peer"), "{error}");
}
