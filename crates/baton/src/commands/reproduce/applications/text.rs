//! The figures as tables.

use super::Study;
use baton_microbench::applications::{Drivers, full};
use baton_microbench::report::{ApplicationMeasurement, Workload, WorkloadOf};
use baton_report::{Column, Table, grouped};

/// Returns the note on all values.
pub(super) fn note(study: &Study) -> String {
    let settings = &study.laboratory.web;
    let users: Vec<String> = settings.users.iter().map(u32::to_string).collect();
    format!(
        "\nAll values are predictions: nothing was fitted to what the report says about applications, and its bars have no numbers to compare \
         with.\nWeb servers have {} client machines with {} users in total, none of whom pauses; the number of users with more content is \
         shown.\nStand-ins are generated, because the report's own traces are not available (excerpts of two of its logs are: --data). The \
         report\nuses three traces of NLANR: ADV, AIX and MEM.\n",
        settings.machines,
        users.join(" or "),
    )
}

/// Returns the whole text.
pub(super) fn text(study: &Study) -> String {
    let workloads = study.laboratory.workloads();
    let mut text = String::new();
    for workload in workloads.iter().filter(|one| one.is_web()) {
        text.push_str(&web(study, workload));
        text.push('\n');
    }
    for drivers in Drivers::ALL {
        text.push_str(&router(study, &workloads, drivers));
        text.push('\n');
    }
    text
}

fn names(resources: &[baton_microbench::Resource]) -> String {
    let names: Vec<&str> = resources.iter().map(|one| one.name()).collect();
    match names.is_empty() {
        true => "-".to_owned(),
        false => names.join(", "),
    }
}

fn web(study: &Study, workload: &Workload) -> String {
    let settings = &study.laboratory.web;
    let title = format!(
        "Figure 1, web server, {}; {} client machines:",
        workload.name, settings.machines
    );
    let mut table = Table::new(vec![
        Column::words("NIC"),
        Column::numbers("content,\nMb/s"),
        Column::numbers("requests,\n1/s"),
        Column::numbers("connections,\n1/ms"),
        Column::numbers("users"),
        Column::numbers("interrupts,\n1/s").ranked(1),
        Column::words("full"),
    ])
    .titled(title);
    for nic in &workload.nics {
        let ApplicationMeasurement::Web(web) = study.results.get(&workload.point(*nic)) else {
            continue;
        };
        let best = &web.best;
        let interrupts = best.interrupts as f64 / best.seconds;
        table.row(vec![
            study.laboratory.nics[*nic].name.clone(),
            format!("{:.1}", best.mbps()),
            grouped(best.requests_per_s().round() as u64),
            format!("{:.2}", best.connections_per_ms()),
            best.users.to_string(),
            grouped(interrupts.round() as u64),
            names(&full(&best.uses)),
        ]);
    }
    table.render()
}

fn router(study: &Study, workloads: &[Workload], drivers: Drivers) -> String {
    let is_such =
        |one: &&Workload| matches!(one.of, WorkloadOf::Router { drivers: of, .. } if of == drivers);
    let such: Vec<&Workload> = workloads.iter().filter(is_such).collect();
    let mut columns = vec![Column::words("NIC")];
    columns.extend(such.iter().map(|workload| {
        let name = workload.name.replace(" stand-in", "\nstand-in");
        Column::numbers(name.replace(&format!(", {}", drivers.name()), ""))
    }));
    columns.push(Column::numbers("interrupts,\n1/s").ranked(1));
    columns.push(Column::words("full with the first"));
    let title = format!(
        "Figure 3, router, {}; 1000 packets/s without a drop:",
        drivers.name()
    );
    let mut table = Table::new(columns).titled(title);
    for nic in such.first().map_or(&[][..], |workload| &workload.nics) {
        let of = such
            .iter()
            .map(|workload| study.results.get(&workload.point(*nic)));
        let all: Vec<&ApplicationMeasurement> = of.collect();
        let mut row = vec![study.laboratory.nics[*nic].name.clone()];
        row.extend(all.iter().map(|one| format!("{:.1}", one.value())));
        let best = match all.first() {
            Some(ApplicationMeasurement::Router(router)) => router.best.as_ref(),
            _ => None,
        };
        row.push(best.map_or("-".to_owned(), |best| {
            grouped((best.interrupts as f64 / best.seconds).round() as u64)
        }));
        row.push(best.map_or("-".to_owned(), |best| names(&full(&best.uses))));
        table.row(row);
    }
    table.render()
}
