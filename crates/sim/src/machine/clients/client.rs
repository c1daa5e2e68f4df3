//! One client: its connection, its script, what of its responses has come.

use super::super::changes::Changes;
use super::super::subnets;
use super::super::violation::Violation;
use super::measured::{Answered, Measured};
use crate::config::Experiment;
use baton_apps::symbolic::{self, Kind, ResponseReader};
use baton_apps::web::Program;
use baton_host::FileId;
use baton_host::footprint::PAGE_BYTES;
use baton_tcp::ConnId;
use baton_wire::{Endpoint, Symbolic, Time};
use baton_workload::{Content, Demand, RequestSpec};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Lowest port a client uses.
const FIRST_PORT: u16 = 1024;

/// A request that was sent, and what of its response has come.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) due: Time,
    pub(super) sent: Time,
    /// When the first byte of the response came.
    pub(super) first_byte: Option<Time>,
    pub(super) file: FileId,
    /// Content that it asks for, bytes.
    pub(super) bytes: u64,
    pub(super) reader: ResponseReader,
}

/// One client. Between connections it has no `conn`.
#[derive(Debug)]
pub(super) struct Client {
    addr: IpAddr,
    /// The NIC through which it reaches the server.
    pub(super) nic: u8,
    /// Whose share of the workload it replays.
    pub(super) replayer: u32,
    port: u16,
    pub(super) conn: Option<ConnId>,
    pub(super) script: Vec<RequestSpec>,
    /// The next request of the script to send.
    pub(super) next: usize,
    pub(super) outstanding: VecDeque<Outstanding>,
    /// What the wait of the next request counts from; of the first of a script, when it is due.
    pub(super) after: Time,
    /// When the next request is due; of those that were sent together, when they were.
    pub(super) due: Time,
    /// Earliest time of the next request, or of the next read, for throttled loads.
    pub(super) not_before: Time,
    /// What is to happen when its wake-up comes.
    pub(super) waiting_to: Option<WaitingTo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingTo {
    /// Go on with its connection: what it acts upon has happened.
    Proceed,
    /// Begin another connection, or go on with the script on one.
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
            script: Vec::new(),
            next: 0,
            outstanding: VecDeque::new(),
            after: Time::ZERO,
            due: Time::ZERO,
            not_before: Time::ZERO,
            waiting_to: None,
        }
    }

    /// Whether nothing of its script is left to ask for.
    pub(super) fn has_asked_all(&self) -> bool {
        self.next == self.script.len()
    }

    /// Enqueues to the server's send buffer that it takes to answer the rest of its script, about: a header and the pages of each response.
    pub(super) fn enqueues_to_come(&self) -> u32 {
        let page = u64::from(PAGE_BYTES);
        let left = self.script[self.next..].iter();
        let enqueues = left.map(|spec| 1 + spec.bytes.div_ceil(page)).sum::<u64>();
        u32::try_from(enqueues).unwrap_or(u32::MAX)
    }

    /// Begins with its script, whose first request is due at `due`.
    pub(super) fn start(&mut self, due: Time) {
        self.next = 0;
        self.after = due;
    }

    /// When the next request is due. There is one.
    pub(super) fn next_due(&self) -> Time {
        match self.next {
            0 => self.after,
            next => later(self.after, self.script[next].wait_ps),
        }
    }

    /// All responses that were asked for have come.
    pub(super) fn answered(&mut self, now: Time, demand: Demand) {
        self.after = match demand {
            Demand::Open => self.due,
            Demand::Closed | Demand::PartlyOpen => now,
        };
    }

    /// Requests that have not been answered, and how many of them are under way.
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

    /// Takes received data into the outstanding responses; true when one was completed.
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
                let response = self.outstanding.pop_front().expect("it was just read");
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

/// So many picoseconds after `time`, or never.
pub(super) fn later(time: Time, wait_ps: u64) -> Time {
    Time::from_ps(time.as_ps().saturating_add(wait_ps))
}

/// A request, and what is uploaded with it.
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
        return (symbolic::request(spec.file, spec.bytes, program), None);
    }
    if !spec.write {
        return (symbolic::read_call(spec.file, spec.bytes), None);
    }
    let [call, data] = symbolic::write_call(spec.file, spec.bytes);
    (call, Some(data))
}

/// The NIC through which the client of this number reaches the server.
fn nic_of_client(experiment: &Experiment, number: u32) -> u8 {
    (number % experiment.nics.count()) as u8
}

/// The address of the client of this number.
pub(in crate::machine) fn client_addr(experiment: &Experiment, number: u32) -> IpAddr {
    subnets::client(nic_of_client(experiment, number), number)
}
