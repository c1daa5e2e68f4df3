//! `client: Tue Aug 22 00:00:04 1995 (/path): action: request`, without status and size.

use super::date::{DAY_S, SECOND_US, days_since_1970, month_number, time_of_day};
use super::{Entry, Forwarded, Method, SkipReason, client, number, request_line, split_once};

pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, SkipReason> {
    let at = memchr::memmem::find(line, b": ").ok_or(SkipReason::MissingFields)?;
    let (name, rest) = (&line[..at], &line[at + 2..]);
    let (time, rest) = split_once(rest, b'(').ok_or(SkipReason::MissingFields)?;
    let time_us = time_us(time).ok_or(SkipReason::Time)?;
    let end = memchr::memmem::find(rest, b"): ").ok_or(SkipReason::Request)?;
    let (path, action) = (&rest[..end], &rest[end + 3..]);
    if path.is_empty() {
        return Err(SkipReason::Request);
    }
    Ok(Entry {
        time_us,
        client: client(name)?,
        forwarded: Forwarded::No,
        method: method(action),
        url: path,
        status: 0,
        bytes: None,
    })
}

/// Returns the method of the request at the end of an action, GET if there is none.
fn method(action: &[u8]) -> Method {
    let request = memchr::memmem::rfind(action, b": ").map_or(action, |at| &action[at + 2..]);
    match request_line::parse(request) {
        Ok((method @ (Method::Head | Method::Post), _)) => method,
        _ => Method::Get,
    }
}

/// Converts `Tue Aug 22 00:00:04 1995 ` to microseconds; the zone is not logged.
fn time_us(text: &[u8]) -> Option<u64> {
    let mut words = text.split(|&c| c == b' ').filter(|w| !w.is_empty());
    let _weekday = words.next()?;
    let month = month_number(words.next()?)?;
    let day = number(words.next()?)?;
    let second = time_of_day(words.next()?)?;
    let year = number(words.next()?)?;
    Some((days_since_1970(year, month, day)? * DAY_S + second) * SECOND_US)
}
