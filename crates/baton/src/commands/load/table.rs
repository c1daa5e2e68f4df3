//! Curves as text.

use super::curve::{Curve, Measured};
use super::goal::Met;
use super::metric::Metric;
use baton_report as report;
use baton_sim::results::NotSteady;

/// Describes all curves.
pub fn describe(curves: &[Curve]) -> String {
    let texts: Vec<String> = curves.iter().map(of_one).collect();
    texts.join("\n") + LEGEND
}

const LEGEND: &str =
    "\nms: time since the request was due; ±: 95 % interval; load: share of the capacity\n";

fn of_one(curve: &Curve) -> String {
    let mut columns = vec![
        report::Column::numbers("load"),
        report::Column::numbers("offered/s"),
        report::Column::numbers("served/s"),
    ];
    columns.extend(
        Metric::ALL.map(|metric| report::Column::numbers(format!("{}\nms", metric.name()))),
    );
    let title = format!(
        "{}: capacity {} requests/s",
        curve.name,
        report::estimated(curve.capacity)
    );
    let mut table = report::Table::new(columns).titled(title);
    for measured in &curve.measured {
        table.row(row(measured));
    }
    let mut text = table.render();
    for measured in &curve.measured {
        text.push_str(&doubts(measured));
    }
    if let Some(rate) = curve.knee_rate {
        let steady = curve.measured.iter().rfind(|measured| measured.is_steady());
        let or_more = match steady.is_some_and(|last| last.rate == rate) {
            true => " or more",
            false => "",
        };
        text.push_str(&format!(
            "knee: {}{or_more}, where load divided by mean response time is largest\n",
            load(curve, rate)
        ));
    }
    if let Some(met) = &curve.goal {
        text.push_str(&goal(curve, met));
    }
    text
}

fn row(measured: &Measured) -> Vec<String> {
    let open = measured.run.clients.open_loop.as_ref();
    let mark = if measured.is_steady() { "" } else { " *" };
    let mut cells = vec![
        report::percent(measured.percent) + mark,
        report::significant(open.map_or(f64::NAN, |open| open.offered_rate)),
        // The counted rate of this run, not the mean rate of the log.
        report::significant(measured.run.clients.request_rate),
    ];
    cells.extend(Metric::ALL.map(|metric| {
        let time = measured.time(metric);
        time.map_or("-".to_owned(), report::estimated)
    }));
    cells
}

/// Returns why a run was not steady; empty if it was.
fn doubts(measured: &Measured) -> String {
    let not_steady = &measured.run.long_run.not_steady;
    if not_steady.is_empty() {
        return String::new();
    }
    let why = NotSteady::texts(not_steady);
    format!("* {}: {why}\n", report::percent(measured.percent))
}

fn load(curve: &Curve, rate: f64) -> String {
    format!(
        "{} requests/s ({} of the capacity)",
        report::significant(rate),
        report::percent(100.0 * rate / curve.capacity.mean)
    )
}

fn goal(curve: &Curve, met: &Met) -> String {
    let Some(rate) = met.rate else {
        return format!("{}: not met at any load tried\n", met.goal);
    };
    let surely = match met.least {
        Some(least) => format!("certainly met up to {}", report::significant(least)),
        None => "not certainly met at any load tried".to_owned(),
    };
    let missed = match met.most {
        Some(most) => format!(
            "certainly missed from {} upwards",
            report::significant(most)
        ),
        None => "not certainly missed at any load tried".to_owned(),
    };
    format!(
        "{}: met up to {}; {surely}; {missed}\n",
        met.goal,
        load(curve, rate)
    )
}
