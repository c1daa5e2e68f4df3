//! Figure 4 of the data-caching paper: what the PCI bus is used for, without a cache.

use super::published::{CONTENT_PERCENT, OVERHEAD_PERCENT, Uncached};
use super::runs::{self, PARTS, Run};
use crate::commands::reproduce::{Context, Outcome, Reproduction, Row, table};
use crate::failure::Failure;
use baton_bus::Category;
use baton_report::Scale;
use baton_report::figure::{Bar, Bars, Figure};

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "dcache-bus",
    about: "utilisation of the PCI bus by category, without a cache (ASPLOS 2002, Figure 4)",
    figure: true,
    run,
};

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let runs = runs::run(context, &[0])?;
    let rows: Vec<Row> = runs.iter().flat_map(rows_of).collect();
    let title = "Network interface data caching (ASPLOS 2002), Figure 4, published and simulated:";
    let bar = |run: &Run| Bar {
        name: run.source.name().replacen(" (", "\n(", 1),
        is_doubtful: run.results.long_run.is_doubtful(),
        parts: PARTS.iter().map(|(_, c)| run.time_percent(c)).collect(),
    };
    let figure = Bars {
        title: "Utilisation of the PCI bus without a cache (after Figure 4)".to_owned(),
        y: "time of the bus, %".to_owned(),
        most: 100.0,
        parts: PARTS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        bars: runs.iter().map(bar).collect(),
    };
    Ok(Outcome {
        text: format!(
            "{}\nPublished of the NASA and Rice traces: utilisation over 90 %. Content and overhead are published as about \
             60 and 30 %\nof all traffic, for all traces. IBM's cannot have 60: 502 Mb/s are half of the 48 % of the bus that it used, \
             and its responses\nof 2.8 KB each bring 1 KB of headers and descriptors. What clients send is among the headers here, and in \
             the paper in \"other\".\n{}",
            table(title, &rows),
            super::note(context),
        ),
        rows: rows.into(),
        figure: Some(Figure::Bars(figure)),
    })
}

pub(super) fn rows_of(run: &Run) -> Vec<Row> {
    let published = Uncached::of(&run.source);
    let about = |percent: f64| published.as_ref().map(|_| percent);
    let all = run.time_percent(&Category::ALL).max(f64::MIN_POSITIVE);
    let share = |categories: &[Category]| 100.0 * run.time_percent(categories) / all;
    let part = |metric, name, published, categories: &[Category]| {
        run.row(metric, name, Scale::Points, published, share(categories))
    };
    vec![
        run.row(
            "bus_utilisation_percent",
            "bus utilisation, %",
            Scale::Points,
            published.as_ref().and_then(|p| p.utilisation_percent),
            run.utilisation_percent(),
        ),
        part(
            "content_share_percent",
            "HTTP content, % of traffic",
            about(CONTENT_PERCENT),
            PARTS[0].1,
        ),
        part(
            "overhead_share_percent",
            "bus overhead, % of traffic",
            about(OVERHEAD_PERCENT),
            PARTS[1].1,
        ),
        part(
            "protocol_header_share_percent",
            "protocol headers, % of traffic",
            None,
            PARTS[2].1,
        ),
        part(
            "http_header_share_percent",
            "HTTP headers, % of traffic",
            None,
            PARTS[3].1,
        ),
        part(
            "other_share_percent",
            "other, % of traffic",
            None,
            PARTS[4].1,
        ),
    ]
}
