//! The tables of the paper: maximal batching and the best settings for one connection, and the same for five, with the settings that have
//! the fewest crossings.

use super::bench::{Bench, Measured, Trial};
use super::published;
use super::search::{Load, MOST_RESPONSE_RATIO, Tried};
use super::settings::{FILES, Setting, Settings, Sides, half};
use crate::commands::reproduce::{Outcome, Row, of_code};
use crate::failure::Failure;
use baton_report::figure::{Figure, Line, Panel, Panels};
use baton_report::{Column, Table, significant};
use baton_stats::Estimate;

/// Simultaneous connections: those of the paper's Tables 1 and 2, and those of its third table.
const CONNECTIONS: [u32; 2] = [1, 5];

/// Response time, transfer time and crossings, relative to the baseline's.
type Cell = [f64; 3];

/// Which settings of a load a table shows.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    Maximal,
    /// The fewest crossings at no more than [`MOST_RESPONSE_RATIO`] times the response time.
    Best,
    /// The fewest crossings.
    Fewest,
}

/// One file and number of connections, with all measurements.
struct Measurements {
    file: usize,
    connections: u32,
    load: Load,
    /// Measurements in the order of [`Sides::ALL`].
    maximal: Vec<Tried>,
    best: Vec<Tried>,
    /// Empty if no table shows them.
    fewest: Vec<Tried>,
    /// Measurements of all settings of the search, host first.
    grid: Vec<Tried>,
}

pub(super) fn run(bench: &dyn Bench) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    for load in baselines(bench)? {
        all.push(Measurements::take(bench, load)?);
    }
    let rows: Vec<Row> = all.iter().flat_map(Measurements::rows).collect();
    let mut text = String::new();
    for connections in CONNECTIONS {
        let these: Vec<&Measurements> = all
            .iter()
            .filter(|m| m.connections == connections)
            .collect();
        for which in Which::of(connections) {
            text += &which.table(bench, connections, &these);
            text.push('\n');
        }
    }
    text += &baseline_table(bench, &all);
    text.push('\n');
    text += &histogram_table(&all);
    text.push('\n');
    text += &note(bench);
    Ok(Outcome {
        rows: of_code(rows),
        text,
        figure: Some(Figure::Panels(figure(&all))),
    })
}

/// Measures all loads at the baseline's settings.
fn baselines(bench: &dyn Bench) -> Result<Vec<(usize, Load)>, Failure> {
    let mut trials = Vec::new();
    for connections in CONNECTIONS {
        for (file_bytes, size) in FILES {
            trials.push(Trial {
                name: format!("{size}, {}", connections_text(connections)),
                file_bytes,
                connections,
                settings: Settings::BASELINE,
            });
        }
    }
    let measured = bench.measure_all(&trials)?;
    let loads = trials.into_iter().zip(measured).enumerate();
    Ok(loads
        .map(|(index, (trial, baseline))| (index % FILES.len(), Load { trial, baseline }))
        .collect())
}

fn connections_text(connections: u32) -> String {
    match connections {
        1 => "1 connection".to_owned(),
        n => format!("{n} connections"),
    }
}

impl Measurements {
    fn take(bench: &dyn Bench, (file, load): (usize, Load)) -> Result<Self, Failure> {
        let most = Setting::maximal(load.baseline.response_us.mean);
        let maximal = Sides::ALL.map(|sides| Settings::of(sides, most));
        let maximal = load.try_all(bench, &maximal)?;
        let host = load.try_all(bench, &load.grid(bench, Sides::Host))?;
        let adapter = load.try_all(bench, &load.grid(bench, Sides::Adapter))?;
        // "These values are then consolidated for batching on both host and adapter" (3.3).
        let with_both = |host: Tried, adapter: Tried| -> Result<Vec<Tried>, Failure> {
            let both = Settings {
                host: host.settings.host,
                adapter: adapter.settings.adapter,
            };
            let both = load.try_all(bench, &[both])?;
            Ok([host, adapter].into_iter().chain(both).collect())
        };
        let best = with_both(load.best(&host), load.best(&adapter))?;
        let fewest = match Which::of(load.trial.connections).contains(&Which::Fewest) {
            true => with_both(load.fewest(&host), load.fewest(&adapter))?,
            false => Vec::new(),
        };
        Ok(Self {
            file,
            connections: load.trial.connections,
            load,
            maximal,
            best,
            fewest,
            grid: host.into_iter().chain(adapter).collect(),
        })
    }

    /// Returns response time, transfer time and crossings, relative to the baseline's.
    fn cell(&self, measured: &Measured) -> Cell {
        let load = &self.load;
        [
            load.response_ratio(measured),
            load.transfer_ratio(measured),
            load.crossings_ratio(measured),
        ]
    }

    /// Returns machine-readable rows: the baseline's values, and all others relative to it.
    fn rows(&self) -> Vec<Row> {
        let name = self.load.name();
        let mut rows = absolute_rows(&format!("{name}, baseline"), &self.load.baseline);
        for sides in Sides::ALL {
            for &which in Which::of(self.connections) {
                let tried = self.tried(which, sides);
                let config = format!(
                    "{name}, {}, {} ({})",
                    sides.name(),
                    which.name(),
                    tried.settings.describe()
                );
                let published = which.published(self.connections, sides, self.file);
                rows.extend(ratio_rows(&config, self.cell(&tried.measured), published));
            }
        }
        for tried in &self.grid {
            let side = match tried.settings.sides() {
                Sides::Host => "host",
                _ => "adapter",
            };
            let config = format!("{name}, search, {side} {}", tried.settings.describe());
            rows.extend(ratio_rows(&config, self.cell(&tried.measured), [None; 3]));
        }
        rows
    }

    fn tried(&self, which: Which, sides: Sides) -> &Tried {
        let tried = match which {
            Which::Maximal => &self.maximal,
            Which::Best => &self.best,
            Which::Fewest => &self.fewest,
        };
        &tried[sides as usize]
    }
}

impl Which {
    /// Returns the settings that are shown for this number of connections.
    fn of(connections: u32) -> &'static [Self] {
        match connections {
            1 => &[Self::Maximal, Self::Best],
            _ => &[Self::Maximal, Self::Best, Self::Fewest],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Maximal => "maximal",
            Self::Best => "best",
            Self::Fewest => "fewest crossings",
        }
    }

    /// Returns the values that the paper has for these settings.
    fn published(self, connections: u32, sides: Sides, file: usize) -> published::Cell {
        match (self, connections) {
            (Self::Maximal, 1) => published::maximal(sides, file),
            (Self::Best, 1) => published::best(sides, file),
            (Self::Fewest, 5) => published::five(sides, file),
            _ => [None; 3],
        }
    }

    fn title(self, connections: u32, values: &str) -> String {
        let bound = format!(
            "fewest crossings at no more than {MOST_RESPONSE_RATIO} times the response time"
        );
        match (self, connections) {
            (Self::Maximal, 1) => format!(
                "Table 1, maximal batching, one connection; over the baseline, {values} (published):"
            ),
            (Self::Maximal, n) => {
                format!("Maximal batching, {n} connections; over the baseline, {values}:")
            }
            (Self::Best, 1) => format!(
                "Table 2, best settings found ({bound}), one connection, {values} (published):"
            ),
            (Self::Best, n) => {
                format!("Best settings found ({bound}), {n} connections, {values}:")
            }
            (Self::Fewest, n) => format!(
                "Third table, fewest crossings at any response time, {n} connections, {values} (published):"
            ),
        }
    }

    /// Renders the results, with published values in brackets if there are any.
    fn table(self, bench: &dyn Bench, connections: u32, all: &[&Measurements]) -> String {
        let title = self.title(connections, bench.values_are());
        let mut table = Table::new(columns()).titled(title);
        let mut baseline = vec!["baseline".to_owned()];
        for m in all {
            baseline.extend(compared(m.cell(&m.load.baseline), [None; 3]));
        }
        table.row(baseline);
        for sides in Sides::ALL {
            let mut cells = vec![sides.name().to_owned()];
            for m in all {
                let published = self.published(connections, sides, m.file);
                cells.extend(compared(m.cell(&m.tried(self, sides).measured), published));
            }
            table.row(cells);
        }
        if self == Self::Maximal {
            return table.render();
        }
        let mut found = String::new();
        for m in all {
            for sides in [Sides::Host, Sides::Adapter] {
                let settings = m.tried(self, sides).settings.describe();
                found += &format!("  {}, {}: level {settings}\n", m.load.name(), sides.name());
            }
        }
        format!("{}Found:\n{found}", table.render())
    }
}

fn absolute_rows(config: &str, measured: &Measured) -> Vec<Row> {
    let &Measured {
        response_us,
        transfer_us,
        crossings,
        ..
    } = measured;
    let rows = [
        ("response_time_us", Some(response_us.mean)),
        ("response_time_ci95_us", response_us.half_width),
        ("transfer_time_us", Some(transfer_us.mean)),
        ("crossings_per_response", Some(crossings.mean)),
        ("crossings_ci95", crossings.half_width),
    ];
    let row = |(metric, value): (_, Option<f64>)| Some(Row::simulated(config, metric, value?));
    rows.into_iter().filter_map(row).collect()
}

fn ratio_rows(config: &str, cell: Cell, published: published::Cell) -> [Row; 3] {
    let metrics = [
        "response_time_ratio",
        "transfer_time_ratio",
        "crossings_ratio",
    ];
    [0, 1, 2].map(|index| Row {
        published: published[index],
        ..Row::simulated(config, metrics[index], cell[index])
    })
}

fn columns() -> Vec<Column> {
    let mut columns = vec![Column::words("configuration")];
    for (_, size) in FILES {
        columns.extend(["RT", "TT", "Xing"].map(|what| Column::numbers(format!("{size}\n{what}"))));
    }
    columns
}

fn compared(found: Cell, published: published::Cell) -> [String; 3] {
    [0, 1, 2].map(|index| {
        let found = format!("{:.2}", found[index]);
        match published[index] {
            Some(published) => format!("{found} ({})", significant(published)),
            None => found,
        }
    })
}

fn baseline_table(bench: &dyn Bench, all: &[Measurements]) -> String {
    let mut table = Table::new(vec![
        Column::words("baseline"),
        Column::numbers("response time\nus"),
        Column::numbers("transfer time\nus"),
        Column::numbers("replies\nper s"),
        Column::numbers("crossings\nper reply"),
        Column::numbers("host\nbusy"),
        Column::numbers("adapter\nbusy"),
    ])
    .titled(format!("Baselines, {}:", bench.spread_is()));
    for m in all {
        let baseline = &m.load.baseline;
        let with = |e: Estimate| match e.half_width {
            Some(half) => format!("{} ± {}", significant(e.mean), significant(half)),
            None => significant(e.mean),
        };
        let busy = |side: usize| match baseline.first.busy_percent {
            Some(busy) => baton_report::percent(busy[side]),
            None => "-".to_owned(),
        };
        table.row(vec![
            m.load.name().to_owned(),
            with(baseline.response_us),
            with(baseline.transfer_us),
            with(baseline.rate),
            with(baseline.crossings),
            busy(0),
            busy(1),
        ]);
    }
    table.render()
}

/// Renders the histograms of section 3.2, for the first run.
fn histogram_table(all: &[Measurements]) -> String {
    let mut columns = vec![
        Column::words("descriptors in a transfer"),
        Column::words("side"),
    ];
    let heads = ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128"];
    columns.extend(heads.map(Column::numbers));
    columns.push(Column::numbers("mean"));
    let title =
        "How many descriptors each transfer has (transfers in the measured part, first run):";
    let mut table = Table::new(columns).titled(title);
    for m in all.iter().filter(|m| m.connections == 1) {
        let both = m.maximal.last().expect("three sides");
        for (what, measured) in [
            ("baseline", &m.load.baseline),
            ("maximal, both", &both.measured),
        ] {
            let run = &measured.first;
            for (side, transfers) in [
                ("host", &run.host_transfers),
                ("adapter", &run.adapter_transfers),
            ] {
                let mut cells = vec![format!("{}, {what}", m.load.name()), side.to_owned()];
                cells.extend(transfers.buckets[..heads.len()].iter().map(u64::to_string));
                cells.push(significant(transfers.mean()));
                table.row(cells);
            }
        }
    }
    table.render()
}

fn note(bench: &dyn Bench) -> String {
    format!(
        "RT: response time, from the first byte of the request to the first byte of the reply; TT: transfer time, the rest; Xing: DMA operations per reply.\n{}",
        bench.note()
    )
}

/// Draws response time and crossings over the levels of the adapter, for one connection and a timer of half the response time.
fn figure(all: &[Measurements]) -> Panels {
    let line = |m: &Measurements, value: fn(Cell) -> f64| {
        let mut points = vec![(1.0, 1.0)];
        let mut doubtful = Vec::new();
        let adapter = m
            .grid
            .iter()
            .filter(|tried| tried.settings.sides() == Sides::Adapter);
        let half = half(m.load.baseline.response_us.mean);
        for tried in adapter.filter(|tried| tried.settings.adapter.timer_us == half) {
            let level = f64::from(tried.settings.adapter.level);
            points.push((level, value(m.cell(&tried.measured))));
            if tried.measured.is_doubtful {
                doubtful.push(level);
            }
        }
        Line {
            name: m.load.name().to_owned(),
            dashed: m.connections > 1,
            points,
            intervals: Vec::new(),
            doubtful,
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
