//! Results of a study as text.

use super::{Comparison, Outcome, Verdict, label, setting, told_from};
use crate::config::{Form, Status, TablePlan};
use baton_report::{Column, Table, significant, width, wrapped};
use baton_stats::Estimate;
use baton_study::table::metrics::Metric;

/// Returns the report of a study: a row for each published number next to the simulated one and, if the study has `[table]`, a row for each
/// point. Empty if the study has neither.
pub fn text(outcome: &Outcome<'_>) -> String {
    let plan = outcome.plan;
    let note = plan.table.as_ref().and_then(|table| table.note.as_deref());
    let mut parts = Vec::new();
    if !plan.numbers.is_empty() {
        parts.push(published(outcome));
    }
    if let Some(table) = &plan.table {
        parts.push(points(outcome, table));
    }
    parts.extend(note.map(|note| wrapped(note, width(), 0)));
    parts.join("\n")
}

/// Returns a row for each published number, and how many of them were reproduced.
pub fn published(outcome: &Outcome<'_>) -> String {
    format!("{}{}", numbers(outcome), summary(outcome))
}

fn title(outcome: &Outcome<'_>) -> String {
    let title = outcome.plan.table.as_ref();
    let title = title.and_then(|table| table.title.clone());
    title.unwrap_or_else(|| format!("{}:", outcome.plan.name))
}

/// Returns a row for each published number.
fn numbers(outcome: &Outcome<'_>) -> String {
    let mut table = Table::new(vec![
        Column::words("configuration"),
        Column::words("metric"),
        Column::words("is").ranked(1),
        Column::numbers("published"),
        Column::numbers("simulated"),
        Column::numbers("error"),
    ])
    .titled(title(outcome));
    let mut last = None;
    for row in Comparison::published(outcome) {
        let is_first = last.replace(row.point) != Some(row.point);
        let name = is_first.then(|| label(outcome.plan, row.point));
        let beside = row
            .against
            .map(|other| format!(" over {}", told_from(outcome.plan, row.point, other)));
        let mark = row.verdict().map_or("", Verdict::mark);
        table.row(vec![
            name.unwrap_or_default(),
            format!("{}{}", in_words(row.metric), beside.unwrap_or_default()),
            row.number
                .map_or("", |number| number.status.name())
                .to_owned(),
            row.number
                .map_or_else(String::new, |number| row.shown(number.value)),
            row.simulated
                .map_or("-".to_owned(), |found| row.shown(found.mean)),
            format!("{}{mark}", row.error()),
        ]);
    }
    table.render()
}

/// Returns the name of a metric in words, between which a table can break the line.
fn in_words(metric: &str) -> String {
    metric.replace('_', " ")
}

/// Returns a row for each point. If there are variants, each combination of values of the swept keys has its own table.
fn points(outcome: &Outcome<'_>, plan: &TablePlan) -> String {
    let points = &outcome.plan.points;
    let has_variants = points.iter().any(|point| point.variant.is_some());
    let mut sections: Vec<(Option<String>, Vec<usize>)> = Vec::new();
    for point in 0..points.len() {
        let title = setting(outcome.plan, point).filter(|_| has_variants);
        match sections.iter_mut().find(|section| section.0 == title) {
            Some((_, points)) => points.push(point),
            None => sections.push((title, vec![point])),
        }
    }
    let tables = sections.iter().map(|(title, points)| {
        let table = section(outcome, plan, points);
        let title = title.iter().map(|title| format!("{title}\n"));
        format!("{}{}", title.collect::<String>(), table.render())
    });
    let tables = tables.collect::<Vec<_>>().join("\n");
    match outcome.plan.numbers.is_empty() {
        true => format!("{}{tables}", wrapped(&title(outcome), width(), 0)),
        false => tables,
    }
}

fn section(outcome: &Outcome<'_>, plan: &TablePlan, points: &[usize]) -> Table {
    let name = |point: usize| {
        let variant = outcome.plan.points[point].variant.clone();
        variant.unwrap_or_else(|| label(outcome.plan, point))
    };
    let mut beside = points.iter().filter_map(|&point| {
        let other = plan.against.get(point).copied()??;
        Some(told_from(outcome.plan, point, other))
    });
    let first = beside.next();
    let beside = match beside.all(|other| first.as_ref() == Some(&other)) {
        true => first,
        false => Some("its counterpart".to_owned()),
    };
    let is_compared = |metric: &Metric| plan.is_compared(metric);
    let mut columns = vec![Column::words("configuration")];
    for metric in &plan.metrics {
        columns.push(Column::numbers(in_words(metric.name)));
        let other = beside.iter().filter(|_| is_compared(metric));
        columns.extend(other.map(|other| Column::numbers(format!("over {other}"))));
    }
    let mut table = Table::new(columns);
    for &point in points {
        let mut cells = vec![name(point)];
        for metric in &plan.metrics {
            let found = outcome.estimate(point, metric.name);
            cells.push(found.map_or("-".to_owned(), |found| significant(found.mean)));
            if beside.is_some() && is_compared(metric) {
                let found = plan.against[point]
                    .and_then(|other| outcome.beside(point, other, metric.name, plan.form));
                cells.push(found.map_or(String::new(), |found| difference(found, plan.form)));
            }
        }
        table.row(cells);
    }
    table
}

/// Formats a difference with the half width of its interval.
fn difference(found: Estimate, form: Form) -> String {
    let half = found.half_width;
    match form {
        Form::Ratio => {
            let half = half.map_or(String::new(), |half| format!(" ± {}", significant(half)));
            format!("x {}{half}", significant(found.mean))
        }
        _ => {
            let half = half.map_or(String::new(), |half| format!(" ± {half:.1}"));
            format!("{:+.1}{half} %", found.mean)
        }
    }
}

/// Returns how many of the published numbers were reproduced; empty if there are none.
fn summary(outcome: &Outcome<'_>) -> String {
    let all = Comparison::published(outcome);
    if all.is_empty() {
        return String::new();
    }
    let mut parts = Vec::new();
    for status in [
        Status::Given,
        Status::Predicted,
        Status::PredictedBefore,
        Status::Measured,
    ] {
        let of_status = |row: &&Comparison<'_>| row.number.is_some_and(|n| n.status == status);
        let verdicts = all.iter().filter(of_status).filter_map(Comparison::verdict);
        let verdicts: Vec<Verdict> = verdicts.collect();
        let told = verdicts
            .iter()
            .filter(|verdict| **verdict != Verdict::Untold)
            .count();
        let within = verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Within)
            .count();
        if told > 0 {
            parts.push(format!("{} {within} of {told}", status.name()));
        }
    }
    let count = |verdict| {
        all.iter()
            .filter(|row| row.verdict() == Some(verdict))
            .count()
    };
    let (untold, wrong) = (count(Verdict::Untold), count(Verdict::WrongSign));
    let missing = all.iter().filter(|row| row.simulated.is_none()).count();
    let mut text = match parts.is_empty() {
        true => "No published number has a tolerance".to_owned(),
        false => format!("Within tolerance: {}", parts.join(", ")),
    };
    let mut say = |count: usize, what: &str| {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    };
    say(wrong, "with the wrong sign (!)");
    say(count(Verdict::Outside), "outside (*)");
    say(untold, "without a tolerance (?)");
    say(missing, "without a simulated value");
    text += ".";
    wrapped(&text, width(), 0)
}
