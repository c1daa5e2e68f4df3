//! `host logname time method url response bytes`, separated by tabs, with a header; the time is in Unix seconds.

use super::date::SECOND_US;
use super::{
    Entry, Forwarded, Parsed, SkipReason, bytes, client, number, request_line, status, take,
};

const HEADER: &[u8] = b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes";

pub(super) fn parse(line: &[u8]) -> Result<Parsed<'_>, SkipReason> {
    if line == HEADER {
        return Ok(Parsed::Directive);
    }
    let mut fields = line.split(|&c| c == b'\t');
    let [host, _logname, time, method, url, code, size] = take(&mut fields)?;
    // This limit is far beyond the year 9999, and microseconds cannot overflow below it.
    let time_s = number(time)
        .filter(|&s| s < 1 << 40)
        .ok_or(SkipReason::Time)?;
    if url.is_empty() {
        return Err(SkipReason::Request);
    }
    Ok(Parsed::Entry(Entry {
        time_us: time_s * SECOND_US,
        client: client(host)?,
        forwarded: Forwarded::No,
        method: request_line::method(method)?,
        url,
        status: status(code)?,
        bytes: bytes(size)?,
    }))
}
