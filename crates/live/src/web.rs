//! The web server with its clock and its end, on whatever sockets.

use crate::ending::{End, Stop, Waiting};
use crate::http::{FileHttp, HttpConfig, Status};
use crate::snapshot::add_fields;
use baton_apps::web::{Config, Server};
use baton_host::{Ready, Sockets};
use baton_wire::{Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::time::SystemTime;

/// Parameters of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// What is served, and how.
    pub http: HttpConfig,
    /// TCP port.
    pub port: u16,
    /// Connections that may wait to be accepted, and as many again whose handshake is not over.
    pub backlog: usize,
    /// Connections at most; more wait to be accepted.
    pub most_connections: usize,
    /// A connection on which nothing happens for so long is closed, seconds.
    pub idle_timeout_s: u32,
}

impl ServiceConfig {
    /// The usual parameters.
    pub fn new(http: HttpConfig) -> Self {
        Self {
            http,
            port: 80,
            backlog: 4096,
            most_connections: 1 << 20,
            idle_timeout_s: 60,
        }
    }
}

/// A web server, its clock, and how it ends.
pub(crate) struct Web {
    server: Server<Bytes, FileHttp>,
    idle_timeout_s: u32,
    /// When the clock is looked at next.
    next_second: Time,
    end: End,
}

impl Web {
    /// A server, whose responses are held back until they are whole if `cork`.
    ///
    /// # Errors
    /// The root cannot be served.
    pub(crate) fn new(config: &ServiceConfig, cork: bool) -> io::Result<Self> {
        let http = FileHttp::new(config.http.clone())?;
        let web = Config {
            cork,
            ..Config::default()
        };
        Ok(Self {
            server: Server::with_config(web, http),
            idle_timeout_s: config.idle_timeout_s,
            next_second: Time::ZERO,
            end: End::default(),
        })
    }

    pub(crate) fn server(&self) -> &Server<Bytes, FileHttp> {
        &self.server
    }

    /// Acts on one event.
    pub(crate) fn step(&mut self, calls: &mut impl Sockets<Bytes>, ready: Ready) {
        self.server.step(calls, ready);
    }

    /// Does what is due at `now`.
    pub(crate) fn handle_timeouts(&mut self, now: Time, calls: &mut impl Sockets<Bytes>) {
        if now >= self.next_second {
            self.next_second = now + Span::from_secs(1);
            let clock_s = u32::try_from(now.as_ms() / 1000).unwrap_or(u32::MAX);
            self.server.set_clock(clock_s);
            self.server.http_mut().set_clock(SystemTime::now());
            self.server.close_idle(calls, self.idle_timeout_s);
        }
        if self.is_ending() {
            self.server.close_all(calls, self.is_overdue(now));
        }
    }

    /// When something will be due.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.next_second
    }

    /// Does what it is asked for; true when the end begins by that: from now on connections are closed, idle ones at once, others when
    /// their response is complete.
    pub(crate) fn handle_stop(&mut self, now: Time, stop: Stop) -> bool {
        self.end.handle(now, stop)
    }

    /// What to say of the wait for the end, of connections of its own and of `closing` others.
    pub(crate) fn poll_waiting(&mut self, now: Time, closing: usize) -> Option<Waiting> {
        let left = closing.max(self.server.connections() as usize);
        self.end.poll_waiting(now, left)
    }

    /// Whether the end was asked for.
    pub(crate) fn is_ending(&self) -> bool {
        self.end.has_begun()
    }

    /// Whether the end was asked for and no connection is left.
    pub(crate) fn is_done(&self) -> bool {
        self.is_ending() && self.server.connections() == 0
    }

    /// Whether what is left is to be reset.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        self.end.is_over(now)
    }

    /// Adds what the server has counted.
    pub(crate) fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        let mut add = |name: &str, value| {
            counters.insert(name.to_owned(), value);
        };
        let http = self.server.http();
        for status in Status::ALL {
            let name = format!("http.responses.{}", status.code());
            add(&name, http.stats().responses(status));
        }
        let (hits, misses) = http.cache_hits_and_misses();
        add("http.cache.hits", hits);
        add("http.cache.misses", misses);
        add("http.uploads", http.stats().uploads);
        add("http.uploads_abandoned", http.stats().uploads_abandoned);
        add("http.changed_files", http.stats().changed_files);
        add_fields("web", self.server.stats(), counters);
    }
}
