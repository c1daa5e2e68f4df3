//! The loop: frames in, timers, application, frames out, wait.

use crate::clock::Clock;
use crate::port::{Batch, CounterSink, Port};
use baton_inet::Host;
use baton_iolib::sleep;
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags};
use smallvec::SmallVec;
use std::io;
use std::os::fd::BorrowedFd;
use std::vec::Drain;

/// Frames that are gathered before the port is given them.
const TRANSMIT_BATCH: usize = 64;
/// Batches that are sent before it is time to receive again: acknowledgments wait there.
const MOST_BATCHES: usize = 4;
/// The loop looks at least so often whether it is to end.
const LONGEST_WAIT: Span = Span::from_ms(100);

/// After resets the loop goes on for so long: an interface that goes takes with it what the kernel has not looked at yet.
const LINGER: Span = Span::from_ms(20);
/// And for so long at most, where the port holds frames back.
const LONGEST_LINGER: Span = Span::from_secs(1);

/// What runs on an engine. In each turn it is called in the order of its methods.
pub trait Application {
    /// Frames have come, and timers may be due: by default the host is given all of them at once, and runs its timers.
    fn receive(&mut self, now: Time, host: &mut Host, frames: Drain<'_, Bytes>) {
        take_in(now, host, frames);
    }

    /// Takes note of what happened to connections, and acts. Called after frames came in and timers ran.
    fn handle(&mut self, now: Time, host: &mut Host);

    /// Appends what is to be sent to `frames`, at most `most` frames, and calls `end` after each: by default what the host has.
    fn poll_frames(
        &mut self,
        now: Time,
        host: &mut Host,
        most: usize,
        frames: &mut Vec<u8>,
        end: &mut dyn FnMut(&mut Vec<u8>),
    ) {
        host.poll_frames(now, most, frames, end);
    }

    /// When it must next be called even if nothing comes in, if ever.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// Frames have come for a host, and its timers may be due.
pub(crate) fn take_in(now: Time, host: &mut Host, frames: Drain<'_, Bytes>) {
    host.handle_frames(now, frames);
    if host.poll_timeout().is_some_and(|due| due <= now) {
        host.handle_timeouts(now);
    }
}

/// What the loop counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Turns of the loop.
    pub turns: u64,
    /// Waits.
    pub waits: u64,
    /// Times that the port had no room for what was to be sent.
    pub port_full: u64,
}

/// A host on a port.
pub struct Engine<T> {
    host: Host,
    port: T,
    clock: Clock,
    received: Vec<Bytes>,
    batch: Batch,
    /// Frames came or went in the last turn.
    busy: bool,
    stats: EngineStats,
}

impl<T: Port> Engine<T> {
    /// Joins them.
    pub fn new(host: Host, port: T, clock: Clock) -> Self {
        Self {
            host,
            port,
            clock,
            received: Vec::new(),
            batch: Batch::default(),
            busy: false,
            stats: EngineStats::default(),
        }
    }

    /// What the time is told by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host, to work with; a turn follows.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// The port.
    pub fn port(&self) -> &T {
        &self.port
    }

    /// The port, to flush it.
    pub fn port_mut(&mut self) -> &mut T {
        &mut self.port
    }

    /// Whether frames came or went in the last turn.
    pub fn was_busy(&self) -> bool {
        self.busy
    }

    /// Totals.
    pub fn stats(&self) -> EngineStats {
        self.stats
    }

    /// Tells what the loop and the port have counted.
    pub fn counters(&self, sink: &mut dyn CounterSink) {
        sink.counter("engine.turns", self.stats.turns);
        sink.counter("engine.waits", self.stats.waits);
        sink.counter("engine.port_full", self.stats.port_full);
        self.port.counters(sink);
    }

    /// Takes in what has come, lets the application act and sends what follows. True when there may be more at once.
    ///
    /// # Errors
    /// The port is gone.
    pub fn turn(&mut self, application: &mut impl Application) -> io::Result<bool> {
        self.turn_at(self.clock.now(), application)
    }

    /// The same, at a time of the caller's choice.
    ///
    /// # Errors
    /// The port is gone.
    pub fn turn_at(&mut self, now: Time, application: &mut impl Application) -> io::Result<bool> {
        self.stats.turns += 1;
        self.port.receive(now, &mut self.received)?;
        self.host
            .interface_mut()
            .handle_link_mtu(self.port.link().mtu);
        self.busy = !self.received.is_empty();
        let full = self.received.len() >= crate::port::RECEIVE_BATCH;
        application.receive(now, &mut self.host, self.received.drain(..));
        application.handle(now, &mut self.host);
        let more = self.transmit(now, application)?;
        Ok(full || more)
    }

    /// Sends what there is to send; true when there is more.
    fn transmit(&mut self, now: Time, application: &mut impl Application) -> io::Result<bool> {
        for _ in 0..MOST_BATCHES {
            let host = &mut self.host;
            let room = TRANSMIT_BATCH.saturating_sub(self.batch.len());
            self.batch
                .push_many(|frames, end| application.poll_frames(now, host, room, frames, end));
            let last = self.batch.len() < TRANSMIT_BATCH;
            let waiting = self.batch.len();
            self.port.send(now, &mut self.batch)?;
            self.busy |= self.batch.len() < waiting;
            if !self.batch.is_empty() {
                self.stats.port_full += 1;
                return Ok(false);
            }
            if last {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Resets all connections that the application does not end by itself in a turn, and sees to it that the resets leave.
    ///
    /// # Errors
    /// The port is gone.
    pub fn reset_all(&mut self, application: &mut impl Application) -> io::Result<()> {
        let start = self.clock.now();
        let is_empty = self.host.stack().is_empty();
        self.turn(application)?;
        let stack = self.host.stack_mut();
        let left: SmallVec<[_; 16]> = stack.connections().collect();
        for conn in left {
            stack.abort(conn);
        }
        loop {
            self.turn(application)?;
            let now = self.clock.now();
            let is_held_back = !self.batch.is_empty() || self.port.poll_timeout().is_some();
            let linger = match is_held_back {
                true => LONGEST_LINGER,
                false => LINGER,
            };
            if is_empty || now >= start + linger {
                return Ok(());
            }
            self.wait(Some(start + linger), &[])?;
        }
    }

    /// Waits until something can have happened: on the port, by a timer, by `due`, or on one of `others`; at most a tenth
    /// of a second. Gives which of `others` are ready, in their order.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(
        &mut self,
        due: Option<Time>,
        others: &[(BorrowedFd<'_>, PollFlags)],
    ) -> io::Result<SmallVec<[bool; 8]>> {
        self.stats.waits += 1;
        let now = self.clock.now();
        let times = [
            self.host.poll_timeout(),
            self.port.poll_timeout(),
            due,
            Some(now + LONGEST_WAIT),
        ];
        let until = times.into_iter().flatten().min().unwrap_or(now);
        let poll_fd = |&(fd, interest)| PollFd::from_borrowed_fd(fd, interest);
        let mut fds: SmallVec<[PollFd<'_>; 8]> = others.iter().map(poll_fd).collect();
        if let Some(fd) = self.port.fd() {
            let mut interest = PollFlags::IN;
            interest.set(PollFlags::OUT, !self.batch.is_empty());
            fds.push(PollFd::from_borrowed_fd(fd, interest));
        }
        sleep(&mut fds, Some(until.saturating_since(now).into()))?;
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        Ok(fds[..others.len()].iter().map(is_ready).collect())
    }
}
