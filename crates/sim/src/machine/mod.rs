//! The simulated machine: a server, its NICs, their wires and clients, driven by one timetable of events.
//!
//! The machine asks a component for one piece of work, lets it act, asks for the cost, and lets that much time pass before other components
//! see the effects. Each component has at most one pending event of each kind, so the timetable is short however many connections there
//! are.

mod application;
mod builder;
mod cache_counts;
mod capture;
mod changes;
mod clients;
mod delay;
mod goal;
mod host_processor;
mod long_run;
mod marks;
mod measure;
mod meter;
pub(crate) mod names;
mod nic_processor;
mod pages;
mod port;
mod program;
mod response_time;
mod server;
mod server_events;
mod storage;
mod subnets;
mod system_calls;
mod tick;
mod timeline;
mod timetable;
mod violation;
mod wires;

pub use builder::MachineBuilder;
pub use capture::{Capture, Link};
pub use host_processor::HostProcessor;
pub use meter::{HostMeter, NicMeter};
pub use system_calls::{KernelSockets, SystemCalls};
pub(crate) use tick::MOST_NICS;
pub use timeline::Timeline;
pub use violation::Violation;

use crate::config::{Experiment, Invalid, Length};
use crate::results::{Ended, HandoffResults, NotSteady, Results, Sample};
use crate::run::Load;
use baton_kernel::FileCacheStats;
use baton_timeline::Summary;
use baton_wire::{Span, Time};
use builder::Policies;
use capture::Taps;
use clients::Clients;
use goal::Goal;
use marks::{Mark, Marks};
use measure::Started;
use port::Port;
use server::Server;
use storage::Storage;
use tick::{NicTick, Tick};
use timetable::Timetable;

/// Number of events between two calls of the observer.
const OBSERVE_EVERY: u64 = 16_384;

/// Number of events after each of which everything is checked, in a run that checks.
const CHECK_EACH: u64 = 16_384;

/// Returns whether everything is checked after this event. The gaps double whenever the run has become twice as long, so that runs with
/// checks end.
fn is_checked(event: u64) -> bool {
    event.is_multiple_of((event / CHECK_EACH).max(1).next_power_of_two())
}

/// Watches a run and may cancel it.
pub trait Observer {
    /// Reports the share of the run that has been simulated, as far as is known now.
    fn progress(&mut self, share: f64);
    /// Returns whether the run is to stop without a result.
    fn cancelled(&self) -> bool {
        false
    }
    /// Reports the content of the timeline that was requested.
    fn timeline(&mut self, _summary: &Summary) {}
}

/// An observer that ignores all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn progress(&mut self, _share: f64) {}
}

/// Reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The experiment is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The workload cannot be loaded.
    #[error("{0}")]
    Workload(String),
    /// A capture could not be written.
    #[error("cannot write the capture: {0}")]
    Capture(#[from] std::io::Error),
    /// The timeline could not be written.
    #[error("cannot write the timeline: {0}")]
    Timeline(std::io::Error),
    /// The run ended before the timeline's window opened.
    #[error("the timeline is empty; expected a window that begins before the run ends, at {:.6} s", ended.as_secs_f64())]
    #[allow(missing_docs)]
    Unreached { ended: Time },
    /// The observer cancelled the run.
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
    /// One port per NIC.
    ports: Vec<Port>,
    storage: Storage,
    clients: Clients,
    server: Server,
    taps: Taps,
    series: Vec<Sample>,
    marks: Marks,
    responses_before: u64,
    handoffs_before: HandoffResults,
    file_cache_before: FileCacheStats,
}

impl Machine {
    /// Creates a machine at time zero, without any activity.
    ///
    /// # Errors
    /// The experiment has an invalid value, or a capture cannot be created.
    fn new(
        experiment: &Experiment,
        load: Load,
        taps: Taps,
        policies: Policies,
    ) -> Result<Self, RunError> {
        let of_nics = experiment.of_nics()?;
        let server = Server::new(experiment, &of_nics, policies, &*load[0])?;
        let ports = (0..).zip(&of_nics);
        let ports = ports.map(|(number, of_nic)| Port::new(of_nic, number));
        let ports = ports.collect::<Result<_, _>>()?;
        let mut machine = Self {
            now: Time::ZERO,
            timetable: Timetable::new(),
            host: HostProcessor::new(&experiment.host, experiment.run.cost_models)
                .map_err(|e| Invalid::from(e.within("host")))?,
            ports,
            storage: Storage::new(experiment).map_err(|e| Invalid::from(e.within("disk")))?,
            clients: Clients::new(experiment, load),
            server,
            taps,
            series: Vec::new(),
            marks: Marks::new(Mark::default()),
            responses_before: 0,
            handoffs_before: HandoffResults::default(),
            file_cache_before: FileCacheStats::default(),
            experiment: experiment.clone(),
        };
        if let (Length::Passes(passes), None) =
            (machine.experiment.run.measured(), machine.clients.log)
        {
            let expected = "another length, because this workload is not a log";
            return Err(Invalid::new("run.measured_passes", passes, expected).into());
        }
        if machine.taps.recorder().is_some() {
            machine.server.keep_for_timeline();
        }
        machine.arm(Tick::ClientTimer, machine.clients.poll_timeout());
        machine.arm(Tick::ClientOpen, machine.clients.next_due());
        machine.arm(Tick::Sample, Some(Time::ZERO));
        machine.expect_server();
        Ok(machine)
    }

    /// Returns the number of frames at the server's NICs so far, both directions.
    pub fn packets(&self) -> u64 {
        self.taps.frames()
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Runs the whole experiment.
    ///
    /// # Errors
    /// The observer cancelled the run, an end-to-end check failed, or a capture could not be written.
    pub fn run(mut self, commit: &str, observer: &mut dyn Observer) -> Result<Results, RunError> {
        let run = self.experiment.run.clone();
        let warmup = self.goal(run.warmup());
        let mut goal = self.goal(run.measured());
        let early = self.run_to(warmup, Some(goal), observer)?;
        let mut started = self.begin_measurement();
        let length = goal;
        goal = self.after_now(length);
        let mut ended = match early {
            Ended::Complete => self.run_to(goal, None, observer)?,
            ended => ended,
        };
        if let Some(percent) = run.until_ci_percent {
            for _ in 1..run.most_lengths {
                let found = self.long_run(started);
                let is_hopeless = found.not_steady.contains(&NotSteady::Saturated);
                if ended != Ended::Complete || found.is_known_to(percent) || is_hopeless {
                    break;
                }
                if found.not_steady.iter().any(|why| why.is_warm_up()) {
                    started = self.begin_measurement();
                }
                goal = self.after_now(length);
                ended = self.run_to(goal, None, observer)?;
            }
        }
        self.record_sample();
        let timeline = self.taps.finish(self.now, &self.experiment, commit)?;
        if let Some(summary) = timeline {
            observer.timeline(&summary);
        }
        Ok(self.results(commit, started, ended))
    }

    /// Starts the measurement.
    fn begin_measurement(&mut self) -> Started {
        self.restart_counts();
        Started {
            at: self.now,
            packets: self.packets(),
            caches_filling: self.caches_are_filling(),
        }
    }

    /// Runs until the run has this length, from the start.
    ///
    /// # Errors
    /// The same as for [`Machine::run`].
    pub fn run_until(
        &mut self,
        length: Length,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        self.run_to(self.goal(length), None, observer)
    }

    /// Runs until `goal`. `after` is only used to report progress to the observer.
    fn run_to(
        &mut self,
        goal: Goal,
        after: Option<Goal>,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        let ended = self.handle_events(goal, after, observer)?;
        // Process everything that has already happened, so that the state that the caller sees is complete.
        let caught_up = self.server.catch_up(self.now);
        caught_up.map_err(|error| self.violated(error.into()))?;
        Ok(ended)
    }

    fn handle_events(
        &mut self,
        goal: Goal,
        after: Option<Goal>,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        let limit = Time::ZERO + Span::from_secs(self.experiment.run.limit_s);
        let mut events = 0u64;
        while !self.has_reached(goal) {
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
            if self.marks.is_due(self.clients.measured.responses) {
                self.marks.push(self.mark());
            }
            if self.experiment.run.check && is_checked(events) {
                self.check();
            }
            events += 1;
            if events.is_multiple_of(OBSERVE_EVERY) {
                observer.progress(self.share(goal, after));
                if observer.cancelled() {
                    return Err(RunError::Cancelled);
                }
            }
        }
        Ok(Ended::Complete)
    }

    /// Returns the number of responses since the start of the run.
    fn responses(&self) -> u64 {
        self.responses_before + self.clients.measured.responses
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
                self.clients.open_due(now);
                self.arm(Tick::ClientOpen, self.clients.next_due());
                self.clients_acted();
            }
            Tick::Sample => self.sample(),
            Tick::Disk => self.disk_done()?,
            Tick::Server => self.server_due()?,
            Tick::Nic(tick, nic) => match tick {
                NicTick::AtNic => self.frame_at_nic(nic)?,
                NicTick::AtClients => self.frame_at_clients(nic)?,
            },
        }
        Ok(())
    }
}
