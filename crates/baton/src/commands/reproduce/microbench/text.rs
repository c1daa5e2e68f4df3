//! The figures as tables, and the statements of the report.

use super::Study;
use baton_microbench::report::{Part, Series, Statement, Verdict};
use baton_report::{Column, Table, significant};

/// Returns the whole text.
pub(super) fn text(study: &Study) -> String {
    let mut text = String::new();
    for figure in 5..=11 {
        text.push_str(&figure_table(study, figure));
        text.push('\n');
    }
    text.push_str(&partners(study));
    text.push('\n');
    text.push_str(&statement_table(&study.statements));
    text.push_str(&format!(
        "\n{} of {} statements hold. The report prints its bars without numbers, so that only its statements can be compared. For each NIC, \
         the times for\na frame and to start a DMA, and the memory bandwidth, were fitted to these statements (profiles/nics).\n{} trials in \
         all.\n",
        study.holding(),
        study.statements.len(),
        study.results.trials(),
    ));
    text
}

/// Renders the values of a figure, with a row for each NIC.
fn figure_table(study: &Study, figure: u8) -> String {
    let series: Vec<Series> = Series::ALL
        .into_iter()
        .filter(|one| one.figure() == figure)
        .collect();
    let unit = if figure == 11 {
        "connections/ms"
    } else {
        "Mb/s"
    };
    let mut columns = vec![Column::words("NIC")];
    columns.extend(
        series
            .iter()
            .map(|one| Column::numbers(one.name().replace(", ", ",\n"))),
    );
    columns.push(Column::words("full with the last").ranked(1));
    let mut table = Table::new(columns).titled(format!("Figure {figure}, {unit}:"));
    for (place, nic) in study.laboratory.nics.iter().enumerate() {
        let points = series.iter().map(|one| one.point(place, &study.partners));
        let points: Vec<_> = points.collect();
        let mut row = vec![nic.name.clone()];
        row.extend(
            points
                .iter()
                .map(|point| format!("{:.1}", study.results.best(point))),
        );
        row.push(
            points
                .last()
                .map_or_else(String::new, |point| full(study, point)),
        );
        table.row(row);
    }
    table.render()
}

/// Names the resources that were exhausted in the best trial of a point.
fn full(study: &Study, point: &baton_microbench::report::Point) -> String {
    let Some(measurement) = study.results.get(point) else {
        return String::new();
    };
    let full = measurement.best_trial().full();
    let mut names: Vec<&str> = full.iter().map(|one| one.resource.name()).collect();
    names.dedup();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(", ")
    }
}

fn partners(study: &Study) -> String {
    let name = |place: usize| study.laboratory.nics[place].name.as_str();
    let found = &study.partners;
    format!(
        "Best partners, found: large frames from {} and to {}, small ones from {} and to {}, connections from {} and to {}.\n",
        name(found.large_sender),
        name(found.large_receiver),
        name(found.small_sender),
        name(found.small_receiver),
        name(found.initiator),
        name(found.acceptor),
    )
}

/// Renders the statements, with the parts that do not hold.
pub(in super::super) fn statement_table(statements: &[Statement]) -> String {
    let mut table = Table::new(vec![
        Column::words(""),
        Column::words("the report says"),
        Column::words("here"),
        Column::words("what does not hold"),
    ])
    .titled("Statements of the report:");
    for statement in statements {
        table.row(vec![
            statement.id.to_owned(),
            statement.says.to_owned(),
            verdict(statement.verdict).to_owned(),
            failing(statement),
        ]);
    }
    table.render()
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Partly => "in part",
        Verdict::Fails => "fails",
    }
}

/// Describes the parts that do not hold, with their values.
fn failing(statement: &Statement) -> String {
    let part = |part: &Part| {
        let values: Vec<String> = part
            .values
            .iter()
            .map(|value| significant(*value))
            .collect();
        format!("{}: {}", part.says, values.join(", "))
    };
    let failing: Vec<String> = statement
        .parts
        .iter()
        .filter(|one| !one.holds)
        .map(part)
        .collect();
    failing.join("; ")
}
