//! The web server, unchanged, on sockets of the adapter.

use super::machine::{Machine, PORT, endpoint};
use super::{Application, Summary, run};
use baton_apps::symbolic::{ResponseReader, SymbolicHttp, request};
use baton_apps::web::{Config, Program, Server};
use baton_host::Ready;
use baton_tcp::{CloseReason, ConnId, Event};
use baton_testkit::for_each_seed;
use baton_wire::{Flow, Symbolic};
use std::collections::VecDeque;
use std::fmt::{Debug, Formatter, Result};

/// A client. It sends its requests one after the other or all at once, and checks the responses.
#[derive(Debug)]
struct Client {
    port: u16,
    conn: Option<ConnId>,
    unsent: VecDeque<Symbolic>,
    waiting: VecDeque<ResponseReader>,
    pipelines: bool,
    excused: bool,
    outcome: Option<CloseReason>,
}

struct Web {
    server: Server<Symbolic, SymbolicHttp>,
    clients: Vec<Client>,
    next_port: u16,
    left: u64,
}

impl Debug for Web {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Web")
            .field("clients", &self.clients)
            .field("server", self.server.stats())
            .finish_non_exhaustive()
    }
}

impl Web {
    fn new(machine: &mut Machine) -> Self {
        let config = Config {
            cork: machine.random.percent(70),
            ..Config::default()
        };
        Self {
            server: Server::with_config(config, SymbolicHttp),
            clients: Vec::new(),
            next_port: 1000,
            left: 1 + machine.random.below(8),
        }
    }

    fn open(&mut self, machine: &mut Machine) {
        self.left -= 1;
        let number = self.clients.len();
        self.clients.push(Client {
            port: 0,
            conn: None,
            unsent: VecDeque::new(),
            waiting: VecDeque::new(),
            pipelines: machine.random.percent(30),
            excused: false,
            outcome: None,
        });
        self.connect(machine, number);
    }

    fn connect(&mut self, machine: &mut Machine, number: usize) {
        let flow = Flow {
            local: endpoint(2, self.next_port),
            remote: endpoint(1, PORT),
        };
        let random = &mut machine.random;
        let requests = (0..1 + random.below(4)).map(|_| {
            let len = [0, 700, 1024, 9_000, 60_000][random.below(5) as usize];
            request(
                random.below(50) as u32,
                len,
                random.percent(30).then_some(Program::Answer),
            )
        });
        let client = &mut self.clients[number];
        client.unsent = requests.collect();
        client.waiting.clear();
        client.port = self.next_port;
        client.conn = machine.peers.connect(machine.now, flow);
        self.next_port += 1;
    }
}

impl Client {
    /// Sends the next request, if it is due.
    fn ask(&mut self, machine: &mut Machine) -> bool {
        let Some(conn) = self.conn else { return false };
        if !self.waiting.is_empty() && !self.pipelines {
            return false;
        }
        let Some(&request) = self.unsent.front() else {
            return false;
        };
        if machine.peers.send_space(conn) < request.len as usize {
            return false;
        }
        let taken = machine.peers.write(conn, request);
        if taken.is_ok() {
            self.unsent.pop_front();
            self.waiting.push_back(ResponseReader::new(request));
        }
        taken.is_ok()
    }

    fn read(&mut self, machine: &mut Machine, conn: ConnId) {
        while let Some(mut data) = machine.peers.read(conn, 1 << 20) {
            machine.peers.consume(conn, data.len as usize);
            while data.len > 0 {
                let reader = self
                    .waiting
                    .front_mut()
                    .expect("the data belongs to a response");
                assert_eq!(reader.take(&mut data), Ok(()));
                if reader.is_complete() {
                    self.waiting.pop_front();
                }
            }
        }
    }
}

impl Application for Web {
    fn start(&mut self, machine: &mut Machine) {
        machine.listen();
        self.open(machine);
    }

    fn handle_ready(&mut self, machine: &mut Machine, ready: Ready) {
        let error = machine.os.error_of(machine.listeners[0]);
        assert_eq!(error, None, "the listener works");
        let mut calls = machine.os.calls(machine.now, &mut machine.host);
        self.server.step(&mut calls, ready);
    }

    fn handle_peer_event(&mut self, machine: &mut Machine, conn: ConnId, event: Event) {
        let Some(number) = self
            .clients
            .iter()
            .position(|client| client.conn == Some(conn))
        else {
            return;
        };
        let client = &mut self.clients[number];
        match event {
            Event::Readable => client.read(machine, conn),
            Event::PeerClosed => assert!(client.excused, "the client closes first"),
            Event::Closed(reason) => {
                client.conn = None;
                if reason == CloseReason::Refused {
                    return self.connect(machine, number);
                }
                client.outcome = Some(reason);
                if !client.excused {
                    assert_eq!(reason, CloseReason::Normal, "{client:#?}");
                    assert!(client.waiting.is_empty() && client.unsent.is_empty());
                }
                return;
            }
            _ => {}
        }
        if client.excused || client.waiting.is_empty() && client.unsent.is_empty() {
            machine.peers.close(conn);
        }
    }

    fn act(&mut self, machine: &mut Machine) -> bool {
        if self.left > 0 && machine.random.percent(10) {
            self.open(machine);
        }
        let number = machine.random.below(self.clients.len() as u64) as usize;
        let client = &mut self.clients[number];
        if client.excused
            && machine.random.percent(5)
            && let Some(conn) = client.conn
        {
            machine.peers.abort(conn);
        }
        client.ask(machine)
    }

    fn handle_loss(&mut self, _machine: &mut Machine) {
        for client in &mut self.clients {
            client.excused |= client.outcome.is_none();
        }
        self.left += 2;
    }

    fn is_done(&self, _machine: &Machine) -> bool {
        let over = self.clients.iter().all(|client| client.outcome.is_some());
        self.left == 0 && over && self.server.connections() == 0
    }
}

fn serve(seed: u64) -> Summary {
    let mut machine = Machine::new(seed);
    let mut application = Web::new(&mut machine);
    run(machine, &mut application)
}

#[test]
fn the_web_server_answers_under_all_settings() {
    let runs = for_each_seed(400, serve);
    let accepted: u64 = runs.iter().map(|run| run.host.accepted).sum();
    assert!(accepted >= runs.len() as u64);
}
