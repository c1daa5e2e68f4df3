//! The named fields of a line, and their conversion to a request.

use super::{
    Entry, Forwarded, Method, SkipReason, address, bytes, date, request_line, split_once, status,
};
use crate::log::fields::{Columns, Field};

/// Text of each field that the line has.
#[derive(Clone, Copy, Default)]
pub(super) struct Record<'a>([Option<&'a [u8]>; Field::ALL.len()]);

impl<'a> Record<'a> {
    /// Collects the fields of a line that is split into columns.
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

    /// Returns the text of a field, or `None` if it is empty or `-`.
    pub(super) fn get(&self, field: Field) -> Option<&'a [u8]> {
        self.0[field as usize]
            .map(<[u8]>::trim_ascii)
            .filter(|text| !matches!(*text, b"" | b"-"))
    }

    /// Returns the time, from the time and date fields or from one of them.
    pub(super) fn time_us(&self) -> Option<u64> {
        let (day, time) = (self.get(Field::Date), self.get(Field::Time));
        match (day, time) {
            (Some(day), Some(time)) => date::any(time).or_else(|| date::day_and_time(day, time)),
            (one, other) => date::any(one.or(other)?),
        }
    }

    /// Returns the request; `joined` is a buffer for a URL with an appended query.
    pub(super) fn entry(
        &self,
        time_us: Option<u64>,
        joined: &'a mut Vec<u8>,
    ) -> Result<Entry<'a>, SkipReason> {
        let time_us = time_us.ok_or(SkipReason::Time)?;
        let forwarded = self.get(Field::Forwarded).and_then(address::forwarded);
        let peer = || address::client(self.get(Field::Client).ok_or(SkipReason::Client)?);
        let client = forwarded.map_or_else(peer, Ok)?;
        let headers = self.get(Field::Headers).and_then(captured);
        let (method, url) = self.request()?;
        Ok(Entry {
            time_us,
            client,
            forwarded: match forwarded {
                Some(_) => Forwarded::Client,
                None => headers.map_or(Forwarded::No, Forwarded::Perhaps),
            },
            method,
            url: with_query(url, self.get(Field::Query), joined),
            status: self.get(Field::Status).map_or(Ok(0), status)?,
            bytes: self.get(Field::Bytes).map_or(Ok(None), bytes)?,
        })
    }

    /// Returns method and URL, from the request line if it is valid. Some servers are configured to log only the path as the request.
    fn request(&self) -> Result<(Method, &'a [u8]), SkipReason> {
        let line = self.0[Field::Request as usize];
        let found = line.map(request_line::parse);
        if let Some(Ok(found)) = found {
            return Ok(found);
        }
        let path = line.filter(|line| line.starts_with(b"/") && !line.contains(&b' '));
        let none = || found.and_then(Result::err).unwrap_or(SkipReason::Request);
        let url = self.get(Field::Url).or(path).ok_or_else(none)?;
        // Squid also logs connections without a request.
        if url.starts_with(b"error:") {
            return Err(SkipReason::NoRequest);
        }
        let method = self.get(Field::Method).map(request_line::method);
        Ok((method.unwrap_or(Ok(Method::Get))?, url))
    }
}

/// Returns the values of the first block of captured headers: `one|two` of `{one|two} {three}`.
fn captured(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = split_once(text, b'{')?;
    split_once(rest, b'}').map(|(values, _)| values)
}

/// Appends the query to the URL, unless the URL already has one.
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
