//! One client: its connection, its script, and the state of its responses.

use super::super::changes::Changes;
use super::super::subnets;
use super::super::violation::Violation;
use super::measured::{Answered, Measured};
use crate::config::Experiment;
use baton_apps::symbolic::{self, Kind, ResponseReader};
use baton_apps::web::Program;
use baton_host::FileId;
use baton_kernel::footprint::PAGE_BYTES;
use baton_tcp::ConnId;
use baton_wire::{Endpoint, Symbolic, Time};
use baton_workload::{Content, Demand, RequestSpec};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Lowest port a client uses.
const FIRST_PORT: u16 = 1024;

/// A request that was sent, and the state of its response.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) due: Time,
    pub(super) sent: Time,
    /// Arrival of the first byte of the response.
    pub(super) first_byte: Option<Time>,
    pub(super) file: FileId,
    /// Number of content bytes requested.
    pub(super) bytes: u64,
    pub(super) reader: ResponseReader,
}

/// One client. Between connections `conn` is `None`.
#[derive(Debug)]
pub(super) struct Client {
    addr: IpAddr,
    /// The NIC through which the client reaches the server.
    pub(super) nic: u8,
    /// The replayer whose share of the workload the client replays.
    pub(super) replayer: u32,
    port: u16,
    pub(super) conn: Option<ConnId>,
    /// Whether the server has closed the connection. There may still be data to read.
    pub(super) ended: bool,
    /// Whether the server closes the connection after the response to the last request sent.
    pub(super) server_closes: bool,
    pub(super) script: Vec<RequestSpec>,
    /// The next request of the script to send.
    pub(super) next: usize,
    pub(super) outstanding: VecDeque<Outstanding>,
    /// Start of the wait before the next request; for the first request of a script, the time at which it is due.
    pub(super) after: Time,
    /// Time at which the next request is due; for pipelined requests, the time at which they were due.
    pub(super) due: Time,
    /// Earliest time of the next request, or of the next read, for throttled loads.
    pub(super) not_before: Time,
    /// Action of the pending wake-up.
    pub(super) waiting_to: Option<WaitingTo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingTo {
    /// Continue with the connection after an event.
    Proceed,
    /// Begin another connection, or continue the script on a new connection.
    Begin,
    Connect,
    Send,
    Read,
}

impl Client {
    pub(super) fn new(experiment: &Experiment, replayers: u32, number: u32) -> Self {
        let nic = nic_of_client(experiment, number);
        Self {
            addr: subnets::client(nic, number),
            nic,
            replayer: number % experiment.clients.replayers % replayers,
            port: FIRST_PORT,
            conn: None,
            ended: false,
            server_closes: false,
            script: Vec::new(),
            next: 0,
            outstanding: VecDeque::new(),
            after: Time::ZERO,
            due: Time::ZERO,
            not_before: Time::ZERO,
            waiting_to: None,
        }
    }

    /// Returns whether all requests of the script were sent.
    pub(super) fn has_asked_all(&self) -> bool {
        self.next == self.script.len()
    }

    /// Estimates the number of enqueues to the server's send buffer that the rest of the script takes: a header and the pages of each
    /// response.
    pub(super) fn enqueues_to_come(&self) -> u32 {
        let page = u64::from(PAGE_BYTES);
        let left = self.script[self.next..].iter();
        let enqueues = left.map(|spec| 1 + spec.bytes.div_ceil(page)).sum::<u64>();
        u32::try_from(enqueues).unwrap_or(u32::MAX)
    }

    /// Starts a script whose first request is due at `due`.
    pub(super) fn start(&mut self, due: Time) {
        self.next = 0;
        self.after = due;
    }

    /// Returns when the next request is due. There must be one.
    pub(super) fn next_due(&self) -> Time {
        match self.next {
            0 => self.after,
            next => later(self.after, self.script[next].wait_ps),
        }
    }

    /// Notes that all responses to requests sent so far have arrived.
    pub(super) fn answered(&mut self, now: Time, demand: Demand) {
        self.after = match demand {
            Demand::Open => self.due,
            Demand::Closed | Demand::PartlyOpen => now,
        };
    }

    /// Returns the number of unanswered requests, and how many of them are in progress.
    pub(super) fn unanswered(&self) -> (u64, u64) {
        let sent = self.outstanding.len();
        let first = usize::from(self.next == 0 && !self.script.is_empty());
        let all = sent + self.script.len() - self.next;
        (all as u64, (sent + first) as u64)
    }

    pub(super) fn next_endpoint(&mut self) -> Endpoint {
        self.port = if self.port == u16::MAX {
            FIRST_PORT
        } else {
            self.port + 1
        };
        Endpoint::new(self.addr, self.port)
    }

    /// Adds received data to the outstanding responses. Returns true if a response was completed.
    pub(super) fn take(
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
                measured.received(self.nic, u64::from(before.len - data.len));
            }
            if first.reader.is_complete() {
                let response = self
                    .outstanding
                    .pop_front()
                    .expect("the value was just read");
                if let Some(revisions) = response.reader.revisions() {
                    changes.check(response.file, revisions, response.sent)?;
                }
                measured.answered(&Answered {
                    due: response.due,
                    sent: response.sent,
                    first_byte,
                    done: now,
                    bytes: response.bytes,
                });
                completed = true;
            }
        }
        Ok(completed)
    }
}

/// Returns the time `wait_ps` picoseconds after `time`, or never.
pub(super) fn later(time: Time, wait_ps: u64) -> Time {
    Time::from_ps(time.as_ps().saturating_add(wait_ps))
}

/// Returns a request, and the data uploaded with it.
pub(super) fn request(spec: &RequestSpec, calls: bool) -> (Symbolic, Option<Symbolic>) {
    if !calls {
        let program = match spec.content {
            Content::Static => None,
            Content::Produced => Some(Program::Answer),
            Content::Get => Some(Program::Page),
            Content::CgiGet => Some(Program::Cgi),
            Content::AdRotation => Some(Program::Advertisement),
            Content::Post => Some(Program::Post),
        };
        let request = symbolic::request(spec.file, spec.bytes, program);
        return match spec.last {
            true => (symbolic::last(request), None),
            false => (request, None),
        };
    }
    if !spec.write {
        return (symbolic::read_call(spec.file, spec.bytes), None);
    }
    let [call, data] = symbolic::write_call(spec.file, spec.bytes);
    (call, Some(data))
}

/// Returns the NIC through which the client with this number reaches the server.
fn nic_of_client(experiment: &Experiment, number: u32) -> u8 {
    (number % experiment.nics.count()) as u8
}

/// Returns the address of the client with this number.
pub(in crate::machine) fn client_addr(experiment: &Experiment, number: u32) -> IpAddr {
    subnets::client(nic_of_client(experiment, number), number)
}
