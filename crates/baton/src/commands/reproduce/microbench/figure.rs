//! The figures, one panel each.

use super::Study;
use baton_microbench::report::{Bar, Series};
use baton_report::figure::{Line, Panel, Panels};

/// A panel for each figure of the report, with the NICs in its order.
pub(super) fn panels(study: &Study) -> Panels {
    let names: Vec<String> = (1..)
        .zip(&study.laboratory.nics)
        .map(|(number, nic)| format!("{number} {}", nic.name))
        .collect();
    Panels {
        title: "Microbenchmarks of six NICs, simulated (after Figures 5 to 11)".to_owned(),
        x: names.join(", "),
        log_x: false,
        panels: (5..=11).map(|figure| panel(study, figure)).collect(),
    }
}

fn panel(study: &Study, figure: u8) -> Panel {
    let series = Series::ALL.into_iter().filter(|one| one.figure() == figure);
    let unit = if figure == 11 { "1/ms" } else { "Mb/s" };
    Panel {
        y: format!("Fig. {figure}, {unit}"),
        log_y: false,
        lines: series.map(|series| line(study, series)).collect(),
    }
}

fn line(study: &Study, series: Series) -> Line {
    let of_series = |bar: &&Bar| bar.series == series;
    let point = |bar: &Bar| (bar.nic as f64 + 1.0, study.results.best(&bar.point));
    Line {
        name: series.name().to_owned(),
        dashed: false,
        points: study.bars.iter().filter(of_series).map(point).collect(),
        doubtful: Vec::new(),
    }
}
