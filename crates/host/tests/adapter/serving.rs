//! A server on sockets of the adapter: host, adapter, the link between them, and clients, without losses. Responses have a header and a body
//! of 1 KB, like the requests of the batching study.

use baton_bus::link::{MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_host::{FileContent, FileId, NicCacheConfig, Ready, Receive, SocketId, Sockets};
use baton_nic::adapter::{Adapter, AdapterConfig, SessionId, pump};
use baton_tcp::{Config, ConnId, Event, Stack};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use std::net::{IpAddr, Ipv4Addr};

const ADAPTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const REQUEST_BYTES: u32 = 100;
/// Lengths of header and body.
const PARTS: [u32; 2] = [200, 1024];
const RESPONSE_BYTES: u32 = PARTS[0] + PARTS[1];

/// Server, adapter, link and clients.
pub struct Service {
    pub os: OsLayer<Symbolic>,
    link: MemoryHost<Symbolic>,
    adapter: Adapter<Symbolic>,
    session: SessionId,
    adapter_end: MemoryAdapter<Symbolic>,
    stack: Stack<Symbolic>,
    clients: Stack<Symbolic>,
    conns: Vec<ConnId>,
    now: Time,
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
        let (link, adapter_end) = memory_link(MemoryConfig {
            buffers: 256 + 2 * connections as usize,
            ..MemoryConfig::default()
        });
        let config = AdapterConfig {
            addresses: vec![ADAPTER],
            cache_bytes: files * PARTS[1],
            ..AdapterConfig::default()
        };
        let mut adapter = Adapter::new(config).expect("the parameters are valid");
        let session = adapter.attach().expect("the first session");
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
            link,
            adapter,
            session,
            adapter_end,
            stack: Stack::new(Config::default(), 1),
            clients: Stack::new(Config::default(), 2),
            conns: Vec::new(),
            now: Time::ZERO,
            received: 0,
            files,
            next_file: 0,
            asked: vec![0; connections as usize + 8],
        };
        let local = Endpoint::new(ADAPTER, 80);
        let listener = service.os.listen(service.now, local, 4096);
        assert!(listener.is_ok());
        service.turn();
        for index in 0..connections {
            let (local, remote) = (Endpoint::new(CLIENT, 10_000 + index as u16), local);
            let conn = service.clients.connect(service.now, Flow { local, remote });
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
            let written = self.clients.write(conn, data(REQUEST_BYTES));
            assert_eq!(written, Ok(REQUEST_BYTES as usize));
        }
        let until = self.received + self.conns.len() as u64 * u64::from(RESPONSE_BYTES);
        while self.received < until {
            self.turn();
        }
    }

    /// Moves segments to the server, runs both halves, and moves segments back.
    fn turn(&mut self) {
        move_segments(self.now, &mut self.clients, &mut self.stack);
        while self.work() {}
        move_segments(self.now, &mut self.stack, &mut self.clients);
        self.clients_read();
        self.now += Span::from_us(100);
        self.stack.handle_timeouts(self.now);
        self.clients.handle_timeouts(self.now);
    }

    fn work(&mut self) -> bool {
        self.adapter.handle_events(self.now, &mut self.stack);
        let adapter = pump(
            self.now,
            &mut self.adapter,
            &mut self.stack,
            self.session,
            &mut self.adapter_end,
        );
        let host = self.os.pump(self.now, &mut self.link);
        while let Some(ready) = self.os.next_ready() {
            self.serve(ready);
        }
        adapter.expect("the host obeys the protocol")
            | host.expect("the adapter obeys the protocol")
    }

    fn serve(&mut self, ready: Ready) {
        let mut calls = self.os.calls(self.now, &mut self.link);
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
        let mut calls = self.os.calls(self.now, &mut self.link);
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
        while let Some((conn, event)) = self.clients.poll_event() {
            if event == Event::Readable {
                while let Some(data) = self.clients.read(conn, usize::MAX) {
                    self.clients.consume(conn, data.len as usize);
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

/// Moves all segments that one stack has to send to the other.
fn move_segments(now: Time, from: &mut Stack<Symbolic>, to: &mut Stack<Symbolic>) {
    while let Some(outgoing) = from.poll_outgoing(now) {
        to.handle_lent(now, &mut outgoing.to_segment());
    }
}
