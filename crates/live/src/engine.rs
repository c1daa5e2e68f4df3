//! The loop: receive frames, run timers, run the application, send frames, wait.

use crate::capture::Captures;
use crate::clock::Clock;
use crate::port::{Batch, CounterSink, Port};
use baton_inet::Host;
use baton_iolib::sleep;
use baton_timeline::Way;
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags};
use smallvec::SmallVec;
use std::io;
use std::os::fd::BorrowedFd;
use std::vec::Drain;

/// Number of frames that are collected before they are passed to the port.
const TRANSMIT_BATCH: usize = 64;
/// Maximum number of batches sent before frames, such as acknowledgments, are received again.
const MOST_BATCHES: usize = 4;
/// Maximum time until the loop checks again whether to stop.
const LONGEST_WAIT: Span = Span::from_ms(100);

/// How long the loop continues after resets: removing an interface discards the frames that the kernel has not processed yet.
const LINGER: Span = Span::from_ms(20);
/// Maximum time that the loop continues after resets if the port holds frames back.
const LONGEST_LINGER: Span = Span::from_secs(1);

/// A program that runs on an engine. Each turn (iteration of the loop) calls its methods in the order in which they are declared here.
pub trait Application {
    /// Handles received frames and due timers. By default, passes all frames to the host and runs its timers.
    fn receive(&mut self, now: Time, host: &mut Host, frames: Drain<'_, Bytes>) {
        take_in(now, host, frames);
    }

    /// Handles events of connections. Called after frames were received and timers ran.
    fn handle(&mut self, now: Time, host: &mut Host);

    /// Appends at most `most` frames that are to be sent to `frames`, and calls `end` after each. By default, takes them from the host.
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

    /// Returns the path that a frame took, with the reason, for captures.
    fn path_of(&self, _host: &Host, _way: Way, _frame: &[u8]) -> Option<&'static str> {
        None
    }

    /// Returns the time at which the application must be called even if no frame arrives, or `None`.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// Passes received frames to a host, and runs its timers if they are due.
fn take_in(now: Time, host: &mut Host, frames: Drain<'_, Bytes>) {
    host.handle_frames(now, frames);
    if host.poll_timeout().is_some_and(|due| due <= now) {
        host.handle_timeouts(now);
    }
}

/// Counters of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Number of turns: iterations of the loop.
    pub turns: u64,
    /// Number of waits.
    pub waits: u64,
    /// Number of times that the port had no space for frames that were to be sent.
    pub port_full: u64,
}

/// A host on a port.
pub struct Engine<T> {
    host: Host,
    port: T,
    clock: Clock,
    captures: Captures,
    received: Vec<Bytes>,
    batch: Batch,
    /// Whether frames were received or sent in the last turn.
    busy: bool,
    stats: EngineStats,
}

impl<T: Port> Engine<T> {
    /// Creates an engine that drives `host` on `port`.
    pub fn new(mut host: Host, port: T, clock: Clock) -> Self {
        if port.completes_checksums() {
            host.interface_mut().leave_checksums();
        }
        Self {
            host,
            port,
            captures: Captures::new(clock.epoch()),
            clock,
            received: Vec::new(),
            batch: Batch::default(),
            busy: false,
            stats: EngineStats::default(),
        }
    }

    /// Returns the engine's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the host for changes; call [`turn`](Self::turn) afterwards.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Returns the port.
    pub fn port(&self) -> &T {
        &self.port
    }

    /// Returns the captures.
    pub fn captures_mut(&mut self) -> &mut Captures {
        &mut self.captures
    }

    /// Returns whether frames were received or sent in the last turn.
    pub fn was_busy(&self) -> bool {
        self.busy
    }

    /// Returns the counters of the loop.
    pub fn stats(&self) -> EngineStats {
        self.stats
    }

    /// Reports the counters of the loop, the captures and the port.
    pub fn counters(&self, sink: &mut dyn CounterSink) {
        sink.counter("engine.turns", self.stats.turns);
        sink.counter("engine.waits", self.stats.waits);
        sink.counter("engine.port_full", self.stats.port_full);
        self.captures.counters(sink);
        self.port.counters(sink);
    }

    /// Receives frames, lets the application act, and sends the frames that result. Returns true if there may be more to do immediately.
    ///
    /// # Errors
    /// The port is gone.
    pub fn turn(&mut self, application: &mut impl Application) -> io::Result<bool> {
        self.turn_at(self.clock.now(), application)
    }

    /// Does what [`turn`](Self::turn) does, at a time that the caller chooses.
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
        if self.captures.is_active() {
            for frame in &self.received {
                let path = application.path_of(&self.host, Way::In, frame);
                self.captures.frame(now, Way::In, frame, path);
            }
        }
        let full = self.received.len() >= crate::port::RECEIVE_BATCH;
        application.receive(now, &mut self.host, self.received.drain(..));
        application.handle(now, &mut self.host);
        let more = self.transmit(now, application)?;
        if self.captures.is_active() {
            self.captures.serve(now);
        }
        Ok(full || more)
    }

    /// Sends pending frames; returns true if there are more.
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
            if self.captures.is_active() {
                for frame in self.batch.last_sent(waiting - self.batch.len()) {
                    let path = application.path_of(&self.host, Way::Out, frame);
                    self.captures.frame(now, Way::Out, frame, path);
                }
            }
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

    /// Lets the application end its connections in one turn, resets those that remain, and waits until the resets are sent.
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

    /// Waits until the port, a timer, `due` or a descriptor in `others` needs attention, for 100 ms at most. Returns which of `others` are
    /// ready, in their order.
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
