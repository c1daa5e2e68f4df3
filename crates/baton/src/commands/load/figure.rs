//! Curves as a figure.

use super::curve::Curve;
use super::metric::Metric;
use baton_report::figure::{Line, Panel, Panels};

/// What is drawn, from above.
const DRAWN: [Metric; 3] = [Metric::Mean, Metric::P50, Metric::P99];

/// Response times over rates: a panel for each of some, a line for each configuration.
pub fn of(curves: &[Curve]) -> Panels {
    let line = |curve: &Curve, metric| Line {
        name: curve.name.clone(),
        dashed: false,
        points: curve
            .measured
            .iter()
            .filter_map(|measured| Some((measured.rate, measured.time(metric)?.mean)))
            .collect(),
        intervals: Vec::new(),
        doubtful: curve
            .measured
            .iter()
            .filter(|measured| measured.run.long_run.is_doubtful())
            .map(|measured| measured.rate)
            .collect(),
    };
    let panel = |metric: Metric| Panel {
        y: format!("{}, ms", metric.name()),
        log_y: true,
        lines: curves.iter().map(|curve| line(curve, metric)).collect(),
    };
    Panels {
        title: "Response time over load".to_owned(),
        x: "requests/s offered".to_owned(),
        log_x: false,
        panels: DRAWN.map(panel).to_vec(),
    }
}
