//! `client,DD/Mon/YYYY,HH:MM:SS,url,status,bytes`, without a header; times are in UTC. The URL may contain commas.

use super::date::{DAY_S, SECOND_US, day_month_year, time_of_day};
use super::{Entry, Method, SkipReason, bytes, client, rsplit_once, split_once, status};

pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, SkipReason> {
    let split = |text| split_once(text, b',').ok_or(SkipReason::MissingFields);
    let rsplit = |text| rsplit_once(text, b',').ok_or(SkipReason::MissingFields);
    let (name, rest) = split(line)?;
    let (date, rest) = split(rest)?;
    let (time, rest) = split(rest)?;
    let (rest, size) = rsplit(rest)?;
    let (url, code) = rsplit(rest)?;
    let days = day_month_year(date).ok_or(SkipReason::Time)?;
    let second = time_of_day(time).ok_or(SkipReason::Time)?;
    if url.is_empty() {
        return Err(SkipReason::Request);
    }
    Ok(Entry {
        time_us: (days * DAY_S + second) * SECOND_US,
        client: client(name)?,
        forwarded: false,
        method: Method::Get,
        url,
        status: status(code)?,
        bytes: bytes(size)?,
    })
}
