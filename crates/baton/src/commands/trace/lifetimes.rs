//! `baton trace lifetimes`: how long the connections of a packet capture live, and how much they carry.

use super::{curve, distribution};
use crate::cli::LifetimesArgs;
use crate::failure::Failure;
use crate::output::{JsonOutput, print_text, spare};
use crate::runner::{Interrupt, Spinner};
use baton_report as report;
use baton_workload::capture::{CaptureAnalysis, ConnectionCounts, PacketCounts};
use serde::Serialize;
use std::path::Path;

/// Content of `--json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    capture: &'a Path,
    #[serde(flatten)]
    analysis: &'a CaptureAnalysis,
}

/// Runs the command.
///
/// # Errors
/// Fails if the capture cannot be read, if the JSON cannot be written, or if the user interrupts.
pub fn execute(arguments: &LifetimesArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let path = &arguments.capture;
    spare(path, "--json", arguments.json.as_deref())?;
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let spinner = Spinner::new("reading the capture");
    let capture = path.clone();
    let analysis = interrupt.during(move || CaptureAnalysis::read(&capture))?;
    let analysis = analysis.map_err(|error| Failure::BadInput(error.to_string()))?;
    drop(spinner);
    let text = describe(path, &analysis);
    match json {
        Some(json) => json.write(
            &Document {
                capture: path,
                analysis: &analysis,
            },
            &text,
        ),
        None => print_text(&text),
    }
}

/// Returns the whole analysis for people.
fn describe(path: &Path, analysis: &CaptureAnalysis) -> String {
    let CaptureAnalysis {
        lifetime_ms,
        at_least_ms,
        client_bytes,
        server_bytes,
        lifetimes,
        ..
    } = analysis;
    let bytes = [
        ("bytes of clients", client_bytes),
        ("bytes of servers", server_bytes),
        ("segments seen", &lifetimes.packets),
    ];
    let lives = [
        ("of complete connections", lifetime_ms),
        ("of others, at least", at_least_ms),
    ];
    let limits = analysis.limits.iter();
    let limits = limits.map(|limit| report::wrapped(&format!("- {limit}."), report::width(), 2));
    [
        report::facts_table(&path.display().to_string(), &facts(analysis)),
        distribution("lifetime, ms", &lives),
        distribution("per connection", &bytes),
        curve(lifetimes, "share of segments seen"),
        limits.collect(),
    ]
    .join("\n")
}

fn facts(analysis: &CaptureAnalysis) -> Vec<(String, String)> {
    let PacketCounts {
        all,
        tcp,
        other_ip,
        not_ip,
        ..
    } = &analysis.packets;
    let ConnectionCounts {
        all: connections,
        whole,
        ..
    } = analysis.connections;
    let seconds = (analysis.last_us - analysis.first_us) as f64 / 1e6;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("format", analysis.format.name().to_owned()),
        fact(
            "packets",
            format!(
                "{}: {} are TCP, {} other IP, {} not IP",
                report::grouped(*all),
                report::grouped(*tcp),
                report::grouped(*other_ip),
                report::grouped(*not_ip)
            ),
        ),
        fact("time", format!("{} s", report::significant(seconds))),
        fact(
            "connections",
            format!(
                "{}, of which {} were captured from their first to their last segment",
                report::grouped(connections),
                report::grouped(whole)
            ),
        ),
    ]
}
