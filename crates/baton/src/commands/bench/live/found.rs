//! Results, and the machines that they were measured on.

use crate::cli::{BenchNicArgs, SearchName};
use baton_microbench::frame::LinkRate;
use baton_microbench::measure::Measurement;
use baton_microbench::rfc2544::Rfc2544;
use baton_microbench::under_load::UnderLoad;
use baton_microbench::{Losses, Place, Trial};
use baton_tester::environment::{Environment, Interface};
use baton_tester::{Departures, Detail};
use baton_wire::Span;
use serde::Serialize;

/// All results.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    /// Version of the program, and the commit it was built from.
    pub(super) program: String,
    /// The machine.
    pub(super) environment: Environment,
    /// The machine of the reflector, if there is one.
    pub(super) partner_environment: Option<Environment>,
    /// The interfaces: under test, partner, receiver.
    pub(super) interfaces: Vec<Interface>,
    /// The link, if it limits the rate.
    pub(super) link: Option<LinkRate>,
    /// The method of measurement.
    pub(super) method: Method,
    /// The results, in the order of the tests.
    pub(super) tests: Vec<TestFound>,
}

/// Method of measurement.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Method {
    /// Algorithm that searches rates.
    pub(super) search: String,
    /// Duration of the counted part of a trial, seconds.
    pub(super) trial_s: f64,
    /// Trials at each load.
    pub(super) trials: u32,
    /// Pacing of frames.
    pub(super) pacing: &'static str,
}

/// Results of one test.
#[derive(Debug, Serialize)]
pub(super) struct TestFound {
    /// The search.
    pub(super) search: Measurement,
    /// Results of RFC 2544, if they were requested and the test counts frames.
    pub(super) rfc2544: Option<Rfc2544>,
    /// Latency at shares of the highest rate without loss, if it was requested and there is such a rate.
    pub(super) latency: Option<Vec<UnderLoad>>,
    /// Reports of the participants on each trial of the search.
    pub(super) details: Vec<Detail>,
}

impl Method {
    pub(super) fn of(arguments: &BenchNicArgs) -> Self {
        let live = &arguments.live;
        let search = match (live.rate, arguments.search) {
            (Some(rate), _) => format!("none, {rate} a second"),
            (None, SearchName::Multiple) => "multiple (MLRsearch)".to_owned(),
            (None, SearchName::Bisection) => "bisection".to_owned(),
        };
        Self {
            search,
            trial_s: live.trial,
            trials: live.trials,
            pacing: "busy waiting on the monotonic clock",
        }
    }

    /// Returns the duration of the warm-up.
    pub(super) fn warm_up(&self) -> Span {
        self.trial().min(super::WARM_UP)
    }

    /// Returns the duration of the counted part of a trial.
    pub(super) fn trial(&self) -> Span {
        Span::from_ns((self.trial_s * 1e9) as u64)
    }
}

impl TestFound {
    /// Returns the frames lost in all trials, by place.
    pub(super) fn losses(&self) -> Losses {
        let mut all = Losses::default();
        for trial in &self.search.trials {
            for (place, frames) in losses(trial) {
                all.add(place, frames);
            }
        }
        all
    }

    /// Returns the departures at the senders in a trial, that of the interface under test first.
    pub(super) fn senders(&self, trial: usize) -> impl Iterator<Item = &Departures> {
        let detail = self.details.get(trial);
        let outcomes = detail.map(|detail| [&detail.under_test, &detail.partner]);
        let outcomes = outcomes.into_iter().flatten();
        outcomes.filter_map(|outcome| outcome.departures.as_ref())
    }

    /// Returns the numbers of corrupt, duplicate and reordered frames in all trials.
    pub(super) fn irregular(&self) -> [u64; 3] {
        let mut sums = [0; 3];
        for detail in &self.details {
            let outcomes = [&detail.under_test, &detail.partner].into_iter();
            for arrivals in outcomes
                .chain(&detail.receiver)
                .filter_map(|one| one.arrivals)
            {
                for (sum, count) in
                    sums.iter_mut()
                        .zip([arrivals.wrong, arrivals.copies, arrivals.reordered])
                {
                    *sum += count;
                }
            }
        }
        sums
    }
}

/// Returns the losses of a trial.
pub(super) fn losses(trial: &Trial) -> impl Iterator<Item = (Place, u64)> + '_ {
    [&trial.sent, &trial.received]
        .into_iter()
        .flat_map(|stream| stream.losses.iter())
}
