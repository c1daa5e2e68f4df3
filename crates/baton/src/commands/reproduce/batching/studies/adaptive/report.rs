//! Results of the study: machine-readable rows, tables and conclusions for people, a figure.

use super::baselines::{LEVELS, TIMERS_PERCENT};
use super::{Compared, EQUAL};
use crate::commands::reproduce::Row;
use crate::commands::reproduce::batching::bench::Measured;
use crate::commands::reproduce::batching::lab::Lab;
use baton_report::figure::{Line, Panel, Panels};
use baton_report::{Column, Table, percent, significant};

/// Share of the baseline's crossings below which differences are ignored.
const SAME_CROSSINGS: f64 = 0.01;

pub(super) fn rows(all: &[Compared]) -> Vec<Row> {
    let mut rows = Vec::new();
    for compared in all {
        let mut push = |which: &str, measured: &Measured| {
            let config = format!("{}, {which}", compared.workload.name);
            rows.extend(rows_of(&config, measured, compared.ratios(measured)));
        };
        push("baseline", &compared.baseline);
        push("adaptive", &compared.adaptive);
        for (settings, measured) in compared.fixed.iter().chain(&compared.combined) {
            push(&settings.describe(), measured);
        }
    }
    rows
}

fn rows_of(config: &str, measured: &Measured, ratios: (f64, f64)) -> [Row; 5] {
    [
        ("response_time_us", measured.response_us.mean),
        ("crossings_per_response", measured.crossings.mean),
        ("responses_per_s", measured.rate.mean),
        ("response_time_ratio", ratios.0),
        ("crossings_ratio", ratios.1),
    ]
    .map(|(metric, value)| Row::simulated(config, metric, value))
}

pub(super) fn text(lab: &Lab<'_>, all: &[Compared]) -> String {
    let tried = all
        .iter()
        .map(|compared| compared.fixed.len() + compared.combined.len() + 1);
    format!(
        "{}Each load was tried with {} to {} fixed settings: levels {LEVELS:?} with exact timers of {TIMERS_PERCENT:?} % of the machine's, \
         on host, adapter and both,\nthe best of the host with the best of the adapter, and none. Response times within {:.0} % count as equal.\n\
         Batching saves no crossings of data, whose share of all crossings grows from 1 KB to 64 KB and 512 KB.\n\n{}{}",
        by_load(lab, all),
        tried.clone().min().unwrap_or_default(),
        tried.max().unwrap_or_default(),
        100.0 * (EQUAL - 1.0),
        one_for_all(all),
        conclusions(all),
    )
}

/// Renders a line for each load: adaptive batching, and the best fixed setting for this load.
fn by_load(lab: &Lab<'_>, all: &[Compared]) -> String {
    let mut table = Table::new(vec![
        Column::words("load"),
        Column::numbers("baseline\nRT, us"),
        Column::numbers("Xing"),
        Column::numbers("of\ndata"),
        Column::numbers("adaptive\nRT ratio"),
        Column::numbers("Xing ratio"),
        Column::numbers("best fixed\nRT ratio"),
        Column::numbers("Xing ratio"),
        Column::words("at level, timer"),
        Column::numbers("adaptive\nsaves more"),
        Column::words("fewer\ncrossings"),
    ])
    .titled(format!(
        "Adaptive batching on both sides, and the fixed setting with the fewest crossings at no longer response time ({}):",
        lab.machine_name
    ));
    for compared in all {
        let (response, crossings) = compared.ratios(&compared.adaptive);
        let (settings, best) = compared.best_fixed();
        let (best_response, best_crossings) = compared.ratios(best);
        table.row(vec![
            compared.workload.name.clone(),
            significant(compared.baseline.response_us.mean),
            significant(compared.baseline.crossings.mean),
            significant(compared.baseline.data_crossings()),
            format!("{response:.3}"),
            format!("{crossings:.3}"),
            format!("{best_response:.3}"),
            format!("{best_crossings:.3}"),
            settings.describe(),
            percent(100.0 * (best_crossings - crossings)),
            Winner::of(compared).name().to_owned(),
        ]);
    }
    table.render()
}

baton_named::named! {
    /// The way of batching that has fewer crossings without a longer response time.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Winner {
        Adaptive => "adaptive",
        Fixed => "fixed",
        Neither => "equal",
    }
}

impl Winner {
    fn of(compared: &Compared) -> Self {
        let (_, adaptive) = compared.ratios(&compared.adaptive);
        let (_, fixed) = compared.ratios(compared.best_fixed().1);
        if (adaptive - fixed).abs() <= SAME_CROSSINGS {
            Self::Neither
        } else if adaptive < fixed {
            Self::Adaptive
        } else {
            Self::Fixed
        }
    }
}

/// Results of one way of batching on all loads.
struct Everywhere {
    name: String,
    worst_response: f64,
    mean_response: f64,
    mean_crossings: f64,
}

impl Everywhere {
    fn of<'a>(
        name: String,
        all: &'a [Compared],
        way: impl Fn(&'a Compared) -> &'a Measured,
    ) -> Self {
        let ratios: Vec<(f64, f64)> = all.iter().map(|c| c.ratios(way(c))).collect();
        let geometric = |value: fn(&(f64, f64)) -> f64| {
            let logarithms: f64 = ratios.iter().map(|ratio| value(ratio).ln()).sum();
            (logarithms / ratios.len() as f64).exp()
        };
        Self {
            name,
            worst_response: ratios.iter().map(|ratio| ratio.0).fold(0.0, f64::max),
            mean_response: geometric(|ratio| ratio.0),
            mean_crossings: geometric(|ratio| ratio.1),
        }
    }
}

/// Compares single settings that are used for all loads, because nobody tunes for each load.
fn one_for_all(all: &[Compared]) -> String {
    let adaptive = Everywhere::of("adaptive".to_owned(), all, |c| &c.adaptive);
    let count = all.first().map_or(0, |compared| compared.fixed.len());
    let fixed: Vec<Everywhere> = (0..count)
        .map(|index| {
            let (settings, _) = &all[0].fixed[index];
            let name = format!("{}, {}", settings.sides().name(), settings.describe());
            Everywhere::of(name, all, |c| &c.fixed[index].1)
        })
        .collect();
    let fewest = |bound: f64| {
        let affordable = fixed.iter().filter(|fixed| fixed.worst_response <= bound);
        affordable.min_by(|a, b| a.mean_crossings.total_cmp(&b.mean_crossings))
    };
    let mut table = Table::new(vec![
        Column::words("one setting for all loads"),
        Column::numbers("worst\nRT ratio"),
        Column::numbers("mean\nRT ratio"),
        Column::numbers("mean\nXing ratio"),
    ])
    .titled(
        "The same setting for all loads (geometric means): adaptive batching, and the fixed settings with the fewest crossings\n\
         whose response time never exceeds the worst of adaptive batching, 1.5 times or 3 times the baseline's:",
    );
    let bounds = [EQUAL * adaptive.worst_response, 1.5, 3.0];
    let chosen = bounds.into_iter().filter_map(fewest);
    let mut lines: Vec<&Everywhere> = std::iter::once(&adaptive).chain(chosen).collect();
    lines.dedup_by(|a, b| a.name == b.name);
    for line in lines {
        table.row(vec![
            line.name.clone(),
            format!("{:.3}", line.worst_response),
            format!("{:.3}", line.mean_response),
            format!("{:.3}", line.mean_crossings),
        ]);
    }
    table.render()
}

fn conclusions(all: &[Compared]) -> String {
    let count = |winner| all.iter().filter(|c| Winner::of(c) == winner).count();
    let behind = all
        .iter()
        .map(|compared| {
            let (_, adaptive) = compared.ratios(&compared.adaptive);
            let (_, fixed) = compared.ratios(compared.best_fixed().1);
            (adaptive - fixed, &compared.workload.name)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = format!(
        "Compared with the best fixed setting for each load, adaptive batching has fewer crossings in {} of {} loads, as many \
         in {}, more in {}",
        count(Winner::Adaptive),
        all.len(),
        count(Winner::Neither),
        count(Winner::Fixed),
    );
    match behind {
        Some((share, name)) if share > SAME_CROSSINGS => {
            text += &format!(
                " (by at most {} of the baseline's, for {name}).\n",
                percent(100.0 * share)
            );
        }
        _ => text += ".\n",
    }
    text
}

/// Draws closed loops of the smallest file, over their connections.
pub(super) fn figure(all: &[Compared]) -> Panels {
    let drawn: Vec<&Compared> = all
        .iter()
        .filter(|compared| compared.workload.drawn)
        .collect();
    type Chosen = fn(&Compared) -> &Measured;
    let ways: [(&str, Chosen); 3] = [
        ("baseline", |compared| &compared.baseline),
        ("adaptive", |compared| &compared.adaptive),
        ("best fixed at no longer response time", |compared| {
            compared.best_fixed().1
        }),
    ];
    let panel = |y: &str, log_y: bool, value: fn(&Measured) -> f64| Panel {
        y: y.to_owned(),
        log_y,
        lines: ways
            .iter()
            .map(|(name, chosen)| Line {
                name: (*name).to_owned(),
                dashed: false,
                points: drawn
                    .iter()
                    .map(|compared| {
                        let connections = compared.workload.experiment.clients.connections;
                        (f64::from(connections), value(chosen(compared)))
                    })
                    .collect(),
                intervals: Vec::new(),
                doubtful: drawn
                    .iter()
                    .filter(|compared| chosen(compared).is_doubtful)
                    .map(|compared| f64::from(compared.workload.experiment.clients.connections))
                    .collect(),
            })
            .collect(),
    };
    Panels {
        title: "Adaptive batching, 1 KB".to_owned(),
        x: "connections".to_owned(),
        log_x: true,
        panels: vec![
            panel("response time, us", true, |measured| {
                measured.response_us.mean
            }),
            panel("crossings for a reply", false, |measured| {
                measured.crossings.mean
            }),
        ],
    }
}
