//! A load with modified times of requests.

use super::arrivals::Process;
use super::{Arrivals, LoadSpec, Rate, Think};
use crate::source::{Demand, FileSet, RequestSpec, Throttle, Workload};
use rand::SeedableRng;
use rand_pcg::Pcg64;

/// A load whose requests are due at the times that a [`LoadSpec`] specifies.
#[derive(Clone, Debug)]
pub struct Paced<W> {
    load: W,
    demand: Demand,
    /// Arrival process of connections, if arrivals are drawn.
    process: Option<Process>,
    /// Speed of requests relative to the log, in an open loop.
    speed: f64,
    think: Option<Think>,
    random: Pcg64,
}

/// Properties of the whole load that a share of it needs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pace {
    /// Requests per second of the whole log; `None` if the load is not a log.
    pub log_requests_per_s: Option<f64>,
    /// Number of equal shares that the load was divided into.
    pub shares: usize,
    /// Seed of the random values; it must differ between shares.
    pub seed: u64,
}

impl<W: Workload> Paced<W> {
    /// Creates one share of a load, where `spec` applies to the whole load.
    ///
    /// # Panics
    /// If [`LoadSpec::check`] refuses `spec`, or the rate of the log is needed and missing.
    pub fn new(load: W, spec: &LoadSpec, pace: Pace) -> Self {
        let is_log = pace.log_requests_per_s.is_some();
        let of_log = || pace.log_requests_per_s.expect("the log has a rate");
        let rate = spec.rate.map(|rate| match rate {
            Rate::Times(times) => times * of_log(),
            Rate::PerSecond(rate) => rate,
        });
        let arrivals = spec.arrivals(is_log);
        let process = rate.zip(arrivals).and_then(|(rate, arrivals)| {
            let connections = rate / pace.shares as f64 / load.requests_per_connection();
            Process::new(arrivals, connections, &spec.on_off, pace.seed)
        });
        let (demand, speed) = match (arrivals, rate) {
            (Some(Arrivals::Log), Some(rate)) => (Demand::Open, rate / of_log()),
            (Some(_), _) => (Demand::PartlyOpen, 1.0),
            (None, _) => (Demand::Closed, 1.0),
        };
        Self {
            load,
            demand,
            process,
            speed,
            think: spec.think,
            random: Pcg64::seed_from_u64(pace.seed ^ 0x7e1e_c0de),
        }
    }

    /// Returns the time between the previous response and a request, picoseconds.
    fn think(&mut self, request: &RequestSpec) -> u64 {
        match self.think {
            None => 0,
            Some(think) if !request.pipelined => {
                think.sample(&mut self.random).unwrap_or(request.wait_ps)
            }
            Some(_) => 0,
        }
    }
}

impl<W: Workload> Workload for Paced<W> {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        self.load.next_connection(script);
        if self.demand == Demand::Open {
            for request in script {
                request.wait_ps = (request.wait_ps as f64 / self.speed) as u64;
            }
            return;
        }
        // A connection of a log stands for a separate client, which does not think before it.
        if self.think == Some(Think::Log) {
            script[0].wait_ps = 0;
        }
        for request in script.iter_mut() {
            request.wait_ps = self.think(request);
        }
        if let Some(process) = &mut self.process {
            script[0].wait_ps = process.next_wait();
        }
    }

    fn files(&self) -> &FileSet {
        self.load.files()
    }

    fn references(&self) -> &[RequestSpec] {
        self.load.references()
    }

    fn connections_in_pass(&self) -> u64 {
        self.load.connections_in_pass()
    }

    fn requests_per_connection(&self) -> f64 {
        self.load.requests_per_connection()
    }

    fn demand(&self) -> Demand {
        self.demand
    }

    fn throttle(&self) -> Option<Throttle> {
        self.load.throttle()
    }
}
