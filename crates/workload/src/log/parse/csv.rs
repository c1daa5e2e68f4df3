//! Values with a header that names the columns. The separator is the first of comma, semicolon, tab and bar for which the header contains
//! the required names.

use super::record::Record;
use super::{Parsed, SkipReason};
use crate::log::fields::{Columns, Field, FieldMap};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Maximum number of columns in a line.
const MAX_COLUMNS: usize = 256;

/// Parser state: the header, and buffers.
pub(in crate::log) struct Csv {
    map: FieldMap,
    header: Option<(Reader, Columns)>,
    /// Concatenated values of a line, with the end of each.
    values: Vec<u8>,
    ends: [usize; MAX_COLUMNS],
    /// Buffer for the URL with its query.
    url: Vec<u8>,
}

impl Csv {
    pub(super) const fn new(map: FieldMap) -> Self {
        Self {
            map,
            header: None,
            values: Vec::new(),
            ends: [0; MAX_COLUMNS],
            url: Vec::new(),
        }
    }

    pub(super) fn has_sizes(&self) -> bool {
        let columns = self.header.as_ref().map(|(_, columns)| columns);
        columns.is_none_or(|columns| columns.get(Field::Bytes).is_some())
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Parsed<'_>, SkipReason> {
        let Some((mut reader, columns)) = self.header.take() else {
            self.header = SEPARATORS.into_iter().find_map(|separator| {
                let mut reader = ReaderBuilder::new().delimiter(separator).build();
                let count = self.cut(&mut reader, line)?;
                let columns = self.map.columns((0..count).map(|index| self.value(index)));
                columns.are_enough().then_some((reader, columns))
            });
            return match self.header {
                Some(_) => Ok(Parsed::Directive),
                None => Err(SkipReason::NoFields),
            };
        };
        let count = self.cut(&mut reader, line);
        self.header = Some((reader, columns));
        let count = count.ok_or(SkipReason::ExtraFields)?;
        let (ends, values) = (&self.ends[..count], &self.values);
        let value = |index: usize| ends.get(index).map(|_| value(values, ends, index));
        let record = Record::of_columns(&columns, value)?;
        record
            .entry(record.time_us(), &mut self.url)
            .map(Parsed::Entry)
    }

    /// Splits a line into values and returns their number, or `None` if there are too many.
    fn cut(&mut self, reader: &mut Reader, line: &[u8]) -> Option<usize> {
        reader.reset();
        // Values have no more bytes than the line with its quotes and separators.
        self.values.resize(line.len().max(1), 0);
        let mut done = (0, 0, 0);
        loop {
            // After the line, the input is empty, which ends the record.
            let (result, read, written, ended) = reader.read_record(
                &line[done.0..],
                &mut self.values[done.1..],
                &mut self.ends[done.2..],
            );
            done = (done.0 + read, done.1 + written, done.2 + ended);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => return Some(done.2),
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => return None,
            }
        }
    }

    fn value(&self, index: usize) -> &[u8] {
        value(&self.values, &self.ends, index)
    }
}

fn value<'v>(values: &'v [u8], ends: &[usize], index: usize) -> &'v [u8] {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    &values[start..ends[index]]
}
