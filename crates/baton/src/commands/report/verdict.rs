//! Conclusions from runs, in words, and a table of their configurations.

use crate::commands::advise::text::limited;
use crate::commands::advise::verdict::Way;
use baton_report::page::{Compared, Comparison, Run};
use baton_report::{counted, difference, estimated, grouped, significant};
use baton_sim::results::{Limit, Results};
use baton_stats::Estimate;
use std::collections::BTreeMap;

/// Maximum number of configurations in the table; open loops may have twice as many.
const SHOWN: usize = 12;
/// Maximum number of keys in the name of a configuration.
const NAMED: usize = 5;
/// The key whose value is the offered load.
const OFFERED: &str = "load.rate";

/// The values of a run that the conclusions need.
pub struct Measured {
    way: Way,
    response_ms: Option<Estimate>,
    p99_response_ms: Option<Estimate>,
    /// Requests a second that arrive independently of responses; `None` in a closed loop.
    offered: Option<f64>,
    doubt: String,
}

impl Measured {
    /// Takes the values from the results of a run. `doubt` is the reason why they may not hold, if there is one.
    pub fn of(results: &Results, doubt: &str) -> Self {
        Self {
            way: Way::of(results, None),
            response_ms: results.mean_response_ms(),
            p99_response_ms: results.p99_response_ms(),
            offered: results
                .clients
                .open_loop
                .as_ref()
                .map(|open| open.offered_rate),
            doubt: doubt.to_owned(),
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
}

impl Configuration {
    /// Adds a run to the last configuration or, if that does not match, to a new one: the runs of a configuration are consecutive.
    pub fn add(all: &mut Vec<Self>, run: &Run, keys: &[String], measured: Option<Measured>) {
        let keys = keys.iter().cloned().zip(run.keys.iter().cloned());
        let keys: Vec<(String, String)> = keys.filter(|(_, value)| !value.is_empty()).collect();
        let is_same =
            |last: &Self| last.source == run.source && last.name == run.name && last.keys == keys;
        let failed = usize::from(measured.is_none());
        match all.last_mut().filter(|last| is_same(last)) {
            Some(last) => {
                last.failed += failed;
                last.measured.extend(measured);
            }
            None => all.push(Self {
                source: run.source.clone(),
                name: run.name.clone(),
                keys,
                measured: measured.into_iter().collect(),
                failed,
            }),
        }
    }

    fn value(&self, key: &str) -> Option<&str> {
        let mut keys = self.keys.iter();
        let found = keys.find(|(other, _)| other == key)?;
        Some(found.1.as_str())
    }

    /// Returns the source, the name and the offered load.
    fn place(&self) -> (&str, &str, Option<&str>) {
        (&self.source, &self.name, self.value(OFFERED))
    }

    /// Returns a title that is unique among all configurations with the same load: the name, with keys where names are ambiguous.
    fn title(&self, all: &[Self]) -> String {
        let mut namesakes = all.iter().filter(|one| one.place() == self.place());
        let is_alone = namesakes.nth(1).is_none();
        let has_names = all.iter().any(|one| one.name != self.name);
        let mut parts = Vec::new();
        parts.extend(Some(self.source.clone()).filter(|source| !source.is_empty()));
        parts.extend(Some(self.name.clone()).filter(|_| has_names || is_alone));
        let keys = self.keys.iter().filter(|(key, _)| key != OFFERED);
        // A key whose value is the same in all configurations of this name says nothing new.
        let tells = |(key, value): &&(String, String)| {
            let mut namesakes = all.iter().filter(|one| one.place() == self.place());
            namesakes.any(|one| one.value(key) != Some(value.as_str()))
        };
        let keys = keys.filter(tells).take(NAMED);
        parts.extend(keys.map(|(key, value)| format!("{key} = {value}")));
        parts.join(", ")
    }

    /// Returns the requests a second: over the seeds, or of the run if there is only one.
    fn rate(&self) -> Option<Estimate> {
        over_seeds(self.measured.iter().map(|run| run.way.request_rate))
    }

    fn response_ms(&self) -> Option<Estimate> {
        over_seeds(self.measured.iter().filter_map(|run| run.response_ms))
    }

    /// Returns the requests a second that arrive independently of responses.
    fn offered(&self) -> Option<f64> {
        self.measured.iter().find_map(|run| run.offered)
    }

    /// Returns whether requests arrive independently of responses: the served rate is then the offered one.
    fn is_open(&self) -> bool {
        self.offered().is_some()
    }

    /// Returns the configuration that this one is compared with: with several sources, that of the first source with the same name and
    /// keys; otherwise the first configuration.
    fn baseline<'a>(&self, all: &'a [Self]) -> Option<&'a Self> {
        let first = all.first()?;
        let mut firsts = all.iter().filter(|one| one.source == first.source);
        match self.source == first.source {
            true => Some(first),
            false => firsts.find(|one| one.name == self.name && one.keys == self.keys),
        }
    }

    /// Returns the difference of the rate from that of `base`, per cent.
    fn gain(&self, base: &Self) -> Option<Estimate> {
        let rates = |of: &Self| -> Vec<f64> {
            let runs = of.measured.iter();
            runs.map(|run| run.way.request_rate.mean).collect()
        };
        match (base.measured.as_slice(), self.measured.as_slice()) {
            ([one], [other]) => one
                .way
                .request_rate
                .difference_percent(other.way.request_rate),
            (ones, others) if ones.len() == others.len() => {
                Estimate::of_difference_percent(&rates(base), &rates(self))
            }
            _ => None,
        }
    }

    /// Returns why the numbers may not hold; empty if they do.
    fn doubt(&self) -> String {
        if self.failed > 0 {
            return "a run failed an internal check of the simulator".to_owned();
        }
        let doubts = self.measured.iter().map(|run| run.doubt.as_str());
        doubts
            .max_by_key(|doubt| doubt.len())
            .unwrap_or_default()
            .to_owned()
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

/// The main result, further ones, and the table of configurations.
pub struct Verdict {
    pub headline: String,
    pub findings: Vec<String>,
    pub comparison: Comparison,
}

/// Returns the conclusions from all configurations.
pub fn of(all: &[Configuration]) -> Verdict {
    let is_open = all.iter().any(Configuration::is_open);
    let (headline, more) = match is_open {
        true => under_load(all),
        false => serving_most(all),
    };
    let mut findings: Vec<String> = more.into_iter().collect();
    let doubtful = all.iter().filter(|one| !one.doubt().is_empty()).count();
    if doubtful > 0 {
        let of = match doubtful == all.len() {
            true => "all configurations".to_owned(),
            false => counted(doubtful as u64, "configuration"),
        };
        findings.push(format!("The numbers of {of} may not hold: see * below."));
    }
    let failed: usize = all.iter().map(|one| one.failed).sum();
    if failed > 0 {
        let failed = counted(failed as u64, "run");
        findings.push(format!(
            "{failed} failed an internal check of the simulator."
        ));
    }
    Verdict {
        headline,
        findings,
        comparison: comparison(all, is_open),
    }
}

/// Returns whether a difference is more than chance.
fn is_known(difference: &Estimate) -> bool {
    !difference.covers(0.0)
}

/// Names the configuration that serves most, and those that are as good.
fn serving_most(all: &[Configuration]) -> (String, Option<String>) {
    let measured = all.iter().filter_map(|one| Some((one, one.rate()?)));
    let best = measured.max_by(|one, other| one.1.mean.total_cmp(&other.1.mean));
    let Some((best, rate)) = best else {
        return ("All runs failed.".to_owned(), None);
    };
    let way = &best.measured[0].way;
    let base = best.baseline(all).filter(|base| !std::ptr::eq(*base, best));
    let gain = base.and_then(|base| Some((base, best.gain(base)?)));
    let verb = match all.len() {
        1 => "serves",
        _ => "serves most:",
    };
    let gain = gain.map_or(String::new(), |(base, gain)| {
        let from = base.title(all);
        match is_known(&gain) {
            true => format!(", {} against {from}", difference(gain)),
            false => format!(", which cannot be told from {from}"),
        }
    });
    let headline = format!(
        "{} {verb} {} requests/s{gain}; {}.",
        best.title(all),
        estimated(rate),
        limited(way)
    );
    let is_as_good = |one: &&Configuration| {
        let is_other = !std::ptr::eq(*one, best);
        is_other && one.gain(best).is_some_and(|gain| gain.covers(0.0))
    };
    let others: Vec<String> = all
        .iter()
        .filter(is_as_good)
        .map(|one| one.title(all))
        .collect();
    let others = (!others.is_empty()).then(|| {
        format!(
            "Within the intervals these serve as much: {}.",
            others.join("; ")
        )
    });
    (headline, others)
}

/// Compares response times at the highest load that all configurations serve, and names the lowest load that a configuration does not serve.
fn under_load(all: &[Configuration]) -> (String, Option<String>) {
    let mut curves: BTreeMap<String, Vec<&Configuration>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for one in all.iter().filter(|one| one.is_open()) {
        let title = one.title(all);
        if !order.contains(&title) {
            order.push(title.clone());
        }
        curves.entry(title).or_default().push(one);
    }
    let curve = |title: &String| &curves[title];
    let at = |title: &String, load: Option<&str>| {
        let mut points = curve(title).iter();
        let point = points.find(|one| one.value(OFFERED) == load)?;
        point.response_ms()
    };
    let Some(first) = order.first() else {
        return ("All runs failed.".to_owned(), None);
    };
    let loads = curve(first)
        .iter()
        .map(|one| (one.value(OFFERED), one.offered()));
    let common = loads.filter(|(load, _)| order.iter().all(|title| at(title, *load).is_some()));
    let highest = common.max_by(|(_, one), (_, other)| {
        let rate = |rate: &Option<f64>| rate.unwrap_or_default();
        rate(one).total_cmp(&rate(other))
    });
    let headline = match highest {
        None => "At no load do all configurations have a response time.".to_owned(),
        Some((load, rate)) => {
            let base = at(first, load);
            let told = order.iter().take(SHOWN).map(|title| {
                let time = at(title, load).unwrap_or_default();
                let against = base.filter(|_| title != first);
                let against = against.and_then(|base| base.difference_percent(time));
                let against = against.map_or(String::new(), |against| match is_known(&against) {
                    true => format!(" ({})", difference(against)),
                    false => " (no difference is certain)".to_owned(),
                });
                format!("{title} {} ms{against}", estimated(time))
            });
            format!(
                "Mean response at {} requests/s: {}.",
                significant(rate.unwrap_or_default()),
                told.collect::<Vec<_>>().join(", ")
            )
        }
    };
    let overloaded = order.iter().filter_map(|title| {
        let points = curve(title)
            .iter()
            .filter(|one| one.response_ms().is_none());
        let least = points
            .filter_map(|one| one.offered())
            .min_by(f64::total_cmp)?;
        Some(format!(
            "{title} does not serve {} requests/s.",
            significant(least)
        ))
    });
    let overloaded: Vec<String> = overloaded.collect();
    (
        headline,
        (!overloaded.is_empty()).then(|| overloaded.join(" ")),
    )
}

/// Returns the table of configurations, in their order. With closed loops, it has the first configuration and those that serve most, each
/// compared with its baseline.
fn comparison(all: &[Configuration], is_open: bool) -> Comparison {
    let rate = |one: &Configuration| one.rate().map_or(0.0, |rate| rate.mean);
    let mut by_rate: Vec<&Configuration> = all.iter().skip(1).collect();
    by_rate.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
    let best = &by_rate[..by_rate.len().min(SHOWN - 1)];
    let is_shown = |(number, one): &(usize, &Configuration)| {
        *number == 0 || is_open || best.iter().any(|best| std::ptr::eq(*best, *one))
    };
    let shown = all.iter().enumerate().filter(is_shown).map(|(_, one)| one);
    let most = all.iter().map(rate).fold(0.0, f64::max);
    let rows: Vec<Compared> = match is_open {
        true => shown
            .take(2 * SHOWN)
            .map(|one| open_row(one, all))
            .collect(),
        false => shown.map(|one| closed_row(one, all, most)).collect(),
    };
    let sources_differ = all.iter().any(|one| one.source != all[0].source);
    let against = match (all.first(), sources_differ) {
        (Some(first), false) => format!("against {}", first.title(all)),
        (Some(first), true) => format!(
            "against its counterpart in {}, otherwise against the first",
            first.source
        ),
        (None, _) => String::new(),
    };
    let head = match is_open {
        true => vec![
            "configuration",
            "offered, requests/s",
            "mean response, ms",
            "p99, ms",
            "limit",
        ],
        false => vec![
            "configuration",
            "requests/s",
            against.as_str(),
            "mean response, ms",
            "limit",
        ],
    };
    let note = match all.len() - rows.len() {
        0 => "\u{b1}: 95 % interval".to_owned(),
        left_out => format!(
            "\u{b1}: 95 % interval; {} more configurations are in the table of runs",
            grouped(left_out as u64)
        ),
    };
    Comparison {
        head: head.into_iter().map(str::to_owned).collect(),
        rows,
        note,
    }
}

fn shown_or_dash(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "-".to_owned(), estimated)
}

fn limits(one: &Configuration) -> String {
    let limits = one.measured.first().map_or(&[][..], |run| &run.way.limits);
    match limits {
        [] => "-".to_owned(),
        limits => limits
            .iter()
            .map(Limit::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn closed_row(one: &Configuration, all: &[Configuration], most: f64) -> Compared {
    let rate = one.rate();
    let base = one.baseline(all).filter(|base| !std::ptr::eq(*base, one));
    let gain = base.and_then(|base| one.gain(base));
    let share = |value: f64| value / most.max(f64::MIN_POSITIVE);
    Compared {
        bar: rate.map(|rate| (share(rate.mean), share(rate.half_width.unwrap_or_default()))),
        cells: vec![
            one.title(all),
            shown_or_dash(rate),
            gain.map_or_else(|| "-".to_owned(), difference),
            shown_or_dash(one.response_ms()),
            limits(one),
        ],
        doubt: one.doubt(),
    }
}

fn open_row(one: &Configuration, all: &[Configuration]) -> Compared {
    let offered = one.offered();
    let p99 = over_seeds(one.measured.iter().filter_map(|run| run.p99_response_ms));
    Compared {
        bar: None,
        cells: vec![
            one.title(all),
            offered.map_or_else(|| "-".to_owned(), significant),
            shown_or_dash(one.response_ms()),
            shown_or_dash(p99),
            limits(one),
        ],
        doubt: one.doubt(),
    }
}
