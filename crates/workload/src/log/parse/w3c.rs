//! W3C extended log file format (W3C working draft WD-logfile-960323), as written by IIS and content networks.
//!
//! `#Fields` names the columns, which are separated by spaces or tabs. A quote in a quoted field is doubled. Times are UTC, or local where the
//! log has only those. `sc-bytes` counts the bytes that the server sent,
//! for some servers (such as CloudFront) including headers; a replay uses this value.

use super::date::{DAY_S, SECOND_US, time_of_day_us, year_month_day};
use super::record::Record;
use super::{Entry, Parsed, SkipReason, split_once};
use crate::log::fields::{Columns, Field, FieldMap};

/// Number of columns that are read; further ones are ignored.
const MAX_COLUMNS: usize = 64;

/// Parser state: the latest `#Fields` and `#Date`.
#[derive(Default)]
pub(in crate::log) struct W3c {
    columns: Columns,
    /// Days since 1970 of the latest `#Date`, for logs without a date column.
    day: Option<u64>,
    /// The time of the last line that has no date, microseconds.
    last_us: u64,
    /// Buffer for the stem with the query.
    url: Vec<u8>,
    /// Whether any `#Fields` had no size column.
    sizes_missing: bool,
}

impl W3c {
    pub(super) const fn has_sizes(&self) -> bool {
        !self.sizes_missing
    }

    pub(super) fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, SkipReason> {
        match line.strip_prefix(b"#") {
            Some(directive) => self.directive(directive),
            None => self.entry(line).map(Parsed::Entry),
        }
    }

    fn directive(&mut self, text: &[u8]) -> Result<Parsed<'static>, SkipReason> {
        // A line `#...` without a colon is not a directive; other formats also have comments.
        let (name, value) = split_once(text, b':').ok_or(SkipReason::NoFields)?;
        match name.to_ascii_lowercase().as_slice() {
            b"fields" => {
                let has = |name: &[u8]| words(value).any(|word| word == name);
                // Universal time, if the log has it as well as local time.
                let map = match has(b"time") {
                    true => FieldMap::parse("time=time,date=date"),
                    false => Ok(FieldMap::default()),
                };
                let map = map.map_err(|_| SkipReason::NoFields)?;
                self.columns = map.columns(words(value).take(MAX_COLUMNS));
                self.sizes_missing |= self.columns.get(Field::Bytes).is_none();
            }
            b"date" => {
                self.day = words(value).next().and_then(year_month_day);
                self.last_us = 0;
            }
            b"version" | b"software" | b"start-date" | b"end-date" | b"remark" => {}
            _ => return Err(SkipReason::NoFields),
        }
        Ok(Parsed::Directive)
    }

    fn entry<'a>(&'a mut self, line: &'a [u8]) -> Result<Entry<'a>, SkipReason> {
        let columns = self.columns;
        if columns.get(Field::Time).is_none() || !columns.are_enough() {
            return Err(SkipReason::NoFields);
        }
        let mut fields: [&[u8]; MAX_COLUMNS] = [b""; MAX_COLUMNS];
        let count = if line.contains(&b'\t') {
            fill(&mut fields, line.split(|&c| c == b'\t'))
        } else {
            fill(&mut fields, words(line))
        };
        let fields = &fields[..count];
        let record = Record::of_columns(&columns, |column| fields.get(column).copied())?;
        let time = record.get(Field::Time).and_then(time_of_day_us);
        let day = match record.get(Field::Date) {
            Some(date) => year_month_day(date),
            None => {
                self.pass_midnight(time);
                self.day
            }
        };
        let time_us = day
            .zip(time)
            .map(|(day, time)| day * (DAY_S * SECOND_US) + time);
        record.entry(time_us, &mut self.url)
    }
}

impl W3c {
    /// Begins the next day if a line without a date has a time of day far below that of the line before.
    fn pass_midnight(&mut self, time_us: Option<u64>) {
        let Some(time_us) = time_us else { return };
        if time_us + DAY_S * SECOND_US / 2 < self.last_us {
            self.day = self.day.map(|day| day + 1);
        }
        self.last_us = time_us;
    }
}

/// Fills `places` with fields and returns their number.
fn fill<'a>(places: &mut [&'a [u8]], fields: impl Iterator<Item = &'a [u8]>) -> usize {
    let placed = places
        .iter_mut()
        .zip(fields)
        .map(|(place, field)| *place = field);
    placed.count()
}

/// Splits at spaces or tabs; fields in double quotes may contain spaces.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text.trim_ascii();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let (&first, after) = rest.split_first()?;
        let (word, left) = if first == b'"' {
            after.split_at(closing_quote(after))
        } else {
            let end = memchr::memchr2(b' ', b'\t', rest).unwrap_or(rest.len());
            rest.split_at(end)
        };
        rest = left.strip_prefix(b"\"").unwrap_or(left);
        Some(word)
    })
}

/// Returns the position of the first quote that is not doubled, or the end of the text.
fn closing_quote(text: &[u8]) -> usize {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'"', &text[from..]) {
        match text.get(from + at + 1) {
            Some(b'"') => from += at + 2,
            _ => return from + at,
        }
    }
    text.len()
}
