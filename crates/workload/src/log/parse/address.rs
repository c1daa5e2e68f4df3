//! Client addresses, alone and in X-Forwarded-For.

use super::{SkipReason, number, rsplit_once, split_once};
use std::net::IpAddr;

/// Removes the port after an address: `10.0.0.1:4711`, `[2001:db8::1]:4711`. Other text is returned unchanged.
pub(in crate::log) fn without_port(text: &[u8]) -> &[u8] {
    if !text.contains(&b':') || is_address(text) {
        return text;
    }
    let host = match text.strip_prefix(b"[") {
        Some(rest) => rest.split(|&c| c == b']').next(),
        None => rsplit_once(text, b':').map(|(host, _)| host),
    };
    host.filter(|host| is_address(host)).unwrap_or(text)
}

/// Returns the client in a field, without its port: an address, or a name that a host or a user may have.
///
/// # Errors
/// The text is neither: for example a time, a word in brackets or a program's tag.
pub(in crate::log) fn client(text: &[u8]) -> Result<&[u8], SkipReason> {
    let usual = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-');
    if text.len() > 1 && text.iter().all(usual) {
        return Ok(text);
    }
    let text = without_port(text);
    let in_name = |c: &u8| !c.is_ascii_whitespace() && !b"[](){}<>\"'|=,;:".contains(c);
    // nginx logs `unix:` for clients on local sockets. Resolved names with a port are rare, but exist.
    let name = match split_once(text, b':') {
        Some((name, port)) if number(port).is_some() && number(name).is_none() => name,
        _ => text,
    };
    let is_client = text == b"unix:"
        || is_address(text)
        || !matches!(name, b"" | b"-") && name.iter().all(in_name);
    is_client.then_some(text).ok_or(SkipReason::Client)
}

/// Returns the first address of X-Forwarded-For, which is the client that the first proxy saw; `None` if there is no address, as in `-` and
/// `unknown`.
pub(in crate::log) fn forwarded(text: &[u8]) -> Option<&[u8]> {
    let first = text.split(|&c| c == b',').next()?;
    let address = without_port(first.trim_ascii());
    is_address(address).then_some(address)
}

/// Returns whether the text is an IPv4 or IPv6 address.
pub(in crate::log) fn is_address(text: &[u8]) -> bool {
    str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ports_are_removed_from_addresses() {
        let cases = [
            ("10.0.0.1:4711", "10.0.0.1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::1", "::1"),
            ("host:80", "host:80"),
            ("unix:", "unix:"),
            ("", ""),
        ];
        for (text, expected) in cases {
            let found = without_port(text.as_bytes());
            assert_eq!(found, expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn clients_are_addresses_or_names() {
        let good = [
            "10.0.0.1",
            "fe80::1",
            "a-b_c.example",
            "1044",
            "host:80",
            "unix:",
        ];
        for text in good {
            assert_eq!(client(text.as_bytes()), Ok(text.as_bytes()), "{text}");
        }
        let bad = [
            "",
            "-",
            "nginx:",
            "[pod/web/nginx]",
            "{\"log\":\"10.0.0.1",
            "10:00:00",
            "2024-03-12T10:00:00Z",
            "<134>1",
            "|",
        ];
        for text in bad {
            assert_eq!(client(text.as_bytes()), Err(SkipReason::Client), "{text}");
        }
    }

    #[test]
    fn the_first_address_is_the_client() {
        assert_eq!(forwarded(b"203.0.113.9"), Some(&b"203.0.113.9"[..]));
        assert_eq!(
            forwarded(b"2001:db8::2, 10.0.0.1"),
            Some(&b"2001:db8::2"[..])
        );
        assert_eq!(
            forwarded(b" 203.0.113.9:55,10.0.0.1"),
            Some(&b"203.0.113.9"[..])
        );
        for text in ["-", "", "unknown, 10.0.0.1", "Mozilla/5.0"] {
            assert_eq!(forwarded(text.as_bytes()), None, "{text}");
        }
    }
}
