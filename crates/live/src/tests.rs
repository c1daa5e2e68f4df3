//! A server and a client, both on the engine, connected by in-memory ports.

use crate::http::HttpConfig;
use crate::port::{Faults, MemoryPort, Port, memory_pair};
use crate::{Application, Clock, Engine, Fetch, ServiceConfig, Snapshot, Stop, WebService};
use baton_inet::{Host, InterfaceConfig};
use baton_tcp::Config;
use baton_testkit::Pattern;
use baton_wire::{Span, Time};
use std::fs;
use std::path::Path;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

pub(crate) fn engine<T: Port>(port: T, address: &[&str], seed: u64) -> Engine<T> {
    let link = port.link().clone();
    let addresses = address.iter().map(|text| text.parse().expect("an address"));
    let config = InterfaceConfig {
        mtu: link.mtu,
        ..InterfaceConfig::new(link.mac, addresses.collect())
    };
    let host = Host::new(config, Config::default(), seed).expect("a host");
    Engine::new(host, port, Clock::start())
}

/// A server of `root` at one end of a cable and a client at the other, on virtual time.
struct World<S, C> {
    now: Time,
    server: Engine<S>,
    service: WebService,
    client: Engine<C>,
}

impl<S: Port, C: Port> World<S, C> {
    fn new(root: &Path, server_port: S, client_port: C) -> Self {
        let mut server = engine(server_port, &["10.9.0.2/24", "fd00:9::2/64"], 1);
        let client = engine(client_port, &["10.9.0.1/24", "fd00:9::1/64"], 2);
        let config = ServiceConfig::new(HttpConfig::new(root));
        let service = WebService::start(&config, server.host_mut()).expect("a folder");
        Self {
            now: Time::ZERO,
            server,
            service,
            client,
        }
    }

    /// Runs one turn of both, then advances the time by 100 us.
    fn step(&mut self, application: &mut impl Application) {
        self.server
            .turn_at(self.now, &mut self.service)
            .expect("memory does not fail");
        self.client
            .turn_at(self.now, application)
            .expect("memory does not fail");
        self.server.host().check();
        self.client.host().check();
        self.now += Span::from_us(100);
    }

    fn fetch(&mut self, url: &str) -> Result<Vec<u8>, String> {
        let url = url.parse().expect("a URL");
        let now = self.now;
        let mut fetch = Fetch::start(url, Vec::new(), 7, now, self.client.host_mut())
            .map_err(|error| error.to_string())?;
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

fn root_with(name: &str, content: &[u8]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    fs::write(root.path().join(name), content).expect("a file");
    root
}

pub(crate) fn ports() -> (MemoryPort, MemoryPort) {
    memory_pair(MACS, 1500)
}

#[test]
fn a_file_comes_over_either_version_of_ip() {
    let content = Pattern::new(0).bytes(1_000_000);
    let root = root_with("data.bin", &content);
    let (left, right) = ports();
    let mut world = World::new(root.path(), left, right);
    assert!(world.fetch("http://10.9.0.2/data.bin") == Ok(content.clone()));
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
    let root = root_with("data.bin", &content);
    let (left, right) = ports();
    let spec = "loss=2%,reorder=2%,duplicate=2%,corrupt=1%,delay=1ms"
        .parse()
        .expect("a description");
    let mut world = World::new(root.path(), Faults::new(left, &spec, 3), right);
    assert!(world.fetch("http://10.9.0.2/data.bin") == Ok(content));
    let snapshot = Snapshot::take(&world.server, &world.service);
    assert!(snapshot.counters["faults.tx.lost"] > 10);
    assert!(snapshot.counters["faults.rx.corrupted"] > 0);
    assert!(snapshot.counters["inet.refused.tcp_checksum"] > 0);
    assert!(snapshot.counters["tcp.retransmissions"] > 10);
}

#[test]
fn a_capture_has_all_frames_and_the_time_of_day() {
    let content = Pattern::new(0).bytes(100_000);
    let root = root_with("data.bin", &content);
    let (left, right) = ports();
    let file = root.path().join("capture.pcapng");
    let writer = fs::File::create(&file).expect("a file");
    let mut world = World::new(root.path(), left, right);
    let epoch = world.server.clock().epoch();
    let captures = world.server.captures_mut();
    captures
        .capture_to(writer, "left")
        .expect("the file can be written");
    assert!(world.fetch("http://10.9.0.2/data.bin") == Ok(content));
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
    let root = root_with("data.bin", &Pattern::new(0).bytes(5_000_000));
    let (left, right) = ports();
    let mut world = World::new(root.path(), left, right);
    let url = "http://10.9.0.2/data.bin".parse().expect("a URL");
    let now = world.now;
    let mut fetch = Fetch::start(url, Vec::new(), 7, now, world.client.host_mut())
        .expect("a way to the server");
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
    let root = root_with("data.bin", &content);
    let (left, right) = ports();
    let mut world = World::new(root.path(), left, right);
    let url = "http://10.9.0.2/data.bin".parse().expect("a URL");
    let now = world.now;
    let mut fetch = Fetch::start(url, Vec::new(), 7, now, world.client.host_mut())
        .expect("a way to the server");
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
    let refused = world.fetch("http://10.9.0.2/data.bin").expect_err("closed");
    assert!(refused.contains("connection refused"), "{refused}");
    assert!(world.service.has_ended(world.server.host()));
}

#[test]
fn connections_left_at_shutdown_are_reset() {
    let root = root_with("data.bin", &Pattern::new(0).bytes(20_000_000));
    let (left, right) = ports();
    let spec = "tx:delay=30ms".parse().expect("a description");
    let World {
        mut server,
        mut service,
        mut client,
        ..
    } = World::new(root.path(), Faults::new(left, &spec, 3), right);
    let url = "http://10.9.0.2/data.bin".parse().expect("a URL");
    let mut fetch =
        Fetch::start(url, Vec::new(), 7, client.now(), client.host_mut()).expect("a way");
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
