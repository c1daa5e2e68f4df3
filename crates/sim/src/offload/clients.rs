//! Clients in the manner of httperf: one request on each connection, every byte of the answer checked. They cost nothing.

use super::config::{Experiment, LoadConfig};
use super::measured::Measured;
use crate::EventQueue;
use crate::machine::{Violation, reason_name};
use baton_apps::symbolic::{self, ResponseReader};
use baton_tcp::{CloseReason, ConnId, Event, Segment, Stack, Symbolic};
use baton_wire::{Endpoint, Flow, Span, Time};
use std::net::{IpAddr, Ipv4Addr};

/// Where the server listens.
pub(super) const SERVER: Endpoint = Endpoint {
    addr: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    port: 80,
};
/// The first client address; a new one is used when the ports of one are used up.
const FIRST_CLIENT: u32 = 0x0a01_0001;
/// Ports that clients use, one after the other.
const FIRST_PORT: u16 = 1024;
/// Addresses that clients use, one after the other: so many that no flow is used again while its end is remembered.
const ADDRESSES: u32 = 1 << 16;
/// The one file there is.
const FILE: u32 = 1;

/// A connection, by its slot in the stack.
#[derive(Debug)]
struct Client {
    reader: ResponseReader,
    /// When the first byte of the request was sent.
    sent: Time,
    /// When the first byte of the reply came.
    first_byte: Option<Time>,
}

/// All clients on their side of the wire.
#[derive(Debug)]
pub(super) struct Clients {
    stack: Stack<Symbolic>,
    load: LoadConfig,
    /// By slot.
    clients: Vec<Option<Client>>,
    open: u32,
    /// When connections are opened that do not follow another.
    openings: EventQueue<()>,
    flows: u64,
    pub(super) measured: Measured,
}

impl Clients {
    /// Clients at rest.
    pub(super) fn new(experiment: &Experiment) -> Self {
        let load = experiment.load.clone();
        let mut openings = EventQueue::new();
        let first = if load.rate_per_s == 0 {
            load.connections
        } else {
            1
        };
        let interval = Span::from_us(load.start_interval_us);
        for number in 0..first {
            openings.push(Time::ZERO + interval * u64::from(number), ());
        }
        let secret = experiment.run.seed ^ 0xc11e_4755;
        Self {
            stack: Stack::new(experiment.clients_tcp.clone(), secret),
            load,
            clients: Vec::new(),
            open: 0,
            openings,
            flows: 0,
            measured: Measured::new(),
        }
    }

    /// Earliest moment at which a connection is opened or a timer is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match (self.stack.poll_timeout(), self.openings.peek_time()) {
            (Some(timer), Some(opening)) => Some(timer.min(opening)),
            (timer, opening) => timer.or(opening),
        }
    }

    /// Segments to put on the wire.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Segment<Symbolic>> {
        self.stack.poll_transmit(now).map(|(_, segment)| segment)
    }

    /// A segment arrives.
    pub(super) fn handle_segment(
        &mut self,
        now: Time,
        segment: Segment<Symbolic>,
    ) -> Result<(), Violation> {
        self.stack.handle_segment(now, segment);
        self.handle_events(now)
    }

    /// Runs timers and openings that are due.
    pub(super) fn handle_timeouts(&mut self, now: Time) -> Result<(), Violation> {
        if self.stack.poll_timeout().is_some_and(|due| due <= now) {
            self.stack.handle_timeouts(now);
        }
        while self.openings.peek_time().is_some_and(|due| due <= now) {
            self.openings.pop();
            self.open_another(now);
        }
        self.handle_events(now)
    }

    pub(super) fn check(&self) {
        self.stack.check();
        let open = self.clients.iter().flatten().count();
        assert_eq!(open, self.open as usize);
    }

    /// An opening is due; at a rate the next one is as far from it as all are.
    fn open_another(&mut self, now: Time) {
        if self.load.rate_per_s > 0 {
            let interval = Span::from_secs(1) / u64::from(self.load.rate_per_s);
            self.openings.push(now + interval, ());
            if self.open >= self.load.connections {
                self.measured.fail("no_free_connection");
                return;
            }
        }
        self.connect(now);
    }

    fn connect(&mut self, now: Time) {
        let conn = loop {
            let flow = Flow {
                local: endpoint(self.flows),
                remote: SERVER,
            };
            self.flows += 1;
            if let Some(conn) = self.stack.connect(now, flow) {
                break conn;
            }
        };
        let slot = conn.0 as usize;
        if self.clients.len() <= slot {
            self.clients.resize_with(slot + 1, || None);
        }
        let request = symbolic::request(FILE, self.load.file_bytes.into(), false);
        self.clients[slot] = Some(Client {
            reader: ResponseReader::new(request),
            sent: now,
            first_byte: None,
        });
        self.open += 1;
    }

    fn handle_events(&mut self, now: Time) -> Result<(), Violation> {
        while let Some((conn, event)) = self.stack.poll_event() {
            match event {
                Event::Connected => self.ask(now, conn),
                Event::Readable => self.receive(now, conn)?,
                Event::PeerClosed => self.finish(now, conn)?,
                Event::Closed(reason) => self.closed(now, conn, reason),
                Event::Acceptable(_) | Event::Acknowledged(_) => {}
            }
        }
        Ok(())
    }

    fn ask(&mut self, now: Time, conn: ConnId) {
        let request = symbolic::request(FILE, self.load.file_bytes.into(), false);
        let taken = self.stack.write(conn, request);
        debug_assert_eq!(taken, Ok(request.len as usize), "a request fits the buffer");
        if let Some(client) = &mut self.clients[conn.0 as usize] {
            client.sent = now;
        }
    }

    fn receive(&mut self, now: Time, conn: ConnId) -> Result<(), Violation> {
        while let Some(mut data) = self.stack.read(conn, usize::MAX) {
            self.stack.consume(conn, data.len as usize);
            let Some(client) = &mut self.clients[conn.0 as usize] else {
                return Err(Violation::UnexpectedData { data });
            };
            let first_byte = *client.first_byte.get_or_insert(now);
            let before = client.reader.is_complete();
            client
                .reader
                .take(&mut data)
                .map_err(|expected| Violation::WrongData { data, expected })?;
            if data.len > 0 || before {
                return Err(Violation::UnexpectedData { data });
            }
            if client.reader.is_complete() {
                self.measured
                    .response(first_byte - client.sent, now - first_byte);
            }
        }
        Ok(())
    }

    /// The server has closed: the client does the same, and goes on with the next connection without waiting for the end of this one.
    fn finish(&mut self, now: Time, conn: ConnId) -> Result<(), Violation> {
        let Some(client) = self.clients[conn.0 as usize].take() else {
            return Ok(());
        };
        if !client.reader.is_complete() {
            return Err(Violation::ShortResponse { client: conn.0 });
        }
        self.stack.close(conn);
        self.over(now);
        Ok(())
    }

    /// A connection has ended, in order or not; one that was over for its client before counts no more.
    fn closed(&mut self, now: Time, conn: ConnId, reason: CloseReason) {
        if self.clients[conn.0 as usize].take().is_some() {
            self.measured.fail(reason_name(reason));
            self.over(now);
        }
    }

    fn over(&mut self, now: Time) {
        self.open -= 1;
        if self.load.rate_per_s == 0 {
            self.connect(now);
        }
    }
}

/// The endpoint of the `n`-th connection.
fn endpoint(n: u64) -> Endpoint {
    let ports = u64::from(u16::MAX - FIRST_PORT) + 1;
    let address = FIRST_CLIENT + (n / ports) as u32 % ADDRESSES;
    let port = FIRST_PORT + (n % ports) as u16;
    Endpoint::new(IpAddr::V4(Ipv4Addr::from_bits(address)), port)
}
