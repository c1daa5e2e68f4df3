//! The web server with its clock and its shutdown, on any kind of sockets.

use crate::ending::{End, Stop, Waiting};
use crate::http::{FileHttp, HttpConfig, Status};
use crate::snapshot::add_fields;
use baton_apps::MeteredSockets;
use baton_apps::web::{Config, Server};
use baton_host::Ready;
use baton_wire::{Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::time::SystemTime;

/// Parameters of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// The files that are served, and how.
    pub http: HttpConfig,
    /// TCP port.
    pub port: u16,
    /// Maximum number of connections that wait to be accepted, and of connections whose handshake is in progress.
    pub backlog: usize,
    /// Maximum number of connections; further connections wait to be accepted.
    pub most_connections: usize,
    /// Time after which an idle connection is closed, seconds.
    pub idle_timeout_s: u32,
}

impl ServiceConfig {
    /// Returns the usual parameters.
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

/// A web server with its clock and its shutdown.
pub(crate) struct Web {
    server: Server<Bytes, FileHttp>,
    idle_timeout_s: u32,
    /// Time at which the clock is next updated.
    next_second: Time,
    end: End,
}

impl Web {
    /// Creates a server. If `cork` is set, responses are held back until they are complete.
    ///
    /// # Errors
    /// The root folder cannot be served.
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

    /// Handles one event.
    pub(crate) fn step(&mut self, calls: &mut impl MeteredSockets<Bytes>, ready: Ready) {
        self.server.step(calls, ready);
    }

    /// Does everything that is due at `now`.
    pub(crate) fn handle_timeouts(&mut self, now: Time, calls: &mut impl MeteredSockets<Bytes>) {
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

    /// Returns the time at which something will be due.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.next_second
    }

    /// Handles a request to stop. Returns true if this call starts the shutdown: from then on, idle connections are closed immediately, and
    /// others when their response is complete.
    pub(crate) fn handle_stop(&mut self, now: Time, stop: Stop) -> bool {
        self.end.handle(now, stop)
    }

    /// Returns a report of a long wait for the end. The wait is for the server's connections, or for `closing` connections if these are more.
    pub(crate) fn poll_waiting(&mut self, now: Time, closing: usize) -> Option<Waiting> {
        let left = closing.max(self.server.connections() as usize);
        self.end.poll_waiting(now, left)
    }

    /// Returns whether the shutdown has started.
    pub(crate) fn is_ending(&self) -> bool {
        self.end.has_begun()
    }

    /// Returns whether the shutdown has started and no connection remains.
    pub(crate) fn is_done(&self) -> bool {
        self.is_ending() && self.server.connections() == 0
    }

    /// Returns whether the remaining connections must be reset now.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        self.end.is_over(now)
    }

    /// Adds the counters of the server.
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
