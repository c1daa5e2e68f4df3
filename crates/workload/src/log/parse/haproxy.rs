//! HAProxy's HTTP log format, after an optional syslog prefix: `client:port [time] frontend backend/server timers status bytes cookie
//! cookie state connections queues {request headers} {response headers} "request"`. The bytes are those sent to the client, including
//! headers; times are local.

use super::{
    Entry, SkipReason, address, bytes, date, request_line, rsplit_once, split_once, status,
};

/// Fields between the date and the captured headers.
const FIELDS: usize = 10;

pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, SkipReason> {
    let (name, time_us, rest) = client_and_time(line)?;
    let (fields, rest) = fields(rest)?;
    let [_frontend, backend, _timers, code, size, ..] = fields;
    split_once(backend, b'/').ok_or(SkipReason::MissingFields)?;
    // A `+` means that the line was written when the response began (option logasap).
    let size = size.strip_prefix(b"+").unwrap_or(size);
    let (headers, request) = split_once(rest, b'"').ok_or(SkipReason::Request)?;
    let (request, _) = split_once(request, b'"').ok_or(SkipReason::Request)?;
    let (method, url) = request_line::parse(request)?;
    let forwarded = captured(headers).find_map(address::forwarded);
    Ok(Entry {
        time_us,
        client: forwarded.unwrap_or(name),
        forwarded: forwarded.is_some(),
        method,
        url,
        status: status(code)?,
        bytes: bytes(size)?,
    })
}

/// Finds the client before a date in brackets; the syslog prefix may contain brackets, too.
fn client_and_time(line: &[u8]) -> Result<(&[u8], u64, &[u8]), SkipReason> {
    for open in memchr::memchr_iter(b'[', line) {
        let Some((time, rest)) = split_once(&line[open + 1..], b']') else {
            break;
        };
        if let Some(time_us) = date::clf(time) {
            let before = line[..open].trim_ascii_end();
            let (_, name) = rsplit_once(before, b' ').unwrap_or((b"", before));
            // The port follows the last colon; IPv6 addresses have no brackets.
            let (name, _port) = rsplit_once(name, b':').ok_or(SkipReason::Client)?;
            let name = name.strip_prefix(b"[").unwrap_or(name);
            let name = name.strip_suffix(b"]").unwrap_or(name);
            let client = super::client(name)?;
            return Ok((client, time_us, rest));
        }
    }
    Err(SkipReason::Time)
}

/// Splits off the fixed number of fields, and returns them with the rest.
fn fields(mut rest: &[u8]) -> Result<([&[u8]; FIELDS], &[u8]), SkipReason> {
    let mut fields: [&[u8]; FIELDS] = [b""; FIELDS];
    for field in &mut fields {
        rest = rest.trim_ascii_start();
        let end = memchr::memchr(b' ', rest).ok_or(SkipReason::MissingFields)?;
        (*field, rest) = rest.split_at(end);
    }
    Ok((fields, rest))
}

/// Returns the captured request headers: `{one|two}`. The line does not name them; a header that is an address is taken as X-Forwarded-For.
fn captured(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let block = split_once(text, b'{').and_then(|(_, rest)| split_once(rest, b'}'));
    let headers = block.map_or(&[][..], |(headers, _)| headers);
    headers.split(|&c| c == b'|')
}
