//! Opens and closes connections.

use super::{FIRST_PORT, LONGEST_END, PORT, PORTS, Part};
use crate::task::{TcpCounts, TcpTask};
use baton_inet::Host;
use baton_live::Application;
use baton_tcp::{CloseReason, ConnId, Event, ListenerId};
use baton_wire::{Endpoint, Flow, Span, Time};

/// Maximum number of open connections.
const MOST_OPEN: u64 = 1_024;
/// Maximum number of connections that are opened before the loop receives frames again.
const MOST_AT_ONCE: u64 = 32;
/// How long after the end of a trial overdue connections may still be opened.
const GRACE: Span = Span::from_ms(2);
/// How often the loop checks, at low rates, whether a connection is due.
const LOOK: Span = Span::from_us(50);

/// Opens connections at a rate, and closes each once it is open.
#[derive(Debug)]
pub(super) struct Opener {
    own: Endpoint,
    other: Endpoint,
    rate: f64,
    /// Connections opened before this time are part of the warm-up, and are not counted.
    from: Time,
    until: Time,
    start: Time,
    /// Number of connections opened: during the warm-up, and counted ones.
    opened: u64,
    counted: u64,
    /// Connections that have not ended: the list of those of the warm-up, and the number of counted ones. After a lost segment, a connection
    /// of the warm-up may last a second; counting does not wait for it.
    warm: Vec<ConnId>,
    open: u64,
    completed: u64,
    failed: u64,
    next_port: u16,
}

impl Opener {
    /// Creates an opener that begins now.
    pub(super) fn new(task: &TcpTask, rate: f64, now: Time) -> Self {
        let from = now + Span::from_ns(task.warm_up_ns);
        Self {
            own: Endpoint::new(task.own.into(), FIRST_PORT),
            other: Endpoint::new(task.other.into(), PORT),
            rate,
            from,
            until: from + Span::from_ns(task.duration_ns),
            start: now,
            opened: 0,
            counted: 0,
            warm: Vec::new(),
            open: 0,
            completed: 0,
            failed: 0,
            next_port: 0,
        }
    }

    /// Returns the number of connections due between two moments.
    fn due(&self, from: Time, now: Time) -> u64 {
        (now.min(self.until).saturating_since(from).as_secs_f64() * self.rate) as u64
    }

    /// Returns the total number of connections to count.
    fn all(&self) -> u64 {
        self.due(self.from, self.until)
    }

    fn open(&mut self, now: Time, host: &mut Host) {
        let counts = now >= self.from;
        if now >= self.until + GRACE {
            return;
        }
        let waiting = match counts {
            true => self.due(self.from, now).saturating_sub(self.counted),
            false => self.due(self.start, now).saturating_sub(self.opened),
        };
        let room = MOST_OPEN.saturating_sub(self.open + self.warm.len() as u64);
        for _ in 0..waiting.min(room).min(MOST_AT_ONCE) {
            let Some(conn) = self.open_one(now, host) else {
                return;
            };
            if counts {
                self.counted += 1;
                self.open += 1;
            } else {
                self.opened += 1;
                self.warm.push(conn);
            }
        }
    }

    /// Opens a connection from the next port, if that port is free.
    fn open_one(&mut self, now: Time, host: &mut Host) -> Option<ConnId> {
        let local = Endpoint::new(self.own.addr, FIRST_PORT + self.next_port);
        self.next_port = (self.next_port + 1) % PORTS;
        let flow = Flow {
            local,
            remote: self.other,
        };
        host.stack_mut().connect(now, flow)
    }

    fn ended(&mut self, conn: ConnId, reason: CloseReason) {
        if let Some(place) = self.warm.iter().position(|one| *one == conn) {
            self.warm.swap_remove(place);
            return;
        }
        self.open -= 1;
        match reason {
            CloseReason::Normal => self.completed += 1,
            _ => self.failed += 1,
        }
    }
}

impl Application for Opener {
    fn handle(&mut self, now: Time, host: &mut Host) {
        while let Some((conn, event)) = host.stack_mut().poll_event() {
            match event {
                Event::Connected => host.stack_mut().close(conn),
                Event::Closed(reason) => self.ended(conn, reason),
                _ => {}
            }
        }
        self.open(now, host);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let next = (self.opened + self.counted) as f64 / self.rate;
        let due = self.start + Span::from_ns((next * 1e9) as u64);
        Some(due.max(self.start + LOOK))
    }
}

impl Part for Opener {
    fn is_done(&self, now: Time) -> bool {
        let has_opened = self.counted == self.all() || now >= self.until + GRACE;
        has_opened && self.open == 0 && now >= self.until || now >= self.until + LONGEST_END
    }

    fn counts(&self) -> TcpCounts {
        TcpCounts {
            offered: self.all(),
            completed: self.completed,
            failed: self.failed,
            ..TcpCounts::default()
        }
    }
}

/// Accepts connections, and closes each after the peer has closed it.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: ListenerId,
    completed: u64,
}

impl Acceptor {
    /// Listens for connections.
    pub(super) fn listen(task: &TcpTask, host: &mut Host) -> Self {
        let local = Endpoint::new(task.own.into(), PORT);
        Self {
            listener: host.stack_mut().listen(local, MOST_OPEN as usize),
            completed: 0,
        }
    }
}

impl Application for Acceptor {
    fn handle(&mut self, _now: Time, host: &mut Host) {
        while let Some((conn, event)) = host.stack_mut().poll_event() {
            match event {
                Event::Acceptable(_) => while host.stack_mut().accept(self.listener).is_some() {},
                Event::PeerClosed => host.stack_mut().close(conn),
                Event::Closed(CloseReason::Normal) => self.completed += 1,
                _ => {}
            }
        }
    }
}

impl Part for Acceptor {
    fn is_done(&self, _now: Time) -> bool {
        // The opener decides when the trial is done.
        false
    }

    fn counts(&self) -> TcpCounts {
        TcpCounts {
            completed: self.completed,
            ..TcpCounts::default()
        }
    }
}
