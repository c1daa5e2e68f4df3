//! Formats results as tables.

mod cycles;
mod delays;
mod metrics;
mod server;
pub mod steadiness;

use crate::summary::Summary;
use baton_bus::Category;
use baton_report as report;
use baton_sim::config::{EstablishedBy, Length};
use baton_sim::results::{Ended, Results, Sample};
use baton_sim::{Fact, WARNINGS};
pub use cycles::height;
pub use metrics::runs_table;
use std::collections::BTreeMap;
pub use steadiness::{count, notes};

/// Categories of bytes on a bus, with their names in tables.
const CATEGORIES: [(&str, Category); 7] = [
    ("content", Category::Content),
    ("HTTP headers", Category::HttpHeader),
    ("protocol headers", Category::ProtocolHeader),
    ("descriptors", Category::Descriptor),
    ("events", Category::Event),
    ("other", Category::Other),
    ("overhead", Category::Overhead),
];

/// Maximum width of a drawn time series, columns.
const SERIES_WIDTH: usize = 60;

/// Columns next to a series, for mean and maximum.
const SERIES_NUMBERS: usize = "    mean 1,000,000, most 1,000,000".len();

/// Where to find values that do not fit into a table.
const ELSEWHERE: &str = "--details shows each run in full, --json all numbers";

/// Describes all configurations next to each other, each with all its seeds. For a single run, or if `details` are wanted, the text
/// includes all details.
pub fn describe(groups: &[&[Results]], summaries: &[Summary], details: bool) -> String {
    let results = &groups.concat();
    let runs = runs_table(groups, ELSEWHERE);
    let mut text = common_facts(results) + &runs + &differences(summaries);
    for result in results {
        text.push_str(&ended_note(result));
    }
    text.push_str(&few_note(results));
    text.push_str(&steadiness::notes(results));
    text.push_str(&steadiness::advice(results));
    if details || results.len() == 1 {
        for result in results {
            text.push('\n');
            text.push_str(&details_of(result));
        }
    } else {
        text.push('\n');
        text.push_str(&cycles::by_layer(results, ELSEWHERE));
    }
    text
}

/// Describes the difference of each configuration from the first, where both serve the same requests.
fn differences(summaries: &[Summary]) -> String {
    let Some(first) = summaries.first() else {
        return String::new();
    };
    let mut table = report::Table::of(format!("against {}", first.name), &["requests/s", "Mb/s"]);
    let others = summaries
        .iter()
        .filter_map(|other| Some((other, other.against_first?)));
    for (other, difference) in others {
        table.row(vec![
            other.name.clone(),
            report::difference(difference.request_rate_percent),
            report::difference(difference.content_mbps_percent),
        ]);
    }
    match table.is_empty() {
        true => String::new(),
        false => "\n".to_owned() + &table.render(),
    }
}

/// Describes what several runs share: workload, seed, length. Empty if these differ, or for a single run, whose details include them.
fn common_facts(results: &[Results]) -> String {
    let [first, rest @ ..] = results else {
        return String::new();
    };
    let run = &first.experiment.run;
    let shared = |other: &Results| other.workload == first.workload && other.experiment.run == *run;
    if rest.is_empty() || !rest.iter().all(shared) {
        return String::new();
    }
    let mut facts = workload_facts(first);
    facts.push(("seed".to_owned(), run.seed.to_string()));
    facts.push((
        "length".to_owned(),
        format!(
            "{} measured, after {} of warm-up",
            length_text(run.measured()),
            length_text(run.warmup())
        ),
    ));
    report::facts_table("All runs", &facts) + "\n"
}

fn length_text(length: Length) -> String {
    match length {
        Length::Packets(packets) => format!("{} packets", report::grouped(packets)),
        Length::Responses(responses) => format!("{} responses", report::grouped(responses)),
        Length::Seconds(seconds) => format!("{seconds} s"),
        Length::Passes(passes) => format!("{passes} passes over the log"),
    }
}

/// Returns a note if a run is shorter than planned.
fn ended_note(result: &Results) -> String {
    let experiment = &result.experiment;
    let why = match result.ended {
        Ended::Complete => return String::new(),
        Ended::TimeLimit => format!(
            "it reached its limit of {} simulated seconds (run.limit_s)",
            experiment.run.limit_s
        ),
        Ended::Quiet => "no more events were pending".to_owned(),
    };
    let note = format!(
        "note: {} measured only {} packets and {} responses, not {}: {why}",
        experiment.name,
        report::grouped(result.packets),
        report::grouped(result.clients.responses),
        length_text(experiment.run.measured()),
    );
    report::wrapped(&note, report::width(), 2)
}

/// Returns a note that explains why percentiles are missing in runs that had some responses.
fn few_note(results: &[Results]) -> String {
    let is_few = |run: &Results| run.waited_ms().count > 0 && run.waited_ms().p999.is_none();
    if !results.iter().any(is_few) {
        return String::new();
    }
    let note = "note: the 99th percentile needs at least 100 responses and the 99.9th 1,000; a run had fewer";
    report::wrapped(note, report::width(), 2)
}

/// Returns a message about runs in which nothing was measured, or `None` if there are none.
pub fn measured_nothing(results: &[Results]) -> Option<String> {
    let nothing: Vec<String> = results
        .iter()
        .filter(|run| run.measured_nothing())
        .map(why_nothing)
        .collect();
    (!nothing.is_empty()).then(|| nothing.join("\n"))
}

fn why_nothing(result: &Results) -> String {
    let name = &result.experiment.name;
    let ended = match result.ended {
        Ended::TimeLimit => format!(
            "its {} simulated seconds (run.limit_s) passed",
            result.experiment.run.limit_s
        ),
        Ended::Quiet => "no more events were pending".to_owned(),
        Ended::Complete => format!("{} packets passed", report::grouped(result.packets)),
    };
    let before = match result.measured_s {
        0.0 => "before measurement began; check wire.loss and --warmup",
        _ => "before a client had received a complete response; measure longer",
    };
    format!("{name} measured nothing: {ended} {before}")
}

fn details_of(result: &Results) -> String {
    let mut parts = vec![
        report::facts_table(&result.experiment.name, &facts(result)),
        cycles::by_cause(result),
        cycles::per_packet(&[
            ("host connections", result.host.host_packets),
            ("offloaded connections", result.host.nic_packets),
        ]),
        cycles::tasks(result),
        handoffs(result),
        server::descriptors(result),
        bus(result),
        server::interconnect(result),
        server::nics(result),
        counts_table("NIC dropped frames because", &result.nic.drops),
        counts_table("host dropped because", &result.host.drops),
        counts_table("connections failed because", &result.clients.failed),
        series(result),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn facts(result: &Results) -> Vec<(String, String)> {
    let Results {
        experiment,
        clients,
        host,
        nic,
        ..
    } = result;
    let mut facts = workload_facts(result);
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("seed", experiment.run.seed.to_string());
    fact(
        "measured",
        format!(
            "{} packets in {:.3} simulated seconds",
            report::grouped(result.packets),
            result.measured_s
        ),
    );
    fact("responses", report::grouped(clients.responses));
    if let Some(passes) = result.long_run.passes {
        fact("passes over the log", steadiness::passes(passes));
        fact("mean response", steadiness::sizes(result));
    }
    for (name, value) in delays::facts(result) {
        fact(name, value);
    }
    fact(
        "network stack",
        format!(
            "{} of host cycles, in the layers below system calls",
            report::percent(host.network_stack_percent)
        ),
    );
    fact("interrupts", report::grouped(host.interrupts));
    for (name, delay) in [
        ("host packets sent", &nic.send_delay_us),
        ("host packets received", &nic.receive_delay_us),
    ] {
        if delay.count == 0 {
            continue;
        }
        fact(
            &format!("{name}: us on the NIC"),
            format!("median {}, mean {}", number(delay.p50), number(delay.mean)),
        );
    }
    for (name, by) in [
        (
            "segments sent again",
            [
                clients.retransmissions,
                host.retransmissions,
                nic.retransmissions,
            ],
        ),
        (
            "retransmission timeouts",
            [clients.timeouts, host.timeouts, nic.timeouts],
        ),
    ] {
        let [clients, host, nic] = by.map(report::grouped);
        fact(
            name,
            format!("{clients} at clients, {host} on the host, {nic} on the NIC"),
        );
    }
    facts.extend(server::facts(result));
    facts
}

/// Formats a number, or `-` if there is none.
pub fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), report::significant)
}

/// Returns the facts about a workload, with names in words and grouped numbers. Warnings were printed when the runs ended.
fn workload_facts(result: &Results) -> Vec<(String, String)> {
    let facts = result.workload.iter().filter(|(name, _)| *name != WARNINGS);
    let words = |(name, fact): (&String, &Fact)| {
        (
            format!("workload: {}", name.replace('_', " ").replace("gib", "GiB")),
            fact_text(fact),
        )
    };
    facts.map(words).collect()
}

fn fact_text(fact: &Fact) -> String {
    match fact {
        Fact::Number(number) => report::grouped(*number),
        Fact::Words(words) => words.clone(),
        Fact::Counts(by_reason) => {
            let counted = by_reason.iter().filter(|(_, count)| **count > 0);
            let counted = counted.map(|(name, count)| {
                format!("{} {}", report::grouped(*count), name.replace('_', " "))
            });
            match counted.collect::<Vec<_>>() {
                none if none.is_empty() => "none".to_owned(),
                some => some.join(", "),
            }
        }
    }
}

/// Returns the outcomes of handoffs, and the reasons why other connections were not offloaded. Empty where adapters establish all connections.
fn handoffs(result: &Results) -> String {
    if result.experiment.offload.established_by == EstablishedBy::Adapter {
        return String::new();
    }
    let handoff = &result.handoff;
    let text = format!(
        "Handoffs: {} attempted, {} accepted, {} restored, {} packets forwarded.\n\
         On the NIC: {} connections on average, with {} of all packets.\n",
        report::grouped(handoff.attempted),
        report::grouped(handoff.accepted),
        report::grouped(handoff.restored),
        report::grouped(handoff.forwarded),
        report::significant(result.nic.connections_mean),
        report::percent(handoff.offloaded_packets_percent),
    );
    let lines = text
        .lines()
        .map(|line| report::wrapped(line, report::width(), 0));
    lines.collect::<String>() + &counts_table("not offloaded because", &handoff.not_offloaded)
}

/// Returns counts by name with their shares, or an empty table if all are zero. `head` names the first column.
fn counts_table(head: &str, counts: &BTreeMap<String, u64>) -> String {
    let all: u64 = counts.values().sum();
    let mut table = report::Table::of(head, &["count", "share"]);
    for (name, &count) in counts.iter().filter(|(_, count)| **count > 0) {
        let share = report::percent(100.0 * count as f64 / all as f64);
        table.row(vec![name.replace('_', " "), report::grouped(count), share]);
    }
    match table.is_empty() {
        true => String::new(),
        false => table.render(),
    }
}

/// Describes the traffic between host and NIC.
fn bus(result: &Results) -> String {
    let (to_nic, to_host) = (&result.bus.to_nic, &result.bus.to_host);
    let mut table = report::Table::of("bus", &["to the NIC", "to the host"]);
    table.row(vec![
        "crossings (DMA)".to_owned(),
        report::grouped(to_nic.crossings),
        report::grouped(to_host.crossings),
    ]);
    let (down, up) = (&to_nic.bytes, &to_host.bytes);
    for (name, category) in CATEGORIES {
        let (down, up) = (down.get(category), up.get(category));
        if down + up > 0 {
            table.row(vec![
                name.to_owned(),
                report::bytes(down),
                report::bytes(up),
            ]);
        }
    }
    table.render()
}

/// Draws the course of load control: connections on the NIC, the NIC's queue, its limit, and the request rate.
fn series(result: &Results) -> String {
    let samples = &result.series;
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return String::new();
    };
    let drawn = |name: &str, values: Vec<f64>| report::Series {
        name: name.to_owned(),
        values,
    };
    let rate = samples
        .windows(2)
        .map(|pair| {
            let seconds = pair[1].time_us.saturating_sub(pair[0].time_us).max(1) as f64 / 1e6;
            pair[1].responses.saturating_sub(pair[0].responses) as f64 / seconds
        })
        .collect();
    let span = format!(
        "From {:.2} to {:.2} simulated seconds, warm-up ({:.2} s) included:",
        first.time_us as f64 / 1e6,
        last.time_us as f64 / 1e6,
        result.warmup_s
    );
    let of = |value: fn(&Sample) -> u32| samples.iter().map(|s| f64::from(value(s))).collect();
    let mut lines = vec![
        drawn("requests/s", rate),
        drawn("open connections", of(|s| s.open)),
    ];
    if samples.iter().any(|sample| sample.soft_limit > 0) {
        lines.extend([
            drawn("connections on the NIC", of(|s| s.connections)),
            drawn("NIC packets waiting (Qlen)", of(|s| s.qlen)),
            drawn("Soft_Limit", of(|s| s.soft_limit)),
        ]);
    }
    let name = |line: &report::Series| line.name.chars().count();
    let beside = lines.iter().map(name).max().unwrap_or(0) + SERIES_NUMBERS;
    let room = report::width()
        .saturating_sub(beside)
        .clamp(8, SERIES_WIDTH);
    report::series_text(
        &lines,
        report::wrapped(&span, report::width(), 0).trim_end(),
        room,
    )
}
