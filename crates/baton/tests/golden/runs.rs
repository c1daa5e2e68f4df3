//! The runs: the variants of the experiments in `runs/`.

use baton_config::{Request, plan};
use baton_sim::NoObserver;
use libtest_mimic::Failed;
use serde_json::Value;
use std::path::PathBuf;

/// Executes a run and returns its results.
type Results = Box<dyn Fn() -> Result<Value, Failed> + Send>;

/// A run with its name.
pub struct Run {
    /// `FILE/VARIANT`.
    pub name: String,
    pub results: Results,
}

/// Names of the experiment files.
const EXPERIMENTS: [&str; 15] = [
    "batching",
    "dcache",
    "dcache-modern",
    "file-server",
    "files",
    "handoff",
    "live-stream",
    "memory",
    "nics",
    "offload-cache",
    "offload-pcie",
    "on-demand",
    "processes",
    "specweb",
    "today",
];

/// Returns all runs.
pub fn all() -> Vec<Run> {
    EXPERIMENTS.into_iter().flat_map(of_experiment).collect()
}

fn of_experiment(file: &'static str) -> Vec<Run> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/runs"));
    let request = Request {
        experiment: path.join(format!("{file}.toml")).display().to_string(),
        ..Request::default()
    };
    let plan = plan(&request).unwrap_or_else(|failure| panic!("{failure}"));
    let run = |experiment: baton_sim::config::Experiment| Run {
        name: format!("{file}/{}", experiment.name),
        results: Box::new(move || {
            let results = baton_sim::run(&experiment, "", &[], &mut NoObserver)?;
            Ok(serde_json::to_value(results)?)
        }),
    };
    let experiments = plan.runs.into_iter().map(|planned| planned.experiment);
    experiments.map(run).collect()
}
