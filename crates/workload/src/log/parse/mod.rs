//! One parser per format, from the bytes of a line to its fields, without allocation.

pub(super) mod address;
mod clf;
mod csv;
pub(super) mod date;
mod directives;
mod epa;
pub(super) mod json;
mod nasa;
mod record;
pub(super) mod request_line;
mod sdsc;
mod w3c;

pub(super) use directives::Directives;

use super::fields::FieldMap;
use super::spec::{FormatSpec, Kind};
use super::{Format, Method, SkipReason};

/// The fields of one request, borrowed from the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub time_us: u64,
    pub client: &'a [u8],
    pub forwarded: Forwarded<'a>,
    pub method: Method,
    pub url: &'a [u8],
    /// 0 if none is logged.
    pub status: u16,
    /// `None` for `-`, and in logs without sizes.
    pub bytes: Option<u64>,
}

/// Where a line's X-Forwarded-For is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Forwarded<'a> {
    /// The line has no X-Forwarded-For.
    No,
    /// The first address of X-Forwarded-For is the entry's client.
    Client,
    /// One of these values, separated by bars, may be X-Forwarded-For: the format does not say which.
    Perhaps(&'a [u8]),
}

/// Content of a line that is not malformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parsed<'a> {
    /// A request.
    Entry(Entry<'a>),
    /// A header or comment of the format.
    Directive,
}

/// A parser with its state.
pub(super) enum Parser {
    VhostCombined,
    Common,
    Combined,
    W3c(w3c::W3c),
    Json(Box<json::Json>),
    NasaTsv,
    Csv(Box<csv::Csv>),
    Epa(epa::Epa),
    Sdsc,
    LogFormat(directives::LogFormat),
}

impl Parser {
    pub(super) fn new(spec: &FormatSpec) -> Self {
        match spec.kind() {
            Kind::Named(format) => Self::named(*format),
            Kind::Json(map) => Self::Json(Box::new(json::Json::new(map.clone()))),
            Kind::Csv(map) => Self::Csv(Box::new(csv::Csv::new(map.clone()))),
            Kind::LogFormat(directives) => {
                Self::LogFormat(directives::LogFormat::new(directives.clone()))
            }
        }
    }

    fn named(format: Format) -> Self {
        match format {
            Format::VhostCombined => Self::VhostCombined,
            Format::Common => Self::Common,
            Format::Combined => Self::Combined,
            Format::W3c => Self::W3c(w3c::W3c::default()),
            Format::Json => Self::Json(Box::new(json::Json::new(FieldMap::default()))),
            Format::NasaTsv => Self::NasaTsv,
            Format::Csv => Self::Csv(Box::new(csv::Csv::new(FieldMap::default()))),
            Format::Epa => Self::Epa(epa::Epa::default()),
            Format::Sdsc => Self::Sdsc,
            other => {
                let pattern = other
                    .pattern()
                    .expect("a format without a parser has a pattern");
                let directives = Directives::parse(pattern).expect("patterns of formats are valid");
                Self::LogFormat(directives::LogFormat::new(directives))
            }
        }
    }

    pub(super) fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, SkipReason> {
        if line.trim_ascii().is_empty() {
            return Err(SkipReason::Blank);
        }
        match self {
            Self::VhostCombined => clf::parse_behind_host(line).map(Parsed::Entry),
            Self::Common => clf::parse(line, clf::Tail::None).map(Parsed::Entry),
            Self::Combined => clf::parse(line, clf::Tail::Any).map(Parsed::Entry),
            Self::W3c(w3c) => w3c.parse(line),
            Self::Json(json) => json.parse(line).map(Parsed::Entry),
            Self::NasaTsv => nasa::parse(line),
            Self::Csv(csv) => csv.parse(line),
            Self::Epa(epa) => epa.parse(line).map(Parsed::Entry),
            Self::Sdsc => sdsc::parse(line).map(Parsed::Entry),
            Self::LogFormat(format) => format.parse(line).map(Parsed::Entry),
        }
    }

    /// Returns whether the lines parsed so far could have sizes.
    pub(super) fn has_sizes(&self) -> bool {
        match self {
            Self::Sdsc => false,
            Self::W3c(w3c) => w3c.has_sizes(),
            Self::Json(json) => json.has_sizes(),
            Self::Csv(csv) => csv.has_sizes(),
            Self::LogFormat(format) => format.has_sizes(),
            _ => true,
        }
    }
}

/// Parses an unsigned decimal number without any other characters.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |n, &c| {
        let digit = c.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a three-digit status. Returns 0 if there is none because the request got no response: `-`, or a number that is not a status
/// (000 of Squid and nginx, -1 of HAProxy).
fn status(text: &[u8]) -> Result<u16, SkipReason> {
    match (text, number(text)) {
        (b"-" | b"0" | b"000" | b"-1", _) => Ok(0),
        (_, Some(status @ 100..=999)) => Ok(status as u16),
        _ => Err(SkipReason::Status),
    }
}

/// Parses a size: a number, or `-` for none. HAProxy writes `+` before it if the response had only begun (option logasap).
fn bytes(text: &[u8]) -> Result<Option<u64>, SkipReason> {
    match text {
        b"-" => Ok(None),
        _ => number(text.strip_prefix(b"+").unwrap_or(text))
            .map(Some)
            .ok_or(SkipReason::Bytes),
    }
}

/// Takes the next fields, which must exist.
fn take<'a, const N: usize>(
    fields: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<[&'a [u8]; N], SkipReason> {
    let mut taken = [&[][..]; N];
    for field in &mut taken {
        *field = fields.next().ok_or(SkipReason::MissingFields)?;
    }
    Ok(taken)
}

/// Splits at the first `separator`.
pub(super) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(separator, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Splits at the last `separator`.
pub(super) fn rsplit_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memrchr(separator, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the text if it is not empty.
fn client(text: &[u8]) -> Result<&[u8], SkipReason> {
    if text.is_empty() {
        Err(SkipReason::Client)
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
