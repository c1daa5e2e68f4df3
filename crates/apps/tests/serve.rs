//! The web server over a real kernel and a real NIC: every client gets exactly what it asked for, whoever processes its
//! connection, and all of it is given back in the end.

use baton_apps::symbolic::{self, ResponseReader, SymbolicHttp};
use baton_apps::web::Server;
use baton_host::{Config, Connections, Kernel, NicId, NoMeter, SelectionConfig};
use baton_nic::Firmware;
use baton_tcp::{CloseReason, ConnId, Event, Stack};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// A client: asks for one file after the other, so many at a time, then closes.
struct Client {
    conn: ConnId,
    script: VecDeque<Symbolic>,
    pipeline: usize,
    outstanding: VecDeque<ResponseReader>,
    outcome: Option<CloseReason>,
}

struct World {
    now: Time,
    kernel: Kernel<Symbolic>,
    firmware: Firmware<Symbolic>,
    server: Server<Symbolic, SymbolicHttp>,
    stack: Stack<Symbolic>,
    clients: Vec<Client>,
}

fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

impl World {
    fn new(selection: SelectionConfig, nic_connections: u32, pipeline: usize) -> Self {
        let tcp = baton_tcp::Config {
            send_buffer: 32 * 1024,
            ..baton_tcp::Config::default()
        };
        let config = Config {
            selection,
            ..Config::default()
        };
        let mut kernel = Kernel::new(config, tcp.clone(), 1);
        kernel.listen(endpoint(1, 80));
        kernel.attach_nic(endpoint(1, 80).addr, nic_connections);
        let nic = baton_nic::Config {
            hard_limit: nic_connections,
            ..Default::default()
        };
        let mut stack = Stack::new(tcp.clone(), 2);
        let clients = (0..20)
            .map(|n| Client::new(&mut stack, n, pipeline))
            .collect();
        let firmware = Firmware::new(nic, tcp, 3);
        let server = Server::new(SymbolicHttp);
        Self {
            now: Time::ZERO,
            kernel,
            firmware,
            server,
            stack,
            clients,
        }
    }

    fn run(&mut self) {
        for _ in 0..100_000 {
            if self.clients.iter().all(|client| client.outcome.is_some()) && !self.server_side() {
                return;
            }
            self.server_side();
            self.client_side();
            self.now += Span::from_us(20);
            let timers = [
                self.kernel.poll_timeout(),
                self.firmware.poll_timeout(),
                self.stack.poll_timeout(),
            ];
            let [kernel, firmware, clients] =
                timers.map(|due| due.is_some_and(|due| due <= self.now));
            if kernel {
                self.kernel.handle_timeouts(self.now, &mut NoMeter);
            }
            if firmware {
                self.firmware.handle_timeouts(self.now);
            }
            if clients {
                self.stack.handle_timeouts(self.now);
            }
        }
        panic!("the clients are not served");
    }

    /// Kernel, server and NIC do all there is to do.
    fn server_side(&mut self) -> bool {
        let mut ready = Vec::new();
        let mut any = false;
        loop {
            let mut idle = true;
            while let Some((_, descriptor)) = self.kernel.poll_descriptor() {
                idle = false;
                assert!(
                    self.firmware
                        .handle_descriptor(self.now, descriptor)
                        .is_ok()
                );
            }
            while self
                .firmware
                .poll_work(self.now, &mut baton_nic::NoMeter)
                .is_some()
            {
                idle = false;
                while let Some(frame) = self.firmware.poll_frame() {
                    self.stack.handle_segment(self.now, frame.segment);
                }
                while let Some(upcall) = self.firmware.poll_upcall() {
                    self.kernel
                        .handle_upcall(self.now, NicId(0), upcall.item, &mut NoMeter);
                }
            }
            if self.kernel.has_ready() {
                idle = false;
                self.kernel.wait(&mut NoMeter, &mut ready, 8);
                for event in ready.drain(..) {
                    self.server
                        .step(&mut self.kernel.sockets(self.now, &mut NoMeter), event);
                }
            }
            if idle {
                self.kernel.check();
                self.firmware.check();
                return any;
            }
            any = true;
        }
    }

    fn client_side(&mut self) {
        while let Some((conn, event)) = self.stack.poll_event() {
            let client = self
                .clients
                .iter_mut()
                .find(|client| client.conn == conn && client.outcome.is_none());
            client.expect("a client's").handle(&mut self.stack, event);
        }
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            assert!(self.firmware.handle_frame(self.now, segment).is_ok());
        }
    }
}

impl Client {
    fn new(stack: &mut Stack<Symbolic>, number: u32, pipeline: usize) -> Self {
        let flow = Flow {
            local: endpoint(2, 1000 + number as u16),
            remote: endpoint(1, 80),
        };
        let conn = stack.connect(Time::ZERO, flow).expect("a new four-tuple");
        let request = |i: u32| {
            let len = u64::from(number * 977 + i * 7919) % 70_000;
            symbolic::request(number + i, if i == 3 { 0 } else { len }, i % 4 == 1)
        };
        let script = (0..1 + number % 12).map(request).collect();
        Self {
            conn,
            script,
            pipeline,
            outstanding: VecDeque::new(),
            outcome: None,
        }
    }

    fn handle(&mut self, stack: &mut Stack<Symbolic>, event: Event) {
        match event {
            Event::Connected => self.ask(stack),
            Event::Readable => {
                while let Some(mut data) = stack.read(self.conn, usize::MAX) {
                    stack.consume(self.conn, data.len as usize);
                    self.outstanding
                        .front_mut()
                        .expect("asked for")
                        .take(&mut data)
                        .expect("the next bytes");
                    assert_eq!(data.len, 0);
                    while self
                        .outstanding
                        .front()
                        .is_some_and(ResponseReader::is_complete)
                    {
                        self.outstanding.pop_front();
                    }
                }
                if self.outstanding.is_empty() {
                    self.ask(stack);
                }
            }
            Event::Closed(reason) => self.outcome = Some(reason),
            Event::PeerClosed => assert!(self.script.is_empty() && self.outstanding.is_empty()),
            Event::Acknowledged(_) | Event::Acceptable(_) => {}
        }
    }

    fn ask(&mut self, stack: &mut Stack<Symbolic>) {
        if self.script.is_empty() {
            return stack.close(self.conn);
        }
        let count = self.pipeline.min(self.script.len());
        for request in self.script.drain(..count) {
            assert_eq!(stack.write(self.conn, request), Ok(request.len as usize));
            self.outstanding.push_back(ResponseReader::new(request));
        }
    }
}

fn serve(selection: SelectionConfig, nic_connections: u32, pipeline: usize) -> World {
    let mut world = World::new(selection, nic_connections, pipeline);
    world.run();
    assert!(
        world
            .clients
            .iter()
            .all(|client| client.outcome == Some(CloseReason::Normal))
    );
    let requests: u64 = (0..20).map(|n| 1 + n % 12).sum();
    assert_eq!(world.server.stats().responses, requests);
    assert_eq!(
        (world.server.connections(), world.server.stats().closed),
        (0, 20)
    );
    assert_eq!(world.kernel.connections(), Connections::default());
    world
}

#[test]
fn without_offload() {
    for pipeline in [1, 5] {
        let world = serve(SelectionConfig::Fcfs, 0, pipeline);
        assert_eq!(
            world.kernel.stats().handoffs_attempted,
            0,
            "the NIC is known to take none"
        );
    }
}

#[test]
fn with_some_connections_on_the_nic() {
    for pipeline in [1, 5] {
        let world = serve(SelectionConfig::Fcfs, 7, pipeline);
        assert!((7..20).contains(&world.kernel.stats().handoffs_accepted));
    }
}

#[test]
fn with_all_connections_on_the_nic() {
    for pipeline in [1, 5] {
        let world = serve(SelectionConfig::Fcfs, 100, pipeline);
        assert_eq!(world.kernel.stats().handoffs_accepted, 20);
        assert_eq!(world.firmware.connections(), 0);
    }
}

#[test]
fn with_connections_handed_off_while_they_send() {
    let world = serve(SelectionConfig::Threshold { enqueues: 4 }, 100, 1);
    assert!((10..20).contains(&world.kernel.stats().handoffs_accepted));
}
