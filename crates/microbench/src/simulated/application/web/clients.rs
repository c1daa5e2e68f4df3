//! Clients that load a web server as much as it can take.
//!
//! Each user follows one connection script after the other, without a pause: opens a connection, sends requests, reads, closes. Requests
//! that a script marks as pipelined are sent together. Responses are checked byte by byte. Reading costs a client only what TCP costs in
//! the tests: there are as many clients as are needed.

use super::super::super::frame::Segment;
use super::super::{Outgoing, Tcp};
use baton_apps::symbolic::{self, ResponseReader};
use baton_tcp::{CloseReason, ConnId, Event};
use baton_wire::{Payload, Symbolic, Time};
use baton_workload::{Replay, RequestSpec, Workload};
use slab::Slab;
use std::collections::VecDeque;

/// Counts of what clients received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::simulated) struct ClientCounts {
    /// Complete responses.
    pub(in crate::simulated) responses: u64,
    /// Bytes of files.
    pub(in crate::simulated) content_bytes: u64,
    /// Connections that were opened.
    pub(in crate::simulated) connections: u64,
    /// Connections that ended before all requests were answered.
    pub(in crate::simulated) lost: u64,
}

/// One user.
#[derive(Debug, Default)]
struct User {
    connection: Option<ConnId>,
    script: Vec<RequestSpec>,
    /// The next request of the script.
    next: usize,
    /// Requests for which the send buffer had no space.
    to_write: VecDeque<Symbolic>,
    outstanding: VecDeque<ResponseReader>,
}

/// Users on one machine.
#[derive(Debug)]
pub(in crate::simulated) struct Clients {
    pub(in super::super) tcp: Tcp,
    /// Numbers of this machine and of the server.
    between: [u8; 2],
    workload: Replay,
    users: Vec<User>,
    /// The user of each connection.
    by_connection: Vec<Option<usize>>,
    has_begun: bool,
    pub(in crate::simulated) counts: ClientCounts,
}

impl Clients {
    pub(in crate::simulated) fn new(machine: u8, server: u8, users: u32, workload: Replay) -> Self {
        Self {
            tcp: Tcp::new(machine),
            between: [machine, server],
            workload,
            users: (0..users).map(|_| User::default()).collect(),
            by_connection: Vec::new(),
            has_begun: false,
            counts: ClientCounts::default(),
        }
    }

    pub(in super::super) fn next_due(&self) -> Time {
        match self.has_begun {
            true => self.tcp.next_due(),
            false => Time::ZERO,
        }
    }

    pub(in super::super) fn poll_send(
        &mut self,
        now: Time,
        segments: &mut Slab<Segment>,
    ) -> Option<Outgoing> {
        if !std::mem::replace(&mut self.has_begun, true) {
            (0..self.users.len()).for_each(|user| self.begin(now, user));
        }
        let next = self.tcp.poll_send(now, segments);
        self.handle_events(now);
        next
    }

    pub(in super::super) fn receive(&mut self, now: Time, segment: Segment) {
        self.tcp.receive(now, segment);
        self.tcp.answer(now);
        self.handle_events(now);
        self.tcp.answer(now);
    }

    /// Starts a user's next script on a new connection.
    fn begin(&mut self, now: Time, number: usize) {
        let user = &mut self.users[number];
        self.workload.next_connection(&mut user.script);
        user.next = 0;
        user.to_write.clear();
        user.outstanding.clear();
        user.connection = self.tcp.connect(now, self.between);
        let connection = user.connection.expect("there are more ports than users");
        let index = connection.0 as usize;
        if index >= self.by_connection.len() {
            self.by_connection.resize(index + 1, None);
        }
        self.by_connection[index] = Some(number);
    }

    fn handle_events(&mut self, now: Time) {
        while let Some((connection, event)) = self.tcp.stack.poll_event() {
            let index = connection.0 as usize;
            let Some(&Some(number)) = self.by_connection.get(index) else {
                continue;
            };
            match event {
                Event::Connected => {
                    self.counts.connections += 1;
                    self.ask(number);
                }
                Event::Acknowledged(_) => self.write(number),
                Event::Readable => self.read(now, number),
                Event::Closed(reason) if reason != CloseReason::Normal => {
                    self.counts.lost += 1;
                    self.end(now, number);
                }
                _ => {}
            }
        }
    }

    /// Sends the next request, and all requests pipelined with it.
    fn ask(&mut self, number: usize) {
        let user = &mut self.users[number];
        let first = user.next;
        while let Some(spec) = user.script.get(user.next) {
            if user.next > first && !spec.pipelined {
                break;
            }
            let request = symbolic::request(spec.file, spec.bytes, None);
            user.outstanding.push_back(ResponseReader::new(request));
            user.to_write.push_back(request);
            user.next += 1;
        }
        self.write(number);
    }

    fn write(&mut self, number: usize) {
        let user = &mut self.users[number];
        let Some(connection) = user.connection else {
            return;
        };
        while let Some(request) = user.to_write.front_mut() {
            let len = request.len();
            let written = self.tcp.stack.write(connection, *request).unwrap_or(0);
            if written < len {
                *request = request.slice(written, len - written);
                return;
            }
            user.to_write.pop_front();
        }
    }

    fn read(&mut self, now: Time, number: usize) {
        let user = &mut self.users[number];
        let Some(connection) = user.connection else {
            return;
        };
        let stack = &mut self.tcp.stack;
        while let Some(mut data) = stack.read(connection, usize::MAX) {
            stack.consume(connection, data.len());
            while data.len > 0 {
                let reader = user.outstanding.front_mut();
                let reader = reader.expect("a client receives only what it requested");
                let before = data;
                reader
                    .take(&mut data)
                    .expect("a client receives the data that it requested");
                if symbolic::kind(&before).is_content() {
                    self.counts.content_bytes += u64::from(before.len - data.len);
                }
                if reader.is_complete() {
                    user.outstanding.pop_front();
                    self.counts.responses += 1;
                }
            }
        }
        if !user.outstanding.is_empty() {
            return;
        }
        if user.next < user.script.len() {
            self.ask(number);
        } else {
            self.tcp.stack.close(connection);
            self.end(now, number);
        }
    }

    /// Ends a user's connection.
    fn end(&mut self, now: Time, number: usize) {
        if let Some(connection) = self.users[number].connection.take() {
            self.by_connection[connection.0 as usize] = None;
        }
        self.begin(now, number);
    }
}
