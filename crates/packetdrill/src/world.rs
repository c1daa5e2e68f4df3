//! All state of an instance: a clock, the engine, sockets and other files that descriptors name, and packets that left. This
//! module has no threads and does not wait: an attempt at a call either has an outcome or returns until when it would wait
//! (see [`Stop`](crate::errno::Stop)).

use crate::changes::Changes;
use crate::counters::Counters;
use crate::descriptors::Descriptors;
use crate::epoll::Epoll;
use crate::flags::Settings;
use crate::network::{Link, Outgoing};
use crate::pipe::Pipe;
use crate::sockets::{Socket, SocketId};
use baton_tcp::{Config, ConnId, Stack};
use baton_wire::{Flow, Span, Time, Timestamps};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;

/// Initial time of the clock, microseconds since 1970: a round number in 2020.
const EPOCH_US: u64 = 1_600_000_000_000_000;

/// Time that passes at each reading of the clock.
const READING_TIME: Span = Span::from_us(1);

/// Ephemeral ports (ip_local_port_range).
const FIRST_EPHEMERAL_PORT: u16 = 32_768;

/// One host's network on virtual time.
#[derive(Debug)]
pub struct World {
    pub(crate) settings: Settings,
    pub(crate) now: Time,
    pub(crate) stack: Stack<Bytes>,
    pub(crate) descriptors: Descriptors,
    pub(crate) sockets: Slab<Socket>,
    pub(crate) epolls: Slab<Epoll>,
    pub(crate) pipes: Slab<Pipe>,
    /// Owners of connections. Closed sockets own none; their connections continue without them.
    pub(crate) owners: FxHashMap<ConnId, SocketId>,
    pub(crate) links: FxHashMap<ConnId, Link>,
    pub(crate) outgoing: VecDeque<Outgoing>,
    /// The connection that is being aborted, and the timestamps for its reset.
    pub(crate) aborted: Option<(Flow, Timestamps)>,
    /// Number of changes that may wake a blocked call.
    changes: u64,
    new_settings: Option<Changes>,
    counters: Option<Counters>,
    next_port: u16,
}

impl World {
    /// Creates an idle host.
    pub fn new(settings: Settings) -> Self {
        let mut stack = Stack::new(settings.tcp.clone(), settings.seed);
        if let Some(keys) = settings.fast_open_keys() {
            stack.set_fast_open_keys(keys);
        }
        stack.set_held(Time::ZERO, settings.queue_refuses);
        let counters = settings.counters.as_deref().map(Counters::new);
        Self {
            stack,
            counters,
            new_settings: settings.changes.as_deref().map(Changes::new),
            settings,
            now: Time::ZERO,
            descriptors: Descriptors::default(),
            sockets: Slab::new(),
            epolls: Slab::new(),
            pipes: Slab::new(),
            owners: FxHashMap::default(),
            links: FxHashMap::default(),
            outgoing: VecDeque::new(),
            aborted: None,
            changes: 0,
            next_port: FIRST_EPHEMERAL_PORT,
        }
    }

    /// Reports whether `fd` is one of the world's descriptors.
    pub(crate) fn has(&self, fd: libc::c_int) -> bool {
        self.descriptors.get(fd).is_ok()
    }

    /// Applies changed settings, for sockets that are opened and connections that are accepted from now on.
    pub(crate) fn take_new_settings(&mut self) {
        let Some(changes) = &mut self.new_settings else {
            return;
        };
        let route_mtu = self.settings.route_mtu;
        match changes.take(&mut self.settings) {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => eprintln!("baton_packetdrill: {error}"),
        }
        if let Some(keys) = self.settings.fast_open_keys() {
            self.stack.set_fast_open_keys(keys);
        }
        self.stack.set_held(self.now, self.settings.queue_refuses);
        if self.settings.route_mtu != route_mtu {
            self.change_route();
        }
        if std::mem::take(&mut self.settings.flush_metrics) {
            self.stack.forget_fast_open_servers();
        }
        let listening =
            |(id, socket): (SocketId, &Socket)| socket.listening.is_some().then_some(id);
        let listening: Vec<_> = self.sockets.iter().filter_map(listening).collect();
        for id in listening {
            self.apply_options(id);
        }
        self.pump();
    }

    /// Applies a changed route to all connections.
    fn change_route(&mut self) {
        let ids: Vec<_> = self.stack.connections().collect();
        for id in ids {
            let local = self.stack.flow(id).local.addr;
            let route_mss = self.settings.route_mss_for(local);
            let change = |config: &mut Config| config.route_mss = route_mss;
            // This fails if there are more sets of parameters than the engine keeps, which no real script needs.
            let _ = self.stack.configure(self.now, id, change);
        }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Microseconds since 1970 at a moment of this world.
    pub fn unix_us(at: Time) -> u64 {
        EPOCH_US + at.as_ps() / Span::from_us(1).as_ps()
    }

    /// Reads the clock, which takes a microsecond.
    pub fn read_clock(&mut self) -> u64 {
        self.run_to(self.now + READING_TIME);
        Self::unix_us(self.now)
    }

    /// When the engine's next timer is due.
    pub fn next_timer(&self) -> Time {
        self.stack.poll_timeout().unwrap_or(Time::NEVER)
    }

    /// Lets time pass up to `until`, and runs timers when they are due.
    pub fn run_to(&mut self, until: Time) {
        while self.next_timer() <= until {
            self.step_to(self.next_timer());
        }
        self.now = self.now.max(until);
    }

    /// Advances to `at`, before which no timer is due, and runs the timers that are due then.
    pub fn step_to(&mut self, at: Time) {
        self.now = self.now.max(at);
        if self.next_timer() <= self.now {
            self.stack.handle_timeouts(self.now);
            self.pump();
        }
    }

    /// Counts a change that a blocked call may be waiting for.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
    }

    /// Number of changes that a blocked call may have waited for.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Handles the engine's output after any input: events go to sockets, segments to the wire.
    pub(crate) fn pump(&mut self) {
        while self.take_events() || self.take_segments() {}
        // How much data remains unsent is known only now.
        self.tell_rooms();
        self.note_activities();
        if let Some(counters) = &mut self.counters {
            counters.write(self.stack.stats());
        }
    }

    /// Returns an unused port, for a socket without one.
    pub(crate) fn ephemeral_port(&mut self) -> Option<u16> {
        let ports = usize::from(u16::MAX - FIRST_EPHEMERAL_PORT) + 1;
        for _ in 0..ports {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
            if self.sockets.iter().all(|(_, socket)| socket.port() != port) {
                return Some(port);
            }
        }
        None
    }

    /// Returns the invariant that is violated, if any. For tests, after every call.
    ///
    /// # Panics
    /// Panics if the engine violates one of its own.
    pub fn check(&self) -> Result<(), &'static str> {
        self.stack.check();
        for (&conn, &socket) in &self.owners {
            if self
                .sockets
                .get(socket)
                .is_none_or(|socket| socket.conn != Some(conn))
            {
                return Err("an owned connection is its socket's");
            }
        }
        for (id, socket) in &self.sockets {
            if socket
                .conn
                .is_some_and(|conn| self.owners.get(&conn) != Some(&id))
            {
                return Err("a socket owns its connection");
            }
        }
        Ok(())
    }
}
