//! `baton trace`: analyses an access log.

mod lifetimes;
mod locality;

use crate::cli::{TraceArgs, TracePart};
use crate::failure::Failure;
use crate::logs;
use crate::output::{JsonOutput, print_text, spare};
use crate::runner::Interrupt;
use baton_report::{self as report, Column, Table};
use baton_workload::analyse::{
    Analysis, Connections, Lifetimes, Locality, Popularity, SizePair, Sizes, Totals,
};
use baton_workload::log::Skipped;
use baton_workload::{Log, SessionRule};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Shown part of a skipped line, characters.
const SHOWN_CHARS: usize = 40;

/// Content of `--json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    log: &'a Path,
    #[serde(flatten)]
    analysis: &'a Analysis,
}

/// Runs the command.
///
/// # Errors
/// Fails if the log cannot be read, or if the JSON cannot be written.
pub fn execute(arguments: &TraceArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    match (&arguments.part, &arguments.log) {
        (Some(TracePart::Locality(arguments)), _) => locality::execute(arguments, interrupt),
        (Some(TracePart::Lifetimes(arguments)), _) => lifetimes::execute(arguments, interrupt),
        (None, Some(log)) => analyse(arguments, log, interrupt),
        (None, None) => Err(Failure::BadInput(
            "trace: expected an access log".to_owned(),
        )),
    }
}

/// Does the part of the analysis that is fast.
fn analyse(arguments: &TraceArgs, path: &Path, interrupt: &Interrupt) -> Result<(), Failure> {
    spare(path, "--json", arguments.json.as_deref())?;
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let rule = SessionRule {
        persistent_s: arguments.persistent,
        pipeline_s: None,
    };
    let analyse = move |log: Arc<Log>| Ok(Analysis::of(&log, rule));
    let analysis = logs::read_then(path, &arguments.reading, interrupt, analyse)?;
    let text = describe(path, &analysis);
    match json {
        Some(json) => json.write(
            &Document {
                log: path,
                analysis: &analysis,
            },
            &text,
        ),
        None => print_text(&text),
    }
}

/// Returns the whole analysis for people.
pub fn describe(path: &Path, analysis: &Analysis) -> String {
    let mut parts = vec![
        logs::warnings(&analysis.warnings),
        report::facts_table(&path.display().to_string(), &facts(analysis)),
        skipped(&analysis.skipped),
        popularity(&analysis.popularity),
    ];
    if let Some(sizes) = &analysis.sizes {
        parts.push(size_table(sizes));
    }
    parts.push(lru_locality(&analysis.locality));
    parts.push(connections(&analysis.connections));
    match &analysis.lifetimes {
        Some(found) => parts.push(lifetimes(found)),
        None => parts.push(
            "The log has no response sizes: it cannot be replayed, and sizes and lifetimes are unknown.\n".to_owned(),
        ),
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn facts(analysis: &Analysis) -> Vec<(String, String)> {
    let totals: &Totals = &analysis.totals;
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("format", analysis.format.to_string());
    fact("requests", report::grouped(totals.requests));
    if totals.unwrapped > 0 {
        let unwrapped = report::grouped(totals.unwrapped);
        fact(
            "taken out of",
            format!("syslog, container or service logs, or quotes: {unwrapped}"),
        );
    }
    let clients = report::grouped(totals.clients);
    fact(
        "clients",
        match totals.forwarded {
            0 => clients,
            forwarded => format!(
                "{clients}; for {} requests, the client is taken from X-Forwarded-For",
                report::grouped(forwarded)
            ),
        },
    );
    fact("files (distinct URLs)", report::grouped(totals.urls));
    if analysis.sizes.is_some() {
        let mean = totals.mean_bytes().round() as u64;
        fact(
            "content",
            format!(
                "{} bytes, {} per response",
                report::grouped(totals.content_bytes),
                report::bytes(mean)
            ),
        );
        fact(
            "footprint",
            format!("{} bytes", report::grouped(totals.footprint_bytes)),
        );
        fact(
            "sizes logged as -",
            format!("{}, taken as 0", report::grouped(totals.dashes)),
        );
        if totals.bodiless_bytes > 0 {
            fact(
                "bytes of HEAD, 304, 204, 1xx",
                format!(
                    "{}, not counted, as these responses have no body",
                    report::grouped(totals.bodiless_bytes)
                ),
            );
        }
    }
    let hours = totals.duration_s() / 3600.0;
    fact(
        "time",
        format!(
            "{hours:.2} hours, {} requests/s",
            report::significant(totals.requests_per_s())
        ),
    );
    if totals.resorted {
        fact(
            "order",
            "lines were not in chronological order and were sorted".to_owned(),
        );
    }
    let statuses = analysis.statuses.iter().map(|s| match s.status {
        0 => ("none".to_owned(), s.requests),
        status => (status.to_string(), s.requests),
    });
    fact("status", shares(statuses, totals.requests));
    let methods = analysis
        .methods
        .iter()
        .map(|m| (format!("{:?}", m.method).to_uppercase(), m.requests));
    fact("method", shares(methods, totals.requests));
    facts
}

/// Formats shares, most frequent first: `200 87 %, 304 9 %`.
fn shares(counts: impl Iterator<Item = (String, u64)>, all: u64) -> String {
    let mut counts: Vec<(String, u64)> = counts.collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let share = |count: u64| report::percent(100.0 * count as f64 / all.max(1) as f64);
    counts
        .iter()
        .map(|(name, count)| format!("{name} {}", share(*count)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn skipped(skipped: &Skipped) -> String {
    if skipped.total() == 0 {
        return "No line was skipped.\n".to_owned();
    }
    let mut table = Table::new(vec![
        Column::words("lines skipped because"),
        Column::numbers("lines"),
        Column::numbers("of the log"),
        Column::numbers("as line"),
        Column::words("which begins"),
    ]);
    for (reason, found) in skipped.reasons() {
        table.row(vec![
            reason.to_string(),
            report::grouped(found.lines),
            share(found.lines as f64 / skipped.lines().max(1) as f64),
            report::grouped(found.first_line),
            found.first_text.chars().take(SHOWN_CHARS).collect(),
        ]);
    }
    table.render()
}

fn popularity(popularity: &Popularity) -> String {
    let mut table = Table::new(vec![
        Column::numbers("most popular files"),
        Column::numbers("share of requests"),
        Column::numbers("share of bytes"),
    ]);
    for top in &popularity.top {
        table.row(vec![
            report::grouped(top.files),
            share(top.requests),
            share(top.bytes),
        ]);
    }
    format!(
        "{}Zipf exponent {:.2}; {} requested only once.\n",
        table.render(),
        // Adding zero removes the sign of a rounded zero.
        (100.0 * popularity.zipf_exponent).round() / 100.0 + 0.0,
        report::counted(popularity.once, "file")
    )
}

fn size_table(sizes: &SizePair) -> String {
    distribution(
        "size, bytes",
        &[("responses", &sizes.responses), ("files", &sizes.files)],
    )
}

/// Renders mean and percentiles of several distributions, one for each row.
fn distribution(head: &str, rows: &[(&str, &Sizes)]) -> String {
    let percentiles = rows
        .first()
        .map_or(&[][..], |(_, sizes)| &sizes.percentiles);
    let mut columns = vec![
        Column::words(head),
        Column::numbers("count"),
        Column::numbers("mean"),
    ];
    columns.extend(
        percentiles
            .iter()
            .map(|p| Column::numbers(format!("{} %", p.percent))),
    );
    columns.push(Column::numbers("most"));
    let mut table = Table::new(columns);
    for (name, sizes) in rows {
        let mut cells = vec![
            (*name).to_owned(),
            report::grouped(sizes.count),
            report::significant(sizes.mean),
        ];
        cells.extend(sizes.percentiles.iter().map(|p| report::grouped(p.value)));
        cells.push(report::grouped(sizes.max));
        table.row(cells);
    }
    table.render()
}

fn lru_locality(locality: &Locality) -> String {
    let mut text = String::new();
    if !locality.caches.is_empty() {
        let mut table = Table::new(vec![
            Column::numbers("LRU cache of 4 KiB blocks"),
            Column::numbers(match locality.estimated {
                true => "bytes found in it (estimated)",
                false => "bytes found in it",
            }),
        ]);
        for point in &locality.caches {
            table.row(vec![
                report::bytes(point.cache_bytes),
                share(point.byte_hits),
            ]);
        }
        text.push_str(&table.render());
        text.push('\n');
    }
    let mut table = Table::new(vec![
        Column::numbers("LRU cache of whole files"),
        Column::numbers("requests found in it"),
    ]);
    for point in &locality.files {
        table.row(vec![
            report::grouped(point.files),
            share(point.request_hits),
        ]);
    }
    text.push_str(&table.render());
    text
}

fn connections(connections: &Connections) -> String {
    let title = format!(
        "Connections, if requests of one client that are at most {} s apart share a connection:\n",
        connections.rule.persistent_s
    );
    title + &distribution("per connection", &[("requests", &connections.requests)])
}

fn lifetimes(lifetimes: &Lifetimes) -> String {
    format!(
        "{}{}{}",
        distribution("per connection", &[("packets sent", &lifetimes.packets)]),
        curve(lifetimes, "share of packets sent"),
        compare_lifetimes(lifetimes)
    )
}

/// Renders the shares of the longest-lived connections; `packets` is the head of the column of packets.
fn curve(lifetimes: &Lifetimes, packets: &str) -> String {
    let mut table = Table::new(vec![
        Column::numbers("longest-lived connections"),
        Column::numbers(packets),
        Column::numbers("share of bytes"),
    ]);
    for point in &lifetimes.curve {
        table.row(vec![
            format!("{} %", point.top_percent),
            share(point.packets),
            share(point.bytes),
        ]);
    }
    table.render()
}

/// Compares the lifetimes with those of the handoff-policies paper, figure 4.
pub fn compare_lifetimes(lifetimes: &Lifetimes) -> String {
    let top = lifetimes
        .top_packets(10)
        .map_or_else(|| "-".to_owned(), share);
    format!(
        "The shorter-lived half of the connections sends {} of the packets (published web workloads: under 10 %),\n\
         the longest-lived tenth sends {top} (published: over 45 %).\n",
        share(lifetimes.bottom_half_packets()),
    )
}

fn share(part: f64) -> String {
    report::percent(100.0 * part)
}
