//! Gathers runs one by one, and keeps only the parts that the page shows.

use super::verdict::{Configuration, Measured};
use crate::commands::explore::controls;
use crate::tables::height;
use baton_explorer::shown::{self as run, MOST_SAMPLES};
use baton_report::page::{Run, Runs};
use baton_sim::results::{Results, Sample};
use baton_study::table::metrics;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Keys that are left out because the page shows name and seed elsewhere.
const LEFT_OUT: [&str; 2] = ["name", "run.seed"];

/// The runs gathered so far.
#[derive(Default)]
pub struct Gathering {
    /// Configuration of the first run.
    base: Option<BTreeMap<String, String>>,
    runs: Vec<Gathered>,
    layers: BTreeSet<String>,
}

struct Gathered {
    run: Run,
    /// Values that differ from the configuration of the first run; empty for a key that is not set.
    differs: BTreeMap<String, String>,
    /// Share of the host's cycles by layer, per cent.
    cycles: BTreeMap<String, f64>,
    measured: Option<Measured>,
    /// Samples, which are thinned again when the number of runs is known.
    samples: Vec<Sample>,
}

/// Maximum number of samples of all runs together, and minimum for each run.
const ALL_SAMPLES: usize = 60_000;
const LEAST_SAMPLES: usize = 20;

impl Gathering {
    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Adds a run with results.
    pub fn add(&mut self, source: &str, name: &str, results: &Results) {
        let mut all = BTreeMap::new();
        if let Ok(experiment) = serde_json::to_value(&results.experiment) {
            flatten(&mut all, String::new(), &experiment);
        }
        all.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
        let base = self.base.get_or_insert_with(|| all.clone());
        let unset = base.keys().filter(|key| !all.contains_key(*key));
        let unset: Vec<String> = unset.cloned().collect();
        let mut differs = all;
        differs.retain(|key, value| base.get(key) != Some(value));
        differs.extend(unset.into_iter().map(|key| (key, String::new())));
        let cycles = run::cycles_percent(results);
        self.layers
            .extend(cycles.keys().filter(|layer| *layer != run::IDLE).cloned());
        let run = run::of(source, name, results);
        self.runs.push(Gathered {
            differs,
            cycles,
            measured: Some(Measured::of(results, &run.doubt)),
            run,
            samples: run::thinned(&results.series, MOST_SAMPLES),
        });
    }

    /// Adds a run without results.
    pub fn add_failed(&mut self, source: &str, name: &str, seed: u64, error: Option<&str>) {
        self.runs.push(Gathered {
            run: Run {
                source: source.to_owned(),
                name: name.to_owned(),
                seed,
                doubt: format!("failed: {}", error.unwrap_or("the reason is unknown")),
                ..Run::default()
            },
            differs: BTreeMap::new(),
            cycles: BTreeMap::new(),
            measured: None,
            samples: Vec::new(),
        });
    }

    /// Returns all runs for the page, and the measurements of each configuration. Keys that the user chose to vary come first.
    pub fn finish(self, chosen: Option<Vec<String>>) -> (Runs, Vec<Configuration>) {
        let Self { base, runs, layers } = self;
        let mut common = base.unwrap_or_default();
        let differing: BTreeSet<String> = runs
            .iter()
            .flat_map(|run| run.differs.keys().cloned())
            .collect();
        let mut keys: Vec<String> = chosen.unwrap_or_default();
        keys.retain(|key| differing.contains(key));
        let others = differing.into_iter().filter(|key| !keys.contains(key));
        let others: Vec<String> = others.collect();
        keys.extend(others);
        let firsts: Vec<String> = keys
            .iter()
            .map(|key| common.remove(key).unwrap_or_default())
            .collect();
        let mut layers: Vec<String> = layers.into_iter().collect();
        layers.sort_by_key(|layer| height(layer));
        layers.push(run::IDLE.to_owned());
        let most = (ALL_SAMPLES / runs.len().max(1)).clamp(LEAST_SAMPLES, MOST_SAMPLES);
        let mut configurations: Vec<Configuration> = Vec::new();
        let finish = |gathered: Gathered| {
            let Gathered {
                mut run,
                mut differs,
                cycles,
                measured,
                samples,
            } = gathered;
            let values = keys.iter().zip(&firsts);
            run.keys = match &measured {
                Some(_) => values
                    .map(|(key, first)| differs.remove(key).unwrap_or_else(|| first.clone()))
                    .collect(),
                None => vec![String::new(); keys.len()],
            };
            if measured.is_some() {
                run.cycles_percent = layers
                    .iter()
                    .map(|layer| cycles.get(layer).copied().unwrap_or(0.0))
                    .collect();
            }
            run.samples = run::samples(&run::thinned(&samples, most));
            Configuration::add(&mut configurations, &run, &keys, measured);
            run
        };
        let runs: Vec<Run> = runs.into_iter().map(finish).collect();
        let measures = metrics::ALL.iter().map(run::measure).collect();
        let in_words =
            |key: &String| controls::label(key).map_or_else(|| key.clone(), str::to_owned);
        let runs = Runs {
            measures,
            keys_in_words: keys.iter().map(in_words).collect(),
            keys,
            common,
            layers,
            runs,
        };
        (runs, configurations)
    }
}

/// Adds all values with their paths, as `--set` accepts them.
fn flatten(all: &mut BTreeMap<String, String>, path: String, value: &Value) {
    let inner = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                flatten(all, inner(name), value);
            }
        }
        Value::Array(array) if array.iter().any(Value::is_object) => {
            for (number, value) in array.iter().enumerate() {
                flatten(all, inner(&number.to_string()), value);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            all.insert(path, text.clone());
        }
        value => {
            all.insert(path, value.to_string());
        }
    }
}
