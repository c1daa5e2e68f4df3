//! The clients. Each client keeps one connection at a time, sends the requests of the workload, and checks every received byte. Clients
//! have no cost.

mod arrived;
mod client;
mod measured;
mod open_loop;
mod sections;

pub(super) use arrived::Arrived;
pub(super) use client::client_addr;
pub(super) use sections::Section;

use super::changes::{Change, Changes};
use super::subnets;
use super::violation::Violation;
use crate::EventQueue;
use crate::config::{ApplicationConfig, EstablishedBy, Experiment};
use crate::results::ClientResults;
use crate::run::Load;
use baton_apps::symbolic::ResponseReader;
use baton_host::FileId;
use baton_tcp::{CloseReason, ConnId, Event, Segment, Stack, State};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use baton_workload::{Demand, Throttle, Workload};
use client::{Client, Outstanding, WaitingTo, later, request};
use measured::Measured;
use open_loop::{Connection, Due, OpenLoop};
use std::mem;

/// Number in place of a client for connections without an owner.
const NOBODY: u32 = u32::MAX;

/// All clients on their side of the wires.
pub(super) struct Clients {
    stack: Stack<Symbolic>,
    clients: Vec<Client>,
    /// Client of each connection slot.
    owner_of: Vec<u32>,
    /// One workload per replayer, or fewer, which replayers then share.
    workloads: Load,
    demand: Demand,
    /// Time from an event until the client reacts to it.
    latency: Span,
    throttle: Option<Throttle>,
    /// Time between ticks of a client's clock.
    tick: Span,
    wakeups: EventQueue<u32>,
    /// Connections that were opened and not yet reported: local endpoint, and estimated number of enqueues.
    opened: Vec<(Endpoint, u32)>,
    /// Connections that arrive on their own, in an open loop.
    open: Option<OpenLoop>,
    /// Whether requests are calls of a remote file system instead of HTTP.
    calls: bool,
    /// Whether the server closes each connection after its first response, so that each request has its own connection.
    server_closes: bool,
    /// Whether clients say which request is the last of a script.
    announce_last: bool,
    /// Changes of the requested files.
    changes: Changes,
    pub(super) log: Option<LogFacts>,
    /// Time at which the last client has started.
    pub(super) all_started: Time,
    pub(super) measured: Measured,
}

/// Facts about a workload that has an end and starts again.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogFacts {
    pub(super) requests: u64,
    /// Content bytes of all responses.
    pub(super) bytes: u64,
    /// Number of connections for these requests.
    pub(super) connections: u64,
}

impl LogFacts {
    /// Returns facts about the log that the replayers share, or `None` for a workload without end.
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

impl Clients {
    /// Creates idle clients, with at least one workload for their replayers.
    pub(super) fn new(experiment: &Experiment, mut workloads: Load) -> Self {
        let count = experiment.clients.connections;
        let clients: Vec<Client> = (0..count)
            .map(|number| Client::new(experiment, workloads.len() as u32, number))
            .collect();
        let mut wakeups = EventQueue::new();
        let demand = workloads[0].demand();
        let first = first_connection(experiment.offload.established_by);
        let mut all_started = Time::ZERO;
        let open = match demand {
            Demand::Closed => {
                let interval = Span::from_us(experiment.clients.start_interval_us);
                for number in 0..count {
                    all_started = first + interval * u64::from(number);
                    wakeups.push(all_started, number);
                }
                None
            }
            Demand::PartlyOpen | Demand::Open => {
                let mut idle = vec![Vec::new(); workloads.len()];
                for number in (0..count).rev() {
                    let share = clients[number as usize].replayer;
                    idle[share as usize].push(number);
                }
                Some(OpenLoop::new(&mut workloads, idle, first))
            }
        };
        Self {
            stack: Stack::new(
                experiment.clients.tcp.clone(),
                experiment.run.seed ^ 0xc11e_4755,
            ),
            clients,
            owner_of: Vec::new(),
            demand,
            latency: Span::from_us(experiment.clients.latency_us),
            throttle: workloads[0].throttle(),
            tick: Span::from_us(experiment.clients.tick_us),
            log: LogFacts::of(&workloads, experiment.application.closes()),
            all_started,
            workloads,
            wakeups,
            opened: Vec::new(),
            measured: Measured::new(experiment.nics.count(), open.is_some()),
            open,
            calls: experiment.application == ApplicationConfig::RemoteFiles,
            server_closes: experiment.application.closes(),
            announce_last: experiment.clients.announce_last,
            changes: Changes::default(),
        }
    }

    /// Returns when the next connection of an open loop is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.open.as_ref()?.next_due()
    }

    /// Returns the arrivals of an open loop.
    pub(super) fn arrived(&self) -> Option<&Arrived> {
        self.measured.arrived.as_deref()
    }

    /// Returns the earliest time at which a client acts or one of its timers is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match (self.stack.poll_timeout(), self.wakeups.peek_time()) {
            (Some(timer), Some(wakeup)) => Some(timer.min(wakeup)),
            (timer, wakeup) => timer.or(wakeup),
        }
    }

    /// Records that a file was changed on the server.
    pub(super) fn note(&mut self, change: Change) {
        self.changes.note(change);
    }

    /// Returns the next segment to send.
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Segment<Symbolic>> {
        self.stack.poll_transmit(now).map(|(_, segment)| segment)
    }

    /// Returns a connection that was opened and not yet reported: its local endpoint, and an estimate of the number of enqueues to the
    /// server's send buffer that the responses on this connection take.
    pub(super) fn poll_opened(&mut self) -> Option<(Endpoint, u32)> {
        self.opened.pop()
    }

    pub(super) fn check(&self) {
        self.stack.check();
    }

    /// Handles a received segment.
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
        while let Some(number) = self.wakeups.pop_due(now) {
            match self.clients[number as usize].waiting_to.take() {
                Some(WaitingTo::Proceed) => self.proceed(now, number),
                Some(WaitingTo::Send) => self.send_requests(now, number),
                Some(WaitingTo::Read) => self.read(now, number)?,
                Some(WaitingTo::Connect) => self.connect(now, number),
                Some(WaitingTo::Begin) | None => self.begin(now, number),
            }
        }
        self.handle_events(now)
    }

    /// Opens the connections of an open loop that are due, or lets them wait for a client.
    pub(super) fn open_due(&mut self, now: Time) {
        let take = |this: &mut Self| this.open.as_mut()?.take_due(now, &mut this.workloads);
        while let Some(due) = take(self) {
            match due {
                Due::Open(number, connection) => {
                    self.came(connection.script.len());
                    self.clients[number as usize].start(connection.due);
                    self.clients[number as usize].script = connection.script;
                    self.connect(now, number);
                }
                Due::Waits(requests) => self.came(requests),
                Due::Lost(requests) => {
                    self.came(requests);
                    self.lost((requests as u64, 1));
                    self.measured.opened += 1;
                    self.measured.failed("too_many_waiting");
                }
            }
        }
    }

    fn came(&mut self, requests: usize) {
        if let Some(arrived) = &mut self.measured.arrived {
            arrived.came(requests);
        }
    }

    fn lost(&mut self, (requests, under_way): (u64, u64)) {
        if let Some(arrived) = &mut self.measured.arrived {
            arrived.lost(requests, under_way);
        }
    }

    /// Starts a connection for a client that has none: to continue its script if the server closed the connection, otherwise for the next
    /// script once that is due.
    fn begin(&mut self, now: Time, number: u32) {
        let client = &mut self.clients[number as usize];
        if !client.has_asked_all() {
            client.answered(now, self.demand);
            return self.connect(now, number);
        }
        let share = client.replayer;
        if let Some(open) = &mut self.open {
            let Some(Connection { due, script }) = open.next_for(number, share) else {
                return;
            };
            client.start(due);
            open.recycle(share, mem::replace(&mut client.script, script));
        } else {
            self.workloads[share as usize].next_connection(&mut client.script);
            let due = later(now, client.script[0].wait_ps);
            client.start(due);
            if due > now {
                return self.wait_to(WaitingTo::Connect, due, number);
            }
        }
        self.connect(now, number);
    }

    fn connect(&mut self, now: Time, number: u32) {
        let client = &mut self.clients[number as usize];
        debug_assert!(
            client.conn.is_none(),
            "a client has one connection at a time"
        );
        client.outstanding.clear();
        client.ended = false;
        client.server_closes = self.server_closes;
        let (conn, from) = loop {
            let flow = Flow {
                local: client.next_endpoint(),
                remote: subnets::server(client.nic),
            };
            if let Some(conn) = self.stack.connect(now, flow) {
                break (conn, flow.local);
            }
        };
        self.opened.push((from, client.enqueues_to_come()));
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
                Event::Connected => self.proceed_later(now, number),
                Event::Readable => self.readable(now, number)?,
                Event::Closed(reason) => self.closed(now, number, reason)?,
                Event::PeerClosed if self.stack.state(conn) == State::CloseWait => {
                    self.clients[number as usize].ended = true;
                    self.finish(now, number, conn)?;
                }
                Event::Acceptable(_)
                | Event::Acknowledged(_)
                | Event::PeerClosed
                | Event::Urgent
                | Event::TransmitTimes => {}
            }
        }
        Ok(())
    }

    /// Lets the client react to an event, after its latency.
    fn proceed_later(&mut self, now: Time, number: u32) {
        if self.latency == Span::ZERO {
            return self.proceed(now, number);
        }
        self.wait_to(WaitingTo::Proceed, now + self.latency, number);
    }

    fn wait_to(&mut self, act: WaitingTo, until: Time, number: u32) {
        self.clients[number as usize].waiting_to = Some(act);
        self.wakeups.push(until, number);
    }

    /// Returns when a client that has begun to receive this many bytes at `now` continues: at the last tick of its clock before the limit
    /// of its rate allows. The clients' ticks are spread over the time between two ticks, because processes of a machine that wake up at
    /// the same tick run one after another.
    fn pause_end(&self, now: Time, number: u32) -> impl Fn(&Throttle, u64) -> Time + use<> {
        let tick = self.tick;
        let shift = tick.as_ps() / self.clients.len() as u64 * u64::from(number);
        move |throttle, bytes| {
            let over = now + Span::from_ns(throttle.time_ns(bytes));
            if tick == Span::ZERO {
                return over;
            }
            let since_tick = (over.as_ps() + tick.as_ps() - shift) % tick.as_ps();
            Time::from_ps(over.as_ps().saturating_sub(since_tick)).max(now)
        }
    }

    /// Sends the connection's next request, or waits until it may be sent. Closes the connection if no request is left.
    fn proceed(&mut self, now: Time, number: u32) {
        let client = &mut self.clients[number as usize];
        let Some(conn) = client.conn else { return };
        if client.has_asked_all() {
            return self.stack.close(conn);
        }
        client.due = client.next_due();
        let sent = client.due.max(client.not_before);
        if sent > now {
            self.wait_to(WaitingTo::Send, sent, number);
        } else {
            self.send_requests(now, number);
        }
    }

    /// Sends the next request and the requests pipelined with it.
    fn send_requests(&mut self, now: Time, number: u32) {
        let pause_end = self.pause_end(now, number);
        let client = &mut self.clients[number as usize];
        let Some(conn) = client.conn else { return };
        loop {
            let mut spec = client.script[client.next];
            if let (1.., Some(arrived)) = (client.next, &mut self.measured.arrived) {
                arrived.went_on();
            }
            client.next += 1;
            spec.last |= self.announce_last && client.has_asked_all();
            client.server_closes |= spec.last;
            let (request, upload) = request(&spec, self.calls);
            client.outstanding.push_back(Outstanding {
                due: client.due,
                sent: now,
                first_byte: None,
                file: FileId(spec.file),
                bytes: spec.bytes,
                reader: ResponseReader::new(request),
            });
            if let Some(throttle) = self.throttle {
                client.not_before = match throttle.read_bytes {
                    0 => pause_end(&throttle, spec.bytes),
                    _ => client.not_before.max(now),
                };
            }
            for part in std::iter::once(request).chain(upload) {
                let taken = self.stack.write(conn, part);
                debug_assert!(
                    taken.is_err() || taken == Ok(part.len as usize),
                    "requests fit the send buffer"
                );
            }
            let next = client.script.get(client.next);
            if client.server_closes || !next.is_some_and(|next| next.pipelined) {
                return;
            }
        }
    }

    /// Handles received data. A client that reads in pieces may have to wait before it reads.
    fn readable(&mut self, now: Time, number: u32) -> Result<(), Violation> {
        match self.clients[number as usize].waiting_to {
            Some(WaitingTo::Read) => Ok(()),
            _ => self.read(now, number),
        }
    }

    fn read(&mut self, now: Time, number: u32) -> Result<(), Violation> {
        let client = &mut self.clients[number as usize];
        let Some(conn) = client.conn else {
            return Ok(());
        };
        let paced = self.throttle.filter(|throttle| throttle.read_bytes > 0);
        let most = paced.map_or(usize::MAX, |throttle| throttle.read_bytes as usize);
        let pause_end = self.pause_end(now, number);
        let mut done = false;
        loop {
            let client = &mut self.clients[number as usize];
            if paced.is_some() && client.not_before > now {
                let until = client.not_before;
                if !client.outstanding.is_empty() {
                    self.wait_to(WaitingTo::Read, until, number);
                }
                break;
            }
            let Some(data) = self.stack.read(conn, most) else {
                break;
            };
            self.stack.consume(conn, data.len as usize);
            if let Some(throttle) = paced {
                client.not_before = pause_end(&throttle, data.len.into());
            }
            done |= client.take(now, data, &self.changes, &mut self.measured)?;
        }
        let client = &mut self.clients[number as usize];
        if client.ended {
            return self.finish(now, number, conn);
        }
        if done && !client.server_closes && client.outstanding.is_empty() {
            client.answered(now + self.latency, self.demand);
            self.proceed_later(now, number);
        }
        Ok(())
    }

    /// Once all data of a connection that the server has closed is read, closes it too, and continues without waiting for its end.
    fn finish(&mut self, now: Time, number: u32, conn: ConnId) -> Result<(), Violation> {
        if self.stack.readable_len(conn) > 0 {
            return Ok(());
        }
        self.stack.close(conn);
        self.owner_of[conn.0 as usize] = NOBODY;
        self.closed(now, number, CloseReason::Normal)
    }

    fn closed(&mut self, now: Time, number: u32, reason: CloseReason) -> Result<(), Violation> {
        let client = &mut self.clients[number as usize];
        let all_asked = client.server_closes || client.has_asked_all();
        let finished = client.outstanding.is_empty() && all_asked;
        let lost = client.unanswered();
        client.conn = None;
        match reason {
            CloseReason::Normal if finished => self.measured.connections += 1,
            CloseReason::Normal => return Err(Violation::ShortResponse { client: number }),
            reason => {
                client.next = client.script.len();
                self.measured.failed(reason_name(reason));
                self.lost(lost);
            }
        }
        let client = &mut self.clients[number as usize];
        if client.waiting_to.is_some() {
            // The pending wake-up starts the next connection.
            client.waiting_to = Some(WaitingTo::Begin);
        } else if self.latency == Span::ZERO {
            self.begin(now, number);
        } else {
            self.wait_to(WaitingTo::Begin, now + self.latency, number);
        }
        Ok(())
    }

    /// Resets all measurements.
    pub(super) fn restart_counts(&mut self) {
        self.measured.restart(self.stack.stats());
    }

    /// Returns the content that the clients of one NIC received per second, Mb/s.
    pub(super) fn content_mbps(&self, nic: u8, measured: Span) -> f64 {
        self.measured.content_mbps(nic, measured)
    }

    pub(super) fn results(&self, measured: Span) -> ClientResults {
        self.measured.results(self.stack.stats(), measured)
    }
}

/// Returns when the first client connects: once the host's stack is reachable through its NICs.
fn first_connection(established_by: EstablishedBy) -> Time {
    Time::ZERO
        + match established_by {
            EstablishedBy::Host => Span::from_us(100),
            EstablishedBy::Adapter => Span::ZERO,
        }
}

/// Reasons why connections fail: those of [`reason_name`] except a normal end, and, in an open loop, too many waiting connections.
pub(super) const FAILURES: [&str; 6] = [
    "reset",
    "refused",
    "timed_out",
    "unreachable",
    "aborted",
    "too_many_waiting",
];

/// Returns the name under which the end of a connection is counted.
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
