//! CSV with a line for each trial.

use super::found::{Found, TestFound};
use crate::commands::bench::table::unit;
use baton_microbench::{Load, Place, Trial};
use baton_tester::{Outcome, Quantiles};
use std::fmt::Write as _;

/// Columns before those of the places of losses.
const BEFORE: &str = "test,trial,load_kind,load,seconds,result,unit,sent_offered,sent,sent_delivered,received_offered,received_sent,received_delivered";
/// Columns after those of the places of losses. With several senders, they describe the interface under test.
const BEHIND: &str = "goodput_bytes,connections,latency_least_us,latency_mean_us,latency_most_us,wrong,copies,reordered,frames_at_once,gap_p50_us,gap_p99_us,gap_most_us,jitter_us,late_p50_us,late_p99_us,late_most_us,idle,partner_idle";

/// Returns the whole CSV text.
pub(super) fn text(found: &Found) -> String {
    let mut text = BEFORE.to_owned();
    for place in Place::ALL {
        let name = place.name().replace(' ', "_").to_lowercase();
        let _ = write!(text, ",lost_{name}");
    }
    let _ = writeln!(text, ",{BEHIND}");
    for test in &found.tests {
        for (number, trial) in test.search.trials.iter().enumerate() {
            let _ = writeln!(text, "{}", line(test, number, trial).join(","));
        }
    }
    text
}

fn line(test: &TestFound, number: usize, trial: &Trial) -> Vec<String> {
    let (kind, load) = match trial.load {
        Load::Rate(rate) => ("rate", rate),
        Load::Connections(connections) => ("connections", connections.into()),
        Load::Burst(frames) => ("burst", frames as f64),
    };
    let (sent, received) = (&trial.sent, &trial.received);
    let mut cells = vec![
        trial.test.name().to_owned(),
        (number + 1).to_string(),
        kind.to_owned(),
        load.to_string(),
        trial.seconds.to_string(),
        trial.result().to_string(),
        unit(trial.test).to_owned(),
    ];
    let counts = [
        sent.offered,
        sent.sent,
        sent.delivered,
        received.offered,
        received.sent,
        received.delivered,
    ];
    cells.extend(counts.map(|count| count.to_string()));
    let lost = Place::ALL.map(|place| sent.losses.at(place) + received.losses.at(place));
    cells.extend(lost.map(|frames| frames.to_string()));
    cells.extend([trial.goodput_bytes, trial.connections].map(|count| count.to_string()));
    let latency = trial
        .latency
        .map(|one| [one.least_us, one.mean_us, one.most_us]);
    cells.extend(known(latency));
    let detail = test.details.get(number);
    let outcomes = detail.map(|detail| [&detail.under_test, &detail.partner]);
    let of_arrivals = |count: fn(&baton_tester::Arrivals) -> u64| {
        let outcomes = outcomes.iter().flatten().copied();
        let receiver = detail.and_then(|detail| detail.receiver.as_ref());
        let arrivals = outcomes
            .chain(receiver)
            .filter_map(|one: &Outcome| one.arrivals);
        arrivals.map(|one| count(&one)).sum::<u64>().to_string()
    };
    cells.push(of_arrivals(|one| one.wrong));
    cells.push(of_arrivals(|one| one.copies));
    cells.push(of_arrivals(|one| one.reordered));
    let departures = test.senders(number).next();
    cells.push(departures.map_or_else(String::new, |one| one.frames_at_once.to_string()));
    let three = |times: Quantiles| [times.p50, times.p99, times.max];
    cells.extend(known(departures.map(|one| three(one.gaps_us))));
    cells.extend(known(departures.map(|one| [one.jitter_us])));
    cells.extend(known(departures.map(|one| three(one.lateness_us))));
    cells.extend(known(outcomes.map(|[own, other]| [own.idle, other.idle])));
    cells
}

/// Formats numbers, or empty cells if they are not known.
fn known<const N: usize>(numbers: Option<[f64; N]>) -> [String; N] {
    match numbers {
        Some(numbers) => numbers.map(|number| number.to_string()),
        None => [const { String::new() }; N],
    }
}
