//! Interfaces of this machine that take part in a test.

use crate::counts::{self, Counts};
use crate::error::TesterError;
use crate::signal::Signal;
use crate::sink::Sink;
use crate::source::{Next, Source};
use crate::stamp::Template;
use crate::task::{Outcome, StreamEnds, Task, Work};
use crate::tcp;
use baton_live::port::{LinkInfo, LinkWatch, Port};
use baton_live::xdp::Withheld;
use baton_live::{Clock, pin_to_core, within};
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;

/// Silence after the sender is done that ends a trial.
const QUIET_NS: u64 = 30_000_000;
/// How often a waiting receiver checks whether it has to end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// Maximum number of reads to empty a port before a trial.
const MOST_DRAINS: usize = 1 << 20;

/// An interface, with the port that sends and receives its frames.
pub struct Station {
    /// The port that sends and receives frames.
    port: Box<dyn Port + Send>,
    /// The kernel's counters; `None` if the port is in memory.
    watch: Option<LinkWatch>,
    /// Keeps the frames of tests from the kernel's IP.
    _withheld: Option<Withheld>,
    /// The network namespace of the interface.
    namespace: Option<String>,
    /// Whether the port is the far end of the interface, as with a TAP device.
    is_far_end: bool,
    /// The processor to which the station is pinned.
    core: Option<usize>,
    clock: Clock,
    frames: Vec<Bytes>,
    before: Counts,
    outcome: Outcome,
}

impl Station {
    /// Creates a station on an interface of this machine, with the time of `clock`.
    pub fn new(
        port: Box<dyn Port + Send>,
        watch: Option<LinkWatch>,
        namespace: Option<String>,
        is_far_end: bool,
        clock: Clock,
    ) -> Self {
        Self {
            port,
            watch,
            _withheld: None,
            namespace,
            is_far_end,
            core: None,
            clock,
            frames: Vec::new(),
            before: Counts::default(),
            outcome: Outcome::default(),
        }
    }

    /// Adds the guard that keeps the frames of tests from the kernel's IP.
    #[must_use]
    pub fn with_withheld(self, withheld: Option<Withheld>) -> Self {
        Self {
            _withheld: withheld,
            ..self
        }
    }

    /// Returns the link that the station is attached to.
    pub fn link(&self) -> &LinkInfo {
        self.port.link()
    }

    /// Pins the station to one processor.
    pub fn set_core(&mut self, core: usize) {
        self.core = Some(core);
    }

    /// Returns the processor to which the station is pinned, if any.
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Prepares for a trial: discards pending frames, and reads all counters.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn prepare(&mut self) -> Result<(), TesterError> {
        let now = self.clock.now();
        for _ in 0..MOST_DRAINS {
            self.port.receive(now, &mut self.frames)?;
            if self.frames.is_empty() {
                break;
            }
            self.frames.clear();
        }
        self.outcome = Outcome::default();
        self.before = self.count()?;
        Ok(())
    }

    /// Does the station's part of a trial.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn run(&mut self, task: &Task, signal: &Signal) -> Result<(), TesterError> {
        if let Some(core) = self.core {
            pin_to_core(Some(core))?;
        }
        match &task.work {
            Work::Datagrams {
                payload_len,
                send,
                receive,
            } => {
                let template = |stream: &StreamEnds| {
                    Template::new(&stream.ends, *payload_len, stream.stream, task.trial)
                };
                let start = self.now_ns();
                let mut work = Exchange {
                    source: send.map(|(stream, sending)| {
                        (
                            stream.stream,
                            Source::new(template(&stream), sending, start),
                        )
                    }),
                    sink: receive.map(|stream| (stream.stream, Sink::new(template(&stream)))),
                    quiet_since_ns: start,
                    idle_ns: 0,
                };
                self.exchange(&mut work, signal, task.same_clock)?;
                let took = self.now_ns() - start;
                self.outcome.idle = work.idle_ns as f64 / took.max(1) as f64;
            }
            Work::Tcp(work) => {
                let (counts, idle) =
                    tcp::run(work, task.trial, &mut self.port, self.clock, signal)?;
                self.outcome.tcp = Some(counts);
                self.outcome.idle = idle;
            }
        }
        Ok(())
    }

    /// Returns the outcome after a trial.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn finish(&mut self) -> Result<Outcome, TesterError> {
        self.outcome.counts = self.count()?.since(&self.before);
        Ok(std::mem::take(&mut self.outcome))
    }

    fn count(&mut self) -> Result<Counts, TesterError> {
        let Some(watch) = &mut self.watch else {
            return Ok(Counts::of_port_alone(&*self.port, self.is_far_end));
        };
        let name = &self.port.link().name;
        let driver = within(self.namespace.as_deref(), || counts::of_driver(name))?;
        Ok(Counts::take(watch, driver, &*self.port, self.is_far_end)?)
    }

    fn now_ns(&self) -> u64 {
        self.clock.now().as_ps() / 1_000
    }

    /// Sends and receives until both are done.
    fn exchange(
        &mut self,
        work: &mut Exchange,
        signal: &Signal,
        same_clock: bool,
    ) -> io::Result<()> {
        let (mut last_ns, mut was_idle) = (self.now_ns(), false);
        while !signal.is_aborted() {
            let now_ns = self.now_ns();
            if was_idle {
                work.idle_ns += now_ns - last_ns;
            }
            last_ns = now_ns;
            let sent = self.send(work, now_ns, signal)?;
            let received = self.receive(work, now_ns)?;
            if work.source.is_none() && work.has_received_all(now_ns, signal) {
                if let Some((_, sink)) = work.sink.take() {
                    self.outcome.arrivals = Some(sink.into_arrivals(same_clock));
                }
                return Ok(());
            }
            was_idle = !sent && !received;
            match (was_idle, &work.source, self.port.fd()) {
                (true, None, Some(fd)) => {
                    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
                    // An interrupted wait is just a shorter one.
                    let _ = poll(&mut fds, Some(&LOOK));
                }
                (true, None, None) => std::thread::yield_now(),
                (true, Some(_), _) => std::hint::spin_loop(),
                (false, ..) => {}
            }
        }
        Ok(())
    }

    /// Sends frames that are due; returns true if there were any.
    fn send(&mut self, work: &mut Exchange, now_ns: u64, signal: &Signal) -> io::Result<bool> {
        let Some((stream, source)) = &mut work.source else {
            return Ok(false);
        };
        let next = source.turn(now_ns, &mut *self.port)?;
        if next == Next::Done {
            let stream = *stream;
            work.quiet_since_ns = now_ns;
            if let Some((_, source)) = work.source.take() {
                signal.done(stream, source.handed());
                self.outcome.departures = Some(source.into_departures());
            }
        }
        Ok(next == Next::Sent)
    }

    /// Receives pending frames; returns true if there were any.
    fn receive(&mut self, work: &mut Exchange, now_ns: u64) -> io::Result<bool> {
        let Some((_, sink)) = &mut work.sink else {
            return Ok(false);
        };
        let now = Time::ZERO + Span::from_ns(now_ns);
        self.port.receive(now, &mut self.frames)?;
        let any = !self.frames.is_empty();
        for frame in self.frames.drain(..) {
            if sink.handle(now_ns, &frame) {
                work.quiet_since_ns = now_ns;
            }
        }
        Ok(any)
    }
}

/// The stream to send and the stream to receive in a trial with datagrams.
struct Exchange {
    source: Option<(u8, Source)>,
    sink: Option<(u8, Sink)>,
    /// When the last frame of the stream arrived, or the end of the sender was noticed.
    quiet_since_ns: u64,
    idle_ns: u64,
}

impl Exchange {
    /// Returns whether no more frames are expected.
    fn has_received_all(&self, now_ns: u64, signal: &Signal) -> bool {
        let Some((stream, sink)) = &self.sink else {
            return true;
        };
        signal.handed(*stream).is_some_and(|handed| {
            sink.delivered() >= handed || now_ns.saturating_sub(self.quiet_since_ns) > QUIET_NS
        })
    }
}
