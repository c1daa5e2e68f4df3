//! Common Log Format, `host ident user [time] "request" status bytes`, and Combined, which appends
//! ` "referer" "agent"`.

use super::{Entry, SkipReason, bytes, client, date, request_line, split_once, status};

/// What may follow the size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing: Common.
    None,
    /// Anything: Combined, and what servers append to it.
    Any,
}

pub(super) fn parse(line: &[u8], tail: Tail) -> Result<Entry<'_>, SkipReason> {
    let (host, rest) = split_once(line, b' ').ok_or(SkipReason::MissingFields)?;
    // `ident user` has no fixed number of words: user names may hold spaces.
    let (names, rest) = split_once(rest, b'[').ok_or(SkipReason::Time)?;
    if names.trim_ascii().is_empty() {
        return Err(SkipReason::MissingFields);
    }
    let (time, rest) = split_once(rest, b']').ok_or(SkipReason::Time)?;
    let time_us = date::clf(time).ok_or(SkipReason::Time)?;
    let (_, rest) = split_once(rest, b'"').ok_or(SkipReason::Request)?;
    let end = closing_quote(rest).ok_or(SkipReason::Request)?;
    let (method, url) = request_line::parse(&rest[..end])?;
    let mut fields = rest[end + 1..]
        .split(|&c| c == b' ')
        .filter(|f| !f.is_empty());
    let status = status(fields.next().ok_or(SkipReason::MissingFields)?)?;
    let bytes = bytes(fields.next().ok_or(SkipReason::MissingFields)?)?;
    if tail == Tail::None && fields.next().is_some() {
        return Err(SkipReason::ExtraFields);
    }
    Ok(Entry {
        time_us,
        client: client(host)?,
        method,
        url,
        status,
        bytes,
    })
}

/// Where the request ends: at a quote that a status follows, or else at the first quote. Requests may hold quotes
/// themselves, which not every server escapes.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let before_status = |&at: &usize| {
        matches!(text.get(at + 1..at + 6), Some([b' ', a, b, c, b' '])
            if a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit())
    };
    memchr::memchr_iter(b'"', text)
        .find(before_status)
        .or_else(|| memchr::memchr(b'"', text))
}
