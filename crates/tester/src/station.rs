//! An interface of this machine that takes part in a test.

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

/// After the sender is done nothing more comes when nothing came for so long.
const QUIET_NS: u64 = 30_000_000;
/// A receiver that waits looks so often whether it is to end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// Reads of a port that is emptied before a trial, at most.
const MOST_DRAINS: usize = 1 << 20;

/// An interface, and how frames get in and out.
pub struct Station {
    /// How frames get in and out.
    port: Box<dyn Port + Send>,
    /// What the kernel counts; there is nothing to ask where the port is in memory.
    watch: Option<LinkWatch>,
    /// Keeps the frames of tests from the kernel's IP.
    _withheld: Option<Withheld>,
    /// The network namespace of the interface.
    namespace: Option<String>,
    /// The port is the end that is not the kernel's, as of a TAP device.
    is_far_end: bool,
    /// The processor that it works on.
    core: Option<usize>,
    clock: Clock,
    frames: Vec<Bytes>,
    before: Counts,
    outcome: Outcome,
}

impl Station {
    /// An interface of this machine, whose time is that of `clock`.
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

    /// With what keeps the frames of tests from the kernel's IP, as long as it is there.
    #[must_use]
    pub fn with_withheld(self, withheld: Option<Withheld>) -> Self {
        Self {
            _withheld: withheld,
            ..self
        }
    }

    /// What it is attached to.
    pub fn link(&self) -> &LinkInfo {
        self.port.link()
    }

    /// Lets it work on one processor only.
    pub fn set_core(&mut self, core: usize) {
        self.core = Some(core);
    }

    /// The processor that it works on, if it is one.
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Before a trial: forgets frames that wait, and looks at all counters.
    ///
    /// # Errors
    /// The interface is gone.
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

    /// Does its part of a trial.
    ///
    /// # Errors
    /// The interface is gone.
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

    /// After a trial: what came of it.
    ///
    /// # Errors
    /// The interface is gone.
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
                    // An interrupted wait is a short one.
                    let _ = poll(&mut fds, Some(&LOOK));
                }
                (true, None, None) => std::thread::yield_now(),
                (true, Some(_), _) => std::hint::spin_loop(),
                (false, ..) => {}
            }
        }
        Ok(())
    }

    /// Sends what is due; true if there was anything.
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

    /// Takes in what has come; true if there was anything.
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

/// What is sent and received in a trial with datagrams.
struct Exchange {
    source: Option<(u8, Source)>,
    sink: Option<(u8, Sink)>,
    /// When the last frame of the stream came, or the sender was seen to be done.
    quiet_since_ns: u64,
    idle_ns: u64,
}

impl Exchange {
    /// Nothing more will come.
    fn has_received_all(&self, now_ns: u64, signal: &Signal) -> bool {
        let Some((stream, sink)) = &self.sink else {
            return true;
        };
        signal.handed(*stream).is_some_and(|handed| {
            sink.delivered() >= handed || now_ns.saturating_sub(self.quiet_since_ns) > QUIET_NS
        })
    }
}
