//! The named fields of a line, and the request that they make.

use super::{Entry, Method, SkipReason, address, bytes, date, request_line, status};
use crate::log::fields::{Columns, Field};

/// The text of each field, where a line has it.
#[derive(Clone, Copy, Default)]
pub(super) struct Record<'a>([Option<&'a [u8]>; Field::ALL.len()]);

impl<'a> Record<'a> {
    /// The fields of a line that is cut into columns.
    pub(super) fn of_columns(
        columns: &Columns,
        text: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Result<Self, SkipReason> {
        let mut record = Self::default();
        for field in Field::ALL {
            if let Some(column) = columns.get(field) {
                record.set(field, text(column).ok_or(SkipReason::MissingFields)?);
            }
        }
        Ok(record)
    }

    pub(super) const fn set(&mut self, field: Field, text: &'a [u8]) {
        self.0[field as usize] = Some(text);
    }

    /// The text of a field; none where it is empty or `-`.
    pub(super) fn get(&self, field: Field) -> Option<&'a [u8]> {
        self.0[field as usize]
            .map(<[u8]>::trim_ascii)
            .filter(|text| !matches!(*text, b"" | b"-"))
    }

    /// The time, from time and date together or from either.
    pub(super) fn time_us(&self) -> Option<u64> {
        let (day, time) = (self.get(Field::Date), self.get(Field::Time));
        match (day, time) {
            (Some(day), Some(time)) => date::any(time).or_else(|| date::day_and_time(day, time)),
            (one, other) => date::any(one.or(other)?),
        }
    }

    /// The request; `joined` is room for a URL that is put together.
    pub(super) fn entry(
        &self,
        time_us: Option<u64>,
        joined: &'a mut Vec<u8>,
    ) -> Result<Entry<'a>, SkipReason> {
        let time_us = time_us.ok_or(SkipReason::Time)?;
        let forwarded = self.get(Field::Forwarded).and_then(address::forwarded);
        let peer = || self.get(Field::Client).map(address::without_port);
        let client = forwarded.or_else(peer).ok_or(SkipReason::Client)?;
        let (method, url) = self.request()?;
        Ok(Entry {
            time_us,
            client,
            forwarded: forwarded.is_some(),
            method,
            url: with_query(url, self.get(Field::Query), joined),
            status: self.get(Field::Status).map_or(Ok(0), status)?,
            bytes: self.get(Field::Bytes).map_or(Ok(None), bytes)?,
        })
    }

    /// Method and URL, from the request line where that is one. Some servers are set up to call the path alone the request.
    fn request(&self) -> Result<(Method, &'a [u8]), SkipReason> {
        let line = self.get(Field::Request);
        if let Some(Ok(found)) = line.map(request_line::parse) {
            return Ok(found);
        }
        let path = line.filter(|line| line.starts_with(b"/") && !line.contains(&b' '));
        let url = self.get(Field::Url).or(path).ok_or(SkipReason::Request)?;
        let method = self.get(Field::Method).map(request_line::method);
        Ok((method.unwrap_or(Ok(Method::Get))?, url))
    }
}

/// The URL with its query, unless that is in it.
fn with_query<'a>(url: &'a [u8], query: Option<&[u8]>, joined: &'a mut Vec<u8>) -> &'a [u8] {
    match query.map(|query| query.strip_prefix(b"?").unwrap_or(query)) {
        Some(query) if !query.is_empty() && !url.contains(&b'?') => {
            joined.clear();
            joined.extend_from_slice(url);
            joined.push(b'?');
            joined.extend_from_slice(query);
            joined
        }
        _ => url,
    }
}
