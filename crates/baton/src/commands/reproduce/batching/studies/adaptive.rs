//! Batching that needs no tuning, beside every fixed setting.

use super::Findings;
use super::connections::with_connections;
use crate::commands::reproduce::batching::lab::{Lab, Measured, Point};
use crate::commands::reproduce::batching::settings::{FILES, Setting, Settings, Sides};
use crate::commands::reproduce::{Row, Shown};
use crate::failure::Failure;
use baton_bus::BatchingPolicy;
use baton_report::figure::{Line, Panel, Panels};
use baton_report::{Column, Scale, Table, percent, significant};
use baton_sim::offload::Experiment;

/// Connections in closed loops.
const CONNECTIONS: [u32; 4] = [1, 5, 100, 1_000];
/// Fixed rates, per cent of what the baseline does with the most connections.
const RATES_PERCENT: [u32; 3] = [1, 50, 90];
/// Levels of the fixed settings.
const LEVELS: [u32; 6] = [2, 4, 8, 16, 32, 128];
/// Timers of the fixed settings, in timers of the machine.
const TIMERS: [u32; 2] = [1, 10];
/// Response times that differ by less are equal.
const EQUAL: f64 = 1.01;

/// A load on the machine.
struct Workload {
    name: String,
    experiment: Experiment,
    /// A closed loop of the smallest file: its connections are a point of the figure.
    drawn: bool,
}

/// A load, measured in all ways.
struct Compared {
    workload: Workload,
    baseline: Measured,
    adaptive: Measured,
    fixed: Vec<(Settings, Measured)>,
}

pub(super) fn run(lab: &Lab<'_>) -> Result<Findings, Failure> {
    let mut compared = Vec::new();
    for workload in closed_loops(lab) {
        compared.push(compare(lab, workload)?);
    }
    let most = compared
        .iter()
        .rfind(|compared| compared.workload.drawn)
        .expect("there are closed loops of the smallest file");
    let capacity = most.baseline.rate.mean;
    for workload in fixed_rates(lab, capacity) {
        compared.push(compare(lab, workload)?);
    }
    Ok(Findings {
        rows: compared.iter().flat_map(Compared::rows).collect(),
        text: table(lab, &compared),
        figure: figure(&compared),
    })
}

/// All files with all numbers of connections.
fn closed_loops(lab: &Lab<'_>) -> Vec<Workload> {
    let mut all = Vec::new();
    for (bytes, size) in FILES {
        for connections in CONNECTIONS {
            let mut experiment = with_connections(&lab.machine, connections);
            experiment.load.file_bytes = bytes;
            all.push(Workload {
                name: format!("{size}, {connections} conn."),
                experiment,
                drawn: bytes == FILES[0].0,
            });
        }
    }
    all
}

/// The smallest file at shares of what the machine can do.
fn fixed_rates(lab: &Lab<'_>, capacity: f64) -> Vec<Workload> {
    let most = CONNECTIONS[CONNECTIONS.len() - 1];
    let at = |share: u32| {
        let mut experiment = with_connections(&lab.machine, most);
        let rate = (capacity * f64::from(share) / 100.0).round().max(1.0) as u32;
        experiment.load.rate_per_s = rate;
        Workload {
            name: format!("{}, {rate}/s ({share} %)", FILES[0].1),
            experiment,
            drawn: false,
        }
    };
    RATES_PERCENT.map(at).into()
}

fn compare(lab: &Lab<'_>, workload: Workload) -> Result<Compared, Failure> {
    let timer_us = workload.experiment.adapter.interface.batching.timer_us;
    let mut settings = vec![Settings::BASELINE];
    for level in LEVELS {
        for times in TIMERS {
            let setting = Setting {
                level,
                timer_us: timer_us * times,
            };
            settings.extend(Sides::ALL.map(|sides| Settings::of(sides, setting)));
        }
    }
    let mut points: Vec<Point> = settings
        .iter()
        .map(|settings| {
            let mut experiment = workload.experiment.clone();
            settings.apply(&mut experiment);
            Point {
                name: format!("{}, {}", workload.name, settings.describe()),
                experiment,
            }
        })
        .collect();
    points.push(adaptive(&workload));
    let mut measured = lab.measure(&points)?;
    let adaptive = measured.pop().expect("all points are measured");
    let baseline = measured.remove(0);
    Ok(Compared {
        workload,
        baseline,
        adaptive,
        fixed: settings.into_iter().skip(1).zip(measured).collect(),
    })
}

fn adaptive(workload: &Workload) -> Point {
    let mut experiment = workload.experiment.clone();
    experiment.host.interface.batching.policy = BatchingPolicy::Adaptive;
    experiment.adapter.interface.batching.policy = BatchingPolicy::Adaptive;
    Point {
        name: format!("{}, adaptive", workload.name),
        experiment,
    }
}

impl Compared {
    /// Response time and crossings over the baseline's.
    fn ratios(&self, measured: &Measured) -> (f64, f64) {
        (
            measured.response_us.mean / self.baseline.response_us.mean,
            measured.crossings.mean / self.baseline.crossings.mean,
        )
    }

    /// The fixed setting with the fewest crossings of those whose response time is no longer than the adaptive one's.
    fn best_fixed(&self) -> (Settings, &Measured) {
        let bound = EQUAL * self.adaptive.response_us.mean;
        let all = std::iter::once((Settings::BASELINE, &self.baseline)).chain(
            self.fixed
                .iter()
                .map(|(settings, measured)| (*settings, measured)),
        );
        let affordable = all.filter(|(_, measured)| measured.response_us.mean <= bound);
        affordable
            .min_by(|a, b| a.1.crossings.mean.total_cmp(&b.1.crossings.mean))
            .unwrap_or((Settings::BASELINE, &self.baseline))
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut push = |which: &str, measured: &Measured| {
            let (response, crossings) = self.ratios(measured);
            for (metric, name, simulated) in [
                (
                    "response_time_us",
                    "response time, us",
                    measured.response_us.mean,
                ),
                (
                    "crossings_per_response",
                    "crossings for a reply",
                    measured.crossings.mean,
                ),
                ("responses_per_s", "replies per second", measured.rate.mean),
                ("response_time_ratio", "response time", response),
                ("crossings_ratio", "crossings", crossings),
            ] {
                rows.push(Row {
                    config: format!("{}, {which}", self.workload.name),
                    metric,
                    published: None,
                    simulated,
                    shown: Shown {
                        name,
                        scale: Scale::Factor,
                    },
                });
            }
        };
        push("baseline", &self.baseline);
        push("adaptive", &self.adaptive);
        for (settings, measured) in &self.fixed {
            push(&settings.describe(), measured);
        }
        rows
    }
}

fn table(lab: &Lab<'_>, all: &[Compared]) -> String {
    let mut table = Table::new(vec![
        Column::words("load"),
        Column::numbers("baseline\nRT, us"),
        Column::numbers("Xing"),
        Column::numbers("adaptive\nRT ratio"),
        Column::numbers("Xing ratio"),
        Column::numbers("best fixed\nRT ratio"),
        Column::numbers("Xing ratio"),
        Column::words("at level, timer"),
        Column::numbers("adaptive\nsaves more"),
    ])
    .titled(format!(
        "Adaptive batching on both sides, and the fixed setting with the fewest crossings at no more response time ({}):",
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
            format!("{response:.3}"),
            format!("{crossings:.3}"),
            format!("{best_response:.3}"),
            format!("{best_crossings:.3}"),
            settings.describe(),
            percent(100.0 * (best_crossings - crossings)),
        ]);
    }
    let tried = all.first().map_or(0, |compared| compared.fixed.len() + 1);
    format!(
        "{}Each load was tried with {tried} fixed settings: levels {LEVELS:?}, {} timers, on host, adapter and both, and none.\n",
        table.render(),
        TIMERS.len()
    )
}

/// Closed loops of the smallest file, over their connections.
fn figure(all: &[Compared]) -> Panels {
    let drawn: Vec<&Compared> = all
        .iter()
        .filter(|compared| compared.workload.drawn)
        .collect();
    type Chosen = fn(&Compared) -> &Measured;
    let ways: [(&str, Chosen); 3] = [
        ("baseline", |compared| &compared.baseline),
        ("adaptive", |compared| &compared.adaptive),
        ("best fixed at no more response time", |compared| {
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
                        let connections = compared.workload.experiment.load.connections;
                        (f64::from(connections), value(chosen(compared)))
                    })
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
