//! Table that compares several runs.

use crate::number::{estimated, estimated_percent};
use crate::table::{Column, Table};
use crate::text::wrapped;
use crate::width::width;
use baton_stats::Estimate;
use std::collections::BTreeSet;

/// A metric by which runs are compared; a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Head of the column; may contain line breaks.
    pub head: &'static str,
    /// Meaning of the head, if the head needs explaining. Several columns may share it.
    pub means: &'static str,
    /// Whether it is a share in per cent.
    pub is_percent: bool,
    /// `None` if the column is always shown; otherwise, columns of the highest rank are left out first if space is short.
    pub rank: Option<u8>,
}

/// Summary of one run, or of the same run with several seeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRow {
    /// Name of the run.
    pub name: String,
    /// Whether the run was long enough to be steady.
    pub is_steady: bool,
    /// Measured values, by column; `None` where nothing was measured.
    pub values: Vec<Option<Estimate>>,
    /// Names of the resources that limit the run.
    pub limits: Vec<&'static str>,
}

impl RunRow {
    /// Combines rows of the same run with several seeds into means with intervals. A single row stays as it is.
    pub fn over_seeds(rows: &[Self]) -> Option<Self> {
        let [first, _, ..] = rows else {
            return rows.first().cloned();
        };
        let over = |column: usize| {
            let means = rows
                .iter()
                .map(|row| Some((*row.values.get(column)?)?.mean));
            Estimate::of_independent(&means.collect::<Option<Vec<f64>>>()?)
        };
        Some(Self {
            name: first.name.clone(),
            is_steady: rows.iter().all(|row| row.is_steady),
            values: (0..first.values.len()).map(over).collect(),
            limits: BTreeSet::from_iter(rows.iter().flat_map(|row| row.limits.clone()))
                .into_iter()
                .collect(),
        })
    }
}

/// Head of the column of limits.
const LIMIT: &str = "limit";
/// Rank of the column of limits.
const LIMIT_RANK: u8 = 2;

/// Returns a table of the metrics of each run, and what limits it. `elsewhere` says where columns that do not fit can be found.
pub fn runs_table(metrics: &[Metric], rows: &[RunRow], elsewhere: &str) -> String {
    let mut columns = vec![Column::words("run")];
    columns.extend(metrics.iter().map(|metric| Column {
        rank: metric.rank,
        ..Column::numbers(metric.head)
    }));
    columns.push(Column {
        rank: Some(LIMIT_RANK),
        ..Column::words(LIMIT)
    });
    let mut table = Table::new(columns).elsewhere(elsewhere);
    for row in rows {
        let mut cells = vec![row.name.clone() + if row.is_steady { "" } else { " *" }];
        cells.extend(metrics.iter().zip(&row.values).map(cell));
        cells.push(match row.limits.as_slice() {
            [] => "clients".to_owned(),
            limits => limits.join(", "),
        });
        table.row(cells);
    }
    // Columns of shares of 0 % are kept, because such a share is a result.
    let table = table.without_empty("0");
    table.render() + &legend(metrics, &table)
}

fn cell((metric, value): (&Metric, &Option<Estimate>)) -> String {
    match value.filter(|value| value.mean.is_finite()) {
        None => "-".to_owned(),
        Some(value) if metric.is_percent => estimated_percent(value),
        Some(value) => estimated(value),
    }
}

/// Returns the explanation of short heads.
fn legend(metrics: &[Metric], table: &Table) -> String {
    let mut means = vec!["±: 95 % interval"];
    let heads = table.heads(width());
    let shown = |metric: &&Metric| heads.contains(&metric.head);
    for metric in metrics.iter().filter(shown) {
        if !metric.means.is_empty() && !means.contains(&metric.means) {
            means.push(metric.means);
        }
    }
    if heads.contains(&LIMIT) {
        means.push("limit: what is always busy; clients if nothing is, since they request no more");
    }
    wrapped(&means.join("; "), width(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: [Metric; 2] = [
        Metric {
            head: "requests/s",
            means: "",
            is_percent: false,
            rank: None,
        },
        Metric {
            head: "drops",
            means: "drops: frames lost at the NIC",
            is_percent: false,
            rank: Some(1),
        },
    ];

    #[test]
    fn several_seeds_make_one_row() {
        let row = |rate: f64| RunRow {
            is_steady: rate < 11.0,
            values: vec![Some(Estimate::of_one(rate)), None],
            ..RunRow::default()
        };
        let rows = [9.0, 10.0, 11.0].map(row);
        let all = RunRow::over_seeds(&rows).unwrap();
        let rate = all.values[0].unwrap();
        assert_eq!((rate.mean, all.values[1]), (10.0, None));
        assert!(rate.half_width > Some(2.0) && !all.is_steady);
        assert_eq!(RunRow::over_seeds(&rows[..1]), Some(row(9.0)));
        assert_eq!(RunRow::over_seeds(&[]), None);
    }

    #[test]
    fn one_line_per_run_after_the_header() {
        let rate = Estimate {
            mean: 23_031.2,
            half_width: Some(129.0),
        };
        let row = |drops| RunRow {
            name: "W-0-N-N-FCFS-400".into(),
            values: vec![Some(rate), drops],
            ..RunRow::default()
        };
        let some = row(Some(Estimate::of_one(7.0)));
        let text = runs_table(&METRICS, &[row(None), some], "");
        assert_eq!(text.lines().count(), 6, "{text}");
        assert_eq!(text.matches("23,031 ±0.6 %").count(), 2, "{text}");
        assert!(
            text.contains("400 *") && text.contains("frames lost") && text.contains("clients"),
            "{text}"
        );
        let text = runs_table(&METRICS, &[row(None), row(None)], "");
        assert!(
            !text.contains("drops"),
            "empty columns are left out: {text}"
        );
    }
}
