//! Common Log Format, `host ident user [time] "request" status bytes`, and Combined, which appends ` "referer" "agent"`; both may follow
//! the name of a virtual host.

use super::{
    Entry, Forwarded, SkipReason, address, bytes, date, request_line, rsplit_once, split_once,
    status,
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
    let (names, rest) = split_once(rest, b'[').ok_or(SkipReason::Time)?;
    let names = behind_proxies(host, names);
    if names.trim_ascii().is_empty() {
        return Err(SkipReason::MissingFields);
    }
    let (time, rest) = split_once(rest, b']').ok_or(SkipReason::Time)?;
    let time_us = date::clf(time).ok_or(SkipReason::Time)?;
    // A list of X-Forwarded-For in place of the host has a comma after each address but the last.
    let list = host
        .ends_with(b",")
        .then(|| address::forwarded(host))
        .flatten();
    let client = list.map_or_else(|| address::client(host), Ok)?;
    if !are_ident_and_user(client, names) {
        return Err(SkipReason::Client);
    }
    let (_, rest) = split_once(rest, b'"').ok_or(SkipReason::Request)?;
    let end = closing_quote(rest).ok_or(SkipReason::Request)?;
    let (method, url) = request_line::parse(&rest[..end])?;
    let (code, rest) = word(&rest[end + 1..])?;
    let (size, rest) = word(rest)?;
    let (status, bytes) = (status(code)?, bytes(size)?);
    if tail == Tail::None && !rest.trim_ascii().is_empty() {
        return Err(SkipReason::ExtraFields);
    }
    Ok(Entry {
        time_us,
        client,
        forwarded: match list {
            Some(_) => Forwarded::Client,
            None => {
                let other = behind_agent(rest).or_else(|| address_of(names));
                other.map_or(Forwarded::No, Forwarded::Perhaps)
            }
        },
        method,
        url,
        status,
        bytes,
    })
}

/// Returns the text after the host and the addresses that follow it, if the host begins a list of X-Forwarded-For.
fn behind_proxies<'a>(host: &[u8], names: &'a [u8]) -> &'a [u8] {
    let (mut more, mut names) = (host.ends_with(b","), names);
    while more {
        let (next, rest) = split_once(names, b' ').unwrap_or((names, b""));
        (more, names) = (next.ends_with(b","), rest);
    }
    names
}

/// Returns the ident if it is an address: then the host or the ident may be the client.
fn address_of(names: &[u8]) -> Option<&[u8]> {
    let (ident, _) = split_once(names, b' ')?;
    address::is_address(ident).then_some(ident)
}

/// Returns whether the text between client and time is `ident user`. A user may have blanks, in quotes or after an ident of `-`. An address
/// after anything else, or another `-` after a user, means that the line begins with other text.
fn are_ident_and_user(client: &[u8], names: &[u8]) -> bool {
    let names = names.trim_ascii();
    if names == b"- -" {
        return true;
    }
    let Some((ident, user)) = split_once(names, b' ') else {
        return names == b"-";
    };
    let user = user.trim_ascii();
    let mut words = user.split(|&c| c == b' ');
    let is_quoted = user.len() > 1 && user.starts_with(b"\"") && user.ends_with(b"\"");
    if is_quoted || !user.contains(&b' ') {
        let addressed = address::is_address(ident) || address::is_address(user);
        return !addressed || address::is_address(client);
    }
    ident == b"-"
        && !user.ends_with(b" -")
        && !words.any(|word| address::is_address(address::without_port(word)))
}

/// Parses a line that starts with the virtual host, with or without its port. Without a port, an address must follow.
pub(super) fn parse_behind_host(line: &[u8]) -> Result<Entry<'_>, SkipReason> {
    let (server, rest) = split_once(line, b' ').ok_or(SkipReason::MissingFields)?;
    let (client, names) = split_once(rest, b' ').ok_or(SkipReason::MissingFields)?;
    // Addresses separated by commas are X-Forwarded-For.
    let is_host = !server.ends_with(b",") && (has_port(server) || address::is_address(client));
    let (names, _) = split_once(names, b'[').ok_or(SkipReason::Time)?;
    let has_ident_and_user = names.trim_ascii().contains(&b' ');
    if !is_host || client == b"-" || !has_ident_and_user || !may_be_host(server) {
        return Err(SkipReason::MissingFields);
    }
    let entry = parse(rest, Tail::Any)?;
    Ok(match address::is_address(server) {
        // The virtual host is an address, so it may also be X-Forwarded-For.
        true => Entry {
            forwarded: Forwarded::Perhaps(server),
            ..entry
        },
        false => entry,
    })
}

/// Returns whether the text, with or without a port, may name a host: it has a letter, or is an address.
fn may_be_host(server: &[u8]) -> bool {
    let name = match rsplit_once(server, b':') {
        Some((name, _)) if has_port(server) => name,
        _ => server,
    };
    let in_name = |c: &u8| c.is_ascii_alphanumeric() || b".-_".contains(c) || !c.is_ascii();
    let is_number = name.iter().all(|c| b".0123456789".contains(c));
    let named = name.iter().all(in_name) && !is_number;
    named || address::is_address(address::without_port(server))
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

/// Returns the address in quotes after referer and agent, which is X-Forwarded-For in nginx's `main`.
fn behind_agent(tail: &[u8]) -> Option<&[u8]> {
    let mut rest = tail;
    let mut quoted = b"".as_slice();
    for _ in 0..3 {
        (quoted, rest) = next_quoted(rest)?;
    }
    address::forwarded(quoted).map(|_| quoted)
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

/// Returns the position of the quote that ends the request: the first one that status and size follow, and then nothing or another quote;
/// otherwise the first one that a status follows, or the first one. Servers write a quote within a request as `\"` or `\x22`; a backslash
/// escapes, too. Old ones write it as it is.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let before_status = |&at: &usize| {
        matches!(text.get(at + 1..at + 6), Some([b' ', a, b, c, b' '])
            if a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit())
    };
    let before_size = |&at: &usize| {
        let size = word(text.get(at + 6..).unwrap_or_default());
        size.is_ok_and(|(size, rest)| bytes(size).is_ok() && matches!(rest, [] | [b' ', b'"', ..]))
    };
    let escaped = |at: usize| {
        let backslashes = text[..at].iter().rev().take_while(|&&c| c == b'\\');
        backslashes.count() % 2 == 1
    };
    let quotes = || memchr::memchr_iter(b'"', text);
    let whole = || quotes().filter(|&at| !escaped(at));
    // Most requests have no quote.
    let first = quotes().next()?;
    if !escaped(first) && before_status(&first) && before_size(&first) {
        return Some(first);
    }
    whole()
        .find(|at| before_status(at) && before_size(at))
        .or_else(|| whole().find(before_status))
        .or_else(|| whole().next())
        .or_else(|| quotes().find(before_status))
}
