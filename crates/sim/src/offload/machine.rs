//! Clients, wire, adapter, link and host, joined by virtual time.

use super::adapter_side::AdapterSide;
use super::clients::Clients;
use super::config::Experiment;
use super::host_side::HostSide;
use super::link::SimulatedLink;
use super::measured::Measured;
use super::results::Results;
use crate::config::Invalid;
use crate::hardware::Wire;
use crate::machine::Violation;
use crate::results::Ended;
use baton_bus::EntriesPerTransfer;
use baton_bus::link::LinkError;
use baton_tcp::{Segment, Symbolic};
use baton_wire::{Span, Time};

/// Format version of [`Results`].
const VERSION: u32 = 1;

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The experiment cannot be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A client got what it should not.
    #[error("at {time:?} with seed {seed}: {violation}")]
    #[allow(missing_docs)]
    Violation {
        seed: u64,
        time: Time,
        violation: Violation,
    },
    /// Host and adapter do not understand each other.
    #[error("at {time:?} with seed {seed}: {error}")]
    #[allow(missing_docs)]
    Link {
        seed: u64,
        time: Time,
        error: LinkError,
    },
}

/// What goes wrong inside, before it is known when that was.
enum Failure {
    Client(Violation),
    Link(LinkError),
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self::Client(violation)
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// Runs `experiment` and measures it. `commit` is noted in the results.
///
/// # Errors
/// The experiment cannot be, or an end-to-end check failed.
pub fn run(experiment: &Experiment, commit: &str) -> Result<Results, RunError> {
    experiment.validate()?;
    let mut machine = Machine::new(experiment)?;
    let run = &experiment.run;
    let early = machine.run_until(run.warmup_responses)?;
    machine.restart_counts();
    let ended = match early {
        Ended::Complete => machine.run_until(run.measured_responses)?,
        ended => ended,
    };
    Ok(machine.results(commit, ended))
}

struct Machine {
    experiment: Experiment,
    now: Time,
    clients: Clients,
    to_adapter: Wire<Segment<Symbolic>>,
    to_clients: Wire<Segment<Symbolic>>,
    adapter: AdapterSide,
    link: SimulatedLink,
    host: HostSide,
    before: Before,
}

/// What was counted before measurement began.
#[derive(Default)]
struct Before {
    at: Time,
    retransmissions: u64,
    host_transfers: EntriesPerTransfer,
    adapter_transfers: EntriesPerTransfer,
}

impl Machine {
    fn new(experiment: &Experiment) -> Result<Self, Invalid> {
        let seed = experiment.run.seed;
        let wire = |salt: u64| {
            Wire::new(&experiment.wire, seed ^ salt).map_err(|e| Invalid::from(e.within("wire")))
        };
        let interface = &experiment.adapter.interface;
        Ok(Self {
            now: Time::ZERO,
            clients: Clients::new(experiment),
            to_adapter: wire(1)?,
            to_clients: wire(2)?,
            adapter: AdapterSide::new(experiment)?,
            link: SimulatedLink::new(
                &experiment.link,
                interface.ring_depth,
                interface.batching.max_transfer_bytes,
            )?,
            host: HostSide::new(experiment)?,
            before: Before::default(),
            experiment: experiment.clone(),
        })
    }

    /// Runs until so many replies are complete.
    fn run_until(&mut self, responses: u64) -> Result<Ended, RunError> {
        let limit = Time::ZERO + Span::from_secs(self.experiment.run.limit_s);
        while self.clients.measured.responses() < responses {
            let Some(next) = self.next() else {
                return Ok(Ended::Quiet);
            };
            if next > limit {
                return Ok(Ended::TimeLimit);
            }
            self.now = self.now.max(next);
            self.handle_all().map_err(|failure| self.failed(failure))?;
            if self.experiment.run.check {
                self.check();
            }
        }
        Ok(Ended::Complete)
    }

    /// When something happens next.
    fn next(&self) -> Option<Time> {
        [
            self.clients.poll_timeout(),
            self.to_adapter.next_arrival(),
            self.to_clients.next_arrival(),
            self.adapter.poll_timeout(),
            self.link.poll_timeout(),
            self.host.poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Lets everybody do what is due now, always in the same order.
    fn handle_all(&mut self) -> Result<(), Failure> {
        let now = self.now;
        while let Some(segment) = self.to_clients.receive(now) {
            self.clients.handle_segment(now, segment)?;
        }
        if self.clients.poll_timeout().is_some_and(|due| due <= now) {
            self.clients.handle_timeouts(now)?;
        }
        while let Some(segment) = self.clients.poll_transmit(now) {
            self.to_adapter.send(now, segment.frame_len(), segment);
        }
        while let Some(segment) = self.to_adapter.receive(now) {
            self.adapter.receive(now, segment);
        }
        if let Some(segments) = self.adapter.end_work(now, &mut self.link) {
            for segment in segments {
                self.to_clients.send(now, segment.frame_len(), segment);
            }
        }
        self.host.end_work(now, &mut self.link);
        self.link.handle_timeout(now);
        self.adapter.look_at(now, &self.link);
        self.host.look_at(now, &self.link);
        self.adapter.begin_work(now, &mut self.link)?;
        self.host.begin_work(now, &mut self.link)?;
        Ok(())
    }

    fn check(&self) {
        self.clients.check();
        self.adapter.check();
        self.link.check();
        self.host.check();
    }

    fn failed(&self, failure: Failure) -> RunError {
        let (seed, time) = (self.experiment.run.seed, self.now);
        match failure {
            Failure::Client(violation) => RunError::Violation {
                seed,
                time,
                violation,
            },
            Failure::Link(error) => RunError::Link { seed, time, error },
        }
    }

    /// Measurement begins.
    fn restart_counts(&mut self) {
        self.clients.measured = Measured::new();
        self.link.restart_counts();
        self.adapter.worker.restart_counts();
        self.host.worker.restart_counts();
        self.before = Before {
            at: self.now,
            retransmissions: self.adapter.tcp_stats().retransmissions,
            host_transfers: self.host.queue().stats().per_transfer,
            adapter_transfers: self.adapter.queue().stats().per_transfer,
        };
    }

    fn results(self, commit: &str, ended: Ended) -> Results {
        let Before {
            at,
            retransmissions,
            host_transfers,
            adapter_transfers,
        } = self.before;
        let measured = &self.clients.measured;
        let measured_s = (self.now - at).as_secs_f64();
        let per_s = |count: f64| count / measured_s.max(f64::MIN_POSITIVE);
        let responses = measured.responses();
        let bytes = responses as f64 * f64::from(self.experiment.load.file_bytes);
        let (response_time_us, transfer_time_us) = measured.means_us();
        let bus = *self.link.accounting();
        let percent = |busy: Span| 100.0 * per_s(busy.as_secs_f64());
        Results {
            version: VERSION,
            commit: commit.to_owned(),
            ended,
            measured_s,
            responses,
            responses_per_s: per_s(responses as f64),
            content_mbps: per_s(bytes * 8e-6),
            response_time_us,
            transfer_time_us,
            response_ms: measured.response.distribution(1e6),
            transfer_ms: measured.transfer.distribution(1e6),
            crossings_per_response: bus.crossings() as f64 / responses.max(1) as f64,
            bus,
            host_transfers: self
                .host
                .queue()
                .stats()
                .per_transfer
                .since(&host_transfers),
            adapter_transfers: self
                .adapter
                .queue()
                .stats()
                .per_transfer
                .since(&adapter_transfers),
            host_busy_percent: percent(self.host.worker.busy()),
            adapter_busy_percent: percent(self.adapter.worker.busy()),
            retransmissions: self.adapter.tcp_stats().retransmissions - retransmissions,
            failed: measured.failed(),
            experiment: self.experiment,
        }
    }
}
