//! The web server on an engine.

use crate::control::ControlSocket;
use crate::engine::{Application, Engine};
use crate::error::LiveError;
use crate::port::Port;
use crate::snapshot::{Snapshot, SnapshotSource, add_fields};
use crate::sockets::SocketTable;
use baton_apps::http::{FileHttp, HttpConfig, Status};
use baton_apps::web::{Config, Server};
use baton_inet::Host;
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::SystemTime;

/// Responses under way at the end are waited for so long at most.
const LONGEST_END: Span = Span::from_secs(5);

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

/// A web server, its sockets and its clock.
pub struct WebService {
    config: ServiceConfig,
    server: Server<Bytes, FileHttp>,
    sockets: SocketTable,
    /// When the clock is looked at next.
    next_second: Time,
    /// When what is left is cut off.
    ends_at: Option<Time>,
}

impl WebService {
    /// A server that listens on all addresses of `host`.
    ///
    /// # Errors
    /// The root cannot be served.
    pub fn start(config: ServiceConfig, host: &mut Host) -> io::Result<Self> {
        let http = FileHttp::new(config.http.clone())?;
        // What is written between two polls of the stack leaves in whole segments anyway.
        let web = Config {
            cork: false,
            ..Config::default()
        };
        let mut sockets = SocketTable::new(config.most_connections);
        for addr in [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ] {
            let local = Endpoint::new(addr, config.port);
            sockets.add_listener(host.stack_mut().listen(local, config.backlog));
        }
        Ok(Self {
            config,
            server: Server::with_config(web, http),
            sockets,
            next_second: Time::ZERO,
            ends_at: None,
        })
    }

    /// The server.
    pub fn server(&self) -> &Server<Bytes, FileHttp> {
        &self.server
    }

    /// Takes no more connections and ends those there are: idle ones at once, others when their response is complete.
    pub fn begin_end(&mut self, now: Time, host: &mut Host) {
        for listener in self.sockets.take_listeners() {
            host.stack_mut().unlisten(now, listener);
        }
        self.ends_at = Some(now + LONGEST_END);
    }

    /// Whether the end was asked for and nothing is left.
    pub fn has_ended(&self, host: &Host) -> bool {
        self.ends_at.is_some() && self.server.connections() == 0 && host.stack().is_empty()
    }

    /// Whether what is left is to be left alone.
    fn is_overdue(&self, now: Time) -> bool {
        self.ends_at.is_some_and(|limit| limit <= now)
    }

    fn tick(&mut self, now: Time, host: &mut Host) {
        self.next_second = now + Span::from_secs(1);
        let clock_s = u32::try_from(now.as_ms() / 1000).unwrap_or(u32::MAX);
        self.server.set_clock(clock_s);
        self.server.http_mut().set_clock(SystemTime::now());
        let mut calls = self.sockets.calls(now, host.stack_mut());
        self.server
            .close_idle(&mut calls, self.config.idle_timeout_s);
    }
}

impl Application for WebService {
    fn handle(&mut self, now: Time, host: &mut Host) {
        if now >= self.next_second {
            self.tick(now, host);
        }
        loop {
            while let Some((conn, event)) = host.stack_mut().poll_event() {
                self.sockets.handle_event(host.stack(), conn, &event);
            }
            let Some(ready) = self.sockets.next_ready() else {
                break;
            };
            let mut calls = self.sockets.calls(now, host.stack_mut());
            self.server.step(&mut calls, ready);
        }
        if self.ends_at.is_some() {
            let overdue = self.is_overdue(now);
            let mut calls = self.sockets.calls(now, host.stack_mut());
            self.server.close_all(&mut calls, overdue);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next_second)
    }
}

impl SnapshotSource for WebService {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
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
        let sockets = self.sockets.stats();
        add("sockets.open", self.sockets.len() as u64);
        add("sockets.accepted", sockets.accepted);
        add("sockets.accepts_deferred", sockets.accepts_deferred);
        add("sockets.ended_abnormally", sockets.ended_abnormally);
        add_fields("web", self.server.stats(), counters);
    }
}

/// Serves until `stop` says so, then ends what is under way; answers who asks at `control`.
///
/// # Errors
/// The port is gone.
pub fn serve<T: Port>(
    engine: &mut Engine<T>,
    service: &mut WebService,
    mut control: Option<&mut ControlSocket>,
    stop: impl Fn() -> bool,
) -> Result<(), LiveError> {
    let gone = || LiveError::failed("the interface can no longer be used");
    let mut ending = false;
    loop {
        let more = engine.turn(service).map_err(gone())?;
        if let Some(control) = &mut control {
            control.serve(|| {
                let snapshot = Snapshot::take(engine, service);
                let mut text = serde_json::to_vec(&snapshot).unwrap_or_default();
                text.push(b'\n');
                text
            });
        }
        if !ending && stop() {
            ending = true;
            let now = engine.now();
            service.begin_end(now, engine.host_mut());
            continue;
        }
        if service.has_ended(engine.host()) || service.is_overdue(engine.now()) {
            // Once more for the resets of what was cut off.
            engine.turn(service).map_err(gone())?;
            return engine
                .port_mut()
                .flush()
                .map_err(LiveError::failed("the capture file cannot be written"));
        }
        if !more {
            let fds = control.as_ref().map(|control| control.fds());
            engine
                .wait(service.poll_timeout(), &fds.unwrap_or_default())
                .map_err(LiveError::failed("cannot wait for frames"))?;
        }
    }
}
