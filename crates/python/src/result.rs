//! The results of one run.

use crate::failure::bad_input;
use crate::table::{Rows, Table, html};
use baton_sim::results::{NotSteady, Results};
use baton_sim::{Fact, WARNINGS};
use baton_study::table::{Cell, Column, Kind, metrics, parts, series};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The results of a run.
#[pyclass(frozen, module = "baton")]
pub struct Result {
    results: Results,
    /// Notes for the user.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Duration of the run in seconds, without the time for planning.
    #[pyo3(get)]
    took_s: f64,
}

impl Result {
    /// Creates the result of a run that took `took_s` seconds.
    pub fn new(results: Results, mut notes: Vec<String>, took_s: f64) -> Self {
        if let Some(Fact::Words(text)) = results.workload.get(WARNINGS) {
            notes.extend(text.lines().map(str::to_owned));
        }
        Self {
            results,
            notes,
            took_s,
        }
    }
}

#[pymethods]
impl Result {
    /// The name of the experiment.
    #[getter]
    fn name(&self) -> &str {
        &self.results.experiment.name
    }

    /// Seed of all random numbers.
    #[getter]
    fn seed(&self) -> u64 {
        self.results.experiment.run.seed
    }

    /// Why the run ended: `complete`, `time_limit` or `quiet`.
    #[getter]
    fn ended(&self) -> &'static str {
        self.results.ended.name()
    }

    /// All metrics by the names that `baton list columns` shows; `None` if there was nothing to measure.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = metrics::of(&self.results);
        let all = PyDict::new(py);
        for metric in metrics::ALL {
            all.set_item(metric.name, value(py, &values[metric.name])?)?;
        }
        Ok(all)
    }

    /// Why the run was not steady, so that its results may not hold; `None` if it was steady.
    #[getter]
    fn not_steady<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value(py, &metrics::of(&self.results)[metrics::NOT_STEADY])
    }

    /// Returns a metric by its name.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match metrics::of(&self.results).get(name) {
            Some(cell) => value(py, cell),
            None => Err(PyKeyError::new_err(format!(
                "{name}: no metric has this name; `baton.metrics()` lists all"
            ))),
        }
    }

    /// Returns a table with one row that contains all metrics.
    ///
    /// Returns
    /// -------
    /// Table
    ///     The columns ``name``, ``seed``, ``ended``, ``not_steady`` and all metrics.
    fn table(&self) -> PyResult<Table> {
        let values = metrics::of(&self.results);
        let text = |name: &str| Column::new(name, Kind::Text);
        let first = [
            text("name"),
            Column::new("seed", Kind::Integer),
            text("ended"),
            text(metrics::NOT_STEADY),
        ];
        let of_metrics = metrics::ALL.iter();
        let of_metrics = of_metrics.map(|metric| Column::new(metric.name, metric.kind()));
        let mut rows = Rows::new(first.into_iter().chain(of_metrics).collect());
        let cells = [
            Cell::text(self.name()),
            Cell::count(self.seed()),
            Cell::text(self.ended()),
            values[metrics::NOT_STEADY].clone(),
        ];
        let of_metrics = metrics::ALL
            .iter()
            .map(|metric| values[metric.name].clone());
        rows.push(cells.into_iter().chain(of_metrics));
        rows.table()
    }

    /// Returns quantities that consist of parts: cycles by layer, drops by reason, bytes by category.
    ///
    /// Returns
    /// -------
    /// Table
    ///     The columns ``quantity``, ``part`` and ``value``.
    fn parts(&self) -> PyResult<Table> {
        let mut rows = Rows::new(parts::columns());
        parts::rows(&self.results, |quantity, part, value| {
            rows.push(parts::cells(quantity, part, value));
        });
        rows.table()
    }

    /// Returns the samples that were taken during the run, including the warm-up.
    ///
    /// Returns
    /// -------
    /// Table
    ///     One row per sample, in order of ``time_us``.
    fn series(&self) -> PyResult<Table> {
        let mut rows = Rows::new(series::columns());
        let samples = self.results.series.iter();
        samples.for_each(|sample| rows.push(series::cells(sample)));
        rows.table()
    }

    /// Returns all results as JSON, as in the output of `baton run --json`.
    ///
    /// Returns
    /// -------
    /// str
    ///     A JSON object.
    fn to_json(&self) -> String {
        serde_json::to_string(&self.results).expect("results are JSON")
    }

    /// Returns all results as a dictionary.
    ///
    /// Returns
    /// -------
    /// dict
    ///     The content of `to_json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.to_json(),))
    }

    fn __repr__(&self) -> String {
        format!(
            "<baton.Result {:?}, seed {}: {} requests/s, {}>",
            self.name(),
            self.seed(),
            self.results.request_rate().mean.round(),
            self.ended()
        )
    }

    /// Shows the main numbers in notebooks.
    fn _repr_html_(&self) -> String {
        let values = metrics::of(&self.results);
        let number = |name: &str| values.get(name).and_then(Cell::as_number);
        let row = |name: &str| {
            let metric = metrics::find(name)?;
            let half = metrics::interval_of(name).and_then(|half| number(&half));
            let half = half.map_or(String::new(), |half| format!(" \u{b1} {half:.3}"));
            let value = number(name).map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
            Some(vec![metric.label(), value + &half])
        };
        let title = format!("{}, seed {}", self.name(), self.seed());
        let note = match NotSteady::texts(&self.results.long_run.not_steady) {
            why if why.is_empty() => "\u{b1}: half of the 95 % interval".to_owned(),
            why => format!("not steady: {why}"),
        };
        html(
            vec![title, String::new()],
            metrics::MAIN.into_iter().filter_map(row).collect(),
            &note,
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        let make = slf.get_type().getattr("_of_json")?;
        Ok((make, (this.to_json(), this.notes.clone(), this.took_s)))
    }

    #[staticmethod]
    fn _of_json(json: &str, notes: Vec<String>, took_s: f64) -> PyResult<Self> {
        let results = serde_json::from_str(json).map_err(bad_input)?;
        Ok(Self {
            results,
            notes,
            took_s,
        })
    }
}

/// Constructor and arguments that recreate a result.
type Pickled<'py> = (Bound<'py, PyAny>, (String, Vec<String>, f64));

/// Converts a cell to a Python value.
pub fn value<'py>(py: Python<'py>, cell: &Cell) -> PyResult<Bound<'py, PyAny>> {
    match cell {
        Cell::Nothing => Ok(py.None().into_bound(py)),
        Cell::Boolean(truth) => truth.into_bound_py_any(py),
        Cell::Integer(number) => number.into_bound_py_any(py),
        Cell::Number(number) => number.into_bound_py_any(py),
        Cell::Text(text) => text.into_bound_py_any(py),
    }
}
