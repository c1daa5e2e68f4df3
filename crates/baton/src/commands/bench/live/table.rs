//! Text output.

use super::found::{Found, TestFound, losses};
use crate::commands::bench::table::{OnDemand, places, search_cells, search_columns, tables};
use baton_report::{Column, Table, grouped};
use baton_tester::environment::Interface;

/// Returns the whole text.
pub(super) fn text(found: &Found) -> String {
    let mut text = heading(found);
    text.push('\n');
    text.push_str(&results(found).render());
    if found
        .tests
        .iter()
        .any(|test| test.senders(0).next().is_some())
    {
        text.push('\n');
        text.push_str(&senders(found).render());
    }
    let on_demand = found.tests.iter().map(|test| OnDemand {
        test: test.search.test,
        rfc2544: test.rfc2544.as_ref(),
        latency: test.latency.as_deref(),
    });
    text.push_str(&tables(&on_demand.collect::<Vec<_>>()));
    text
}

/// Describes the measured machines and interfaces.
pub(super) fn heading(found: &Found) -> String {
    let here = &found.environment;
    let mut lines = vec![format!(
        "{}, Linux {}, {}, {} processors, {} clock",
        here.date, here.kernel, here.processor, here.cores, here.clock_source
    )];
    if let Some(there) = &found.partner_environment {
        lines.push(format!(
            "reflector: Linux {}, {}, {} processors",
            there.kernel, there.processor, there.cores
        ));
    }
    let roles = ["under test", "partner", "receiver"];
    let interfaces = found.interfaces.iter().zip(roles);
    lines.extend(interfaces.map(|(interface, role)| format!("{role}: {}", words(interface))));
    let method = &found.method;
    lines.push(format!(
        "search: {}; {} trials of {} s at each load; paced by {}",
        method.search, method.trials, method.trial_s, method.pacing
    ));
    lines.join("\n") + "\n"
}

/// Describes an interface.
fn words(interface: &Interface) -> String {
    let driver = &interface.driver;
    let named = |what: &str, value: &str| match value {
        "" => String::new(),
        value => format!(", {what} {value}"),
    };
    let place = named(
        "namespace",
        interface.namespace.as_deref().unwrap_or_default(),
    );
    let speed = match interface.speed_mbps() {
        Some(mbps) => format!(", {mbps} Mb/s"),
        None => String::new(),
    };
    let core = match interface.core {
        Some(core) => format!(", processor {core}"),
        None => String::new(),
    };
    let offloads = match interface.offloads.join(" ") {
        none if none.is_empty() => "none".to_owned(),
        some => some,
    };
    let copies = match interface.copied {
        Some(true) => "copied",
        Some(false) => "not copied",
        None => "copied if the driver has no other way",
    };
    format!(
        "{}{place}, {}, driver {}{}{}{speed}, MTU {}, offloads on: {offloads}; {} port, frames are {copies}{core}",
        interface.name,
        interface.mac,
        driver.name,
        named("version", &driver.version),
        named("firmware", &driver.firmware),
        interface.mtu,
        interface.port.name(),
    )
}

/// Renders one row for each test.
pub(super) fn results(found: &Found) -> Table {
    let mut columns = search_columns();
    columns.extend([
        Column::words("lost in all trials"),
        Column::words("wrong, copied,\nreordered").ranked(1),
    ]);
    let mut table = Table::new(columns);
    for test in &found.tests {
        table.row(row(found, test));
    }
    table
}

fn row(found: &Found, test: &TestFound) -> Vec<String> {
    let [wrong, copies, reordered] = test.irregular().map(grouped);
    let mut cells = search_cells(&test.search, found.link);
    cells.extend([
        places(test.losses().iter()),
        format!("{wrong}, {copies}, {reordered}"),
    ]);
    cells
}

/// Renders the behaviour of the senders, in the trial of the highest load without any loss, or in the best trial.
fn senders(found: &Found) -> Table {
    let mut table = Table::new(vec![
        Column::words("test"),
        Column::numbers("offered,\n1/s"),
        Column::numbers("sent"),
        Column::numbers("not sent\nin time"),
        Column::numbers("at\nonce"),
        Column::words("from one call to the next, us:\np50, p99, most"),
        Column::numbers("standard\ndeviation, us"),
        Column::words("late, us:\np50, p99, most"),
    ])
    .titled(
        "Timing of the senders, at the highest load without any loss, or else in the best trial:",
    );
    for test in &found.tests {
        let trial = clean(test).unwrap_or(test.search.best_trial);
        for departures in test.senders(trial) {
            let three = |times: baton_tester::Quantiles| {
                format!("{:.1}, {:.1}, {:.0}", times.p50, times.p99, times.max)
            };
            let seconds = test.search.trials[trial].seconds;
            let offered = departures.offered as f64 / seconds;
            table.row(vec![
                test.search.test.name().to_owned(),
                grouped(offered.round() as u64),
                grouped(departures.handed),
                grouped(departures.late + departures.refused),
                departures.frames_at_once.to_string(),
                three(departures.gaps_us),
                format!("{:.1}", departures.jitter_us),
                three(departures.lateness_us),
            ]);
        }
    }
    table
}

/// Returns the trial of the highest load without any loss.
fn clean(test: &TestFound) -> Option<usize> {
    let trials = test.search.trials.iter().enumerate();
    let clean = trials.filter(|(_, trial)| losses(trial).next().is_none());
    clean
        .max_by_key(|(_, trial)| trial.offered())
        .map(|(number, _)| number)
}
