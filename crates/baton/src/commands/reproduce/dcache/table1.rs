//! Table 1 of the data-caching paper: what caches do to bus traffic, throughput and request rate.

use super::SIZES_MIB;
use super::published::Uncached;
use super::runs::{self, PARTS, Run};
use crate::commands::reproduce::{Context, Outcome, Reproduction, Row, table};
use crate::failure::Failure;
use baton_report::{Column, Scale, Table, significant};

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "dcache-table1",
    about: "reduction of bus traffic, throughput and request rate with caches of 0, 4, 8 and 16 MB (ASPLOS 2002, Table 1)",
    figure: false,
    run,
};

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let runs = runs::run(context, &SIZES_MIB)?;
    let logs = || runs.chunks(SIZES_MIB.len());
    let rows: Vec<Row> = logs()
        .flat_map(|of_log| of_log.iter().flat_map(|run| rows_of(&of_log[0], run)))
        .collect();
    let compared: Vec<Row> = rows
        .iter()
        .filter(|row| row.published.is_some())
        .cloned()
        .collect();
    let title = "Network interface data caching (ASPLOS 2002), Table 1, without a cache, published and simulated:";
    Ok(Outcome {
        text: format!(
            "{}\n{}\n{}",
            table(title, &compared),
            predictions(logs()),
            super::note(context),
        ),
        rows: rows.into(),
        figure: None,
    })
}

pub(super) fn rows_of(without: &Run, run: &Run) -> Vec<Row> {
    let published = Uncached::of(&run.source).filter(|_| run.mib == 0);
    let throughput = published.as_ref().map(|p| p.content_mbps);
    let rate = published.as_ref().map(|p| p.request_rate);
    let mut rows = vec![
        run.row(
            "content_mbps",
            "throughput, Mb/s of content",
            Scale::Relative,
            throughput,
            run.content_mbps(),
        ),
        run.row(
            "request_rate",
            "requests/s",
            Scale::Relative,
            rate,
            run.results.clients.request_rate,
        ),
    ];
    if run.mib > 0 {
        let row = |metric, name, value| run.row(metric, name, Scale::Points, None, value);
        rows.extend([
            row(
                "content_reduction_percent",
                "less content on the bus, %",
                run.reduction_percent(without, PARTS[0].1),
            ),
            row(
                "overhead_reduction_percent",
                "less bus overhead, %",
                run.reduction_percent(without, PARTS[1].1),
            ),
            row(
                "benefit_percent",
                "more throughput, %",
                benefit_percent(without, run),
            ),
        ]);
    }
    rows
}

fn benefit_percent(without: &Run, run: &Run) -> f64 {
    100.0 * (run.content_mbps() / without.content_mbps().max(f64::MIN_POSITIVE) - 1.0)
}

fn predictions<'a>(logs: impl Iterator<Item = &'a [Run]>) -> String {
    let columns = vec![
        Column::words("log"),
        Column::numbers("cache"),
        Column::numbers("less\ncontent"),
        Column::numbers("less\noverhead"),
        Column::numbers("throughput,\nMb/s"),
        Column::numbers("requests/s"),
        Column::numbers("benefit"),
        Column::numbers("bus in use"),
        Column::numbers("host idle"),
    ];
    let title = "With caches: predictions, to which nothing was fitted. Reductions are for the same content:";
    let mut table = Table::new(columns).titled(title);
    for of_log in logs {
        for run in of_log {
            let change = |value: f64| match run.mib {
                0 => "-".to_owned(),
                _ => format!("{value:.1} %"),
            };
            table.row(vec![
                run.source.name(),
                run.cache(),
                change(run.reduction_percent(&of_log[0], PARTS[0].1)),
                change(run.reduction_percent(&of_log[0], PARTS[1].1)),
                significant(run.content_mbps()),
                significant(run.results.clients.request_rate),
                change(benefit_percent(&of_log[0], run)),
                format!("{:.1} %", run.utilisation_percent()),
                format!("{:.1} %", run.results.host.idle_percent),
            ]);
        }
    }
    table.render()
}
