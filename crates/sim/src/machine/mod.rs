//! The simulated machine: a server, its NICs, their wires and clients, joined by one timetable of events.
//!
//! The machine asks a component for one piece of work, lets it act, asks what it cost, and makes that much time pass
//! before anybody sees the effects. Each component has at most one pending event of each kind, so the timetable is
//! short however many connections there are.

mod application;
mod builder;
mod cache_counts;
mod capture;
mod changes;
mod clients;
mod delay;
mod host_processor;
mod measure;
mod meter;
mod names;
mod nic_processor;
mod pages;
mod port;
mod program;
mod server;
mod server_events;
mod storage;
mod subnets;
mod tick;
mod timetable;
mod violation;
mod wires;

pub use builder::MachineBuilder;
pub use capture::{Capture, Link};
pub(crate) use tick::MOST_NICS;
pub use violation::Violation;

use crate::config::{Experiment, Invalid, Length};
use crate::results::{Ended, HandoffResults, Results, Sample};
use crate::run::Load;
use baton_host::FileCacheStats;
use baton_wire::{Span, Time};
use builder::Policies;
use capture::Taps;
use clients::Clients;
use host_processor::HostProcessor;
use port::Port;
use server::Server;
use storage::Storage;
use tick::{NicTick, Tick};
use timetable::Timetable;

/// Events between two looks at the observer.
const OBSERVE_EVERY: u64 = 16_384;

/// Watches a run and may end it.
pub trait Observer {
    /// `done` of `total` packets, or responses, have been simulated.
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

/// A server, its NICs, their wires and clients.
pub struct Machine {
    experiment: Experiment,
    now: Time,
    timetable: Timetable,
    host: HostProcessor,
    /// One for each NIC.
    ports: Vec<Port>,
    storage: Storage,
    clients: Clients,
    server: Server,
    taps: Taps,
    packets: u64,
    series: Vec<Sample>,
    responses_before: u64,
    handoffs_before: HandoffResults,
    file_cache_before: FileCacheStats,
}

impl Machine {
    /// A machine at time zero, quiet.
    ///
    /// # Errors
    /// The experiment has a value that cannot be, or a capture cannot be made.
    fn new(
        experiment: &Experiment,
        load: Load,
        captures: &[Capture],
        policies: Policies,
    ) -> Result<Self, RunError> {
        experiment.validate()?;
        let of_nics = experiment.of_nics()?;
        let server = Server::new(experiment, &of_nics, policies, &*load[0])?;
        let ports = (0..).zip(&of_nics);
        let ports = ports.map(|(number, of_nic)| Port::new(of_nic, number));
        let ports = ports.collect::<Result<_, _>>()?;
        let mut machine = Self {
            now: Time::ZERO,
            timetable: Timetable::new(),
            host: HostProcessor::new(experiment)?,
            ports,
            storage: Storage::new(experiment).map_err(|e| Invalid::from(e.within("disk")))?,
            clients: Clients::new(experiment, load),
            server,
            taps: Taps::new(captures, experiment)?,
            packets: 0,
            series: Vec::new(),
            responses_before: 0,
            handoffs_before: HandoffResults::default(),
            file_cache_before: FileCacheStats::default(),
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
        machine.expect_server();
        Ok(machine)
    }

    /// Frames at the server's NICs so far, both directions.
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
        let [warmup, measured] = self.experiment.run.lengths();
        let total = measured.after(warmup);
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

    /// Runs until the length from the start of the run is `length`; the observer is told how much of `total` that is.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_until(
        &mut self,
        length: Length,
        total: Length,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        let limit = Time::ZERO + Span::from_secs(self.experiment.run.limit_s);
        let mut events = 0u64;
        while self.done(length) < length.count() {
            let Some((time, tick)) = self.timetable.take_next() else {
                return Ok(Ended::Quiet);
            };
            if time > limit {
                return Ok(Ended::TimeLimit);
            }
            self.now = time;
            self.handle(tick)
                .map_err(|violation| self.violated(violation))?;
            self.taps.error()?;
            if self.experiment.run.check {
                self.check();
            }
            events += 1;
            if events.is_multiple_of(OBSERVE_EVERY) {
                observer.progress(self.done(total), total.count());
                if observer.cancelled() {
                    return Err(RunError::Cancelled);
                }
            }
        }
        Ok(Ended::Complete)
    }

    /// What there has been of what `length` counts.
    #[inline]
    fn done(&self, length: Length) -> u64 {
        match length {
            Length::Packets(_) => self.packets,
            Length::Responses(_) => self.responses_before + self.clients.measured.responses,
        }
    }

    /// Asserts every invariant of host, NICs and clients.
    pub fn check(&self) {
        self.clients.check();
        self.server.check();
    }

    fn violated(&self, violation: Violation) -> RunError {
        RunError::Violation {
            seed: self.experiment.run.seed,
            time: self.now,
            violation,
        }
    }

    #[inline]
    fn arm(&mut self, tick: Tick, due: Option<Time>) {
        let Some(due) = due else { return };
        self.timetable.arm(tick, due.max(self.now));
    }

    fn handle(&mut self, tick: Tick) -> Result<(), Violation> {
        let now = self.now;
        match tick {
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
            Tick::Disk => self.disk_done(),
            Tick::Server => self.server_due()?,
            Tick::Nic(tick, nic) => match tick {
                NicTick::AtNic => self.frame_at_nic(nic),
                NicTick::AtClients => self.frame_at_clients(nic)?,
            },
        }
        Ok(())
    }
}
