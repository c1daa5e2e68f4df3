//! Runs one experiment in process.

use crate::failure::raise;
use crate::policies::{LoadControl, Raised, Replacement, Selection};
use crate::request::Asked;
use crate::result::Result;
use crate::unlocked::unlocked;
use baton_config::{COMMIT, Failure, attempt, reads_standard_input};
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::results::Results;
use baton_sim::{Observer, RunError, run_with};
use baton_workload::log::Logs;
use pyo3::prelude::*;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// Runs an experiment. The simulation holds the interpreter's lock only while policies run.
#[pyfunction]
#[pyo3(signature = (asked, selection = None, replacement = None, load_control = None))]
pub fn run(
    py: Python<'_>,
    asked: Asked,
    selection: Option<&Bound<'_, PyAny>>,
    replacement: Option<Py<PyAny>>,
    load_control: Option<Py<PyAny>>,
) -> PyResult<Result> {
    let (experiment, notes) = asked.experiment()?;
    refuse_standard_input(&experiment)?;
    let raised = Raised::default();
    let policies = Policies {
        selection: selection
            .map(|policy| Selection::new(policy, raised.clone()))
            .transpose()?,
        replacement,
        load_control,
        raised: raised.clone(),
    };
    let (outcome, took_s) = unlocked(py, |stop| {
        let begun = Instant::now();
        let run = || simulate(&experiment, policies, stop);
        let outcome = attempt(&experiment, "the same call", run);
        (outcome, begun.elapsed().as_secs_f64())
    })?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    Ok(Result::new(outcome.map_err(raise)?, notes, took_s))
}

/// Policies of the caller.
#[derive(Default)]
pub struct Policies {
    selection: Option<Selection>,
    /// Creates a policy for a cache with a given number of blocks.
    replacement: Option<Py<PyAny>>,
    /// Creates a rule for a NIC with a given Hard_Limit.
    load_control: Option<Py<PyAny>>,
    raised: Raised,
}

/// Creates the policies of each run of a study.
#[derive(FromPyObject)]
pub struct Makers {
    /// Names of the policies, for the name of the study.
    pub name: String,
    /// Identifies these policies in the keys of results.
    pub identity: String,
    selection: Option<Py<PyAny>>,
    replacement: Option<Py<PyAny>>,
    load_control: Option<Py<PyAny>>,
}

impl Makers {
    /// Makes the policies of a run.
    ///
    /// # Errors
    /// Python raises an exception.
    pub fn make(&self, raised: &Raised) -> PyResult<Policies> {
        Python::attach(|py| {
            let selection = self.selection.as_ref().map(|make| {
                let policy = make.bind(py).call0()?;
                Selection::new(&policy, raised.clone())
            });
            let of = |make: &Option<Py<PyAny>>| make.as_ref().map(|make| make.clone_ref(py));
            Ok(Policies {
                selection: selection.transpose()?,
                replacement: of(&self.replacement),
                load_control: of(&self.load_control),
                raised: raised.clone(),
            })
        })
    }
}

/// Simulates an experiment until it ends, `stop` is set, or a policy raises an exception.
pub fn simulate(
    experiment: &Experiment,
    policies: Policies,
    stop: &AtomicBool,
) -> std::result::Result<Results, RunError> {
    let Policies {
        selection,
        replacement,
        load_control,
        raised,
    } = policies;
    let mut watch = Watch {
        stop,
        raised: raised.clone(),
    };
    run_with(
        &logs_of(experiment),
        experiment,
        COMMIT,
        &mut watch,
        |mut machine| {
            if let Some(policy) = selection {
                machine = machine.selection(policy);
            }
            if let Some(make) = replacement {
                let raised = raised.clone();
                machine =
                    machine.replacement(move |blocks| Replacement::new(&make, blocks, &raised));
            }
            if let Some(make) = load_control {
                machine =
                    machine.load_control(move |limit| LoadControl::new(&make, limit, &raised));
            }
            machine
        },
    )
}

/// Observer that ends a run early.
struct Watch<'a> {
    stop: &'a AtomicBool,
    raised: Raised,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, _share: f64) {}

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.raised.is_set()
    }
}

/// Refuses a log on standard input, which only this process could read.
pub fn refuse_standard_input(experiment: &Experiment) -> PyResult<()> {
    match reads_standard_input(experiment) {
        true => Err(raise(Failure::BadInput(
            "workload.path: found -, standard input; expected a file".to_owned(),
        ))),
        false => Ok(()),
    }
}

/// Identifies a version of a file: path, modification time and size.
type Stamp = (PathBuf, SystemTime, u64);

/// Returns the cache of logs. The log that was replayed last stays in memory until it changes or another log is replayed.
fn logs_of(experiment: &Experiment) -> Arc<Logs> {
    static LAST: Mutex<Option<(Stamp, Arc<Logs>)>> = Mutex::new(None);
    let stamp = match &experiment.workload {
        WorkloadConfig::Log { path, .. } => fs::metadata(path)
            .and_then(|file| Ok((path.clone(), file.modified()?, file.len())))
            .ok(),
        _ => None,
    };
    let Some(stamp) = stamp else {
        return Arc::default();
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((of, logs)) if *of == stamp => Arc::clone(logs),
        _ => {
            let logs = Arc::<Logs>::default();
            *last = Some((stamp, Arc::clone(&logs)));
            logs
        }
    }
}
