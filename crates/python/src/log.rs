//! Access logs as tables.

use crate::failure::{bad_input, raise};
use crate::locality;
use crate::table::{Table, schema_capsule, stream_capsule, to_pandas};
use crate::unlocked::unlocked;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, LargeStringArray, PrimitiveArray, RecordBatch,
    TimestampMicrosecondArray, UInt16Array,
};
use baton_config::{Failure, reason};
use baton_workload::analyse::Analysis;
use baton_workload::log::{FormatSpec, Layout, Method, Names, ReadOptions, Request, write_log};
use baton_workload::{Fit, GeneratorSpec, Preset, SessionRule};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// An access log in memory, and as a table.
#[pyclass(frozen, module = "baton")]
pub struct Log {
    log: baton_workload::Log,
    batch: OnceLock<RecordBatch>,
}

/// Reads the log at `path`.
#[pyfunction]
#[pyo3(signature = (path, format = None, allow_skipped = false))]
pub fn read_log(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    allow_skipped: bool,
) -> PyResult<Log> {
    let format = format.map(str::parse::<FormatSpec>).transpose();
    let format = format.map_err(|error| bad_input(format!("format: {error}")))?;
    let log = unlocked(py, |stop| {
        let options = ReadOptions {
            format,
            allow_skipped,
            cancelled: Some(&|| stop.load(Ordering::Relaxed)),
        };
        let log = baton_workload::Log::read_with(&path, &options).map(Log::new);
        // Build the batch now, while the interpreter's lock is released.
        log.inspect(|log| {
            log.batch();
        })
    })?;
    log.map_err(bad_input)
}

/// Generates a log with a number of requests, from the name of a preset or from the parameters of a generator as JSON.
#[pyfunction]
pub fn generate_log(
    py: Python<'_>,
    preset: Option<&str>,
    spec: Option<&str>,
    requests: Option<u32>,
    seed: u64,
) -> PyResult<Log> {
    let named = |name: &str| {
        Preset::from_name(name).ok_or_else(|| {
            let known = presets().join(", ");
            bad_input(format!("{name}: no such preset; expected one of {known}"))
        })
    };
    let preset = preset.map(named).transpose()?;
    let spec = match (preset, spec) {
        (Some(preset), _) => preset.spec(),
        (None, text) => {
            serde_json::from_str::<GeneratorSpec>(text.unwrap_or("{}")).map_err(bad_input)?
        }
    };
    let requests = requests.or(preset.map(Preset::requests));
    let requests =
        requests.ok_or_else(|| bad_input("requests: expected the number of requests"))?;
    let log = unlocked(py, |_| spec.generate(seed, requests))?;
    log.map(Log::new).map_err(bad_input)
}

/// Returns the names of the generators that ship with Baton.
#[pyfunction]
pub fn presets() -> Vec<&'static str> {
    Preset::ALL.map(Preset::name).to_vec()
}

#[pymethods]
impl Log {
    fn __len__(&self) -> usize {
        self.log.requests.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<baton.Log of {} requests, {} files, {} clients, read as {}>",
            self.log.requests.len(),
            self.log.files.len(),
            self.log.clients.len(),
            self.log.format
        )
    }

    /// The format as which the log was read.
    #[getter]
    fn format(&self) -> &'static str {
        self.log.format.name()
    }

    /// Warnings: why results with this log may be misleading.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.log.warnings()
    }

    /// Exports the types of the columns through the Arrow C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.batch())
    }

    /// Exports the requests through the Arrow C stream interface, without copying them.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The Arrow interface allows a producer to ignore the requested schema.
        drop(requested_schema);
        stream_capsule(py, self.batch())
    }

    /// Returns the log as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Returns the log as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Returns the log as a `pandas.DataFrame` whose columns have Arrow types.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(&Self::to_arrow(slf)?)
    }

    /// Returns a table with the name and size of each file.
    fn files(&self) -> PyResult<Table> {
        let bytes = self.log.files.sizes().iter().map(|bytes| *bytes as i64);
        Table::new(vec![
            ("url", Arc::new(texts(&self.log.urls)) as ArrayRef),
            ("bytes", Arc::new(Int64Array::from_iter_values(bytes))),
        ])
    }

    /// Returns the analysis that `baton trace --json` writes.
    #[pyo3(signature = (persistent_s = 15))]
    fn analysis<'py>(&self, py: Python<'py>, persistent_s: u32) -> PyResult<Bound<'py, PyAny>> {
        let analysis = unlocked(py, |_| Analysis::of(&self.log, rule(persistent_s)))?;
        let json = serde_json::to_string(&analysis).expect("an analysis is JSON");
        py.import("json")?.call_method1("loads", (json,))
    }

    /// Returns the parameters of a generator for logs that are similar to this one.
    #[pyo3(signature = (persistent_s = 15))]
    fn fit<'py>(&self, py: Python<'py>, persistent_s: u32) -> PyResult<Bound<'py, PyAny>> {
        let fit = unlocked(py, |_| Fit::of(&self.log, rule(persistent_s)))?;
        let spec = fit.map_err(bad_input)?.spec;
        let json = serde_json::to_string(&spec).expect("parameters are JSON");
        py.import("json")?.call_method1("loads", (json,))
    }

    /// Returns the hits of caches by size and policy; all policies use the same admission policy.
    #[pyo3(signature = (policies, sizes, block_bytes, caches, persistent_s))]
    fn _locality(
        &self,
        py: Python<'_>,
        policies: (Vec<String>, String),
        sizes: Vec<u64>,
        block_bytes: u64,
        caches: usize,
        persistent_s: u32,
    ) -> PyResult<Table> {
        let asked = locality::Asked::new(&policies.0, &policies.1, sizes, block_bytes, caches)?;
        self.log.replayable().map_err(bad_input)?;
        let curves = unlocked(py, |stop| asked.curves(&self.log, rule(persistent_s), stop))?;
        curves.map_err(raise)?.table()
    }

    /// Writes the log to a file in Common Log Format, or in Combined Log Format.
    #[pyo3(signature = (path, combined = false))]
    fn write(&self, py: Python<'_>, path: PathBuf, combined: bool) -> PyResult<()> {
        let layout = match combined {
            true => Layout::Combined,
            false => Layout::Common,
        };
        let written = py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write_log(&self.log, layout, &mut out)?;
            out.flush()
        });
        written.map_err(|error| {
            let why = reason(&error);
            raise(Failure::Failed(format!(
                "{}: cannot write: {why}",
                path.display()
            )))
        })
    }
}

fn rule(persistent_s: u32) -> SessionRule {
    SessionRule {
        persistent_s,
        pipeline_s: None,
    }
}

impl Log {
    fn new(log: baton_workload::Log) -> Self {
        let batch = OnceLock::new();
        Self { log, batch }
    }

    /// Returns all requests in order of time.
    fn batch(&self) -> &RecordBatch {
        self.batch.get_or_init(|| {
            let Self { log, .. } = self;
            let of = |value: fn(&Request) -> u32| log.requests.iter().map(move |r| value(r) as i32);
            let times = log.requests.iter().map(|r| r.time_us as i64);
            let bytes = log.requests.iter().map(|r| r.bytes as i64);
            let statuses = log
                .requests
                .iter()
                .map(|r| (r.status > 0).then_some(r.status));
            let methods = log.requests.iter().map(|r| r.method as i8);
            let methods = PrimitiveArray::<Int8Type>::from_iter_values(methods);
            let columns: [(&str, ArrayRef); 6] = [
                (
                    "time",
                    Arc::new(TimestampMicrosecondArray::from_iter_values(times)),
                ),
                ("client", named(of(|r| r.client), &log.clients)),
                (
                    "method",
                    Arc::new(DictionaryArray::new(methods, Arc::new(method_names()))),
                ),
                ("url", named(of(|r| r.file), &log.urls)),
                ("status", Arc::new(UInt16Array::from_iter(statuses))),
                ("bytes", Arc::new(Int64Array::from_iter_values(bytes))),
            ];
            RecordBatch::try_from_iter(columns).expect("all columns are as long as the log")
        })
    }
}

/// Returns a dictionary array of indices into `names`.
fn named(numbers: impl Iterator<Item = i32>, names: &Names) -> ArrayRef {
    let numbers = PrimitiveArray::<Int32Type>::from_iter_values(numbers);
    Arc::new(DictionaryArray::new(numbers, Arc::new(texts(names))))
}

/// Returns names as strings. Logs contain names in any encoding; invalid UTF-8 is replaced.
fn texts(names: &Names) -> LargeStringArray {
    let texts = (0..names.len()).map(|number| String::from_utf8_lossy(names.get(number as u32)));
    LargeStringArray::from_iter_values(texts)
}

/// Returns the names of methods in the order of their numbers.
fn method_names() -> LargeStringArray {
    let all = [Method::Get, Method::Head, Method::Post, Method::Other];
    let name = |method: Method| match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Other => "OTHER",
    };
    LargeStringArray::from_iter_values(all.map(name))
}
