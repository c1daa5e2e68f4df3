//! A router on ports: the loop that takes frames from each of them and gives them to the one by which they leave.

use crate::clock::Clock;
use crate::error::LiveError;
use crate::port::{Batch, CounterSink, Port, RECEIVE_BATCH};
use baton_inet::{Router, Verdict};
use baton_iolib::sleep;
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags};
use std::io;

/// The loop looks at least so often whether it is to end.
const LONGEST_WAIT: Span = Span::from_ms(100);
/// Frames that wait for room at a port; what comes for it then is dropped, as by a full queue.
const MOST_WAITING: usize = 1024;

/// One of the router's ends.
struct End<T> {
    port: T,
    batch: Batch,
}

/// A router on ports, each by the number of its interface.
pub struct Forwarding<T> {
    router: Router,
    ends: Vec<End<T>>,
    clock: Clock,
    received: Vec<Bytes>,
    /// The frame that is looked at: it is rewritten, and ports lend theirs.
    frame: Vec<u8>,
    /// Frames dropped because too many waited for the port.
    queue_full: u64,
}

impl<T: Port> Forwarding<T> {
    /// Joins them.
    ///
    /// # Panics
    /// When there are not as many ports as interfaces.
    pub fn new(router: Router, ports: Vec<T>, clock: Clock) -> Self {
        assert_eq!(router.interfaces().len(), ports.len(), "a port for each");
        let end = |port| End {
            port,
            batch: Batch::default(),
        };
        Self {
            router,
            ends: ports.into_iter().map(end).collect(),
            clock,
            received: Vec::new(),
            frame: Vec::new(),
            queue_full: 0,
        }
    }

    /// The router.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Tells what it has counted, and what its ports have, `0.` and so on before the names of these.
    pub fn counters(&self, sink: &mut dyn CounterSink) {
        let stats = self.router.stats();
        sink.counter("router.forwarded", stats.forwarded);
        sink.counter("router.waited", stats.waited);
        sink.counter("router.fragmented", stats.fragmented);
        sink.counter("router.fragments", stats.fragments);
        sink.counter("router.queue_full", self.queue_full);
        for (reason, count) in stats.refused.iter() {
            sink.counter(&format!("router.refused.{reason:?}"), count);
        }
        for (number, end) in self.ends.iter().enumerate() {
            let mut of_port = |name: &str, value| sink.counter(&format!("{number}.{name}"), value);
            end.port.counters(&mut of_port);
        }
    }

    /// Forwards until `stop` says so.
    ///
    /// # Errors
    /// A port is gone.
    pub fn run(&mut self, stop: impl Fn() -> bool) -> Result<(), LiveError> {
        let gone = || LiveError::failed("an interface can no longer be used");
        while !stop() {
            if !self.turn().map_err(gone())? {
                self.wait()
                    .map_err(LiveError::failed("cannot wait for frames"))?;
            }
        }
        Ok(())
    }

    /// Takes in what has come and sends what follows. True when there may be more at once.
    ///
    /// # Errors
    /// A port is gone.
    pub fn turn(&mut self) -> io::Result<bool> {
        let now = self.clock.now();
        let mut more = false;
        for at in 0..self.ends.len() {
            self.ends[at].port.receive(now, &mut self.received)?;
            more |= self.received.len() >= RECEIVE_BATCH;
            let mut received = std::mem::take(&mut self.received);
            received
                .drain(..)
                .for_each(|frame| self.take(now, at, &frame));
            self.received = received;
        }
        if self.router.poll_timeout().is_some_and(|due| due <= now) {
            self.router.handle_timeouts(now);
        }
        let router = &mut self.router;
        for (at, End { port, batch }) in self.ends.iter_mut().enumerate() {
            while batch.push_with(|frame| router.poll_frame(now, at, frame)) {}
            if !batch.is_empty() {
                port.send(now, batch)?;
            }
        }
        Ok(more)
    }

    fn take(&mut self, now: Time, at: usize, frame: &[u8]) {
        self.frame.clear();
        self.frame.extend_from_slice(frame);
        let verdict = self.router.handle_frame(now, at, &mut self.frame);
        let Verdict::Forward { interface, len } = verdict else {
            return;
        };
        let batch = &mut self.ends[interface].batch;
        if batch.len() >= MOST_WAITING {
            self.queue_full += 1;
            return;
        }
        batch.push(&self.frame[..len]);
    }

    /// Waits until something can have happened, at most a tenth of a second.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let ports = self.ends.iter().filter_map(|end| end.port.poll_timeout());
        let due = ports.chain(self.router.poll_timeout()).min();
        let until = due.map_or(now + LONGEST_WAIT, |due| due.min(now + LONGEST_WAIT));
        let mut fds = Vec::with_capacity(self.ends.len());
        for end in &self.ends {
            let mut interest = PollFlags::IN;
            interest.set(PollFlags::OUT, !end.batch.is_empty());
            fds.extend(
                end.port
                    .fd()
                    .map(|fd| PollFd::from_borrowed_fd(fd, interest)),
            );
        }
        sleep(&mut fds, Some(until.saturating_since(now).into()))
    }
}
