//! The request line in the Common Log Format and similar formats.

use super::{Method, SkipReason, split_once};

/// Converts `GET /a b HTTP/1.0` to GET and `/a b`. Clients have always sent URLs with spaces, so everything between the method and the
/// protocol is the URL. `GET /a` is HTTP/0.9 (RFC 1945 section 5).
pub(in crate::log) fn parse(request: &[u8]) -> Result<(Method, &[u8]), SkipReason> {
    let request = request.trim_ascii();
    if matches!(request, b"" | b"-" | b"<BADREQ>" | b"- - -") {
        return Err(SkipReason::NoRequest);
    }
    let (token, rest) = split_once(request, b' ').ok_or(SkipReason::Request)?;
    let url = without_protocol(rest).trim_ascii();
    if url.is_empty() {
        return Err(SkipReason::Request);
    }
    Ok((method(token)?, url))
}

/// Returns the method with this name, ignoring case.
pub(in crate::log) fn method(token: &[u8]) -> Result<Method, SkipReason> {
    if token.eq_ignore_ascii_case(b"GET") {
        Ok(Method::Get)
    } else if token.eq_ignore_ascii_case(b"HEAD") {
        Ok(Method::Head)
    } else if token.eq_ignore_ascii_case(b"POST") {
        Ok(Method::Post)
    } else if !token.is_empty() && token.iter().all(|c| c.is_ascii_alphabetic() || *c == b'-') {
        Ok(Method::Other)
    } else {
        Err(SkipReason::Request)
    }
}

/// Removes ` HTTP/1.0` from the end, if present.
fn without_protocol(text: &[u8]) -> &[u8] {
    const MARK: &[u8] = b" HTTP/";
    match memchr::memmem::rfind(text, MARK) {
        Some(at) => &text[..at],
        None => text,
    }
}
