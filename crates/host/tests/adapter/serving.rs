//! A server on sockets of the adapter: host, adapter, the link between them, and clients, without losses. Responses have a header and a body
//! of 1 KB, like the requests of the batching study.

use baton_bus::link::MemoryConfig;
use baton_cluster::world::{ADAPTER, PEER, World};
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_host::{FileContent, FileId, NicCacheConfig, Ready, Receive, SocketId, Sockets};
use baton_nic::adapter::AdapterConfig;
use baton_tcp::{Config, ConnId, Event};
use baton_wire::{Endpoint, Flow, Span, Symbolic};

const REQUEST_BYTES: u32 = 100;
/// Lengths of header and body.
const PARTS: [u32; 2] = [200, 1024];
const RESPONSE_BYTES: u32 = PARTS[0] + PARTS[1];

/// Server, adapter, link and clients.
pub struct Service {
    pub os: OsLayer<Symbolic>,
    world: World,
    conns: Vec<ConnId>,
    /// Bytes of responses that clients have received.
    received: u64,
    /// Number of files from which response bodies are taken in turn; 0 if they are not from files.
    files: u32,
    next_file: u32,
    /// Bytes of requests that the server has received.
    asked: Vec<u32>,
}

fn data(len: u32) -> Symbolic {
    Symbolic {
        source: 1,
        offset: 0,
        len,
    }
}

impl Service {
    /// Creates a service with this many connections.
    pub fn new(connections: u32) -> Self {
        Self::with_cache(connections, 0)
    }

    /// Creates a service whose bodies are from this many files, all of which fit into the adapter's data cache.
    pub fn with_cache(connections: u32, files: u32) -> Self {
        let memory = MemoryConfig {
            buffers: 256 + 2 * connections as usize,
            ..MemoryConfig::default()
        };
        let config = AdapterConfig {
            addresses: vec![ADAPTER],
            cache_bytes: files * PARTS[1],
            ..AdapterConfig::default()
        };
        let world = World::of(config, Config::default(), memory);
        let config = OsLayerConfig {
            nic_cache: NicCacheConfig {
                enabled: files > 0,
                block_bytes: PARTS[1],
                ..NicCacheConfig::default()
            },
            ..OsLayerConfig::default()
        };
        let mut service = Self {
            os: OsLayer::new(config).expect("the parameters are valid"),
            world,
            conns: Vec::new(),
            received: 0,
            files,
            next_file: 0,
            asked: vec![0; connections as usize + 8],
        };
        let local = Endpoint::new(ADAPTER, 80);
        let listener = service.os.listen(service.world.now, local, 4096);
        assert!(listener.is_ok());
        service.turn();
        for index in 0..connections {
            let (local, remote) = (Endpoint::new(PEER, 10_000 + index as u16), local);
            let world = &mut service.world;
            let conn = world.peer.connect(world.now, Flow { local, remote });
            service.conns.push(conn.expect("the port is free"));
            service.turn();
        }
        while service.os.stats().accepted < connections.into() {
            service.turn();
        }
        service
    }

    /// Lets each client send one request and receive the response.
    pub fn round(&mut self) {
        for &conn in &self.conns {
            let written = self.world.peer.write(conn, data(REQUEST_BYTES));
            assert_eq!(written, Ok(REQUEST_BYTES as usize));
        }
        let until = self.received + self.conns.len() as u64 * u64::from(RESPONSE_BYTES);
        while self.received < until {
            self.turn();
        }
    }

    /// Moves segments to the server, runs both halves, and moves segments back.
    fn turn(&mut self) {
        self.world.move_segments();
        while self.work() {}
        self.world.move_segments();
        self.clients_read();
        let World {
            now, stack, peer, ..
        } = &mut self.world;
        *now += Span::from_us(100);
        stack.handle_timeouts(*now);
        peer.handle_timeouts(*now);
    }

    fn work(&mut self) -> bool {
        let World {
            now,
            adapter,
            stack,
            apps,
            ..
        } = &mut self.world;
        adapter.handle_events(*now, stack);
        let adapter = apps[0].pump_adapter(*now, adapter, stack);
        let host = self.os.pump(*now, &mut apps[0].link);
        while let Some(ready) = self.os.next_ready() {
            self.serve(ready);
        }
        adapter.expect("the host obeys the protocol")
            | host.expect("the adapter obeys the protocol")
    }

    fn serve(&mut self, ready: Ready) {
        let mut calls = self.os.calls(self.world.now, &mut self.world.apps[0].link);
        match ready {
            Ready::Acceptable => while calls.accept().is_some() {},
            Ready::Writable(_) => {}
            Ready::Readable(socket) => {
                while let Receive::Data(data) = calls.receive(socket, 8192) {
                    self.asked[socket.0 as usize] += data.len;
                }
                self.answer(socket);
            }
        }
    }

    fn answer(&mut self, socket: SocketId) {
        let asked = &mut self.asked[socket.0 as usize];
        let mut calls = self.os.calls(self.world.now, &mut self.world.apps[0].link);
        while *asked >= REQUEST_BYTES {
            *asked -= REQUEST_BYTES;
            calls.set_cork(socket, true);
            let [head, body] = PARTS;
            assert_eq!(calls.send(socket, data(head)), Ok(head as usize));
            let sent = if self.files > 0 {
                self.next_file = (self.next_file + 1) % self.files;
                let content = FileContent::new(FileId(self.next_file), 0, body.into());
                calls.send_file(socket, content, data(body))
            } else {
                calls.send(socket, data(body))
            };
            assert_eq!(sent, Ok(body as usize));
            calls.set_cork(socket, false);
        }
    }

    fn clients_read(&mut self) {
        let peer = &mut self.world.peer;
        while let Some((conn, event)) = peer.poll_event() {
            if event == Event::Readable {
                while let Some(data) = peer.read(conn, usize::MAX) {
                    peer.consume(conn, data.len as usize);
                    self.received += u64::from(data.len);
                }
            }
        }
    }

    /// Returns the number of responses that clients have received.
    pub fn served(&self) -> u64 {
        self.received / u64::from(RESPONSE_BYTES)
    }
}
