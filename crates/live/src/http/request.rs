//! Parses requests (RFC 9112 3 and 5).

use super::body::Framing;
use super::range::RangeSpec;
use super::status::Status;
use std::time::SystemTime;

/// Maximum number of header fields of a request.
const MOST_FIELDS: usize = 100;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    /// PUT or POST: store the body as a file.
    Upload,
    /// A method that is not supported.
    NotAllowed,
}

/// A parsed request header.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestHead<'a> {
    pub method: Method,
    /// The target as it appears in the request line.
    pub target: &'a str,
    /// Whether the client wants to keep the connection open after the response.
    pub keep_alive: bool,
    /// Whether the version is HTTP/1.0, whose clients expect the connection to close unless the server says otherwise.
    pub version_10: bool,
    pub body: Framing,
    /// Whether the client waits for permission to send the body.
    pub expects_continue: bool,
    pub range: Option<RangeSpec>,
    pub if_modified_since: Option<SystemTime>,
    /// The range applies only if the file has this date (RFC 9110 13.1.5).
    pub if_range: Option<&'a str>,
    /// Length of the header, bytes.
    pub len: usize,
}

/// Parses a header; returns `None` if it is incomplete.
///
/// # Errors
/// The status to answer with; later data on the connection must not be interpreted.
pub(super) fn parse(text: &[u8]) -> Result<Option<RequestHead<'_>>, Status> {
    let mut fields = [const { std::mem::MaybeUninit::uninit() }; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(text, &mut fields);
    let len = match parsed {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Status::FieldsTooLarge),
        Err(httparse::Error::Version) => return Err(Status::VersionNotSupported),
        Err(_) => return Err(Status::BadRequest),
    };
    let version_10 = request.version == Some(0);
    let mut head = RequestHead {
        method: method_of(request.method.unwrap_or_default())?,
        target: request.path.unwrap_or_default(),
        keep_alive: !version_10,
        version_10,
        body: Framing::Length(0),
        expects_continue: false,
        range: None,
        if_modified_since: None,
        if_range: None,
        len,
    };
    let mut seen = Seen::default();
    for field in request.headers.iter() {
        take_field(&mut head, &mut seen, field)?;
    }
    // RFC 9112 3.2.
    if seen.hosts > 1 || (seen.hosts == 0 && !version_10) {
        return Err(Status::BadRequest);
    }
    // RFC 9112 6.1: with both, two programs could see two different requests.
    if seen.chunked {
        if seen.content_length.is_some() || version_10 {
            return Err(Status::BadRequest);
        }
        head.body = Framing::Chunked;
    } else if let Some(len) = seen.content_length {
        head.body = Framing::Length(len);
    }
    // RFC 9110 10.1.1: without a body there is nothing to wait for, and HTTP/1.0 does not have this field.
    head.expects_continue &= !version_10 && head.body != Framing::Length(0);
    Ok(Some(head))
}

#[derive(Default)]
struct Seen {
    hosts: u32,
    content_length: Option<u64>,
    chunked: bool,
}

fn method_of(name: &str) -> Result<Method, Status> {
    match name {
        "GET" => Ok(Method::Get),
        "HEAD" => Ok(Method::Head),
        "PUT" | "POST" => Ok(Method::Upload),
        "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH" => Ok(Method::NotAllowed),
        _ => Err(Status::NotImplemented),
    }
}

fn take_field<'a>(
    head: &mut RequestHead<'a>,
    seen: &mut Seen,
    field: &httparse::Header<'a>,
) -> Result<(), Status> {
    let is = |name: &str| field.name.eq_ignore_ascii_case(name);
    // The server ignores most fields: their length excludes them quickly.
    match field.name.len() {
        4 if is("Host") => seen.hosts += 1,
        5 if is("Range") => head.range = text_of(field).and_then(RangeSpec::parse),
        6 if is("Expect") => {
            if !field.value.eq_ignore_ascii_case(b"100-continue") {
                return Err(Status::ExpectationFailed);
            }
            head.expects_continue = true;
        }
        8 if is("If-Range") => head.if_range = text_of(field),
        10 if is("Connection") => {
            for option in field.value.split(|&byte| byte == b',') {
                let option = option.trim_ascii();
                if option.eq_ignore_ascii_case(b"close") {
                    head.keep_alive = false;
                    // `close` takes precedence over `keep-alive`.
                    break;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    head.keep_alive = true;
                }
            }
        }
        14 if is("Content-Length") => {
            let len = content_length(field.value).ok_or(Status::BadRequest)?;
            if seen.content_length.is_some_and(|other| other != len) {
                return Err(Status::BadRequest);
            }
            seen.content_length = Some(len);
        }
        17 if is("Transfer-Encoding") => {
            if seen.chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err(Status::NotImplemented);
            }
            seen.chunked = true;
        }
        17 if is("If-Modified-Since") => {
            head.if_modified_since =
                text_of(field).and_then(|text| httpdate::parse_http_date(text).ok());
        }
        _ => {}
    }
    Ok(())
}

fn text_of<'a>(field: &httparse::Header<'a>) -> Option<&'a str> {
    std::str::from_utf8(field.value).ok().map(str::trim)
}

/// RFC 9110 8.6: digits only.
pub(super) fn content_length(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
