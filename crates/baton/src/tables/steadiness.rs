//! Whether runs were steady, and what to do about those that were not.

use baton_report as report;
use baton_sim::results::{NotSteady, Results};

/// What to do about runs that were not steady.
const WHAT_TO_DO: &str =
    "* not steady: measure longer, as with --until ci=2%, or warm up longer (--warmup)";

/// A line for each run that was not steady, and what to do; nothing if all were.
pub fn notes(results: &[Results]) -> String {
    let doubtful = results
        .iter()
        .filter(|run| !run.long_run.not_steady.is_empty());
    let mut text: String = doubtful.map(note).collect();
    if !text.is_empty() && !results.iter().all(is_saturated) {
        text.push_str(&report::wrapped(WHAT_TO_DO, report::width(), 2));
    }
    text
}

fn is_saturated(result: &Results) -> bool {
    result.long_run.not_steady.contains(&NotSteady::Saturated)
}

fn note(result: &Results) -> String {
    let why = NotSteady::texts(&result.long_run.not_steady);
    let mut text = format!("* {}: {why}", result.experiment.name);
    if result.long_run.not_steady.contains(&NotSteady::OtherSizes) {
        text.push_str(&format!(" ({})", sizes(result)));
    }
    if let (true, Some(open)) = (is_saturated(result), &result.clients.open_loop) {
        text.push_str(&format!(
            " ({} requests/s, of which it served {})",
            report::significant(open.offered_rate),
            report::significant(result.clients.request_rate)
        ));
    }
    report::wrapped(&text, report::width(), 2)
}

/// Mean sizes of what was served, and of the log.
pub(super) fn sizes(result: &Results) -> String {
    let long_run = &result.long_run;
    format!(
        "{} served, {} in the log",
        report::bytes(long_run.served_response_bytes as u64),
        report::bytes(long_run.mean_response_bytes as u64),
    )
}

/// How often the log was replayed.
pub(super) fn passes(passes: f64) -> String {
    match passes {
        passes if passes < 1.0 => {
            format!("{}, the rest was not replayed", report::significant(passes))
        }
        passes => format!(
            "{}, from its beginning again after each",
            report::significant(passes)
        ),
    }
}
