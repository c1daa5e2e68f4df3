//! Conclusions from runs, in words.

use crate::commands::advise::text::limited;
use crate::commands::advise::verdict::Way;
use baton_report::page::Run;
use baton_report::{difference, estimated, grouped, percent, significant};
use baton_sim::results::{Limit, Results};
use baton_stats::Estimate;

/// Maximum number of configurations with a sentence each.
const TOLD: usize = 16;
/// Maximum number of keys in the name of a configuration.
const NAMED: usize = 5;

/// The values of a run that the conclusions need.
pub struct Measured {
    way: Way,
    response_ms: Option<Estimate>,
    /// Requests a second that arrive independently of responses; `None` in a closed loop.
    offered: Option<f64>,
}

impl Measured {
    /// Takes the values from the results of a run.
    pub fn of(results: &Results) -> Self {
        Self {
            way: Way::of(results, None),
            response_ms: results.mean_response_ms(),
            offered: results
                .clients
                .open_loop
                .as_ref()
                .map(|open| open.offered_rate),
        }
    }
}

/// Runs that differ only in their seeds.
pub struct Configuration {
    source: String,
    name: String,
    /// Keys in which configurations differ, with their values.
    keys: Vec<(String, String)>,
    /// Values of each run that did not fail.
    measured: Vec<Measured>,
    failed: usize,
    doubtful: usize,
}

impl Configuration {
    /// Adds a run to its configuration: the last one, or a new one. The seeds of a configuration follow each other.
    pub fn add(all: &mut Vec<Self>, run: &Run, keys: &[String], measured: Option<Measured>) {
        let keys = keys.iter().cloned().zip(run.keys.iter().cloned());
        let keys: Vec<(String, String)> = keys.filter(|(_, value)| !value.is_empty()).collect();
        let is_same =
            |last: &Self| last.source == run.source && last.name == run.name && last.keys == keys;
        let (failed, doubtful) = (
            usize::from(measured.is_none()),
            usize::from(measured.is_some() && !run.doubt.is_empty()),
        );
        match all.last_mut().filter(|last| is_same(last)) {
            Some(last) => {
                last.failed += failed;
                last.doubtful += doubtful;
                last.measured.extend(measured);
            }
            None => all.push(Self {
                source: run.source.clone(),
                name: run.name.clone(),
                keys,
                measured: measured.into_iter().collect(),
                failed,
                doubtful,
            }),
        }
    }

    /// Returns a title that is unique among all configurations: the name, with keys where names are ambiguous.
    fn title(&self, all: &[Self]) -> String {
        let named = |one: &&Self| one.source == self.source && one.name == self.name;
        let (has_names, is_alone) = (
            all.iter().any(|one| one.name != self.name),
            all.iter().filter(named).count() == 1,
        );
        let mut parts = Vec::new();
        parts.extend(Some(self.source.clone()).filter(|source| !source.is_empty()));
        parts.extend(Some(self.name.clone()).filter(|_| has_names || is_alone));
        let keys = self.keys.iter().filter(|_| !is_alone).take(NAMED);
        parts.extend(keys.map(|(key, value)| format!("{key} = {value}")));
        parts.join(", ")
    }

    /// Returns the requests a second: over the seeds, or of the run if there is only one.
    fn rate(&self) -> Option<Estimate> {
        over_seeds(self.measured.iter().map(|run| run.way.request_rate))
    }

    /// Returns whether requests arrive independently of responses: the served rate is then the offered one.
    fn is_open(&self) -> bool {
        self.measured.iter().any(|run| run.offered.is_some())
    }

    /// Returns the difference of the rate from that of `first`, per cent, or `None` if one of them did not serve as much as it could.
    fn gain(&self, first: &Self) -> Option<Estimate> {
        if self.is_open() || first.is_open() {
            return None;
        }
        let rates = |of: &Self| -> Vec<f64> {
            of.measured
                .iter()
                .map(|run| run.way.request_rate.mean)
                .collect()
        };
        match (first.measured.as_slice(), self.measured.as_slice()) {
            ([one], [other]) => one
                .way
                .request_rate
                .difference_percent(other.way.request_rate),
            (ones, others) if ones.len() == others.len() => {
                Estimate::of_difference_percent(&rates(first), &rates(self))
            }
            _ => None,
        }
    }

    fn limits(&self) -> &[Limit] {
        self.measured.first().map_or(&[], |run| &run.way.limits)
    }

    fn sentence(&self, title: &str, first: Option<&Self>) -> String {
        let (Some(rate), Some(run)) = (self.rate(), self.measured.first()) else {
            return format!("{title}: failed");
        };
        let way = &run.way;
        let mut parts = vec![format!("{} requests/s", estimated(rate))];
        let gain = first.and_then(|first| self.gain(first));
        parts.extend(gain.map(|gain| format!("{} compared with the first", difference(gain))));
        let response = over_seeds(self.measured.iter().filter_map(|run| run.response_ms));
        parts
            .extend(response.map(|ms| format!("a response takes {} ms on average", estimated(ms))));
        parts.push(limited(way));
        parts.push(format!(
            "the network stack takes {} of the host's cycles",
            percent(way.network_stack_percent)
        ));
        if way.connections_on_nic > 0.0 {
            parts.push(format!(
                "{} connections on the NIC on average",
                significant(way.connections_on_nic)
            ));
        }
        if way.frames_dropped > 0 {
            parts.push(format!(
                "the NIC dropped {} frames",
                grouped(way.frames_dropped)
            ));
        }
        if self.doubtful > 0 {
            parts.push("not steady, so that these numbers may not hold".to_owned());
        }
        format!("{title}: {}", parts.join("; "))
    }
}

/// Returns the mean of several seeds with the interval between them, or the estimate of a single seed.
fn over_seeds(estimates: impl Iterator<Item = Estimate>) -> Option<Estimate> {
    let estimates: Vec<Estimate> = estimates.collect();
    match estimates.as_slice() {
        [one] => Some(*one),
        _ => Estimate::of_independent(
            &estimates
                .iter()
                .map(|estimate| estimate.mean)
                .collect::<Vec<_>>(),
        ),
    }
}

/// Names the configuration that serves most, or describes the offered load.
fn headline(all: &[Configuration]) -> String {
    let rate = |configuration: &&Configuration| {
        let rate = configuration.rate();
        rate.map_or(f64::NEG_INFINITY, |rate| rate.mean)
    };
    let closed = all.iter().filter(|one| !one.is_open());
    let best = closed.max_by(|one, other| rate(one).total_cmp(&rate(other)));
    if let Some((best, rate, run)) =
        best.and_then(|best| Some((best, best.rate()?, best.measured.first()?)))
    {
        let verb = match all.len() {
            1 => "serves",
            _ => "serves most",
        };
        let (title, rate) = (best.title(all), estimated(rate));
        return format!("{title} {verb}: {rate} requests/s; {}.", limited(&run.way));
    }
    let measured = all.iter().flat_map(|one| &one.measured);
    let offered = measured.filter_map(|run| run.offered);
    match offered
        .clone()
        .min_by(f64::total_cmp)
        .zip(offered.max_by(f64::total_cmp))
    {
        None => "All runs failed.".to_owned(),
        Some((least, most)) => format!(
            "From {} to {} requests/s were offered, so that configurations differ in their response times.",
            significant(least),
            significant(most)
        ),
    }
}

/// Returns a sentence on all configurations, and further findings.
pub fn of(all: &[Configuration]) -> (String, Vec<String>) {
    let headline = headline(all);
    let mut findings = Vec::new();
    if all.len() > 1 {
        findings.push(by_limit(all));
    }
    let of_runs = |count: fn(&Configuration) -> usize| all.iter().map(count).sum::<usize>() as u64;
    let runs = grouped(of_runs(|one| one.measured.len() + one.failed));
    for (count, what) in [
        (
            of_runs(|one| one.failed),
            "failed an internal check of the simulator",
        ),
        (
            of_runs(|one| one.doubtful),
            "were not steady, so that their numbers may not hold; the table says why",
        ),
    ] {
        if count > 0 {
            findings.push(format!("{} of {runs} runs {what}.", grouped(count)));
        }
    }
    if all.len() <= TOLD {
        let first = all.first();
        let sentence = |(number, one): (usize, &Configuration)| {
            one.sentence(&one.title(all), first.filter(|_| number > 0)) + "."
        };
        findings.extend(all.iter().enumerate().map(sentence));
    }
    (headline, findings)
}

/// Counts the configurations that each part limits.
fn by_limit(all: &[Configuration]) -> String {
    let count =
        |limited: &dyn Fn(&Configuration) -> bool| all.iter().filter(|one| limited(one)).count();
    let mut parts: Vec<String> = Limit::ALL
        .into_iter()
        .map(|part| (part, count(&|one| one.limits().contains(&part))))
        .filter(|(_, count)| *count > 0)
        .map(|(part, count)| format!("{part} is the limit in {}", grouped(count as u64)))
        .collect();
    let free = count(&|one| one.limits().is_empty() && !one.measured.is_empty());
    if free > 0 {
        parts.push(format!(
            "there is no bottleneck in {}",
            grouped(free as u64)
        ));
    }
    format!(
        "Of {} configurations, {}.",
        grouped(all.len() as u64),
        parts.join(", ")
    )
}
