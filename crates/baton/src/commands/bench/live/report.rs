//! A report to share, in Markdown.

use super::found::{Found, TestFound, losses};
use super::table::{heading, results};
use crate::commands::bench::table::{places, unit};
use baton_microbench::{Load, Losses, Trial};
use baton_report::{Column, Table, grouped};
use std::fmt::Write as _;

/// A width with enough space for each column of a table.
const WIDTH: usize = 200;

/// Returns the whole report.
pub(super) fn text(found: &Found) -> String {
    let under_test = &found.interfaces[0];
    let mut text = format!("# Tests of {}\n\n", under_test.name);
    for line in heading(found).lines() {
        let _ = writeln!(text, "- {line}");
    }
    let _ = write!(
        text,
        "- {}\n\n## Results\n\n{}",
        found.program,
        fenced(&results(found))
    );
    let _ = write!(
        text,
        "\n\"Best\" is the highest result that any trial counted. The rates are the conditional throughput at the highest load at which half of \
         the trials met the goal, with the share of frames that they may lose. \"Full\" names what had no time or space left in the best trial. \
         A loss is \"unplaced\" if neither kernel nor driver nor socket has counted it. Frames carry sequence numbers, and each byte of them is \
         compared.\n"
    );
    for test in &found.tests {
        let _ = write!(
            text,
            "\n## {}\n\n{}",
            test.search.test.name(),
            fenced(&trials(test))
        );
    }
    text
}

fn fenced(table: &Table) -> String {
    format!("```text\n{}```\n", table.fit(WIDTH))
}

/// Renders one row for each trial.
fn trials(test: &TestFound) -> Table {
    let mut table = Table::new(vec![
        Column::numbers("trial"),
        Column::words("offered"),
        Column::numbers(format!("result,\n{}", unit(test.search.test))),
        Column::numbers("loss, %"),
        Column::words("lost"),
        Column::numbers("latency,\nmean, us"),
        Column::numbers("late,\np99, us"),
        Column::numbers("late,\nmost, us"),
        Column::numbers("idle, %"),
        Column::numbers("partner's\nidle, %"),
    ]);
    for (number, trial) in test.search.trials.iter().enumerate() {
        table.row(row(test, number, trial));
    }
    table
}

fn row(test: &TestFound, number: usize, trial: &Trial) -> Vec<String> {
    let offered = match trial.load {
        Load::Rate(rate) => format!("{}/s", grouped(rate.round() as u64)),
        Load::Connections(connections) => format!("{connections} connections"),
        Load::Burst(frames) => format!("{} frames", grouped(frames)),
    };
    let mut all = Losses::default();
    losses(trial).for_each(|(place, frames)| all.add(place, frames));
    let late = test.senders(number).next().map(|one| one.lateness_us);
    let us = |value: Option<f64>| value.map_or("-".to_owned(), |us| format!("{us:.1}"));
    let idle =
        |idle: Option<f64>| idle.map_or("-".to_owned(), |idle| format!("{:.0}", 100.0 * idle));
    let detail = test.details.get(number);
    vec![
        (number + 1).to_string(),
        offered,
        format!("{:.1}", trial.result()),
        format!("{:.4}", 100.0 * trial.loss_ratio()),
        places(all.iter()),
        us(trial.latency.map(|latency| latency.mean_us)),
        us(late.map(|late| late.p99)),
        us(late.map(|late| late.max)),
        idle(detail.map(|detail| detail.under_test.idle)),
        idle(detail.map(|detail| detail.partner.idle)),
    ]
}
