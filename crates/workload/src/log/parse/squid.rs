//! Squid's native format: `time elapsed client code/status bytes method URL user hierarchy/host type`, with the time in Unix seconds with
//! milliseconds. The bytes are those sent to the client, including headers.

use super::{
    Entry, SkipReason, address, bytes, client, date, request_line, split_once, status, take,
};

pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, SkipReason> {
    let mut words = line.split(|&c| c == b' ').filter(|word| !word.is_empty());
    let [
        time,
        elapsed,
        host,
        code,
        size,
        method,
        url,
        _user,
        hierarchy,
    ] = take(&mut words)?;
    // Squid's lines always have a slash in the hierarchy.
    let (_, code) = split_once(code, b'/').ok_or(SkipReason::Status)?;
    split_once(hierarchy, b'/').ok_or(SkipReason::MissingFields)?;
    let time_us = date::unix(time).ok_or(SkipReason::Time)?;
    // The elapsed time is negative if the clock was set back.
    let digits = elapsed.strip_prefix(b"-").unwrap_or(elapsed);
    super::number(digits).ok_or(SkipReason::Time)?;
    let status = status(code)?;
    let bytes = bytes(size)?;
    // Squid also logs connections without a request.
    if url.starts_with(b"error:") {
        return Err(SkipReason::Request);
    }
    Ok(Entry {
        time_us,
        client: address::without_port(client(host)?),
        forwarded: false,
        method: request_line::method(method)?,
        url,
        status,
        bytes,
    })
}
