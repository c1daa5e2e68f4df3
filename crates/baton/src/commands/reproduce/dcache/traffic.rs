//! Figure 7 of the data-caching paper: traffic on the PCI bus with caches of 0, 4, 8 and 16 MB on each NIC.

use super::SIZES_MIB;
use super::runs::{self, PARTS, Run};
use crate::commands::reproduce::{Context, Outcome, Reproduction, Row};
use crate::failure::Failure;
use baton_bus::Category;
use baton_report::figure::{Bar, Bars, Figure};
use baton_report::{Column, Scale, Table};

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "dcache-traffic",
    about: "traffic on the PCI bus with caches of 0, 4, 8 and 16 MB on each NIC (ASPLOS 2002, Figure 7)",
    figure: true,
    run,
};

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let runs = runs::run(context, &SIZES_MIB)?;
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for of_log in runs.chunks(SIZES_MIB.len()) {
        rows.extend(of_log.iter().flat_map(|run| rows_of(&of_log[0], run)));
        bars.extend(of_log.iter().map(|run| bar(&of_log[0], run)));
    }
    let figure = Bars {
        title: "Traffic on the PCI bus with caches (after Figure 7)".to_owned(),
        y: "bus time for the same content, without a cache = 100".to_owned(),
        most: 120.0,
        parts: PARTS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        bars,
    };
    Ok(Outcome {
        text: format!("{}\n{}", traffic_table(&runs), super::note(context)),
        rows: rows.into(),
        figure: Some(Figure::Bars(figure)),
    })
}

/// Traffic of some categories where all traffic without a cache is 100.
fn relative(without: &Run, run: &Run, categories: &[Category]) -> f64 {
    100.0 * run.traffic(categories) / without.traffic(&Category::ALL).max(f64::MIN_POSITIVE)
}

fn rows_of(without: &Run, run: &Run) -> Vec<Row> {
    let row = |metric, name, categories: &[Category]| {
        let traffic = relative(without, run, categories);
        run.row(metric, name, Scale::Points, None, traffic)
    };
    vec![
        row("traffic_percent", "all traffic", &Category::ALL),
        row("content_percent", PARTS[0].0, PARTS[0].1),
        row("overhead_percent", PARTS[1].0, PARTS[1].1),
        row("protocol_header_percent", PARTS[2].0, PARTS[2].1),
        row("http_header_percent", PARTS[3].0, PARTS[3].1),
        row("other_percent", PARTS[4].0, PARTS[4].1),
    ]
}

fn bar(without: &Run, run: &Run) -> Bar {
    // Many bars side by side: only the first of a log has its name.
    let log = if run.mib == 0 {
        run.source.short_name()
    } else {
        String::new()
    };
    Bar {
        name: format!("{}\n{log}", run.mib),
        is_doubtful: run.results.long_run.is_doubtful(),
        parts: PARTS
            .iter()
            .map(|(_, c)| relative(without, run, c))
            .collect(),
    }
}

fn traffic_table(runs: &[Run]) -> String {
    let mut columns = vec![
        Column::words("log"),
        Column::numbers("cache"),
        Column::numbers("all"),
    ];
    columns.extend(PARTS.iter().map(|(name, _)| Column::numbers(*name)));
    let title = "Network interface data caching (ASPLOS 2002), Figure 7, predicted: bus time for the same content, by what it \
                 is used for,\nwhere all traffic of the log without a cache is 100:";
    let mut table = Table::new(columns).titled(title);
    for of_log in runs.chunks(SIZES_MIB.len()) {
        for run in of_log {
            let mut cells = vec![run.source.name(), run.cache()];
            let parts = PARTS.iter().map(|(_, categories)| *categories);
            let all: &[Category] = &Category::ALL;
            cells.extend(
                std::iter::once(all)
                    .chain(parts)
                    .map(|categories| format!("{:.1}", relative(&of_log[0], run, categories))),
            );
            table.row(cells);
        }
    }
    table.render()
}
