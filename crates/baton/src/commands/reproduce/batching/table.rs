//! Tables 1 and 2 of the paper, and the same for five connections.

use super::lab::{Lab, Measured, Point};
use super::published::{self, Cell};
use super::search::{Load, MOST_RESPONSE_RATIO, Tried, levels};
use super::settings::{FILES, Setting, Settings, Sides};
use crate::commands::reproduce::{Outcome, Row, Shown};
use crate::failure::Failure;
use baton_report::figure::{Figure, Line, Panel, Panels};
use baton_report::{Column, Scale, Table, significant};

/// Connections at the same time: the paper's first table, and the section that is left out of our copy of it.
const CONNECTIONS: [u32; 2] = [1, 5];

/// One file and number of connections, with everything measured of it.
struct Measurements {
    file: usize,
    connections: u32,
    load: Load,
    /// In the order of [`Sides::ALL`].
    maximal: Vec<Tried>,
    best: Vec<Tried>,
    /// All settings of the search, host first.
    grid: Vec<Tried>,
}

pub(super) fn run(lab: &Lab<'_>) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    for load in baselines(lab)? {
        all.push(Measurements::take(lab, load)?);
    }
    let rows: Vec<Row> = all.iter().flat_map(Measurements::rows).collect();
    let mut text = String::new();
    for connections in CONNECTIONS {
        let these: Vec<&Measurements> = all
            .iter()
            .filter(|m| m.connections == connections)
            .collect();
        text += &maximal_table(connections, &these);
        text.push('\n');
        text += &best_table(connections, &these);
        text.push('\n');
    }
    text += &baseline_table(&all);
    text.push('\n');
    text += &histogram_table(&all);
    text.push('\n');
    text += &note(lab);
    Ok(Outcome {
        rows,
        text,
        figure: Some(Figure::Panels(figure(&all))),
    })
}

/// All loads at the baseline's settings, with what these give.
fn baselines(lab: &Lab<'_>) -> Result<Vec<(usize, u32, Load)>, Failure> {
    let mut points = Vec::new();
    for connections in CONNECTIONS {
        for (bytes, size) in FILES {
            let mut experiment = lab.machine.clone();
            Settings::BASELINE.apply(&mut experiment);
            experiment.load.file_bytes = bytes;
            experiment.load.connections = connections;
            points.push(Point {
                name: format!("{size}, {}", connections_text(connections)),
                experiment,
            });
        }
    }
    let measured = lab.measure(&points)?;
    let loads = points.into_iter().zip(measured).enumerate();
    Ok(loads
        .map(|(index, (point, baseline))| {
            let load = Load {
                name: point.name,
                experiment: point.experiment,
                baseline,
            };
            (index % FILES.len(), CONNECTIONS[index / FILES.len()], load)
        })
        .collect())
}

fn connections_text(connections: u32) -> String {
    match connections {
        1 => "1 connection".to_owned(),
        n => format!("{n} connections"),
    }
}

impl Measurements {
    fn take(lab: &Lab<'_>, (file, connections, load): (usize, u32, Load)) -> Result<Self, Failure> {
        let most = Setting::maximal(load.baseline.response_us.mean);
        let maximal = Sides::ALL.map(|sides| Settings::of(sides, most));
        let maximal = load.try_all(lab, &maximal)?;
        let host = load.try_all(lab, &load.grid(Sides::Host))?;
        let adapter = load.try_all(lab, &load.grid(Sides::Adapter))?;
        let (best_host, best_adapter) = (load.best(&host), load.best(&adapter));
        // "These values are then consolidated for batching on both host and adapter" (3.3).
        let both = Settings {
            host: best_host.settings.host,
            adapter: best_adapter.settings.adapter,
        };
        let both = load.try_all(lab, &[both])?;
        let best = [best_host, best_adapter].into_iter().chain(both).collect();
        Ok(Self {
            file,
            connections,
            load,
            maximal,
            best,
            grid: host.into_iter().chain(adapter).collect(),
        })
    }

    /// Response time, transfer time and crossings over the baseline's.
    fn cell(&self, measured: &Measured) -> Cell {
        let load = &self.load;
        [
            load.response_ratio(measured),
            load.transfer_ratio(measured),
            load.crossings_ratio(measured),
        ]
    }

    /// For machines: the baseline as it is, everything else over it.
    fn rows(&self) -> Vec<Row> {
        let name = &self.load.name;
        let mut rows = absolute_rows(&format!("{name}, baseline"), &self.load.baseline);
        for (index, sides) in Sides::ALL.into_iter().enumerate() {
            let published = |cell: Cell| (self.connections == 1).then_some(cell);
            for (which, tried, published) in [
                (
                    "maximal",
                    &self.maximal[index],
                    published(published::maximal(sides, self.file)),
                ),
                (
                    "best",
                    &self.best[index],
                    published(published::best(sides, self.file)),
                ),
            ] {
                let config = format!(
                    "{name}, {}, {which} ({})",
                    sides.name(),
                    tried.settings.describe()
                );
                rows.extend(ratio_rows(&config, self.cell(&tried.measured), published));
            }
        }
        for tried in &self.grid {
            let side = if tried.settings.host == Setting::MINIMAL {
                "adapter"
            } else {
                "host"
            };
            let config = format!("{name}, search, {side} {}", tried.settings.describe());
            rows.extend(ratio_rows(&config, self.cell(&tried.measured), None));
        }
        rows
    }
}

fn absolute_rows(config: &str, measured: &Measured) -> Vec<Row> {
    let row = |metric, name, simulated| Row {
        config: config.to_owned(),
        metric,
        published: None,
        simulated,
        shown: Shown {
            name,
            scale: Scale::Factor,
        },
    };
    vec![
        row(
            "response_time_us",
            "response time, us",
            measured.response_us.mean,
        ),
        row(
            "response_time_ci95_us",
            "its 95 % interval, +- us",
            measured.response_us.half_width,
        ),
        row(
            "transfer_time_us",
            "transfer time, us",
            measured.transfer_us.mean,
        ),
        row(
            "crossings_per_response",
            "crossings for a reply",
            measured.crossings.mean,
        ),
        row(
            "crossings_ci95",
            "its 95 % interval, +-",
            measured.crossings.half_width,
        ),
    ]
}

fn ratio_rows(config: &str, cell: Cell, published: Option<Cell>) -> Vec<Row> {
    let names = [
        ("response_time_ratio", "response time"),
        ("transfer_time_ratio", "transfer time"),
        ("crossings_ratio", "crossings"),
    ];
    let row = |(index, (metric, name)): (usize, (&'static str, &'static str))| Row {
        config: config.to_owned(),
        metric,
        published: published.map(|cell| cell[index]),
        simulated: cell[index],
        shown: Shown {
            name,
            scale: Scale::Factor,
        },
    };
    names.into_iter().enumerate().map(row).collect()
}

/// Simulated, and in brackets what was published if anything was.
fn maximal_table(connections: u32, all: &[&Measurements]) -> String {
    let title = match connections {
        1 => "Table 1, maximal batching, one connection; over the baseline, simulated (published):"
            .to_owned(),
        n => format!("Maximal batching, {n} connections; over the baseline, a prediction:"),
    };
    let mut table = Table::new(columns(true)).titled(title);
    table.row(baseline_cells(all));
    for (index, sides) in Sides::ALL.into_iter().enumerate() {
        let mut cells = vec![sides.name().to_owned()];
        for m in all {
            let published = (connections == 1).then(|| published::maximal(sides, m.file));
            cells.extend(compared(m.cell(&m.maximal[index].measured), published));
        }
        table.row(cells);
    }
    table.render()
}

fn best_table(connections: u32, all: &[&Measurements]) -> String {
    let bound =
        format!("fewest crossings at no more than {MOST_RESPONSE_RATIO} times the response time");
    let title = match connections {
        1 => format!("Table 2, best settings found ({bound}), one connection:"),
        n => format!("Best settings found ({bound}), {n} connections, a prediction:"),
    };
    let mut table = Table::new(columns(true)).titled(title);
    table.row(baseline_cells(all));
    for (index, sides) in Sides::ALL.into_iter().enumerate() {
        let mut cells = vec![sides.name().to_owned()];
        for m in all {
            let published = (connections == 1).then(|| published::best(sides, m.file));
            cells.extend(compared(m.cell(&m.best[index].measured), published));
        }
        table.row(cells);
    }
    let mut found = String::new();
    for m in all {
        for (sides, best) in Sides::ALL.into_iter().zip(&m.best).take(2) {
            found += &format!(
                "  {}, {}: level {}\n",
                m.load.name,
                sides.name(),
                best.settings.describe()
            );
        }
    }
    format!("{}Found:\n{found}", table.render())
}

fn columns(configuration: bool) -> Vec<Column> {
    let mut columns = Vec::new();
    if configuration {
        columns.push(Column::words("configuration"));
    }
    for (_, size) in FILES {
        columns.extend(["RT", "TT", "Xing"].map(|what| Column::numbers(format!("{size}\n{what}"))));
    }
    columns
}

fn baseline_cells(all: &[&Measurements]) -> Vec<String> {
    let mut cells = vec!["baseline".to_owned()];
    for m in all {
        cells.extend(compared(m.cell(&m.load.baseline), None));
    }
    cells
}

fn compared(simulated: Cell, published: Option<Cell>) -> [String; 3] {
    [0, 1, 2].map(|index| {
        let simulated = format!("{:.2}", simulated[index]);
        match published {
            Some(published) => format!("{simulated} ({})", significant(published[index])),
            None => simulated,
        }
    })
}

fn baseline_table(all: &[Measurements]) -> String {
    let mut table = Table::new(vec![
        Column::words("baseline"),
        Column::numbers("response time\nus"),
        Column::numbers("transfer time\nus"),
        Column::numbers("replies\nper s"),
        Column::numbers("crossings\nper reply"),
        Column::numbers("host\nbusy"),
        Column::numbers("adapter\nbusy"),
    ])
    .titled("What the baselines are, with 95 % intervals over the seeds:");
    for m in all {
        let baseline = &m.load.baseline;
        let with = |e: super::estimate::Estimate| {
            format!("{} ± {}", significant(e.mean), significant(e.half_width))
        };
        let run = &baseline.runs[0];
        table.row(vec![
            m.load.name.clone(),
            with(baseline.response_us),
            with(baseline.transfer_us),
            with(baseline.rate),
            with(baseline.crossings),
            baton_report::percent(run.host_busy_percent),
            baton_report::percent(run.adapter_busy_percent),
        ]);
    }
    table.render()
}

/// The histograms of section 3.2, of the first seed.
fn histogram_table(all: &[Measurements]) -> String {
    let mut columns = vec![
        Column::words("descriptors in a transfer"),
        Column::words("side"),
    ];
    let heads = ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128"];
    columns.extend(heads.map(Column::numbers));
    columns.push(Column::numbers("mean"));
    let title =
        "How many descriptors each transfer has (transfers in the measured part, first seed):";
    let mut table = Table::new(columns).titled(title);
    for m in all.iter().filter(|m| m.connections == 1) {
        let both = m.maximal.last().expect("three sides");
        for (what, measured) in [
            ("baseline", &m.load.baseline),
            ("maximal, both", &both.measured),
        ] {
            let run = &measured.runs[0];
            for (side, transfers) in [
                ("host", &run.host_transfers),
                ("adapter", &run.adapter_transfers),
            ] {
                let mut cells = vec![format!("{}, {what}", m.load.name), side.to_owned()];
                cells.extend(transfers.buckets[..heads.len()].iter().map(u64::to_string));
                cells.push(significant(transfers.mean()));
                table.row(cells);
            }
        }
    }
    table.render()
}

fn note(lab: &Lab<'_>) -> String {
    let context = lab.context();
    format!(
        "RT: response time, first byte of the request to first byte of the reply; TT: transfer time, the rest; Xing: DMA operations for a reply.\n\
         Machine {}; {} seeds from {} on, {} replies measured in each run.\n",
        lab.machine_name, lab.seeds, context.seed, lab.machine.run.measured_responses,
    )
}

/// Response time and crossings over the levels of the adapter, one connection, timer of half the response time.
fn figure(all: &[Measurements]) -> Panels {
    let line = |m: &Measurements, value: fn(Cell) -> f64| {
        let at = |level: u32| {
            if level == 1 {
                return Some((1.0, 1.0));
            }
            let tried = m.grid.iter().find(|tried| {
                tried.settings.host == Setting::MINIMAL && tried.settings.adapter.level == level
            })?;
            Some((f64::from(level), value(m.cell(&tried.measured))))
        };
        Line {
            name: m.load.name.clone(),
            dashed: m.connections > 1,
            points: levels().filter_map(at).collect(),
        }
    };
    let panel = |y: &str, value: fn(Cell) -> f64| Panel {
        y: y.to_owned(),
        log_y: false,
        lines: all.iter().map(|m| line(m, value)).collect(),
    };
    Panels {
        title: "Adapter batching: response time and crossings over the baseline's".to_owned(),
        x: "batching level".to_owned(),
        log_x: true,
        panels: vec![
            panel("response time", |cell| cell[0]),
            panel("crossings", |cell| cell[2]),
        ],
    }
}
