//! The data of a figure as records, one for each point, part or bar.

use super::{Bars, Curves, Figure, Groups, Panels};
use serde_json::{Value, json};

/// A record. All records of a figure have the same fields in the same order.
pub(super) type Record = Vec<(&'static str, Value)>;

impl Figure {
    /// Returns the figure's data as CSV, with a row for each point, part or bar.
    ///
    /// | columns | of |
    /// |---|---|
    /// | `measure`, `series`, `dashed`, `x`, `y`, `low`, `high`, `steady` | lines; `low` to `high` is the interval |
    /// | `bar`, `part`, `value`, `steady` | stacked bars |
    /// | `measure`, `group`, `series`, `value`, `low`, `high` | groups of bars |
    pub fn csv(&self) -> String {
        let records = self.records();
        let mut text = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            text += &cells.collect::<Vec<_>>().join(",");
            text.push('\n');
        };
        if let Some(first) = records.first() {
            line(&mut first.iter().map(|(name, _)| (*name).to_owned()));
        }
        for record in &records {
            line(&mut record.iter().map(|(_, value)| cell(value)));
        }
        text
    }

    pub(super) fn records(&self) -> Vec<Record> {
        match self {
            Self::Curves(curves) => of_panels(&Panels::from(curves)),
            Self::Panels(panels) => of_panels(panels),
            Self::Bars(bars) => of_bars(bars),
            Self::Groups(groups) => of_groups(groups),
        }
    }
}

/// Formats a value as a CSV field (RFC 4180).
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains(['"', ',', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn of_panels(panels: &Panels) -> Vec<Record> {
    let mut records = Vec::new();
    for panel in &panels.panels {
        for line in &panel.lines {
            for &(x, y) in &line.points {
                let interval = line.intervals.iter().find(|interval| interval.0 == x);
                records.push(vec![
                    ("measure", json!(panel.y)),
                    ("series", json!(line.name)),
                    ("dashed", json!(line.dashed)),
                    ("x", json!(x)),
                    ("y", json!(y)),
                    ("low", json!(interval.map(|interval| interval.1))),
                    ("high", json!(interval.map(|interval| interval.2))),
                    ("steady", json!(!line.doubtful.contains(&x))),
                ]);
            }
        }
    }
    records
}

fn of_bars(bars: &Bars) -> Vec<Record> {
    let of_bar = |bar: &super::Bar| {
        let name = bar.name.replace('\n', ", ");
        let parts = bars.parts.iter().zip(&bar.parts);
        let part = |(part, value): (&String, &f64)| {
            vec![
                ("bar", json!(name)),
                ("part", json!(part)),
                ("value", json!(value)),
                ("steady", json!(!bar.is_doubtful)),
            ]
        };
        parts.map(part).collect::<Vec<_>>()
    };
    bars.bars.iter().flat_map(of_bar).collect()
}

fn of_groups(groups: &Groups) -> Vec<Record> {
    let mut records = Vec::new();
    for panel in &groups.panels {
        for series in &panel.series {
            for (number, (group, value)) in groups.names.iter().zip(&series.values).enumerate() {
                let half = series.half_widths.get(number).copied().flatten();
                let end = |sign: f64| value.zip(half).map(|(value, half)| value + sign * half);
                records.push(vec![
                    ("measure", json!(panel.y)),
                    ("group", json!(group)),
                    ("series", json!(series.name)),
                    ("value", json!(value)),
                    ("low", json!(end(-1.0))),
                    ("high", json!(end(1.0))),
                ]);
            }
        }
    }
    records
}

impl From<&Curves> for Panels {
    fn from(curves: &Curves) -> Self {
        let line = |curve: &super::Curve| super::Line {
            name: curve.name.clone(),
            dashed: curve.dashed,
            points: curve
                .points
                .iter()
                .map(|&(size, y)| (size as f64, y))
                .collect(),
            intervals: Vec::new(),
            doubtful: Vec::new(),
        };
        Self {
            title: curves.title.clone(),
            x: curves.x.clone(),
            log_x: true,
            panels: vec![super::Panel {
                y: curves.y.clone(),
                log_y: false,
                lines: curves.curves.iter().map(line).collect(),
            }],
        }
    }
}
