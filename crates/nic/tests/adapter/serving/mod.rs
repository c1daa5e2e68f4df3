//! A web server's traffic through an adapter, with an application that costs nothing: its requests are written beforehand, and
//! transfers of data are over at once.

use baton_bus::Descriptor;
use baton_bus::descriptor::{Action, Buffer, Close, Opcode, Outcome, Request, Response, entries};
use baton_bus::link::Dma;
use baton_nic::adapter::{Adapter, AdapterConfig, DmaRequest, SessionId};
use baton_tcp::{Config, ConnId, Event, Segment, Stack};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

const ADAPTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const LISTENER: u32 = 0;
const BUFFER_BYTES: u32 = 4096;
const REQUEST: [u8; 100] = [1; 100];
const MEMORY: [u8; BUFFER_BYTES as usize] = [2; BUFFER_BYTES as usize];
/// Bytes of a response: a header, and a body of 1 KB.
const PARTS: [u32; 2] = [200, 1024];

/// Adapter, application and clients.
pub struct Service {
    adapter: Adapter<Bytes>,
    stack: Stack<Bytes>,
    clients: Stack<Bytes>,
    session: SessionId,
    now: Time,
    /// The clients' ends by connection, and bytes that each still expects.
    expected: Vec<u32>,
    conns: Vec<ConnId>,
    requests: Vec<Descriptor>,
    responses: Vec<Descriptor>,
    segment: Segment<Bytes>,
    /// Responses that clients have received.
    pub served: u64,
}

impl Service {
    /// With so many connections.
    pub fn new(connections: u32) -> Self {
        let config = AdapterConfig {
            addresses: vec![ADAPTER],
            ..AdapterConfig::default()
        };
        let mut adapter = Adapter::new(config).expect("right parameters");
        let session = adapter.attach().expect("it is the first");
        let mut service = Self {
            adapter,
            stack: Stack::new(Config::default(), 1),
            clients: Stack::new(Config::default(), 2),
            session,
            now: Time::ZERO + Span::from_ms(1),
            expected: Vec::new(),
            conns: Vec::new(),
            requests: Vec::new(),
            responses: Vec::new(),
            segment: empty_segment(),
            served: 0,
        };
        let local = Endpoint::new(ADAPTER, 80);
        service.ask(LISTENER, Action::Socket);
        service.ask(LISTENER, Action::Bind(local));
        service.ask(LISTENER, Action::Listen { backlog: 4096 });
        service.accept(1);
        service.turn();
        for index in 0..connections {
            service.open(10_000 + index as u16);
        }
        while service.adapter.stats_of(session).accepted < connections.into() {
            service.turn();
        }
        service
    }

    fn open(&mut self, port: u16) {
        let (local, remote) = (Endpoint::new(CLIENT, port), Endpoint::new(ADAPTER, 80));
        let conn = self.clients.connect(self.now, Flow { local, remote });
        self.conns.push(conn.expect("the port is free"));
        self.turn();
    }

    /// Each client asks once and gets its answer.
    pub fn round(&mut self) {
        for index in 0..self.conns.len() {
            let conn = self.conns[index];
            let written = self.clients.write(conn, Bytes::from_static(&REQUEST));
            assert_eq!(written, Ok(REQUEST.len()));
        }
        let until = self.served + self.conns.len() as u64;
        while self.served < until {
            self.turn();
        }
    }

    /// Segments there, work, segments back.
    fn turn(&mut self) {
        let Self {
            now,
            stack,
            clients,
            segment,
            ..
        } = self;
        move_segments(*now, clients, stack, segment);
        self.adapter_turn();
        let Self {
            now,
            stack,
            clients,
            segment,
            ..
        } = self;
        move_segments(*now, stack, clients, segment);
        self.client_turn();
        self.now += Span::from_us(100);
        self.stack.handle_timeouts(self.now);
        self.clients.handle_timeouts(self.now);
    }

    fn adapter_turn(&mut self) {
        while let Some((conn, event)) = self.stack.poll_event() {
            self.adapter
                .handle_event(self.now, &mut self.stack, conn, &event);
        }
        while self.serve() {}
    }

    /// Everything between adapter and application, once; false when there was nothing.
    fn serve(&mut self) -> bool {
        let Self {
            adapter,
            stack,
            session,
            now,
            requests,
            responses,
            ..
        } = self;
        let mut did = !requests.is_empty();
        let room = adapter.room_for_requests(*session).min(requests.len());
        let handled = adapter.handle_requests(*now, stack, *session, &requests[..room]);
        handled.expect("the application keeps the rules");
        requests.drain(..room);
        while let Some(request) = adapter.poll_dma(*session) {
            did = true;
            let over = match request {
                DmaRequest::Read { id, len, .. } => Dma::Read {
                    id,
                    data: Bytes::from_static(&MEMORY[..len as usize]),
                },
                DmaRequest::Write { id, .. } => Dma::Written { id },
            };
            let handled = adapter.handle_dma(*now, stack, *session, over);
            handled.expect("it was asked for");
        }
        let mut transfer = std::mem::take(responses);
        loop {
            let (due, _) = self.adapter.next_transfer(self.now, self.session);
            transfer.clear();
            transfer.extend_from_slice(due);
            let len = transfer.len();
            if len == 0 {
                break;
            }
            did = true;
            self.adapter.transferred(self.now, self.session, len, len);
            for entry in entries(&transfer) {
                let head = entry.expect("whole entries")[0];
                self.hear(&Response::decode(&head).expect("a response"));
            }
        }
        self.responses = transfer;
        did
    }

    /// The application: a request is answered by a header and a body.
    fn hear(&mut self, response: &Response) {
        match response.outcome {
            Outcome::Accepted(_) => {
                let socket = response.tag;
                self.receive(socket);
                self.accept(socket + 1);
            }
            Outcome::Received(Buffer::Memory { len, .. }) if len > 0 => {
                let socket = response.socket;
                self.receive(socket);
                for (part, len) in PARTS.into_iter().enumerate() {
                    let address = 0x1000;
                    let data = Buffer::Memory { address, len };
                    let more = part == 0;
                    self.ask(socket, Action::send(data, more));
                }
            }
            Outcome::PeerClosed => self.ask(response.socket, Action::Close(Close::Both)),
            Outcome::Sent { .. } | Outcome::Done(_) | Outcome::Received(_) => {}
            other => panic!("{other:?} is not expected"),
        }
        debug_assert_ne!(response.outcome, Outcome::Done(Opcode::Connect));
    }

    fn accept(&mut self, first: u32) {
        let (count, timeout_us) = (1, 0);
        let action = Action::Accept {
            first,
            count,
            timeout_us,
        };
        self.ask_with(LISTENER, first, action);
    }

    fn receive(&mut self, socket: u32) {
        let (address, len) = (0x8000, BUFFER_BYTES);
        self.ask(socket, Action::Receive { address, len });
    }

    fn ask(&mut self, socket: u32, action: Action) {
        self.ask_with(socket, 1, action);
    }

    fn ask_with(&mut self, socket: u32, tag: u32, action: Action) {
        let request = Request {
            socket,
            tag,
            action,
        };
        self.requests.push(request.encode());
    }

    fn client_turn(&mut self) {
        while let Some((conn, event)) = self.clients.poll_event() {
            if event != Event::Readable {
                continue;
            }
            while let Some(piece) = self.clients.read(conn, usize::MAX) {
                self.clients.consume(conn, piece.len());
                self.count(conn, piece.len() as u32);
            }
        }
    }

    fn count(&mut self, conn: ConnId, len: u32) {
        let index = conn.0 as usize;
        let whole = PARTS.iter().sum();
        if index >= self.expected.len() {
            self.expected.resize(index + 1, whole);
        }
        self.expected[index] -= len;
        if self.expected[index] == 0 {
            self.expected[index] = whole;
            self.served += 1;
        }
    }
}

/// Everything that one stack has to send reaches the other.
fn move_segments(
    now: Time,
    from: &mut Stack<Bytes>,
    to: &mut Stack<Bytes>,
    segment: &mut Segment<Bytes>,
) {
    while let Some(outgoing) = from.poll_outgoing(now) {
        *segment = outgoing.to_segment();
        to.handle_lent(now, segment);
    }
}

fn empty_segment() -> Segment<Bytes> {
    let nowhere = Endpoint::new(CLIENT, 0);
    let flow = Flow {
        local: nowhere,
        remote: nowhere,
    };
    let mut stack: Stack<Bytes> = Stack::new(Config::default(), 0);
    stack.connect(Time::ZERO, flow);
    let (_, segment) = stack.poll_transmit(Time::ZERO).expect("a SYN");
    segment
}
