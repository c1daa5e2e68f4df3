//! `host [DD:HH:MM:SS] "request" status bytes`, the format of EPA's 1995 log. Requests contain quotes and Latin-1 bytes, so the last fields
//! are located from the right.

use super::date::{DAY_S, SECOND_US, time_of_day};
use super::{
    Entry, Forwarded, SkipReason, bytes, client, number, request_line, rsplit_once, split_once,
    status,
};

/// Parser state, which is needed because the format contains only the day of the month.
#[derive(Default)]
pub(in crate::log) struct Epa {
    last_day: u64,
    /// Total days of the months that have ended since the log began.
    months_ended_days: u64,
}

impl Epa {
    pub(super) fn parse<'a>(&mut self, line: &'a [u8]) -> Result<Entry<'a>, SkipReason> {
        let (rest, size) =
            rsplit_once(line.trim_ascii_end(), b' ').ok_or(SkipReason::MissingFields)?;
        let (rest, code) = rsplit_once(rest, b' ').ok_or(SkipReason::MissingFields)?;
        let (bytes, status) = (bytes(size)?, status(code)?);
        let (host, rest) = split_once(rest, b' ').ok_or(SkipReason::MissingFields)?;
        let rest = rest.strip_prefix(b"[").ok_or(SkipReason::Time)?;
        let (time, rest) = split_once(rest, b']').ok_or(SkipReason::Time)?;
        let request = rest
            .trim_ascii()
            .strip_prefix(b"\"")
            .ok_or(SkipReason::Request)?;
        let (method, url) = request_line::parse(request.strip_suffix(b"\"").unwrap_or(request))?;
        let client = client(host)?;
        let time_us = self.time_us(time).ok_or(SkipReason::Time)?;
        Ok(Entry {
            time_us,
            client,
            forwarded: Forwarded::No,
            method,
            url,
            status,
            bytes,
        })
    }

    /// Returns the time since day 0 of the first month. A day far below the previous one starts a new month.
    fn time_us(&mut self, text: &[u8]) -> Option<u64> {
        let (day, time) = split_once(text, b':')?;
        let day = number(day).filter(|day| (1..=31).contains(day))?;
        let second = time_of_day(time)?;
        if day + 20 < self.last_day {
            self.months_ended_days += self.last_day;
        }
        self.last_day = day;
        Some(((self.months_ended_days + day) * DAY_S + second) * SECOND_US)
    }
}
