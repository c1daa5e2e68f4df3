//! Curves as a figure.

use super::curve::Curve;
use super::metric::Metric;
use baton_report::figure::{Line, Panel, Panels};
use baton_stats::Estimate;

/// Response times to draw, from the top.
const DRAWN: [Metric; 3] = [Metric::Mean, Metric::P50, Metric::P99];

/// Draws response times over rates: a panel for each drawn response time, a line for each configuration, with 95 % intervals.
pub fn of(curves: &[Curve]) -> Panels {
    let line = |curve: &Curve, metric| Line {
        name: curve.name.clone(),
        dashed: false,
        points: curve
            .measured
            .iter()
            .filter_map(|measured| Some((measured.rate, measured.time(metric)?.mean)))
            .collect(),
        intervals: curve
            .measured
            .iter()
            .filter_map(|measured| {
                let Estimate { mean, half_width } = measured.time(metric)?;
                let half = half_width?;
                Some((measured.rate, mean - half, mean + half))
            })
            .collect(),
        doubtful: curve
            .measured
            .iter()
            .filter(|measured| measured.run.long_run.is_doubtful())
            .map(|measured| measured.rate)
            .collect(),
    };
    let panel = |metric: Metric| Panel {
        y: format!("{} response time, ms", metric.name()),
        log_y: true,
        lines: curves.iter().map(|curve| line(curve, metric)).collect(),
    };
    Panels {
        title: "Response time over load".to_owned(),
        x: "offered load, requests/s".to_owned(),
        log_x: false,
        panels: DRAWN.map(panel).to_vec(),
    }
}
