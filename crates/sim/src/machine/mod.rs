//! The simulated machine: a server, its NIC, a wire and clients, joined by one queue of events.
//!
//! The machine asks a component for one piece of work, lets it act, asks what it cost, and makes that much time pass
//! before anybody sees the effects. Each component has at most one pending event of each kind, so the event queue stays
//! short however many connections there are.

mod capture;
mod clients;
mod crossings;
mod delay;
mod host_side;
mod meter;
mod names;
mod nic_side;
mod outbox;
mod violation;

pub use capture::{Capture, Link};
pub use violation::Violation;

use crate::EventQueue;
use crate::config::{Experiment, Invalid};
use crate::hardware::Wire;
use crate::results::{Ended, HandoffResults, Results, Sample};
use baton_bus::Accounting;
use baton_nic::ToHost;
use baton_tcp::{Segment, Symbolic};
use baton_wire::{Endpoint, Span, Time};
use baton_workload::Workload;
use capture::Taps;
use clients::Clients;
use host_side::HostSide;
use names::{counts, since};
use nic_side::NicSide;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Where the server listens.
const SERVER: Endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);

/// Room that the ring to the host must have before the NIC starts a piece of work: more than one piece can fill.
pub(crate) const HOST_RING_RESERVE: usize = 64;

/// Events between two looks at the observer.
const OBSERVE_EVERY: u64 = 16_384;

/// What can happen next. At most one of each is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Tick {
    /// The host's processor finishes its piece of work.
    HostDone,
    /// The driver posts a descriptor.
    Descriptors,
    /// The NIC's processor finishes its piece of work.
    NicDone,
    /// A frame reaches the NIC.
    AtNic,
    /// A frame reaches the clients.
    AtClients,
    /// Interrupt coalescing ends.
    Interrupt,
    /// A timer of the host's stack is due.
    HostTimer,
    /// A timer of the NIC's stack is due.
    NicTimer,
    /// A client's timer or wake-up is due.
    ClientTimer,
    /// An open loop's next connection is due.
    ClientOpen,
    /// The time series wants a point.
    Sample,
}

const TICKS: usize = Tick::Sample as usize + 1;

/// Watches a run and may end it.
pub trait Observer {
    /// `done` of `total` packets have been simulated.
    fn progress(&mut self, done: u64, total: u64);
    /// The run is to stop without a result.
    fn cancelled(&self) -> bool {
        false
    }
}

/// An observer that does not care.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn progress(&mut self, _done: u64, _total: u64) {}
}

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The experiment cannot be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The workload cannot be had.
    #[error("{0}")]
    Workload(String),
    /// A capture could not be written.
    #[error("cannot write the capture: {0}")]
    Capture(#[from] std::io::Error),
    /// The observer cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// An end-to-end check failed.
    #[error("at {time:?} with seed {seed}: {violation}")]
    #[allow(missing_docs)]
    Violation {
        seed: u64,
        time: Time,
        violation: Violation,
    },
}

/// A server, its NIC, a wire and clients.
pub struct Machine {
    experiment: Experiment,
    now: Time,
    queue: EventQueue<Tick>,
    /// When each kind of event is due; an event in the queue with another time is stale.
    due: [Time; TICKS],
    host: HostSide,
    nic: NicSide,
    to_nic: Wire<Segment<Symbolic>>,
    to_clients: Wire<Segment<Symbolic>>,
    clients: Clients,
    bus: Accounting,
    taps: Taps,
    packets: u64,
    series: Vec<Sample>,
    responses_before: u64,
    handoffs_before: HandoffResults,
}

impl Machine {
    /// A machine at time zero, quiet.
    ///
    /// # Errors
    /// The experiment has a value that cannot be, or a capture cannot be made.
    pub fn new(
        experiment: &Experiment,
        workload: Box<dyn Workload + Send>,
        captures: &[Capture],
    ) -> Result<Self, RunError> {
        experiment.validate()?;
        let seed = experiment.run.seed;
        let wire = |salt: u64| {
            Wire::new(&experiment.wire, seed ^ salt).map_err(|e| Invalid::from(e.within("wire")))
        };
        let mut machine = Self {
            now: Time::ZERO,
            queue: EventQueue::with_capacity(64),
            due: [Time::NEVER; TICKS],
            host: HostSide::new(experiment, SERVER)?,
            nic: NicSide::new(experiment)?,
            to_nic: wire(1)?,
            to_clients: wire(2)?,
            clients: Clients::new(experiment, SERVER, workload),
            bus: Accounting::default(),
            taps: Taps::new(captures)?,
            packets: 0,
            series: Vec::new(),
            responses_before: 0,
            handoffs_before: HandoffResults::default(),
            experiment: experiment.clone(),
        };
        machine.arm(Tick::ClientTimer, machine.clients.poll_timeout());
        machine.arm(
            Tick::ClientOpen,
            machine
                .clients
                .open_interval()
                .map(|interval| Time::ZERO + interval),
        );
        machine.arm(Tick::Sample, Some(Time::ZERO));
        Ok(machine)
    }

    /// Frames at the server's NIC so far, both directions.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Runs the whole experiment.
    ///
    /// # Errors
    /// The observer cancelled it, an end-to-end check failed, or a capture could not be written.
    pub fn run(mut self, commit: &str, observer: &mut dyn Observer) -> Result<Results, RunError> {
        let warmup = self.experiment.run.warmup_packets;
        let total = warmup + self.experiment.run.measured_packets;
        let early = self.run_until(warmup, total, observer)?;
        let started = self.now;
        let packets_before = self.packets;
        self.restart_counts();
        let ended = match early {
            Ended::Complete => self.run_until(total, total, observer)?,
            ended => ended,
        };
        self.taps.finish()?;
        Ok(self.results(commit, started, packets_before, ended))
    }

    /// Runs until `packets` frames have been at the server's NIC.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_until(
        &mut self,
        packets: u64,
        total: u64,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        let limit = Time::ZERO + Span::from_secs(self.experiment.run.limit_s);
        let mut events = 0u64;
        while self.packets < packets {
            let Some((time, tick)) = self.queue.pop() else {
                return Ok(Ended::Quiet);
            };
            if self.due[tick as usize] != time {
                continue;
            }
            if time > limit {
                return Ok(Ended::TimeLimit);
            }
            self.due[tick as usize] = Time::NEVER;
            self.now = time;
            self.handle(tick)
                .map_err(|violation| self.violated(violation))?;
            self.taps.error()?;
            if self.experiment.run.check {
                self.check();
            }
            events += 1;
            if events.is_multiple_of(OBSERVE_EVERY) {
                observer.progress(self.packets, total);
                if observer.cancelled() {
                    return Err(RunError::Cancelled);
                }
            }
        }
        Ok(Ended::Complete)
    }

    /// Asserts every invariant of host, NIC and clients.
    pub fn check(&self) {
        self.host.kernel.check();
        self.nic.firmware.check();
        self.clients.check();
    }

    fn violated(&self, violation: Violation) -> RunError {
        RunError::Violation {
            seed: self.experiment.run.seed,
            time: self.now,
            violation,
        }
    }

    fn arm(&mut self, tick: Tick, due: Option<Time>) {
        let Some(due) = due else { return };
        let due = due.max(self.now);
        if due < self.due[tick as usize] {
            self.due[tick as usize] = due;
            self.queue.push(due, tick);
        }
    }

    fn handle(&mut self, tick: Tick) -> Result<(), Violation> {
        let now = self.now;
        match tick {
            Tick::HostDone => self.host_done(),
            Tick::Descriptors => self.deliver_descriptors(),
            Tick::NicDone => self.nic_done(),
            Tick::AtNic => self.frame_at_nic(),
            Tick::AtClients => self.frame_at_clients()?,
            Tick::Interrupt => self.interrupt_due(),
            Tick::HostTimer => self.drive_host(),
            Tick::NicTimer => {
                self.nic.firmware.handle_timeouts(now);
                self.drive_nic();
            }
            Tick::ClientTimer => {
                self.clients.handle_timeouts(now)?;
                self.clients_acted();
            }
            Tick::ClientOpen => {
                self.clients.open_one(now);
                self.arm(
                    Tick::ClientOpen,
                    self.clients.open_interval().map(|interval| now + interval),
                );
                self.clients_acted();
            }
            Tick::Sample => self.sample(),
        }
        Ok(())
    }

    // --- host ---

    /// Starts the host's next piece of work unless it is busy.
    fn drive_host(&mut self) {
        while !self.host.busy {
            let Some(end) = self.host.work(self.now) else {
                break;
            };
            if end > self.now {
                self.host.busy = true;
                self.arm(Tick::HostDone, Some(end));
            }
            self.expect_descriptors();
        }
        if !self.host.busy {
            self.arm(Tick::HostTimer, self.host.kernel.poll_timeout());
        }
    }

    fn host_done(&mut self) {
        self.host.busy = false;
        self.drive_host();
        // The handler may just have ended with entries still waiting, or room made for the NIC.
        self.request_interrupt();
        self.drive_nic();
    }

    /// Hands the host's packets and commands that are posted by now to the NIC, in order, as far as its queues take them.
    fn deliver_descriptors(&mut self) {
        while let Some((posted, descriptor)) = self.host.outbox.take(self.now) {
            let crossing = crossings::of_descriptor(&descriptor);
            match self.nic.firmware.handle_descriptor(self.now, descriptor) {
                Ok(()) => crossing.count(&mut self.bus),
                Err(descriptor) => self.host.outbox.give_back(posted, descriptor),
            }
        }
        self.expect_descriptors();
        self.drive_nic();
    }

    /// Looks forward to the next descriptor for which the NIC may have room.
    fn expect_descriptors(&mut self) {
        self.arm(Tick::Descriptors, self.host.outbox.next());
    }

    /// Interrupts the host now or arms the coalescing timer.
    fn request_interrupt(&mut self) {
        let waiting = self.host.ring.len();
        if waiting == 0 || !self.host.takes_interrupts() {
            return;
        }
        if waiting >= self.nic.interrupt_count || self.nic.interrupt_delay == Span::ZERO {
            self.interrupt_due();
        } else {
            self.arm(Tick::Interrupt, Some(self.now + self.nic.interrupt_delay));
        }
    }

    fn interrupt_due(&mut self) {
        self.due[Tick::Interrupt as usize] = Time::NEVER;
        if !self.host.ring.is_empty() && self.host.takes_interrupts() {
            self.host.raise_interrupt();
            self.drive_host();
        }
    }

    // --- NIC ---

    /// Starts the NIC's next piece of work unless it is busy or the ring to the host is nearly full.
    fn drive_nic(&mut self) {
        while !self.nic.busy && self.host.ring.free() > HOST_RING_RESERVE {
            let Some(end) = self.nic.work(self.now) else {
                break;
            };
            if end > self.now {
                self.nic.busy = true;
                self.arm(Tick::NicDone, Some(end));
            } else {
                self.release_nic_output();
            }
        }
        // A timer that is due while the NIC is busy becomes work that waits its turn.
        self.arm(Tick::NicTimer, self.nic.firmware.poll_timeout());
    }

    fn nic_done(&mut self) {
        self.nic.busy = false;
        self.release_nic_output();
        if self.host.outbox.retry() {
            self.deliver_descriptors();
        }
        self.drive_nic();
    }

    /// Puts the NIC's frames on the wire and its descriptors into host memory.
    fn release_nic_output(&mut self) {
        let now = self.now;
        while let Some(frame) = self.nic.firmware.poll_frame() {
            self.packets += 1;
            match frame.host_since {
                Some(since) => {
                    self.nic.host_packets += 1;
                    self.nic.send_delay.record(now - since);
                }
                None => {
                    self.nic.nic_packets_sent += 1;
                    crossings::of_offloaded_data(&frame.segment).count(&mut self.bus);
                }
            }
            self.taps.frame(now, &frame.segment);
            self.to_clients
                .send(now, frame.segment.frame_len(), frame.segment);
        }
        while let Some(upcall) = self.nic.firmware.poll_upcall() {
            if let Some(since) = upcall.host_since {
                self.nic.host_packets += 1;
                self.nic.receive_delay.record(now - since);
            }
            crossings::of_upcall(&upcall.item).count(&mut self.bus);
            self.push_upcall(upcall.item);
        }
        self.arm(Tick::AtClients, self.to_clients.next_arrival());
        self.request_interrupt();
    }

    fn push_upcall(&mut self, item: ToHost<Symbolic>) {
        let pushed = self.host.ring.try_push(item);
        assert!(
            pushed.is_ok(),
            "the NIC leaves room in the ring before it works"
        );
    }

    // --- wire and clients ---

    fn frame_at_nic(&mut self) {
        while let Some(segment) = self.to_nic.receive(self.now) {
            self.packets += 1;
            self.taps.frame(self.now, &segment);
            // A drop is counted by the firmware with its reason.
            let _ = self.nic.firmware.handle_frame(self.now, segment);
        }
        self.arm(Tick::AtNic, self.to_nic.next_arrival());
        self.drive_nic();
    }

    fn frame_at_clients(&mut self) -> Result<(), Violation> {
        while let Some(segment) = self.to_clients.receive(self.now) {
            self.clients.handle_segment(self.now, segment)?;
        }
        self.arm(Tick::AtClients, self.to_clients.next_arrival());
        self.clients_acted();
        Ok(())
    }

    fn clients_acted(&mut self) {
        while let Some(segment) = self.clients.poll_transmit(self.now) {
            self.to_nic.send(self.now, segment.frame_len(), segment);
        }
        self.arm(Tick::AtNic, self.to_nic.next_arrival());
        self.arm(Tick::ClientTimer, self.clients.poll_timeout());
    }

    // --- measurement ---

    fn sample(&mut self) {
        let firmware = &self.nic.firmware;
        let owned = self.host.kernel.connections();
        self.series.push(Sample {
            time_us: self.now.as_ps() / 1_000_000,
            open: owned.host + owned.on_nic(),
            connections: firmware.connections(),
            qlen: firmware.qlen(),
            soft_limit: firmware.soft_limit(),
            responses: self.responses_before + self.clients.measured.responses,
        });
        self.arm(
            Tick::Sample,
            Some(self.now + Span::from_us(self.experiment.run.sample_us)),
        );
    }

    fn restart_counts(&mut self) {
        self.responses_before = self.clients.measured.responses;
        self.handoffs_before = self.handoffs();
        self.host.restart_counts(self.now);
        self.nic.restart_counts(self.now);
        self.clients.restart_counts();
        self.bus = Accounting::default();
    }

    /// Handoffs since the start of the run.
    fn handoffs(&self) -> HandoffResults {
        let stats = self.host.kernel.stats();
        HandoffResults {
            attempted: stats.handoffs_attempted,
            accepted: stats.handoffs_accepted,
            restored: stats.restored,
            forwarded: stats.forwarded,
            not_offloaded: counts(stats.not_offloaded()),
            offloaded_packets_percent: 0.0,
        }
    }

    fn handoffs_measured(&self) -> HandoffResults {
        let (before, now) = (&self.handoffs_before, self.handoffs());
        let host = self.nic.host_packets;
        let nic = self.nic.nic_packets();
        HandoffResults {
            attempted: now.attempted - before.attempted,
            accepted: now.accepted - before.accepted,
            restored: now.restored - before.restored,
            forwarded: now.forwarded - before.forwarded,
            not_offloaded: since(&before.not_offloaded, now.not_offloaded),
            offloaded_packets_percent: 100.0 * nic as f64 / (host + nic).max(1) as f64,
        }
    }

    fn results(&self, commit: &str, started: Time, packets_before: u64, ended: Ended) -> Results {
        let measured = self.now - started;
        let from_us = started.as_ps() / 1_000_000;
        let samples: Vec<_> = self
            .series
            .iter()
            .filter(|sample| sample.time_us >= from_us)
            .collect();
        let on_nic: u64 = samples
            .iter()
            .map(|sample| u64::from(sample.connections))
            .sum();
        let connections_mean = on_nic as f64 / samples.len().max(1) as f64;
        Results {
            version: 1,
            experiment: self.experiment.clone(),
            commit: commit.to_owned(),
            workload: BTreeMap::new(),
            warmup_s: started.as_secs_f64(),
            measured_s: measured.as_secs_f64(),
            packets: self.packets - packets_before,
            ended,
            clients: self.clients.results(measured),
            host: self
                .host
                .results(self.now, self.nic.host_packets, self.nic.nic_packets()),
            nic: self.nic.results(self.now, connections_mean),
            handoff: self.handoffs_measured(),
            bus: self.bus,
            series: self.series.clone(),
        }
    }
}
