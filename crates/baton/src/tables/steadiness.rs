//! Notes on runs that were not steady, and advice for them.

use baton_report as report;
use baton_sim::config::RunConfig;
use baton_sim::results::{NotSteady, Results};

/// Returns a line for each run that was not steady; empty if all were.
pub fn notes(results: &[Results]) -> String {
    let doubtful = results.iter().filter(|run| run.long_run.is_doubtful());
    doubtful
        .map(|run| note(run, &label(run, results)))
        .collect()
}

/// Returns the number of runs of a study that were not steady, and the reasons; empty if all were.
pub fn count(results: &[Results]) -> String {
    let doubtful: Vec<&Results> = (results.iter())
        .filter(|run| run.long_run.is_doubtful())
        .collect();
    if doubtful.is_empty() {
        return String::new();
    }
    let mut whys: Vec<NotSteady> = Vec::new();
    for why in doubtful.iter().flat_map(|run| &run.long_run.not_steady) {
        if !whys.contains(why) {
            whys.push(*why);
        }
    }
    let rest = format!(": {}", NotSteady::texts(&whys));
    share(doubtful.len(), results.len(), &rest)
}

/// Returns a line that says that `doubtful` of all `runs` of a study were not steady; `rest` follows.
pub fn share(doubtful: usize, runs: usize, rest: &str) -> String {
    let text = format!(
        "* {} of {} runs were not steady{rest}",
        report::grouped(doubtful as u64),
        report::grouped(runs as u64)
    );
    report::wrapped(&text, report::width(), 2)
}

/// Returns advice for runs that were not steady; empty if nothing would help.
pub fn advice(results: &[Results]) -> String {
    let not_steady = results.iter().flat_map(|run| {
        let whys = run.long_run.not_steady.iter();
        whys.filter_map(|why| remedy(*why, &run.experiment.run))
    });
    let mut remedies: Vec<&str> = not_steady.collect();
    remedies.sort_unstable();
    remedies.dedup();
    let mut text = String::new();
    for remedy in remedies {
        text.push_str(&report::wrapped(&format!("* {remedy}"), report::width(), 2));
    }
    text
}

fn remedy(why: NotSteady, run: &RunConfig) -> Option<&'static str> {
    Some(match why {
        NotSteady::Saturated => return None,
        NotSteady::ClientsStarting | NotSteady::CachesFilling | NotSteady::StillWarmingUp => {
            "where measurement began too early, warm up longer (--warmup)"
        }
        NotSteady::OtherSizes => {
            "where mean sizes differ, estimates with \u{b1} are corrected and counts are not; --passes 1 replays the whole log"
        }
        NotSteady::StartsDiffer => {
            "where the start makes a difference, warm up longer (--warmup), or take both rates as possible"
        }
        NotSteady::TooShort | NotSteady::Trend | NotSteady::Settling | NotSteady::BatchesDepend => {
            match run.until_ci_percent {
                None => "measure longer, as with --until ci=1%",
                Some(_) => "measure longer (--packets)",
            }
        }
    })
}

fn is_saturated(result: &Results) -> bool {
    result.long_run.not_steady.contains(&NotSteady::Saturated)
}

/// Returns the name of a run, with its seed if another run has the same name.
fn label(run: &Results, all: &[Results]) -> String {
    let name = &run.experiment.name;
    let namesakes = all.iter().filter(|other| other.experiment.name == *name);
    match namesakes.count() {
        0 | 1 => name.clone(),
        _ => format!("{name}, seed {}", run.experiment.run.seed),
    }
}

fn note(result: &Results, label: &str) -> String {
    let long_run = &result.long_run;
    let why = NotSteady::texts(&long_run.not_steady);
    let mut text = format!("* {label}: {why}");
    if long_run.not_steady.contains(&NotSteady::OtherSizes) {
        text.push_str(&format!(" ({})", sizes(result)));
    }
    if let (true, Some(open)) = (is_saturated(result), &result.clients.open_loop) {
        text.push_str(&format!(
            " ({} requests/s, of which it served {})",
            report::significant(open.offered_rate),
            report::significant(result.clients.request_rate)
        ));
    }
    if let (true, Some(rate)) = (
        long_run.not_steady.contains(&NotSteady::StartsDiffer),
        long_run.overloaded_start,
    ) {
        text.push_str(&format!(" ({} requests/s)", report::estimated(rate)));
    }
    report::wrapped(&text, report::width(), 2)
}

/// Returns the mean sizes of served responses, and of the log.
pub(super) fn sizes(result: &Results) -> String {
    let long_run = &result.long_run;
    format!(
        "{} served, {} in the log",
        report::bytes(long_run.served_response_bytes as u64),
        report::bytes(long_run.mean_response_bytes as u64),
    )
}

/// Returns how often the log was replayed, in words.
pub(super) fn passes(passes: f64) -> String {
    match passes {
        passes if passes < 1.0 => {
            format!(
                "{}; the rest of the log was not replayed",
                report::significant(passes)
            )
        }
        passes => format!(
            "{}; each pass starts again at the beginning",
            report::significant(passes)
        ),
    }
}
