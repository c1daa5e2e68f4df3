//! Table 2 of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Rice University TR EE0401): how
//! microbenchmarks correlate with applications, and what the microbenchmarks of a NIC predict about applications.

mod text;

use super::{Context, Outcome, Reproduction, Row, applications, microbench};
use crate::failure::Failure;
use baton_microbench::report::{
    CORRELATED, Predicted, Series, Workload, correlation, mean_error, predict,
};
use baton_stats::Correlation;

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "nic-correlation",
    about: "how ten microbenchmarks correlate with a web server and a router, over the NICs (Rice TR EE0401, Table 2)",
    figure: false,
    run,
};

/// Results for one workload.
struct Column {
    workload: Workload,
    /// Correlations, in the order of [`CORRELATED`].
    correlations: Vec<Correlation>,
    predicted: Vec<Predicted>,
}

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let micro = microbench::Study::of_report(context)?;
    let study = applications::Study::run(context)?;
    let measured = (&micro.results, &micro.partners);
    let column = |workload: Workload| Column {
        correlations: CORRELATED
            .iter()
            .map(|series| correlation(measured, *series, &study.results, &workload))
            .collect(),
        predicted: predict(measured, &study.laboratory, &study.results, &workload),
        workload,
    };
    let columns: Vec<Column> = study
        .laboratory
        .workloads()
        .into_iter()
        .map(column)
        .collect();
    Ok(Outcome {
        rows: super::of_code(columns.iter().flat_map(|column| rows(column, &study))),
        text: text::text(&columns, &study),
        figure: None,
    })
}

fn rows(column: &Column, study: &applications::Study) -> Vec<Row> {
    let mut rows = Vec::new();
    for (series, found) in CORRELATED.iter().zip(&column.correlations) {
        let config = name_of(*series, &column.workload);
        // Undefined coefficients are left out.
        let values = [
            ("n", Some(found.n as f64)),
            ("pearson_r", found.pearson),
            ("spearman_rho", found.spearman),
        ];
        let row = |(metric, value): (_, Option<f64>)| {
            Some(Row::simulated(config.clone(), metric, value?))
        };
        rows.extend(values.into_iter().filter_map(row));
    }
    for one in &column.predicted {
        let nic = &study.laboratory.nics[one.nic].name;
        let config = format!("{nic}, {}", column.workload.name);
        let values = [
            ("measured", one.measured),
            ("predicted_from_microbenchmarks", one.plain),
            ("predicted_with_one_coefficient", one.fitted),
            ("mean_of_the_other_nics", one.others),
        ];
        rows.extend(values.map(|(metric, value)| Row::simulated(config.clone(), metric, value)));
    }
    rows
}

/// Returns the name of a pair of microbenchmark and workload.
fn name_of(series: Series, workload: &Workload) -> String {
    format!(
        "Fig. {} {}; {}",
        series.figure(),
        series.name(),
        workload.name
    )
}

/// Returns the errors of a workload's predictions, per cent: with microbenchmarks alone, with a coefficient, and by the mean of the other
/// NICs.
fn errors(column: &Column) -> [f64; 3] {
    let of = |value: fn(&Predicted) -> f64| 100.0 * mean_error(&column.predicted, value);
    [
        of(|one| one.plain),
        of(|one| one.fitted),
        of(|one| one.others),
    ]
}
