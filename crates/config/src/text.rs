//! Writes runs as an experiment file that reproduces them.

use super::shipped;
use super::tree::TAGS;
use super::{Plan, Planned};
use crate::failure::Failure;
use baton_sim::config::Experiment;
use toml::{Table, Value};

/// Returns the experiment file that reproduces these runs: the values that differ from profile and defaults or, if `full`, all values.
///
/// # Errors
/// Fails if a value cannot be written as TOML.
pub fn to_text(plan: &Plan, full: bool) -> Result<String, Failure> {
    let table = |run: &Planned| match full {
        true => complete(&run.experiment),
        false => Ok(run.short.clone()),
    };
    let tables: Result<Vec<Table>, _> = plan.runs.iter().map(table).collect();
    let document = document(tables.map_err(refused)?);
    toml::to_string(&document).map_err(refused)
}

/// Returns an experiment file with all values of an experiment.
///
/// # Errors
/// Fails if a value cannot be written as TOML.
pub fn complete_text(experiment: &Experiment) -> Result<String, Failure> {
    let table = complete(experiment).map_err(refused)?;
    toml::to_string(&table).map_err(refused)
}

fn complete(experiment: &Experiment) -> Result<Table, toml::ser::Error> {
    let mut table = Table::try_from(experiment)?;
    // All values are in the file, so that the profile need not set any.
    let defaults = Value::String(shipped::DEFAULTS.to_owned());
    table.insert("profile".to_owned(), defaults);
    Ok(table)
}

fn refused(error: toml::ser::Error) -> Failure {
    Failure::Failed(format!("cannot write the experiment as TOML: {error}"))
}

/// Returns the only table, or the values that all tables share with a variant for each table.
fn document(mut tables: Vec<Table>) -> Table {
    if tables.len() == 1 {
        return tables.remove(0);
    }
    let names: Vec<Value> = tables
        .iter_mut()
        .filter_map(|table| table.remove("name"))
        .collect();
    let mut document = take_common(&mut tables.iter_mut().collect::<Vec<_>>());
    let variants = names.into_iter().zip(tables).map(|(name, set)| {
        let mut variant = Table::from_iter([("name".to_owned(), name)]);
        if !set.is_empty() {
            variant.insert("set".to_owned(), Value::Table(set));
        }
        Value::Table(variant)
    });
    document.insert("variants".to_owned(), Value::Array(variants.collect()));
    document
}

/// Removes the values that all tables share, and returns them.
fn take_common(tables: &mut [&mut Table]) -> Table {
    let mut common = Table::new();
    let Some(first) = tables.first() else {
        return common;
    };
    for key in first.keys().cloned().collect::<Vec<_>>() {
        let values: Option<Vec<&Value>> = tables.iter().map(|table| table.get(&key)).collect();
        let Some(values) = values else { continue };
        if values.iter().all(|value| *value == values[0]) {
            let taken = tables.iter_mut().filter_map(|table| table.remove(&key));
            common.extend(taken.last().map(|value| (key, value)));
        } else if values.iter().all(|value| same_kind(value, values[0])) {
            let mut inner: Vec<&mut Table> = tables
                .iter_mut()
                .filter_map(|table| table.get_mut(&key).and_then(Value::as_table_mut))
                .collect();
            let inside = take_common(&mut inner);
            if !inside.is_empty() {
                common.insert(key, Value::Table(inside));
            }
        }
    }
    common
}

/// Returns whether both are tables that can be joined: tables of different kinds replace each other.
fn same_kind(one: &Value, other: &Value) -> bool {
    let both_tables = one.is_table() && other.is_table();
    both_tables && TAGS.iter().all(|tag| one.get(tag) == other.get(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_all_variants_share_are_written_once() {
        let tables = [
            "name = 'a'\nx = 1\n[n]\nm = 1\nk = 2\n[w]\nkind = 'p'\nq = 1",
            "name = 'b'\nx = 1\n[n]\nm = 2\nk = 2\n[w]\nkind = 'r'\nq = 1",
        ];
        let tables = tables
            .map(|text| text.parse::<Table>().expect("TOML"))
            .to_vec();
        let expected = "x = 1\n[n]\nk = 2\n\
                        [[variants]]\nname = 'a'\nset = { n.m = 1, w = { kind = 'p', q = 1 } }\n\
                        [[variants]]\nname = 'b'\nset = { n.m = 2, w = { kind = 'r', q = 1 } }";
        assert_eq!(document(tables), expected.parse::<Table>().expect("TOML"));
    }
}
