//! One parameter at many values, for several loads.

use super::Findings;
use crate::commands::reproduce::batching::bench::Measured;
use crate::commands::reproduce::batching::lab::{Lab, Point};
use crate::commands::reproduce::batching::machine::set_load;
use crate::commands::reproduce::{Row, Shown};
use crate::failure::Failure;
use baton_report::figure::{Line, Panel, Panels};
use baton_report::{Column, Scale, Table, significant};
use baton_sim::config::Experiment;

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct Metric {
    /// For machines, with the unit last.
    pub key: &'static str,
    /// For people, with the unit.
    pub name: &'static str,
    pub value: fn(&Measured) -> f64,
    pub log: bool,
}

/// Mean response time.
pub(super) const RESPONSE: Metric = Metric {
    key: "response_time_us",
    name: "response time, us",
    value: |measured| measured.response_us.mean,
    log: true,
};
/// Mean transfer time.
pub(super) const TRANSFER: Metric = Metric {
    key: "transfer_time_us",
    name: "transfer time, us",
    value: |measured| measured.transfer_us.mean,
    log: false,
};
/// DMA operations for each reply.
pub(super) const CROSSINGS: Metric = Metric {
    key: "crossings_per_response",
    name: "crossings for a reply",
    value: |measured| measured.crossings.mean,
    log: false,
};
/// Replies in a second.
pub(super) const RATE: Metric = Metric {
    key: "responses_per_s",
    name: "replies per second",
    value: |measured| measured.rate.mean,
    log: false,
};

/// A load, or a machine, that the parameter is tried on.
pub(super) struct Series {
    pub name: String,
    pub experiment: Experiment,
    pub dashed: bool,
}

/// What is done.
pub(super) struct Sweep {
    /// Above table and figure.
    pub title: String,
    /// The parameter, with its unit.
    pub x: &'static str,
    pub log_x: bool,
    pub values: Vec<u32>,
    pub set: fn(&mut Experiment, u32),
    pub series: Vec<Series>,
    pub metrics: Vec<Metric>,
    /// What is to be learned from it.
    pub remark: &'static str,
}

impl Sweep {
    /// Runs it.
    ///
    /// # Errors
    /// A run that fails, an interrupt.
    pub fn run(self, lab: &Lab<'_>) -> Result<Findings, Failure> {
        let points: Vec<Point> = self
            .series
            .iter()
            .flat_map(|series| self.values.iter().map(|&value| self.point(series, value)))
            .collect();
        let measured = lab.measure(&points)?;
        let by_series: Vec<&[Measured]> = measured.chunks(self.values.len()).collect();
        Ok(Findings {
            rows: self.rows(&by_series),
            text: format!("{}{}\n", self.table(&by_series), self.remark),
            figure: self.figure(&by_series),
        })
    }

    fn point(&self, series: &Series, value: u32) -> Point {
        let mut experiment = series.experiment.clone();
        (self.set)(&mut experiment, value);
        Point {
            name: self.config(series, value),
            experiment,
        }
    }

    fn config(&self, series: &Series, value: u32) -> String {
        format!("{}, {} {value}", series.name, self.x)
    }

    fn rows(&self, by_series: &[&[Measured]]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (series, all) in self.series.iter().zip(by_series) {
            for (&value, measured) in self.values.iter().zip(*all) {
                rows.extend(self.metrics.iter().map(|metric| Row {
                    config: self.config(series, value),
                    metric: metric.key,
                    published: None,
                    simulated: (metric.value)(measured),
                    shown: Shown {
                        name: metric.name,
                        scale: Scale::Relative,
                    },
                }));
            }
        }
        rows
    }

    /// Values down, series across, one column for each metric.
    fn table(&self, by_series: &[&[Measured]]) -> String {
        let mut columns = vec![Column::numbers(self.x.replacen(", ", ",\n", 1))];
        for series in &self.series {
            for metric in &self.metrics {
                let name = metric.name.replacen(", ", ",\n", 1);
                columns.push(Column::numbers(format!("{}\n{name}", series.name)));
            }
        }
        let mut table = Table::new(columns).titled(format!("{}:", self.title));
        for (row, value) in self.values.iter().enumerate() {
            let mut cells = vec![value.to_string()];
            for all in by_series {
                let values = self.metrics.iter().map(|metric| (metric.value)(&all[row]));
                cells.extend(values.map(significant));
            }
            table.row(cells);
        }
        table.render()
    }

    fn figure(&self, by_series: &[&[Measured]]) -> Panels {
        let line = |metric: &Metric, series: &Series, all: &[Measured]| Line {
            name: series.name.clone(),
            dashed: series.dashed,
            points: self
                .values
                .iter()
                .zip(all)
                .map(|(&value, measured)| (f64::from(value), (metric.value)(measured)))
                .collect(),
            intervals: Vec::new(),
            doubtful: self
                .values
                .iter()
                .zip(all)
                .filter(|(_, measured)| measured.is_doubtful)
                .map(|(&value, _)| f64::from(value))
                .collect(),
        };
        let panel = |metric: &Metric| Panel {
            y: metric.name.to_owned(),
            log_y: metric.log,
            lines: self
                .series
                .iter()
                .zip(by_series)
                .map(|(series, all)| line(metric, series, all))
                .collect(),
        };
        Panels {
            title: self.title.clone(),
            x: self.x.to_owned(),
            log_x: self.log_x,
            panels: self.metrics.iter().map(panel).collect(),
        }
    }
}

/// The machine with each of the paper's files, and so many connections.
pub(super) fn files(machine: &Experiment, connections: u32) -> Vec<Series> {
    let files = crate::commands::reproduce::batching::settings::FILES;
    let series = |&(bytes, size): &(u32, &str)| {
        let mut experiment = machine.clone();
        set_load(&mut experiment, bytes, connections);
        Series {
            name: size.to_owned(),
            experiment,
            dashed: false,
        }
    };
    files.iter().map(series).collect()
}
