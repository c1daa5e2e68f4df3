//! The figures, with a panel for each.

use super::Study;
use baton_microbench::report::{Bar, Series};
use baton_report::figure::{GroupPanel, GroupSeries, Groups};

/// Draws a panel for each figure of the report, with the NICs in the report's order.
pub(super) fn groups(study: &Study) -> Groups {
    Groups {
        title: "Microbenchmarks of six NICs, simulated (after Figures 5 to 11)".to_owned(),
        names: super::names(&study.laboratory.nics),
        panels: (5..=11).map(|figure| panel(study, figure)).collect(),
        ..Groups::default()
    }
}

fn panel(study: &Study, figure: u8) -> GroupPanel {
    let series = Series::ALL.into_iter().filter(|one| one.figure() == figure);
    let unit = if figure == 11 { "1/ms" } else { "Mb/s" };
    GroupPanel {
        y: format!("Fig. {figure}, {unit}"),
        series: series.map(|series| bars(study, series)).collect(),
    }
}

fn bars(study: &Study, series: Series) -> GroupSeries {
    let of_series = |bar: &&Bar| bar.series == series;
    let value = |bar: &Bar| Some(study.results.best(&bar.point));
    GroupSeries {
        name: series.name().to_owned(),
        values: study.bars.iter().filter(of_series).map(value).collect(),
        ..GroupSeries::default()
    }
}
