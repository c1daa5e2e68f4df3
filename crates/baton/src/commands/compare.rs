//! `baton compare`: compares two studies.

use crate::cli::CompareArgs;
use crate::failure::Failure;
use crate::output::{JsonOutput, print_text};
use baton_report::{Column, Table, grouped, significant};
use baton_study::table::Cell;
use baton_study::{Comparison, MetricDifference, Study};

/// Runs the command.
///
/// # Errors
/// Fails if a study cannot be read, if the studies have no runs in common, or if they differ.
pub fn execute(arguments: &CompareArgs) -> Result<(), Failure> {
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let (this_root, this) = Study::find(&arguments.one)?;
    let (other_root, other) = Study::find(&arguments.other)?;
    let comparison = Comparison::of((&this_root, &this), (&other_root, &other))?;
    let [one, other] = [&arguments.one, &arguments.other].map(|path| path.display().to_string());
    if comparison.pairs == 0 {
        return Err(Failure::BadInput(format!(
            "{one} and {other}: have no runs in common; expected runs with the same variant, seed and values of swept keys"
        )));
    }
    let text = describe(&comparison, &one, &other);
    match json {
        Some(json) => json.write(&comparison, &text)?,
        None => print_text(&text)?,
    }
    let differ = comparison
        .metrics
        .iter()
        .filter(|metric| metric.differs)
        .count();
    match differ {
        0 => Ok(()),
        _ => Err(Failure::Failed(format!("{differ} metrics differ"))),
    }
}

fn describe(comparison: &Comparison, one: &str, other: &str) -> String {
    let mut text = String::new();
    if !comparison.configuration.is_empty() {
        let columns = [
            Column::words("key"),
            Column::words(one),
            Column::words(other),
        ];
        let mut table = Table::new(columns.into());
        for key in &comparison.configuration {
            table.row(vec![
                key.path.clone(),
                shown(&key.values.0),
                shown(&key.values.1),
            ]);
        }
        text += &(table.render() + "\n");
    }
    let has_variants = comparison.metrics.iter().any(|one| one.variant.is_some());
    let variant = has_variants.then(|| Column::words("variant"));
    let columns = [
        Column::words("metric"),
        Column::numbers(one),
        Column::numbers(other),
        Column::numbers("difference"),
        Column::numbers("p"),
    ];
    let mut table = Table::new(variant.into_iter().chain(columns).collect());
    for metric in comparison.metrics.iter().filter(|metric| metric.differs) {
        let variant = has_variants.then(|| metric.variant.clone().unwrap_or_default());
        table.row(variant.into_iter().chain(row(metric)).collect());
    }
    if !table.is_empty() {
        text += &(table.render() + "\n");
    }
    let equal = comparison
        .metrics
        .iter()
        .filter(|metric| !metric.differs)
        .count();
    let (of_one, of_other) = comparison.unpaired;
    text += &format!(
        "{} pairs of runs; {equal} metrics without a significant difference\n",
        grouped(comparison.pairs as u64),
    );
    if of_one + of_other > 0 {
        text += &format!(
            "not compared, without a counterpart: {of_one} runs of {one} and {of_other} of {other}\n"
        );
    }
    text
}

fn row(metric: &MetricDifference) -> [String; 5] {
    [
        metric.name.to_owned(),
        significant(metric.means.0),
        significant(metric.means.1),
        metric
            .difference_percent
            .map_or("-".to_owned(), baton_report::difference),
        metric
            .p_value
            .map_or("-".to_owned(), |p_value| match p_value < 1e-4 {
                true => "< 0.0001".to_owned(),
                false => format!("{p_value:.4}"),
            }),
    ]
}

/// Formats a value of a key, or `not set`.
fn shown(value: &Cell) -> String {
    match value {
        Cell::Nothing => "not set".to_owned(),
        value => value.to_string(),
    }
}
