//! Common Log Format, `host ident user [time] "request" status bytes`, and Combined, which appends ` "referer" "agent"`; both may follow
//! the name of a virtual host.

use super::{
    Entry, SkipReason, address, bytes, client, date, request_line, rsplit_once, split_once, status,
};

/// Fields that may follow the size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// None: Common.
    None,
    /// Any: Combined, and further fields that servers append.
    Any,
}

pub(super) fn parse(line: &[u8], tail: Tail) -> Result<Entry<'_>, SkipReason> {
    let (host, rest) = split_once(line, b' ').ok_or(SkipReason::MissingFields)?;
    // `ident user` has no fixed number of words: user names may contain spaces.
    let (names, rest) = split_once(rest, b'[').ok_or(SkipReason::Time)?;
    if names.trim_ascii().is_empty() {
        return Err(SkipReason::MissingFields);
    }
    let (time, rest) = split_once(rest, b']').ok_or(SkipReason::Time)?;
    let time_us = date::clf(time).ok_or(SkipReason::Time)?;
    let (_, rest) = split_once(rest, b'"').ok_or(SkipReason::Request)?;
    let end = closing_quote(rest).ok_or(SkipReason::Request)?;
    let (method, url) = request_line::parse(&rest[..end])?;
    let (code, rest) = word(&rest[end + 1..])?;
    let (size, rest) = word(rest)?;
    let (status, bytes) = (status(code)?, bytes(size)?);
    if tail == Tail::None && !rest.trim_ascii().is_empty() {
        return Err(SkipReason::ExtraFields);
    }
    let forwarded = forwarded(host, rest);
    Ok(Entry {
        time_us,
        client: match forwarded {
            Some(first) => first,
            None => address::without_port(client(host)?),
        },
        forwarded: forwarded.is_some(),
        method,
        url,
        status,
        bytes,
    })
}

/// Parses a line that starts with the virtual host, with or without its port. Without a port, an address must follow.
pub(super) fn parse_behind_host(line: &[u8]) -> Result<Entry<'_>, SkipReason> {
    let (server, rest) = split_once(line, b' ').ok_or(SkipReason::MissingFields)?;
    let (client, names) = split_once(rest, b' ').ok_or(SkipReason::MissingFields)?;
    // Addresses separated by commas are X-Forwarded-For.
    let is_host = !server.ends_with(b",") && (has_port(server) || address::is_address(client));
    let (names, _) = split_once(names, b'[').ok_or(SkipReason::Time)?;
    let has_ident_and_user = names.trim_ascii().contains(&b' ');
    if is_host && client != b"-" && has_ident_and_user {
        parse(rest, Tail::Any)
    } else {
        Err(SkipReason::MissingFields)
    }
}

/// Returns whether a port follows a name or an address; an IPv6 address with a port must be in brackets.
fn has_port(server: &[u8]) -> bool {
    rsplit_once(server, b':').is_some_and(|(name, port)| {
        let bracketed = name.starts_with(b"[") && name.ends_with(b"]");
        super::number(port).is_some() && (bracketed || !name.contains(&b':'))
    })
}

/// Returns the next word, and the text after it.
fn word(rest: &[u8]) -> Result<(&[u8], &[u8]), SkipReason> {
    let rest = rest.trim_ascii_start();
    if rest.is_empty() {
        return Err(SkipReason::MissingFields);
    }
    Ok(rest.split_at(memchr::memchr(b' ', rest).unwrap_or(rest.len())))
}

/// Returns the client from X-Forwarded-For, if that is logged: in place of the host, which then ends with a comma unless it is one address,
/// or in quotes after referer and agent.
fn forwarded<'a>(host: &'a [u8], tail: &'a [u8]) -> Option<&'a [u8]> {
    if host.ends_with(b",") {
        return address::forwarded(host);
    }
    let mut rest = tail;
    let mut quoted = b"".as_slice();
    for _ in 0..3 {
        (quoted, rest) = next_quoted(rest)?;
    }
    address::forwarded(quoted)
}

/// Returns the next quoted text, and the text after it.
fn next_quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        from = (at + 2).min(text.len());
    }
}

/// Returns the position of the quote that ends the request: the first one that a status follows, otherwise the first one. Requests may
/// contain quotes, which not every server escapes.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let before_status = |&at: &usize| {
        matches!(text.get(at + 1..at + 6), Some([b' ', a, b, c, b' '])
            if a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit())
    };
    memchr::memchr_iter(b'"', text)
        .find(before_status)
        .or_else(|| memchr::memchr(b'"', text))
}
