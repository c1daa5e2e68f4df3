//! The table, and the quality of predictions.

use super::{Column as Found, errors};
use crate::commands::reproduce::applications::Study;
use baton_microbench::report::CORRELATED;
use baton_report::{Column, Table};
use baton_stats::LEAST_SPREAD;

/// Returns the whole text.
pub(super) fn text(columns: &[Found], study: &Study) -> String {
    let mut text = String::new();
    let (web, router): (Vec<&Found>, Vec<&Found>) =
        columns.iter().partition(|one| one.workload.is_web());
    for (title, columns) in [("web server", &web), ("router", &router)] {
        // Columns are split into tables of a readable width.
        for columns in columns.chunks(4) {
            text.push_str(&table(title, columns));
            text.push('\n');
        }
    }
    let least = 100.0 * LEAST_SPREAD;
    text.push_str(&format!(
        "Each value is Pearson's r, with Spearman's rho in parentheses, between the NICs' best results with the best partners (Figures 6 and \
         8 to 11)\nand their results in the application. \"-\": one of the two differs by less than {least} % over the NICs, so that a \
         coefficient would say nothing.\nWith so few NICs (n), no coefficient is strong evidence. The report's own coefficients are not compared \
         here.\n\n"
    ));
    text.push_str(&predictions(columns, study));
    text
}

fn table(title: &str, found: &[&Found]) -> String {
    let n = found.first().map_or(0, |one| one.workload.nics.len());
    let mut columns = vec![Column::words("microbenchmark")];
    columns.extend(found.iter().map(|one| {
        let name = one.workload.name.replace(" stand-in", "\nstand-in");
        Column::numbers(name)
    }));
    let title = format!("Table 2, {title}, n = {n} NICs:");
    let mut table = Table::new(columns).titled(title);
    for (row, series) in CORRELATED.iter().enumerate() {
        let mut cells = vec![format!("Fig. {} {}", series.figure(), series.name())];
        cells.extend(found.iter().map(|one| {
            let found = one.correlations[row];
            match (found.pearson, found.spearman) {
                (Some(r), Some(rho)) => format!("{r:.2} ({rho:.2})"),
                _ => "-".to_owned(),
            }
        }));
        table.row(cells);
    }
    table.render()
}

fn predictions(columns: &[Found], study: &Study) -> String {
    let mut table = Table::new(vec![
        Column::words("workload"),
        Column::numbers("n"),
        Column::numbers("counts x times,\nno coefficient"),
        Column::numbers("with one\ncoefficient"),
        Column::numbers("mean of the\nother NICs"),
        Column::words("furthest off with one coefficient"),
    ])
    .titled("Predictions from the microbenchmarks of a NIC; mean absolute error, %:");
    for one in columns {
        let [plain, fitted, others] = errors(one).map(|error| format!("{error:.0}"));
        let off = |predicted: f64, measured: f64| 100.0 * (predicted / measured - 1.0);
        let furthest = one.predicted.iter().max_by(|a, b| {
            let size =
                |one: &&baton_microbench::report::Predicted| off(one.fitted, one.measured).abs();
            size(a).total_cmp(&size(b))
        });
        table.row(vec![
            one.workload.name.clone(),
            one.predicted.len().to_string(),
            plain,
            fitted,
            others,
            furthest.map_or(String::new(), |one| {
                let name = &study.laboratory.nics[one.nic].name;
                format!("{name}, {:+.0} %", off(one.fitted, one.measured))
            }),
        ]);
    }
    format!(
        "{}\nA prediction is 1 / (sum over frames sent and received, small and large, of their number for a request or packet x the time that the \
         NIC takes for\none in its microbenchmark). The coefficient is fitted to the other NICs each time. Their mean is the prediction without any \
         microbenchmark:\na prediction from microbenchmarks is useful where its error is smaller.\n",
        table.render()
    )
}
