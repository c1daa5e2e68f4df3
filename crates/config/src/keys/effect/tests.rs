use super::super::{Allowed, Key, all};
use super::*;
use crate::tree::Node;
use baton_sim::NoObserver;
use baton_sim::config::Experiment;
use serde::Deserialize;

/// A small run with nearly all features switched on.
const BUSY: &str = "\
run = { warmup_packets = 300, measured_packets = 900 }
nics = 2
wire = { loss = 0.01, reorder = 0.01 }
interconnect = { kind = 'pci', delayed_reads = true }
clients = { connections = 32, start_interval_us = 1, tcp.ecn = 'request' }
tcp = { ecn = 'request' }
workload = { kind = 'generated', preset = 'demo', requests = 300 }
[nic.firmware]
hard_limit = 16
cache.kib = 256
load_control = { enabled = true, high_water_packets = 4, low_water_packets = 1 }
[host.kernel]
nic_cache.enabled = true
file_cache.kib = 1024
";

fn tree(text: &str) -> Value {
    let mut tree = Value::try_from(Experiment::default()).expect("TOML");
    lay_over(&mut tree, text.parse::<toml::Table>().expect("TOML").into());
    tree
}

fn lay_over(tree: &mut Value, over: Value) {
    match (tree, over) {
        (Value::Table(tree), Value::Table(over)) => {
            for (key, value) in over {
                match tree.get_mut(&key) {
                    Some(below) if key != "interconnect" => lay_over(below, value),
                    _ => {
                        tree.insert(key, value);
                    }
                }
            }
        }
        (tree, over) => *tree = over,
    }
}

fn set(tree: &mut Value, path: &str, value: Value) {
    let mut names: Vec<&str> = path.split('.').collect();
    let last = names.pop().expect("a name");
    let table = names.into_iter().fold(tree, |tree, name| {
        let table = tree.as_table_mut().expect("a table");
        table
            .entry(name)
            .or_insert(Value::Table(toml::Table::new()))
    });
    table
        .as_table_mut()
        .expect("a table")
        .insert(last.to_owned(), value);
}

/// Returns all results without the configuration; `None` if such a run is impossible.
fn results(tree: &Value) -> Option<serde_json::Value> {
    let experiment = Experiment::deserialize(&Node::from_default(tree)).ok()?;
    experiment.validate().ok()?;
    let results = baton_sim::run(&experiment, "", &[], &mut NoObserver).ok()?;
    let mut results = serde_json::to_value(results).expect("JSON");
    results
        .as_object_mut()
        .expect("an object")
        .remove("experiment");
    Some(results)
}

/// Returns a value of the other key that does not meet the condition; `None` if there is no such value.
fn unmet(condition: &Condition) -> Option<Value> {
    Some(match condition.test {
        Test::On => Value::Boolean(false),
        Test::Not(name) => Value::String(name.to_owned()),
        Test::Is(name) => {
            find(&tree(BUSY), condition.path)?;
            let key = all().iter().find(|key| key.path == condition.path)?;
            let Allowed::OneOf(names) = &key.value else {
                return None;
            };
            let other = names.iter().find(|named| named.name != name)?;
            Value::String(other.name.clone())
        }
        Test::Above(number) => match find(&tree(BUSY), condition.path)? {
            Value::Float(_) => Value::Float(number.into()),
            _ => Value::Integer(number.into()),
        },
        Test::Absent if condition.path == "nic.hardware" => Value::Table(toml::Table::new()),
        Test::Absent if condition.path == "run.measured_responses" => Value::Integer(30),
        Test::Absent => Value::Float(if condition.path.ends_with("passes") {
            0.2
        } else {
            0.001
        }),
        Test::Given => return None,
    })
}

/// Returns another accepted value of the key.
fn another(key: &Key, tree: &Value) -> Option<Value> {
    let present = find(tree, &key.path);
    Some(match &key.value {
        Allowed::Boolean => Value::Boolean(!present?.as_bool()?),
        Allowed::OneOf(names) => {
            let other = names
                .iter()
                .find(|named| present.and_then(Value::as_str) != Some(&named.name))?;
            Value::String(other.name.clone())
        }
        Allowed::Number(range) => {
            let present = present.and_then(Value::as_integer).unwrap_or(1);
            let near = [present * 2, present + 1, present / 2, present - 1];
            Value::Integer(
                near.into_iter()
                    .find(|&other| other != present && range.contains(other as f64))?,
            )
        }
        _ => return None,
    })
}

#[test]
fn a_key_that_needs_another_has_no_effect_without_it() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for needs in NEEDS {
        for condition in needs.conditions {
            let mut without = tree(BUSY);
            if let Some(value) = unmet(condition) {
                if condition.path == "interconnect.kind" {
                    set(
                        &mut without,
                        "interconnect",
                        Value::Table(toml::Table::new()),
                    );
                }
                set(&mut without, condition.path, value);
            }
            assert!(!condition.is_met(&without), "{condition}");
            let before =
                results(&without).unwrap_or_else(|| panic!("{condition} can be otherwise"));
            let inside = |key: &&Key| {
                let path = &key.path;
                *path != condition.path && needs.keys.iter().any(|table| is_in(path, table))
            };
            for key in all().iter().filter(inside) {
                let mut changed = without.clone();
                let Some(value) = another(key, &without) else {
                    continue;
                };
                set(&mut changed, &key.path, value.clone());
                if let Some(after) = results(&changed) {
                    tried += 1;
                    if after != before {
                        wrong.push(format!("{} = {value} without {condition}", key.path));
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "these have an effect:\n{}",
        wrong.join("\n")
    );
    assert!(tried > 150, "{tried}");
}

#[test]
fn every_key_of_the_table_exists() {
    for needs in NEEDS {
        let paths = needs
            .keys
            .iter()
            .copied()
            .chain(needs.conditions.iter().map(|condition| condition.path));
        for path in paths {
            assert!(all().iter().any(|key| is_in(&key.path, path)), "{path}");
        }
    }
}
