//! Clients that load a web server as much as it can take.
//!
//! Each user follows one connection script after the other, without a pause: opens a connection, sends requests, reads, closes. Requests
//! that a script marks as pipelined are sent together. Responses are checked byte by byte. Reading costs a client only what TCP costs in
//! the tests, because there are as many clients as needed.

use super::super::tcp::Program;
use super::super::{Application, Counts, Share, Tcp};
use baton_apps::symbolic::{self, ResponseReader};
use baton_tcp::{CloseReason, ConnId, Event};
use baton_wire::{Payload, Symbolic, Time};
use baton_workload::{Replay, RequestSpec, Workload};
use std::collections::VecDeque;

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
    /// The server's number.
    server: u8,
    workload: Replay,
    users: Vec<User>,
    /// The user of each connection.
    by_connection: Vec<Option<usize>>,
    has_begun: bool,
    counts: Counts,
}

impl Clients {
    /// Creates the application of a machine with this many users.
    pub(in crate::simulated) fn application(
        machine: u8,
        server: u8,
        users: u32,
        workload: Replay,
    ) -> Application {
        let clients = Self {
            server,
            workload,
            users: (0..users).map(|_| User::default()).collect(),
            by_connection: Vec::new(),
            has_begun: false,
            counts: Counts::default(),
        };
        Application::on(Tcp::new(machine, Share::WHOLE), clients)
    }

    /// Starts a user's next script on a new connection.
    fn start(&mut self, now: Time, tcp: &mut Tcp, number: usize) {
        let user = &mut self.users[number];
        self.workload.next_connection(&mut user.script);
        user.next = 0;
        user.to_write.clear();
        user.outstanding.clear();
        user.connection = tcp.connect(now, self.server);
        let connection = user.connection.expect("there are more ports than users");
        let index = connection.0 as usize;
        if index >= self.by_connection.len() {
            self.by_connection.resize(index + 1, None);
        }
        self.by_connection[index] = Some(number);
    }

    /// Sends the next request, and all requests pipelined with it.
    fn ask(&mut self, tcp: &mut Tcp, number: usize) {
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
        self.write(tcp, number);
    }

    fn write(&mut self, tcp: &mut Tcp, number: usize) {
        let user = &mut self.users[number];
        let Some(connection) = user.connection else {
            return;
        };
        while let Some(request) = user.to_write.front_mut() {
            let len = request.len();
            let written = tcp.stack.write(connection, *request).unwrap_or(0);
            if written < len {
                *request = request.slice(written, len - written);
                return;
            }
            user.to_write.pop_front();
        }
    }

    fn read(&mut self, now: Time, tcp: &mut Tcp, number: usize) {
        let user = &mut self.users[number];
        let Some(connection) = user.connection else {
            return;
        };
        let stack = &mut tcp.stack;
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
            self.ask(tcp, number);
        } else {
            tcp.stack.close(connection);
            self.end(now, tcp, number);
        }
    }

    /// Ends a user's connection.
    fn end(&mut self, now: Time, tcp: &mut Tcp, number: usize) {
        if let Some(connection) = self.users[number].connection.take() {
            self.by_connection[connection.0 as usize] = None;
        }
        self.start(now, tcp, number);
    }
}

impl Program for Clients {
    fn answers_first(&self) -> bool {
        true
    }

    fn next_due(&self) -> Time {
        match self.has_begun {
            true => Time::NEVER,
            false => Time::ZERO,
        }
    }

    fn begin(&mut self, now: Time, tcp: &mut Tcp) {
        self.has_begun = true;
        (0..self.users.len()).for_each(|user| self.start(now, tcp, user));
    }

    fn handle_event(&mut self, now: Time, tcp: &mut Tcp, connection: ConnId, event: Event) {
        let user = self.by_connection.get(connection.0 as usize);
        let Some(number) = user.copied().flatten() else {
            return;
        };
        match event {
            Event::Connected => {
                self.counts.connections += 1;
                self.ask(tcp, number);
            }
            Event::Acknowledged(_) => self.write(tcp, number),
            Event::Readable => self.read(now, tcp, number),
            Event::Closed(reason) if reason != CloseReason::Normal => {
                self.counts.lost_connections += 1;
                self.end(now, tcp, number);
            }
            _ => {}
        }
    }

    fn counts(&self, _now: Time) -> Counts {
        self.counts
    }
}
