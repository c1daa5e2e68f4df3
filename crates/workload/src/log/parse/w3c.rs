//! W3C extended log file format (W3C working draft WD-logfile-960323), as written by IIS and content networks.
//!
//! `#Fields` names the columns, separated by spaces or tabs. Times are UTC. `sc-bytes` counts what the server sent,
//! with some servers including headers: that is what is replayed.

use super::date::{DAY_S, SECOND_US, time_of_day, year_month_day};
use super::{Entry, Method, Parsed, SkipReason, bytes, client, request_line, split_once, status};

/// Most columns looked at.
const MAX_COLUMNS: usize = 64;

/// Which column holds what.
#[derive(Clone, Copy, Default)]
struct Columns {
    date: Option<usize>,
    time: Option<usize>,
    client: Option<usize>,
    method: Option<usize>,
    stem: Option<usize>,
    query: Option<usize>,
    status: Option<usize>,
    bytes: Option<usize>,
}

/// What the parser remembers: the latest `#Fields` and `#Date`.
#[derive(Default)]
pub(in crate::log) struct W3c {
    columns: Columns,
    /// Days since 1970 of the latest `#Date`, for logs without a date column.
    day: Option<u64>,
    /// Stem and query joined.
    url: Vec<u8>,
    /// Some `#Fields` had no size column.
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
        // A line `#...` without a colon is no directive; other formats have comments too.
        let (name, value) = split_once(text, b':').ok_or(SkipReason::NoFields)?;
        match name.to_ascii_lowercase().as_slice() {
            b"fields" => {
                self.columns = Columns::named_by(value);
                self.sizes_missing |= self.columns.bytes.is_none();
            }
            b"date" => self.day = words(value).next().and_then(year_month_day),
            b"version" | b"software" | b"start-date" | b"end-date" | b"remark" => {}
            _ => return Err(SkipReason::NoFields),
        }
        Ok(Parsed::Directive)
    }

    fn entry<'a>(&'a mut self, line: &'a [u8]) -> Result<Entry<'a>, SkipReason> {
        let columns = self.columns;
        let (Some(time), Some(name), Some(stem)) = (columns.time, columns.client, columns.stem)
        else {
            return Err(SkipReason::NoFields);
        };
        let mut fields: [&[u8]; MAX_COLUMNS] = [b""; MAX_COLUMNS];
        let mut count = 0;
        for (slot, word) in fields.iter_mut().zip(words(line)) {
            *slot = word;
            count += 1;
        }
        let fields = &fields[..count];
        let get = |column: usize| fields.get(column).copied().ok_or(SkipReason::MissingFields);
        let optional = |column: Option<usize>| column.map(get).transpose();

        let day = match optional(columns.date)? {
            Some(date) => year_month_day(date),
            None => self.day,
        };
        let time_us = time_us(day, get(time)?).ok_or(SkipReason::Time)?;
        let method = match optional(columns.method)? {
            Some(token) => request_line::method(token)?,
            None => Method::Get,
        };
        let status = optional(columns.status)?.map_or(Ok(0), status)?;
        let bytes = optional(columns.bytes)?.map_or(Ok(None), bytes)?;
        let client = client(get(name)?)?;
        let stem = get(stem)?;
        let url = match optional(columns.query)? {
            Some(query) if !matches!(query, b"-" | b"") => {
                self.url.clear();
                self.url.extend_from_slice(stem);
                self.url.push(b'?');
                self.url.extend_from_slice(query);
                &self.url
            }
            _ => stem,
        };
        Ok(Entry {
            time_us,
            client,
            method,
            url,
            status,
            bytes,
        })
    }
}

impl Columns {
    fn named_by(value: &[u8]) -> Self {
        let mut columns = Self::default();
        for (index, name) in words(value).take(MAX_COLUMNS).enumerate() {
            let column = match name {
                b"date" => &mut columns.date,
                b"time" => &mut columns.time,
                b"c-ip" | b"c-dns" => &mut columns.client,
                b"cs-method" => &mut columns.method,
                b"cs-uri" | b"cs-uri-stem" => &mut columns.stem,
                b"cs-uri-query" => &mut columns.query,
                b"sc-status" => &mut columns.status,
                b"sc-bytes" | b"bytes" => &mut columns.bytes,
                _ => continue,
            };
            column.get_or_insert(index);
        }
        columns
    }
}

/// `HH:MM:SS` or `HH:MM:SS.fff` on a day, in microseconds.
fn time_us(day: Option<u64>, text: &[u8]) -> Option<u64> {
    let (whole, fraction) = split_once(text, b'.').unwrap_or((text, b""));
    let mut fraction_us = 0;
    let mut place = SECOND_US / 10;
    for &c in fraction {
        if !c.is_ascii_digit() {
            return None;
        }
        fraction_us += u64::from(c - b'0') * place;
        place /= 10;
    }
    Some((day? * DAY_S + time_of_day(whole)?) * SECOND_US + fraction_us)
}

/// Fields between spaces or tabs; one in double quotes may hold spaces.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text.trim_ascii();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let (&first, after) = rest.split_first()?;
        let (word, left) = if first == b'"' {
            split_once(after, b'"').unwrap_or((after, b""))
        } else {
            let end = memchr::memchr2(b' ', b'\t', rest).unwrap_or(rest.len());
            rest.split_at(end)
        };
        rest = left;
        Some(word)
    })
}
