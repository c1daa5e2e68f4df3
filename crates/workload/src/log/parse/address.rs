//! Client addresses, alone and in X-Forwarded-For.

use super::rsplit_once;
use std::net::IpAddr;

/// Removes the port after an address: `10.0.0.1:4711`, `[2001:db8::1]:4711`. Other text is returned unchanged.
pub(super) fn without_port(text: &[u8]) -> &[u8] {
    if !text.contains(&b':') || is_address(text) {
        return text;
    }
    let host = match text.strip_prefix(b"[") {
        Some(rest) => rest.split(|&c| c == b']').next(),
        None => rsplit_once(text, b':').map(|(host, _)| host),
    };
    host.filter(|host| is_address(host)).unwrap_or(text)
}

/// Returns the first address of X-Forwarded-For, which is the client that the first proxy saw; `None` if there is no address, as in `-` and
/// `unknown`.
pub(super) fn forwarded(text: &[u8]) -> Option<&[u8]> {
    let first = text.split(|&c| c == b',').next()?;
    let address = without_port(first.trim_ascii());
    is_address(address).then_some(address)
}

/// Returns whether the text is an IPv4 or IPv6 address.
pub(super) fn is_address(text: &[u8]) -> bool {
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
