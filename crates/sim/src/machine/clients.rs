//! The clients: each keeps one connection at a time, asks for what the workload says, checks every byte it gets, and
//! costs nothing.

use super::changes::{Change, Changes};
use super::delay::Delays;
use super::subnets;
use super::violation::Violation;
use crate::EventQueue;
use crate::config::{ApplicationConfig, EstablishedBy, Experiment};
use crate::results::ClientResults;
use crate::run::Load;
use baton_apps::symbolic::{self, Kind, ResponseReader};
use baton_host::FileId;
use baton_tcp::{CloseReason, ConnId, Event, Segment, Stack};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use baton_workload::{Demand, RequestSpec, Throttle, Workload};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Lowest port a client uses.
const FIRST_PORT: u16 = 1024;
/// In place of a client: nobody goes on with the connection.
const NOBODY: u32 = u32::MAX;

/// A request that was sent, and what of its response has come.
#[derive(Debug)]
struct Outstanding {
    sent: Time,
    /// When the first byte of the response came.
    first_byte: Option<Time>,
    file: FileId,
    /// Content that it asks for, bytes.
    bytes: u64,
    reader: ResponseReader,
}

/// One client. Between connections it has no `conn`.
#[derive(Debug)]
struct Client {
    addr: IpAddr,
    /// The NIC through which it reaches the server.
    nic: u8,
    /// Whose share of the workload it replays.
    replayer: u32,
    port: u16,
    conn: Option<ConnId>,
    script: Vec<RequestSpec>,
    /// The next request of the script to send.
    next: usize,
    outstanding: VecDeque<Outstanding>,
    /// Earliest time of the next request, for throttled loads.
    not_before: Time,
    /// What is to happen when its wake-up comes.
    waiting_to: Option<WaitingTo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitingTo {
    Connect,
    Send,
}

/// All clients on their side of the wires.
pub(super) struct Clients {
    stack: Stack<Symbolic>,
    clients: Vec<Client>,
    /// Client of each connection slot.
    owner_of: Vec<u32>,
    /// One for each replayer, or fewer: then replayers share.
    workloads: Load,
    demand: Demand,
    throttle: Option<Throttle>,
    wakeups: EventQueue<u32>,
    /// Clients without a connection, for open loops.
    idle: Vec<u32>,
    /// Requests are calls of a remote file system, not HTTP.
    calls: bool,
    /// The server ends connections, not the clients: each request has its own.
    server_closes: bool,
    /// What became of the files they ask for.
    changes: Changes,
    pub(super) log: Option<LogFacts>,
    /// When the last of them has begun.
    pub(super) all_started: Time,
    pub(super) measured: Measured,
}

/// A workload that has an end and begins again.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogFacts {
    pub(super) requests: u64,
    /// Content of all responses.
    pub(super) bytes: u64,
    /// Connections that these requests come on.
    pub(super) connections: u64,
}

impl LogFacts {
    /// Of a workload without end there are none. Replayers have parts of the same log; some have a connection for each request.
    fn of(replayers: &[Box<dyn Workload + Send>], is_one_request_each: bool) -> Option<Self> {
        let references = replayers.first()?.references();
        let requests = references.len() as u64;
        let of_log = || {
            replayers
                .iter()
                .map(|part| part.connections_in_pass())
                .sum()
        };
        (requests > 0).then(|| Self {
            requests,
            bytes: references.iter().map(|request| request.bytes).sum(),
            connections: if is_one_request_each {
                requests
            } else {
                of_log()
            },
        })
    }
}

/// What clients measure.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) responses: u64,
    /// Content of complete responses.
    pub(super) served_bytes: u64,
    /// Connections that were begun.
    pub(super) opened: u64,
    /// Of all that came, by NIC.
    content_bytes: Vec<u64>,
    connections: u64,
    failed: BTreeMap<&'static str, u64>,
    response: Delays,
    first_byte: Delays,
    transfer: Delays,
    retransmissions_before: u64,
    timeouts_before: u64,
}

impl Clients {
    /// Clients at rest, with `workloads` for their replayers, at least one.
    pub(super) fn new(experiment: &Experiment, workloads: Load) -> Self {
        let count = experiment.clients.connections;
        let clients = (0..count)
            .map(|number| Client::new(experiment, workloads.len() as u32, number))
            .collect();
        let mut wakeups = EventQueue::new();
        let demand = workloads[0].demand();
        let mut idle = Vec::new();
        let mut all_started = Time::ZERO;
        match demand {
            Demand::Infinite => {
                let interval = Span::from_us(experiment.clients.start_interval_us);
                let first = first_connection(experiment.offload.established_by);
                for number in 0..count {
                    all_started = first + interval * u64::from(number);
                    wakeups.push(all_started, number);
                }
            }
            Demand::Rate { .. } => idle.extend((0..count).rev()),
        }
        Self {
            stack: Stack::new(
                experiment.clients.tcp.clone(),
                experiment.run.seed ^ 0xc11e_4755,
            ),
            clients,
            owner_of: Vec::new(),
            demand,
            throttle: workloads[0].throttle(),
            log: LogFacts::of(&workloads, experiment.application.closes()),
            all_started,
            workloads,
            wakeups,
            idle,
            calls: experiment.application == ApplicationConfig::RemoteFiles,
            server_closes: experiment.application.closes(),
            changes: Changes::default(),
            measured: Measured::new(experiment.nics.count()),
        }
    }

    /// When clients open connections by themselves at a rate: the interval.
    pub(super) fn open_interval(&self) -> Option<Span> {
        self.demand.interval_ps().map(Span::from_ps)
    }

    /// Earliest moment at which a client wants to act or one of its timers is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match (self.stack.poll_timeout(), self.wakeups.peek_time()) {
            (Some(timer), Some(wakeup)) => Some(timer.min(wakeup)),
            (timer, wakeup) => timer.or(wakeup),
        }
    }

    /// A file was changed on the server.
    pub(super) fn note(&mut self, change: Change) {
        self.changes.note(change);
    }

    /// Segments to put on the wire.
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Segment<Symbolic>> {
        self.stack.poll_transmit(now).map(|(_, segment)| segment)
    }

    pub(super) fn check(&self) {
        self.stack.check();
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

    /// Runs timers and wake-ups that are due.
    pub(super) fn handle_timeouts(&mut self, now: Time) -> Result<(), Violation> {
        if self.stack.poll_timeout().is_some_and(|due| due <= now) {
            self.stack.handle_timeouts(now);
        }
        while self.wakeups.peek_time().is_some_and(|due| due <= now) {
            let (_, number) = self.wakeups.pop().expect("a wake-up was seen");
            match self.clients[number as usize].waiting_to.take() {
                Some(WaitingTo::Send) => self.send_requests(now, number),
                Some(WaitingTo::Connect) | None => self.connect(now, number),
            }
        }
        self.handle_events(now)
    }

    /// An open loop's next connection is due; an idle client takes it, if there is one.
    pub(super) fn open_one(&mut self, now: Time) {
        match self.idle.pop() {
            Some(number) => self.connect(now, number),
            None => *self.measured.failed.entry("no_idle_client").or_default() += 1,
        }
    }

    fn connect(&mut self, now: Time, number: u32) {
        let client = &mut self.clients[number as usize];
        debug_assert!(
            client.conn.is_none(),
            "a client has one connection at a time"
        );
        client.start(&mut *self.workloads[client.replayer as usize]);
        let conn = loop {
            let flow = Flow {
                local: client.next_endpoint(),
                remote: subnets::server(client.nic),
            };
            if let Some(conn) = self.stack.connect(now, flow) {
                break conn;
            }
        };
        client.conn = Some(conn);
        self.measured.opened += 1;
        let slot = conn.0 as usize;
        if self.owner_of.len() <= slot {
            self.owner_of.resize(slot + 1, NOBODY);
        }
        self.owner_of[slot] = number;
    }

    fn handle_events(&mut self, now: Time) -> Result<(), Violation> {
        while let Some((conn, event)) = self.stack.poll_event() {
            let number = self.owner_of[conn.0 as usize];
            if number == NOBODY {
                continue;
            }
            match event {
                Event::Connected => self.proceed(now, number),
                Event::Readable => self.receive(now, number, conn)?,
                Event::Closed(reason) => self.closed(now, number, reason)?,
                Event::PeerClosed if self.server_closes => self.finish(now, number, conn)?,
                Event::PeerClosed => self.stack.close(conn),
                Event::Acceptable(_) | Event::Acknowledged(_) => {}
            }
        }
        Ok(())
    }

    /// The connection is ready for its next request: sends it, or waits until it may be sent, or closes.
    fn proceed(&mut self, now: Time, number: u32) {
        let client = &mut self.clients[number as usize];
        let Some(conn) = client.conn else { return };
        let Some(&next) = client.script.get(client.next) else {
            if !self.server_closes {
                self.stack.close(conn);
            }
            return;
        };
        let due = client
            .not_before
            .max(now + Span::from_us(u64::from(next.think_us)));
        if due > now {
            client.waiting_to = Some(WaitingTo::Send);
            self.wakeups.push(due, number);
        } else {
            self.send_requests(now, number);
        }
    }

    /// Sends the next request and those pipelined with it.
    fn send_requests(&mut self, now: Time, number: u32) {
        let client = &mut self.clients[number as usize];
        let Some(conn) = client.conn else { return };
        loop {
            let spec = client.script[client.next];
            client.next += 1;
            let (request, upload) = request(&spec, self.calls);
            client.outstanding.push_back(Outstanding {
                sent: now,
                first_byte: None,
                file: FileId(spec.file),
                bytes: spec.bytes,
                reader: ResponseReader::new(request),
            });
            if let Some(throttle) = self.throttle {
                client.not_before = now + Span::from_ns(throttle.request_spacing_ns(spec.bytes));
            }
            for part in std::iter::once(request).chain(upload) {
                let taken = self.stack.write(conn, part);
                debug_assert!(
                    taken.is_err() || taken == Ok(part.len as usize),
                    "requests fit the send buffer"
                );
            }
            let next = client.script.get(client.next);
            if self.server_closes || !next.is_some_and(|next| next.pipelined) {
                return;
            }
        }
    }

    fn receive(&mut self, now: Time, number: u32, conn: ConnId) -> Result<(), Violation> {
        let mut done = false;
        while let Some(data) = self.stack.read(conn, usize::MAX) {
            self.stack.consume(conn, data.len as usize);
            let client = &mut self.clients[number as usize];
            done |= client.take(now, data, &self.changes, &mut self.measured)?;
        }
        if done && !self.server_closes && self.clients[number as usize].outstanding.is_empty() {
            self.proceed(now, number);
        }
        Ok(())
    }

    /// The server has closed: the client does the same, and goes on without waiting for the end of this connection.
    fn finish(&mut self, now: Time, number: u32, conn: ConnId) -> Result<(), Violation> {
        self.stack.close(conn);
        self.owner_of[conn.0 as usize] = NOBODY;
        self.closed(now, number, CloseReason::Normal)
    }

    fn closed(&mut self, now: Time, number: u32, reason: CloseReason) -> Result<(), Violation> {
        let client = &mut self.clients[number as usize];
        let all_asked = self.server_closes || client.next == client.script.len();
        let finished = client.outstanding.is_empty() && all_asked;
        match reason {
            CloseReason::Normal if finished => self.measured.connections += 1,
            CloseReason::Normal => return Err(Violation::ShortResponse { client: number }),
            reason => {
                *self.measured.failed.entry(reason_name(reason)).or_default() += 1;
                client.next = client.script.len();
            }
        }
        client.conn = None;
        if client.waiting_to.is_some() {
            // The pending wake-up opens the next connection.
            client.waiting_to = Some(WaitingTo::Connect);
            return Ok(());
        }
        match self.demand {
            Demand::Infinite => self.connect(now, number),
            Demand::Rate { .. } => self.idle.push(number),
        }
        Ok(())
    }

    /// Forgets what was measured so far.
    pub(super) fn restart_counts(&mut self) {
        self.measured = Measured::new(self.measured.content_bytes.len() as u32);
        self.measured.retransmissions_before = self.stack.stats().retransmissions;
        self.measured.timeouts_before = self.stack.stats().timeouts;
    }

    /// Content that the clients of one NIC received per second, Mb/s.
    pub(super) fn content_mbps(&self, nic: u8, measured: Span) -> f64 {
        let seconds = measured.as_secs_f64().max(f64::MIN_POSITIVE);
        self.measured.content_bytes[nic as usize] as f64 * 8e-6 / seconds
    }

    pub(super) fn results(&self, measured: Span) -> ClientResults {
        let seconds = measured.as_secs_f64().max(f64::MIN_POSITIVE);
        let this = &self.measured;
        ClientResults {
            responses: this.responses,
            request_rate: this.responses as f64 / seconds,
            content_mbps: this.content_bytes() as f64 * 8e-6 / seconds,
            connections: this.connections,
            failed: this
                .failed
                .iter()
                .map(|(name, &count)| ((*name).to_owned(), count))
                .collect(),
            response_ms: this.response.distribution(1e6),
            first_byte_ms: this.first_byte.distribution(1e6),
            transfer_ms: this.transfer.distribution(1e6),
            retransmissions: self.stack.stats().retransmissions - this.retransmissions_before,
            timeouts: self.stack.stats().timeouts - this.timeouts_before,
        }
    }
}

impl Client {
    fn new(experiment: &Experiment, replayers: u32, number: u32) -> Self {
        let nic = nic_of_client(experiment, number);
        Self {
            addr: subnets::client(nic, number),
            nic,
            replayer: number % experiment.clients.replayers % replayers,
            port: FIRST_PORT,
            conn: None,
            script: Vec::new(),
            next: 0,
            outstanding: VecDeque::new(),
            not_before: Time::ZERO,
            waiting_to: None,
        }
    }

    /// Goes on with its script where the server has ended the connection, or begins the next.
    fn start(&mut self, workload: &mut dyn Workload) {
        if self.next == self.script.len() {
            workload.next_connection(&mut self.script);
            self.next = 0;
        }
        self.outstanding.clear();
    }

    fn next_endpoint(&mut self) -> Endpoint {
        self.port = if self.port == u16::MAX {
            FIRST_PORT
        } else {
            self.port + 1
        };
        Endpoint::new(self.addr, self.port)
    }

    /// Takes received data into the outstanding responses; true when one was completed.
    fn take(
        &mut self,
        now: Time,
        mut data: Symbolic,
        changes: &Changes,
        measured: &mut Measured,
    ) -> Result<bool, Violation> {
        let mut completed = false;
        while data.len > 0 {
            let Some(first) = self.outstanding.front_mut() else {
                return Err(Violation::UnexpectedData { data });
            };
            let before = data;
            let first_byte = *first.first_byte.get_or_insert(now);
            first
                .reader
                .take(&mut data)
                .map_err(|expected| Violation::WrongData { data, expected })?;
            if matches!(symbolic::kind(&before), Kind::File | Kind::Dynamic) {
                measured.content_bytes[self.nic as usize] += u64::from(before.len - data.len);
            }
            if first.reader.is_complete() {
                let response = self.outstanding.pop_front().expect("it was just read");
                if let Some(revisions) = response.reader.revisions() {
                    changes.check(response.file, revisions, response.sent)?;
                }
                measured.responses += 1;
                measured.served_bytes += response.bytes;
                measured.response.record(now - response.sent);
                measured.first_byte.record(first_byte - response.sent);
                measured.transfer.record(now - first_byte);
                completed = true;
            }
        }
        Ok(completed)
    }
}

impl Measured {
    /// Connections that ended, however.
    pub(super) fn ended(&self) -> u64 {
        self.connections + self.failed.values().sum::<u64>()
    }

    /// Content of complete responses and others.
    pub(super) fn content_bytes(&self) -> u64 {
        self.content_bytes.iter().sum()
    }

    fn new(nics: u32) -> Self {
        Self {
            responses: 0,
            served_bytes: 0,
            opened: 0,
            content_bytes: vec![0; nics as usize],
            connections: 0,
            failed: BTreeMap::new(),
            response: Delays::new(),
            first_byte: Delays::new(),
            transfer: Delays::new(),
            retransmissions_before: 0,
            timeouts_before: 0,
        }
    }
}

/// A request, and what is uploaded with it.
fn request(spec: &RequestSpec, calls: bool) -> (Symbolic, Option<Symbolic>) {
    if !calls {
        return (symbolic::request(spec.file, spec.bytes, spec.dynamic), None);
    }
    if !spec.write {
        return (symbolic::read_call(spec.file, spec.bytes), None);
    }
    let [call, data] = symbolic::write_call(spec.file, spec.bytes);
    (call, Some(data))
}

/// When the first client connects: once the host's stack can be reached through its NICs.
fn first_connection(established_by: EstablishedBy) -> Time {
    Time::ZERO
        + match established_by {
            EstablishedBy::Host => Span::from_us(100),
            EstablishedBy::Adapter => Span::ZERO,
        }
}

/// The NIC through which the client of this number reaches the server.
fn nic_of_client(experiment: &Experiment, number: u32) -> u8 {
    (number % experiment.nics.count()) as u8
}

/// The address of the client of this number.
pub(super) fn client_addr(experiment: &Experiment, number: u32) -> IpAddr {
    subnets::client(nic_of_client(experiment, number), number)
}

/// Why a connection ended, for counting.
fn reason_name(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Normal => "normal",
        CloseReason::Reset => "reset",
        CloseReason::Refused => "refused",
        CloseReason::TimedOut => "timed_out",
        CloseReason::Unreachable(_) => "unreachable",
        CloseReason::Aborted => "aborted",
    }
}
