//! Tables as Apache Parquet files.

use super::{Cell, Column, Kind, VERSION};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;

/// Number of cells that are written together; they are buffered in memory until then.
const CELLS: usize = 1 << 18;

/// Metadata key of a file that specifies the version of the tables.
const VERSION_KEY: &str = "baton.schema";

/// Writes a table row by row.
pub struct Parquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    kinds: Vec<Kind>,
    /// Buffered rows, one after the other.
    cells: Vec<Cell>,
}

impl<W: Write + Send> Parquet<W> {
    /// Starts a file.
    pub fn new(out: W, columns: &[Column]) -> io::Result<Self> {
        let version = KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string());
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(vec![version]))
            .set_created_by("baton".to_owned());
        #[cfg(feature = "zstd")]
        let properties = {
            use parquet::basic::{Compression, ZstdLevel};
            properties.set_compression(Compression::ZSTD(ZstdLevel::default()))
        };
        let schema = schema(columns).map_err(io::Error::other)?;
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties.build()));
        Ok(Self {
            writer: writer.map_err(io::Error::other)?,
            kinds: columns.iter().map(|column| column.kind).collect(),
            cells: Vec::new(),
        })
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.cells.extend_from_slice(cells);
        match self.cells.len() >= CELLS {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes the buffered rows and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.writer.into_inner().map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.cells.is_empty() {
            return Ok(());
        }
        self.write_rows().map_err(io::Error::other)?;
        self.cells.clear();
        Ok(())
    }

    fn write_rows(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (number, kind) in self.kinds.iter().enumerate() {
            let cells = self.cells.iter().skip(number).step_by(self.kinds.len());
            let mut column = group.next_column()?.expect("the schema has this column");
            match kind {
                Kind::Boolean => write::<BoolType>(&mut column, cells, |cell| match cell {
                    Cell::Boolean(truth) => Some(*truth),
                    _ => None,
                }),
                Kind::Integer => write::<Int64Type>(&mut column, cells, |cell| match cell {
                    Cell::Integer(number) => Some(*number),
                    _ => None,
                }),
                Kind::Number => write::<DoubleType>(&mut column, cells, Cell::as_number),
                Kind::Text => write::<ByteArrayType>(&mut column, cells, |cell| match cell {
                    Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                    _ => None,
                }),
            }?;
            column.close()?;
        }
        group.close().map(drop)
    }
}

/// Writes the values of a column, and marks where there are none.
fn write<'a, T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<usize, ParquetError> {
    let values: Vec<Option<T::T>> = cells.map(value).collect();
    let is_there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    let typed = column.typed::<T>();
    typed.write_batch(&values, Some(&is_there), None)
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Boolean => (Physical::BOOLEAN, None),
            Kind::Integer => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let table = Type::group_type_builder("table")
        .with_fields(fields)
        .build();
    table.map(Arc::new)
}
