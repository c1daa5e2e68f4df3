//! Curves as text.

use super::curve::{Curve, Measured};
use super::goal::Met;
use super::metric::Metric;
use baton_report as report;
use baton_sim::results::NotSteady;

/// All curves, one after the other.
pub fn describe(curves: &[Curve]) -> String {
    let texts: Vec<String> = curves.iter().map(of_one).collect();
    texts.join("\n") + LEGEND
}

const LEGEND: &str =
    "\nms since a request was due; ±: 95 % interval; load: share of the capacity\n";

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
        text.push_str(&format!(
            "knee: {}, where load divided by mean response time is largest\n",
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
    let is_steady = measured.run.long_run.not_steady.is_empty();
    let mut cells = vec![
        report::percent(measured.percent) + if is_steady { "" } else { " *" },
        report::significant(open.map_or(f64::NAN, |open| open.offered_rate)),
        report::estimated(measured.run.request_rate()),
    ];
    cells.extend(Metric::ALL.map(|metric| {
        let time = measured.time(metric);
        time.map_or("-".to_owned(), report::estimated)
    }));
    cells
}

/// Why a run was not steady; nothing if it was.
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
        return format!("{}: met at no load that was tried\n", met.goal);
    };
    let end = |end: Option<f64>, without: &str| {
        end.map_or_else(|| without.to_owned(), report::significant)
    };
    format!(
        "{}: up to {}, surely up to {}, surely not from {} on\n",
        met.goal,
        load(curve, rate),
        end(met.least, "none"),
        end(met.most, "any that was tried")
    )
}
