//! The web server on an engine.

use crate::control::{self, ControlSocket};
use crate::ending::{Stop, Waiting};
use crate::engine::{Application, Engine};
use crate::error::LiveError;
use crate::http::FileHttp;
use crate::port::Port;
use crate::snapshot::{Snapshot, SnapshotSource};
use crate::throttle::Throttle;
use crate::web::{ServiceConfig, Web};
use baton_apps::web::Server;
use baton_host::layer::{AdapterEnd, AdapterId, SocketLayer};
use baton_inet::Host;
use baton_sockets::HostEnd;
use baton_wire::{Endpoint, Time};
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns no adapters: all connections are on the engine's own stack.
fn no_adapters() -> &'static mut [AdapterEnd<Bytes, HostEnd>] {
    &mut []
}

/// A web server and its sockets.
pub struct WebService {
    web: Web,
    sockets: SocketLayer<Bytes>,
}

impl WebService {
    /// Creates a server that listens on all addresses of `host`.
    ///
    /// # Errors
    /// The root folder cannot be served.
    pub fn start(config: &ServiceConfig, host: &mut Host) -> io::Result<Self> {
        // Data written between two polls of the stack leaves in full segments anyway: corking would gain nothing.
        let web = Web::new(config, false)?;
        let mut sockets = SocketLayer::new(config.most_connections, None);
        for addr in [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ] {
            let local = Endpoint::new(addr, config.port);
            let listener = host.stack_mut().listen(local, config.backlog);
            sockets.add_listener(listener, AdapterId(0));
        }
        Ok(Self { web, sockets })
    }

    /// Returns the server.
    pub fn server(&self) -> &Server<Bytes, FileHttp> {
        self.web.server()
    }

    /// Handles a request to stop. Returns true if this call starts the shutdown: the server then accepts no more connections, and ends idle
    /// connections immediately and others when their response is complete.
    pub fn handle_stop(&mut self, now: Time, host: &mut Host, stop: Stop) -> bool {
        let begins = self.web.handle_stop(now, stop);
        if begins {
            for listener in self.sockets.take_listeners() {
                host.stack_mut().unlisten(now, listener);
            }
        }
        begins
    }

    /// Returns whether the shutdown has started and no connection remains.
    pub fn has_ended(&self, host: &Host) -> bool {
        self.web.is_done() && host.stack().is_empty()
    }
}

impl Application for WebService {
    fn handle(&mut self, now: Time, host: &mut Host) {
        if now >= self.web.poll_timeout() {
            self.handle_timeouts(now, host);
        }
        loop {
            while let Some((conn, event)) = host.stack_mut().poll_event() {
                self.sockets.handle_event(host.stack_mut(), conn, &event);
            }
            let Some(ready) = self.sockets.next_ready() else {
                break;
            };
            let mut calls = self.sockets.calls(now, host.stack_mut(), no_adapters());
            self.web.step(&mut calls, ready);
        }
        if self.web.is_ending() {
            self.handle_timeouts(now, host);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.web.poll_timeout())
    }
}

impl WebService {
    fn handle_timeouts(&mut self, now: Time, host: &mut Host) {
        let mut calls = self.sockets.calls(now, host.stack_mut(), no_adapters());
        self.web.handle_timeouts(now, &mut calls);
    }
}

impl SnapshotSource for WebService {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        self.web.add_counters(counters);
        let sockets = self.sockets.stats();
        for (name, value) in [
            ("open", self.sockets.len() as u64),
            ("accepted", sockets.accepted),
            ("accepts_deferred", sockets.accepts_deferred),
            ("ended_abnormally", sockets.ended_abnormally),
        ] {
            counters.insert(format!("sockets.{name}"), value);
        }
    }
}

/// Serves until `stop` requests the end, then finishes the open connections, and calls `operator` if that takes a while. Answers requests
/// that arrive at `control`.
///
/// # Errors
/// The port is gone.
pub fn serve<T: Port>(
    engine: &mut Engine<T>,
    service: &mut WebService,
    mut control: Option<&mut ControlSocket>,
    stop: impl Fn() -> Stop,
    mut operator: impl FnMut(&Waiting),
) -> Result<(), LiveError> {
    let gone = || LiveError::failed("the interface can no longer be used");
    let mut throttle = Throttle::default();
    loop {
        let more = engine.turn(service).map_err(gone())?;
        if let Some(control) = &mut control
            && throttle.is_due(engine.now())
        {
            control.serve(|_| Snapshot::take(engine, service).to_line());
        }
        let now = engine.now();
        if service.handle_stop(now, engine.host_mut(), stop()) {
            continue;
        }
        let left = engine.host().stack().len();
        if let Some(waiting) = service.web.poll_waiting(now, left) {
            operator(&waiting);
        }
        if service.has_ended(engine.host()) || service.web.is_overdue(now) {
            engine.reset_all(service).map_err(gone())?;
            return engine
                .captures_mut()
                .flush()
                .map_err(LiveError::failed("the capture file cannot be written"));
        }
        if !more {
            let due = service.poll_timeout();
            control::wait(
                engine,
                due,
                SmallVec::new(),
                control.as_deref(),
                &mut throttle,
            )
            .map_err(LiveError::failed("cannot wait for frames"))?;
        }
    }
}
