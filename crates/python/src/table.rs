//! Tables that other libraries can read in place, by the Arrow `PyCapsule` interface.

use crate::failure::RunError;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use baton_study::table::{Cell, Column, Kind};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table in memory.
#[pyclass(frozen, module = "baton")]
pub struct Table(RecordBatch);

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!(
            "<baton.Table of {} rows, {} columns>",
            self.0.num_rows(),
            self.0.num_columns()
        )
    }

    /// Shows the first rows and columns in notebooks.
    fn _repr_html_(&self) -> String {
        let schema = self.0.schema();
        let shown = self.0.num_columns().min(SHOWN_COLUMNS);
        let columns = &schema.fields()[..shown];
        let head = columns.iter().map(|field| field.name().clone()).collect();
        let row = |row: usize| -> Vec<String> {
            let cells = self.0.columns()[..shown].iter();
            cells.map(|column| cell(column, row)).collect()
        };
        let rows = (0..self.0.num_rows().min(SHOWN_ROWS)).map(row).collect();
        let of = |count: usize, what: &str| format!("{count} {what}");
        let size = [
            of(self.0.num_rows(), "rows"),
            of(self.0.num_columns(), "columns"),
        ];
        html(head, rows, &size.join(", "))
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.0.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    /// Exports the types of the columns through the Arrow C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }

    /// Exports the content through the Arrow C stream interface, without copying it.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The Arrow interface allows a producer to ignore the requested schema.
        drop(requested_schema);
        stream_capsule(py, &self.0)
    }

    /// Returns the table as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Returns the table as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let polars = slf.py().import("polars")?;
        polars.call_method1("DataFrame", (slf,))
    }

    /// Returns the table as a `pandas.DataFrame` whose columns have Arrow types.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(&Self::to_arrow(slf)?)
    }
}

/// Numbers of rows and of columns that notebooks show.
const SHOWN_ROWS: usize = 10;
const SHOWN_COLUMNS: usize = 12;

/// Returns a value as text; empty if there is none.
fn cell(column: &ArrayRef, row: usize) -> String {
    let any = column.as_any();
    if column.is_null(row) {
        return String::new();
    }
    if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        let number = numbers.value(row);
        return match number.abs() {
            1e3.. => format!("{number:.0}"),
            1e-3..1e3 => format!("{}", (number * 1e4).round() / 1e4),
            _ => format!("{number:.3e}"),
        };
    }
    let integers = any.downcast_ref::<Int64Array>();
    let integers = integers.map(|all| all.value(row).to_string());
    let texts = any.downcast_ref::<StringArray>();
    let texts = texts.map(|all| all.value(row).to_owned());
    let truths = any.downcast_ref::<BooleanArray>();
    let truths = truths.map(|all| all.value(row).to_string());
    integers
        .or(texts)
        .or(truths)
        .unwrap_or_else(|| "\u{2026}".to_owned())
}

/// Returns a table as HTML, with a note below it.
pub fn html(head: Vec<String>, rows: Vec<Vec<String>>, note: &str) -> String {
    let escaped = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;")
    };
    let row = |cells: Vec<String>, tag: &str| {
        let cells = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>", cells.collect::<String>())
    };
    let body: String = rows.into_iter().map(|cells| row(cells, "td")).collect();
    let head = row(head, "th");
    format!(
        "<table><thead>{head}</thead><tbody>{body}</tbody></table><p>{}</p>",
        escaped(note)
    )
}

/// Converts a `pyarrow.Table` to a `pandas.DataFrame` whose columns have Arrow types.
pub fn to_pandas<'py>(table: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = table.py();
    let options = pyo3::types::PyDict::new(py);
    options.set_item("types_mapper", py.import("pandas")?.getattr("ArrowDtype")?)?;
    table.call_method("to_pandas", (), Some(&options))
}

impl Table {
    /// Creates a table from existing columns.
    pub fn new(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        let batch = RecordBatch::try_from_iter(columns);
        batch.map(Self).map_err(|error| failed(&error))
    }
}

/// Returns the exception for a table that cannot be created or exported.
fn failed(error: &ArrowError) -> PyErr {
    RunError::new_err(error.to_string())
}

/// Exports the types of a table's columns by the Arrow C data interface.
pub fn schema_capsule<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(batch.schema().as_ref());
    let schema = schema.map_err(|error| failed(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Exports a table by the Arrow C stream interface. The consumer shares its memory.
pub fn stream_capsule<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A table that is built row by row.
pub struct Rows {
    columns: Vec<Column>,
    cells: Vec<Vec<Cell>>,
}

impl Rows {
    /// Creates a table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        let cells = columns.iter().map(|_| Vec::new()).collect();
        Self { columns, cells }
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        for (column, cell) in self.cells.iter_mut().zip(row) {
            column.push(cell);
        }
    }

    /// Finishes the table.
    pub fn table(self) -> PyResult<Table> {
        let fields = self.columns.iter().map(field).collect::<Vec<_>>();
        let columns = self.columns.iter().zip(&self.cells);
        let arrays = columns.map(|(column, cells)| array(column.kind, cells));
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays.collect());
        batch.map(Table).map_err(|error| failed(&error))
    }
}

fn field(column: &Column) -> Field {
    let kind = match column.kind {
        Kind::Boolean => DataType::Boolean,
        Kind::Integer => DataType::Int64,
        Kind::Number => DataType::Float64,
        Kind::Text => DataType::Utf8,
    };
    Field::new(&column.name, kind, true)
}

fn array(kind: Kind, cells: &[Cell]) -> ArrayRef {
    let cells = cells.iter();
    match kind {
        Kind::Boolean => Arc::new(BooleanArray::from_iter(cells.map(|cell| match cell {
            Cell::Boolean(truth) => Some(*truth),
            _ => None,
        }))),
        Kind::Integer => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
            Cell::Integer(number) => Some(*number),
            _ => None,
        }))),
        Kind::Number => Arc::new(Float64Array::from_iter(cells.map(Cell::as_number))),
        Kind::Text => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
            Cell::Text(text) => Some(text.as_str()),
            _ => None,
        }))),
    }
}
