//! Text output of `baton bench nic`.

use super::nic::{Bench, Measured};
use baton_microbench::frame::LinkRate;
use baton_microbench::measure::Measurement;
use baton_microbench::rfc2544::Rfc2544;
use baton_microbench::under_load::{SHARES, UnderLoad};
use baton_microbench::{Machine, Place, Test, Trial, Unit, Use};
use baton_report::{Column, Table, grouped};

/// Returns the whole text.
pub(super) fn text(bench: &Bench) -> String {
    let title = format!(
        "{}, with {} at the other end, on {}:",
        bench.nic.name, bench.partner.name, bench.host.name
    );
    let mut columns = search_columns();
    columns.extend([
        Column::words("lost in the last trial").ranked(1),
        Column::numbers("host\nidle, %").ranked(2),
        Column::numbers("interrupts,\n1/s").ranked(3),
    ]);
    let mut table = Table::new(columns).titled(title);
    for measured in &bench.tests {
        table.row(row(measured, bench.link));
    }
    let mut text = table.render();
    let on_demand = bench.tests.iter().map(|one| OnDemand {
        test: one.search.test,
        rfc2544: one.rfc2544.as_ref(),
        latency: one.latency.as_deref(),
    });
    text.push_str(&tables(&on_demand.collect::<Vec<_>>()));
    text
}

fn row(measured: &Measured, link: LinkRate) -> Vec<String> {
    let search = &measured.search;
    let best = search.best_trial();
    let interrupts = best.interrupts as f64 / best.seconds;
    let mut cells = search_cells(search, Some(link));
    cells.extend([
        search.trials.last().map_or(String::new(), lost),
        best.host_idle()
            .map_or("-".to_owned(), |idle| format!("{:.0}", 100.0 * idle)),
        grouped(interrupts.round() as u64),
    ]);
    cells
}

/// Returns the columns that describe a search.
pub(super) fn search_columns() -> Vec<Column> {
    vec![
        Column::words("test"),
        Column::numbers("limit"),
        Column::numbers("best"),
        Column::words("unit"),
        Column::numbers("no loss,\n1/s"),
        Column::numbers("0.5 % loss,\n1/s"),
        Column::numbers("trials"),
        Column::words("full"),
    ]
}

/// Returns the cells that describe a search, on a link whose rate may not be known.
pub(super) fn search_cells(search: &Measurement, link: Option<LinkRate>) -> Vec<String> {
    let rate = |goal: usize| {
        let result = search.goals.get(goal);
        let rate = result.and_then(|result| result.conditional_throughput);
        rate.map_or("-".to_owned(), |rate| grouped(rate.round() as u64))
    };
    let limit = link.map(|link| search.test.limit(link).to_string());
    vec![
        search.test.name().to_owned(),
        limit.unwrap_or("-".to_owned()),
        format!("{:.1}", search.best),
        unit(search.test).to_owned(),
        rate(0),
        rate(1),
        search.trials.len().to_string(),
        full(search.best_trial()),
    ]
}

/// Returns the unit of a test's results.
pub(super) fn unit(test: Test) -> &'static str {
    match test.unit() {
        Unit::PayloadMbps => "Mb/s",
        Unit::ConnectionsPerMs => "1/ms",
    }
}

/// Names the resources that were exhausted in a trial, with their machines.
pub(super) fn full(trial: &Trial) -> String {
    let name = |one: &Use| match one.machine {
        Machine::UnderTest => one.resource.name().to_owned(),
        Machine::Partner => format!("partner's {}", one.resource.name()),
        Machine::Receiver => format!("receiver's {}", one.resource.name()),
    };
    listed(trial.full().iter().map(name))
}

/// Describes the places at which frames were lost.
fn lost(trial: &Trial) -> String {
    let streams = [&trial.sent, &trial.received];
    places(streams.into_iter().flat_map(|stream| stream.losses.iter()))
}

/// Describes losses by place.
pub(super) fn places(losses: impl Iterator<Item = (Place, u64)>) -> String {
    listed(losses.map(|(place, frames)| format!("{} {}", place.name(), grouped(frames))))
}

/// Joins names, or returns a dash if there are none.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(", ")
    }
}

/// Measurements of a test that were made on request.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnDemand<'a> {
    pub(super) test: Test,
    pub(super) rfc2544: Option<&'a Rfc2544>,
    pub(super) latency: Option<&'a [UnderLoad]>,
}

/// Renders all measurements on request, each table after an empty line.
pub(super) fn tables(found: &[OnDemand<'_>]) -> String {
    let of_rfc = found
        .iter()
        .filter_map(|one| Some((one.test, one.rfc2544?)));
    let loads = found
        .iter()
        .filter_map(|one| Some((one.test, one.latency?)));
    let (of_rfc, loads): (Vec<_>, Vec<_>) = (of_rfc.collect(), loads.collect());
    let mut text = String::new();
    if !of_rfc.is_empty() {
        text = format!("\n{}", rfc2544(&of_rfc));
    }
    if !loads.is_empty() {
        text = format!("{text}\n{}", latency(&loads));
    }
    text
}

/// Renders latency by load.
fn latency(results: &[(Test, &[UnderLoad])]) -> String {
    let mut columns = vec![Column::words("test")];
    columns.extend(SHARES.map(|share| Column::numbers(format!("{:.0} %", 100.0 * share))));
    let mut table = Table::new(columns)
        .titled("Mean and maximum latency, us, at shares of the highest rate without loss:");
    for (test, found) in results {
        let us = |one: &UnderLoad| match one.latency {
            Some(latency) => format!("{:.1} {:.1}", latency.mean_us, latency.most_us),
            None => "-".to_owned(),
        };
        let name = test.name().to_owned();
        table.row(std::iter::once(name).chain(found.iter().map(us)).collect());
    }
    table.render()
}

/// Renders the results of RFC 2544.
fn rfc2544(results: &[(Test, &Rfc2544)]) -> String {
    let mut table = Table::new(vec![
        Column::words("test"),
        Column::numbers("throughput,\nframes/s"),
        Column::numbers("latency there,\nmean, us"),
        Column::numbers("most,\nus"),
        Column::numbers("back-to-back\nframes"),
        Column::numbers("trials"),
    ])
    .titled("RFC 2544, without loss:");
    for (test, found) in results {
        let us = |value: Option<f64>| value.map_or("-".to_owned(), |us| format!("{us:.1}"));
        table.row(vec![
            test.name().to_owned(),
            found
                .throughput
                .map_or("-".to_owned(), |rate| grouped(rate as u64)),
            us(found.latency.map(|latency| latency.mean_us)),
            us(found.latency.map(|latency| latency.most_us)),
            grouped(found.back_to_back),
            found.trials.to_string(),
        ]);
    }
    table.render()
}
