//! `baton live stat`: shows the state of a running engine.

mod applications;
pub mod filter;
mod glossary;
mod metrics;
mod rates;
mod sockets;
mod without;

use super::ask_broker;
use crate::cli::StatArgs;
use crate::failure::Failure;
use crate::output::print;
use crate::runner::Interrupt;
use baton_live::{Places, Snapshot, ask};
use baton_report::{Column, Table, counted, grouped};
use baton_sockets::broker::ApplicationPlaces;
use baton_sockets::kernel::PlaceRow;
use rates::Rates;
pub use sockets::state_name;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::thread;
use std::time::Duration;

/// Moves the cursor to the top left corner and clears the screen below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Runs the command.
///
/// # Errors
/// Fails if no engine answers.
pub fn execute(arguments: &StatArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    if arguments.glossary {
        return print(glossary::TEXT);
    }
    if arguments.why {
        return why(arguments, interrupt);
    }
    let mut before: Option<Snapshot> = None;
    loop {
        let (control, server) = arguments.control(&Places::here());
        let asked = control.clone();
        let answer = interrupt.during(move || ask(&asked, server))??;
        if arguments.json && !filter::is_given(&arguments.filter) {
            return print(&String::from_utf8_lossy(&answer));
        }
        let snapshot: Snapshot = serde_json::from_slice(&answer).map_err(|error| {
            Failure::Failed(format!(
                "--control {}: cannot read the answer; the process there may be another version of baton: {error}",
                control.display()
            ))
        })?;
        if arguments.metrics {
            return print(&metrics::render(&snapshot));
        }
        let rates = before
            .as_ref()
            .and_then(|before| Rates::between(before, &snapshot));
        let mut shown = snapshot.clone();
        filter::apply(&arguments.filter, &mut shown);
        if arguments.json {
            return print(&String::from_utf8_lossy(&shown.to_line()));
        }
        let text = render(&shown, &snapshot, arguments, rates.as_ref());
        if !arguments.watch {
            return print(&text);
        }
        print(&format!("{CLEAR}{text}"))?;
        before = Some(snapshot);
        for _ in 0..10 {
            if interrupt.requested() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Shows where the connections of all applications of a broker are, and why.
fn why(arguments: &StatArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let broker = arguments.broker.clone();
    let broker = broker.unwrap_or_else(|| Places::here().broker());
    let mut applications = ask_broker(&broker, interrupt, |broker| broker.places())?;
    let without = without::find(&broker);
    if arguments.json {
        applications.extend(without.iter().map(|one| ApplicationPlaces {
            pid: one.pid,
            places: Vec::new(),
            kept: BTreeMap::new(),
            silent: Some(format!("without Baton: {}", one.why)),
        }));
        let text = serde_json::to_string(&applications);
        let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
        return print(&format!("{text}\n"));
    }
    let mut text = String::new();
    if applications.is_empty() {
        text.push_str("no application is attached to the broker\n");
    }
    for application in &applications {
        if let Some(why) = &application.silent {
            let _ = writeln!(
                text,
                "process {}: its connections are not shown: {why}",
                application.pid
            );
            continue;
        }
        let count = counted(application.places.len() as u64, "connection");
        let kept = application.kept.iter();
        let kept: Vec<String> = kept
            .map(|(why, count)| format!("{} {}", why.replace('_', " "), grouped(*count)))
            .collect();
        let kept = match kept.is_empty() {
            true => String::new(),
            false => format!("; left to the kernel: {}", kept.join(", ")),
        };
        let _ = writeln!(text, "process {}: {count}{kept}", application.pid);
        text.push_str(&places(&application.places, arguments.rows));
    }
    for one in without {
        let _ = writeln!(
            text,
            "process {} ({}) runs without Baton: {}",
            one.pid, one.name, one.why
        );
    }
    // Only root and the broker's user may see how often the broker's limits were reached.
    let counters = ask_broker(&broker, interrupt, |broker| broker.counters());
    for (name, count) in counters.unwrap_or_default() {
        if count > 0 {
            let _ = writeln!(
                text,
                "limit of the broker reached, {name}: {}",
                grouped(count)
            );
        }
    }
    print(&text)
}

/// Renders the snapshot `shown`, below a few lines about the snapshot `all`.
fn render(
    shown: &Snapshot,
    all: &Snapshot,
    arguments: &StatArgs,
    rates: Option<&Rates<'_>>,
) -> String {
    let link = match all.mac.as_str() {
        "" => String::new(),
        mac => format!(" ({mac}, MTU {})", all.mtu),
    };
    let mut text = format!(
        "process {} for {:.1} s on {}{}: {}, {} in TIME-WAIT\n",
        all.pid,
        all.uptime_ms as f64 / 1000.0,
        all.interface,
        link,
        counted(all.connections.len() as u64, "connection"),
        grouped(all.time_wait),
    );
    text.push_str(&sockets::summary(all));
    let half_open = !arguments.filter.state.is_empty();
    text.push_str(&sockets::table(shown, arguments.rows, half_open, rates));
    text.push_str(&places(&shown.places, arguments.rows));
    text.push_str(&applications::render(&shown.applications));
    text.push_str(&neighbours(shown));
    text.push_str(&counters(shown, arguments.all, rates));
    text
}

/// Renders where each connection of a host with an adapter is, and why.
fn places(rows: &[PlaceRow], most: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(vec![
        Column::words("local"),
        Column::words("remote"),
        Column::words("is on the"),
        Column::numbers("for, s"),
        Column::words("not on the adapter because"),
        Column::numbers("handoffs"),
    ]);
    for row in rows.iter().take(most) {
        let why = row.why.clone().unwrap_or_else(|| "-".to_owned());
        table.row(vec![
            row.local.to_string(),
            row.remote.to_string(),
            row.place.replace('_', " "),
            format!("{:.1}", row.since_ms as f64 / 1000.0),
            why.replace('_', " "),
            grouped(row.handoffs.into()),
        ]);
    }
    let mut text = table.render();
    if rows.len() > most {
        let left = grouped((rows.len() - most) as u64);
        let _ = writeln!(text, "... and {left} more; --rows N shows more, --json all");
    }
    text
}

fn neighbours(snapshot: &Snapshot) -> String {
    let mut table = Table::new(vec![
        Column::words("neighbour"),
        Column::words("address"),
        Column::words("state"),
        Column::numbers("waiting"),
    ]);
    for neighbour in &snapshot.neighbours {
        let mac = neighbour.mac.clone();
        table.row(vec![
            neighbour.addr.clone(),
            mac.unwrap_or_else(|| "-".to_owned()),
            neighbour.state.clone(),
            grouped(neighbour.waiting),
        ]);
    }
    table.render()
}

fn counters(snapshot: &Snapshot, all: bool, rates: Option<&Rates<'_>>) -> String {
    let mut columns = vec![Column::words("counter"), Column::numbers("value")];
    columns.extend(rates.map(|_| Column::numbers("per second")));
    let mut table = Table::new(columns);
    for (name, &value) in &snapshot.counters {
        if all || value > 0 {
            let mut row = vec![name.clone(), grouped(value)];
            row.extend(rates.map(|rates| rates.counter(name, value)));
            table.row(row);
        }
    }
    let unfinished = ["checksum_not_ready", "super_frame"].map(|why| format!("port.dropped.{why}"));
    let is_unfinished = |name: &String| snapshot.counters.get(name).is_some_and(|&count| count > 0);
    let advice = match unfinished.iter().any(is_unfinished) {
        true => {
            "frames were dropped because their checksum or segmentation was left to the hardware; at the other end of a virtual link run \
             `ethtool -K PEER tx off`\n"
        }
        false => "",
    };
    let hint = "for the meaning of these counters: baton live stat --glossary\n";
    [table.render().as_str(), advice, hint].concat()
}
