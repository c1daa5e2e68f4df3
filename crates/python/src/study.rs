//! Studies of many runs in the store of `baton sweep`, computed by any number of processes.

use crate::failure::{RunError, bad_input, raise, raise_of_store};
use crate::policies::Raised;
use crate::request::Asked;
use crate::run::{Makers, refuse_standard_input, simulate};
use crate::table::{Rows, Table};
use crate::unlocked::unlocked;
use baton_config::{Failure, PROGRAM, SOURCES, outcome};
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_study::table::{self, Cell, Column, Kind};
use baton_study::{Digest, Ended, Key, Patience, Store, StudyRun, carry_out};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf, absolute};
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;

/// A planned study, and the folder for its results.
#[pyclass(frozen, module = "baton")]
pub struct Study {
    study: baton_study::Study,
    runs: Vec<(Key, Experiment)>,
    #[pyo3(get)]
    folder: PathBuf,
    /// Notes for the user.
    #[pyo3(get)]
    notes: Vec<String>,
}

#[pymethods]
impl Study {
    /// Plans the study, with policies if there are any, and writes the plan to the folder.
    #[new]
    #[pyo3(signature = (asked, folder, policies = None))]
    fn new(
        py: Python<'_>,
        asked: Asked,
        folder: PathBuf,
        policies: Option<Makers>,
    ) -> PyResult<Self> {
        let request = asked.request();
        let folder = absolute(folder)?;
        let planned = py.detach(|| {
            let plan =
                baton_config::study(&request, available_parallelism().map_or(1, Into::into))?;
            plan.refuse_standard_input()?;
            let notes = [plan.notes.clone(), plan.without_effect.clone()].concat();
            let store = open(&folder)?;
            let (mut study, mut runs) = plan.identified(&store)?;
            if let Some(policies) = &policies {
                study.name = format!("{}+{}", study.name, policies.name);
                let own = |key: Key| {
                    let parts = Digest::new().part(key.to_string().as_bytes());
                    parts.part(policies.identity.as_bytes()).key()
                };
                study.runs.iter_mut().for_each(|run| run.key = own(run.key));
                runs.iter_mut().for_each(|(key, _)| *key = own(*key));
            }
            study.save(&store)?;
            Ok::<_, Failure>((study, runs, notes))
        });
        let (study, runs, notes) = planned.map_err(raise)?;
        Ok(Self {
            study,
            runs,
            folder,
            notes,
        })
    }

    /// The name of the study, which is also the name of its tables.
    #[getter]
    fn name(&self) -> &str {
        &self.study.name
    }

    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// Returns the numbers of the runs that have not been done; of equal runs, only the first.
    fn missing(&self) -> PyResult<Vec<usize>> {
        let store = open(&self.folder).map_err(raise)?;
        let mut seen = BTreeSet::new();
        let mut is_missing = |key: Key| !store.has(key) && seen.insert(key);
        let runs = self.runs.iter().enumerate();
        Ok(runs
            .filter(|(_, (key, _))| is_missing(*key))
            .map(|(number, _)| number)
            .collect())
    }

    /// Returns runs in the form that [`work`] takes, in this process or another.
    fn tasks(&self, numbers: Vec<usize>) -> PyResult<Vec<(String, String)>> {
        let task = |number: usize| {
            let (key, experiment) = &self.runs[number];
            let mut experiment = experiment.clone();
            // The worker may run in another folder.
            if let WorkloadConfig::Log { path, .. } = &mut experiment.workload {
                *path = absolute(&*path)?;
            }
            let json = serde_json::to_string(&experiment).expect("an experiment is JSON");
            Ok((key.to_string(), json))
        };
        numbers.into_iter().map(task).collect()
    }

    /// Does the missing runs on this number of threads of this process. Returns how many runs it did.
    #[pyo3(signature = (threads, policies = None))]
    fn carry_out(
        &self,
        py: Python<'_>,
        threads: usize,
        policies: Option<Makers>,
    ) -> PyResult<usize> {
        let missing = self.missing()?.into_iter();
        let runs: Vec<_> = missing.map(|number| self.runs[number].clone()).collect();
        do_runs(py, &self.folder, &runs, threads, policies.as_ref())
    }

    /// Writes the tables when all runs have been done. `computed` is the number of runs that were done now.
    fn finish(&self, computed: usize) -> PyResult<StudyTables> {
        let missing = self.missing()?.len();
        if missing > 0 {
            return Err(RunError::new_err(format!(
                "{missing} of {} runs have not been done; the results of the others are kept in {}, and the same call does the rest",
                self.runs.len(),
                self.folder.display()
            )));
        }
        let store = open(&self.folder).map_err(raise)?;
        let written = table::write(&store, &self.study).map_err(raise_of_store)?;
        Ok(StudyTables {
            study: self.study.clone(),
            folder: self.folder.clone(),
            files: written.files,
            failed: written.failed,
            computed,
        })
    }
}

/// Does the runs that [`Study::tasks`] returned and stores their results. Waits for runs that other processes are doing. Returns the number of
/// runs that were done here.
#[pyfunction]
#[pyo3(signature = (folder, sources, tasks, policies = None))]
pub fn work(
    py: Python<'_>,
    folder: PathBuf,
    sources: &str,
    tasks: Vec<(String, String)>,
    policies: Option<Makers>,
) -> PyResult<usize> {
    if sources != SOURCES {
        return Err(bad_input(
            "this worker has another version of Baton than the process that planned the study; expected the same package",
        ));
    }
    let task = |(key, json): &(String, String)| {
        let experiment = serde_json::from_str(json).map_err(bad_input)?;
        Ok::<_, PyErr>((key.parse::<Key>().map_err(bad_input)?, experiment))
    };
    let runs: Vec<(Key, Experiment)> = tasks.iter().map(task).collect::<PyResult<_>>()?;
    do_runs(py, &folder, &runs, 1, policies.as_ref())
}

fn do_runs(
    py: Python<'_>,
    folder: &Path,
    runs: &[(Key, Experiment)],
    threads: usize,
    makers: Option<&Makers>,
) -> PyResult<usize> {
    for (_, experiment) in runs {
        refuse_standard_input(experiment)?;
    }
    let keys: Vec<Key> = runs.iter().map(|(key, _)| *key).collect();
    let raised = Raised::default();
    let done = unlocked(py, |stop| {
        let store = open(folder).map_err(Ended::Failed)?;
        let run = |number: usize| {
            let (key, experiment) = &runs[number];
            outcome(&store, *key, experiment, || {
                let policies = makers.map(|makers| makers.make(&raised)).transpose();
                let policies = policies.map_err(|error| {
                    raised.set(error);
                    baton_sim::RunError::Cancelled
                })?;
                simulate(experiment, policies.unwrap_or_default(), stop)
            })
        };
        let stopped = || stop.load(Ordering::Relaxed);
        carry_out(&store, &keys, PROGRAM, threads, &stopped, &run)
    })?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    done.map_err(|ended| match ended {
        Ended::Stopped => raise(Failure::Interrupted),
        Ended::Failed(failure) => raise(failure),
    })
}

fn open(folder: &Path) -> Result<Store, Failure> {
    Ok(Store::open(folder, Patience::default())?)
}

/// The tables of a study.
#[pyclass(frozen, module = "baton")]
pub struct StudyTables {
    study: baton_study::Study,
    /// The folder of the results.
    #[pyo3(get)]
    folder: PathBuf,
    /// The paths of the tables.
    #[pyo3(get)]
    files: Vec<PathBuf>,
    /// Number of runs that failed an internal check of the simulator.
    #[pyo3(get)]
    failed: usize,
    /// Number of runs that were done now.
    #[pyo3(get)]
    computed: usize,
}

#[pymethods]
impl StudyTables {
    /// Returns the tables of the only study in a folder, or of the study FOLDER/STUDY.
    #[staticmethod]
    fn find(path: PathBuf) -> PyResult<Self> {
        let (folder, study) = baton_study::Study::find(&path).map_err(raise_of_store)?;
        let store = open(&folder).map_err(raise)?;
        let written = table::write(&store, &study).map_err(raise_of_store)?;
        Ok(Self {
            study,
            folder,
            files: written.files,
            failed: written.failed,
            computed: 0,
        })
    }

    /// The name of the study, which is also the name of its tables.
    #[getter]
    fn name(&self) -> &str {
        &self.study.name
    }

    fn __len__(&self) -> usize {
        self.study.runs.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<baton.StudyTables {:?}: {} runs, {} of them computed now, {} failed>",
            self.study.name,
            self.study.runs.len(),
            self.computed,
            self.failed
        )
    }

    /// Returns the table of runs.
    ///
    /// Returns
    /// -------
    /// Table
    ///     One row per run that has been done, with its keys and all metrics.
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        self.rows(py, table::Table::Runs)
    }

    /// Returns the quantities of runs that consist of parts.
    ///
    /// Returns
    /// -------
    /// Table
    ///     The columns ``run``, ``quantity``, ``part`` and ``value``.
    fn parts(&self, py: Python<'_>) -> PyResult<Table> {
        self.rows(py, table::Table::Parts)
    }

    /// Returns the samples that were taken during the runs.
    ///
    /// Returns
    /// -------
    /// Table
    ///     One row per sample of each run, in order of ``run`` and ``time_us``.
    fn series(&self, py: Python<'_>) -> PyResult<Table> {
        self.rows(py, table::Table::Series)
    }
}

impl StudyTables {
    fn rows(&self, py: Python<'_>, wanted: table::Table) -> PyResult<Table> {
        let rows = py.detach(|| {
            let store = open(&self.folder)?;
            let runs = self.study.runs.iter();
            let done: Vec<&StudyRun> = runs.filter(|run| store.has(run.key)).collect();
            let mut rows = Rows::new(wanted.columns(&self.study));
            table::visit(&store, &self.study, &done, &mut |table, cells| {
                if table == wanted {
                    rows.push(cells.iter().cloned());
                }
                Ok(())
            })?;
            Ok::<_, Failure>(rows)
        });
        rows.map_err(raise)?.table()
    }
}

/// Returns all metrics with their names and meanings.
#[pyfunction]
pub fn metrics() -> PyResult<Table> {
    let columns = ["name", "meaning"].map(|name| Column::new(name, Kind::Text));
    let mut rows = Rows::new(columns.to_vec());
    for metric in table::metrics::ALL {
        rows.push([Cell::text(metric.name), Cell::text(metric.meaning)]);
    }
    rows.table()
}
