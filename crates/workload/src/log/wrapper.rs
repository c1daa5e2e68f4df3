//! Finds a log's lines after the prefixes that syslog, containers and services add, or inside a quoted or JSON field.

use super::fields::FieldMap;
use super::parse::json::Json;
use super::parse::{date, number, split_once};
use std::borrow::Cow;

/// Maximum number of layers around a line, such as JSON around syslog.
const MOST_LAYERS: usize = 4;

/// A rule: returns the text after a prefix, or `None` if the line does not begin with it.
type Rule = fn(&[u8]) -> Option<&[u8]>;

/// The rules for prefixes.
const PREFIXES: [Rule; 5] = [syslog, timed, tagged, compose, kubectl];

/// Removes the layers around lines.
pub(super) struct Wrapper(Json);

impl Wrapper {
    pub(super) fn new() -> Self {
        Self(Json::new(FieldMap::default()))
    }

    /// Returns each line that may be inside of `line`, from the outermost on.
    pub(super) fn layers<'a>(&mut self, line: &'a [u8]) -> Vec<Cow<'a, [u8]>> {
        let mut layers = Vec::new();
        let mut next = self.inside(Cow::Borrowed(line));
        while let Some(layer) = next.take_if(|_| layers.len() < MOST_LAYERS) {
            next = self.inside(layer.clone());
            layers.push(layer);
        }
        layers
    }

    fn inside<'a>(&mut self, line: Cow<'a, [u8]>) -> Option<Cow<'a, [u8]>> {
        let text = line.trim_ascii_start();
        if text.starts_with(b"\x1b[") {
            return Some(Cow::Owned(without_colours(text)));
        }
        // Fluentd writes time, tag and JSON between tabs.
        let json = memchr::memmem::rfind(text, b"\t{").map(|at| &text[at + 1..]);
        if let Some(text) = json.or(text.starts_with(b"{").then_some(text)) {
            let found = self.0.line(text)?;
            return Some(Cow::Owned(found.to_vec()));
        }
        if let Some(inner) = quoted(text) {
            return Some(Cow::Owned(inner));
        }
        let skipped = PREFIXES
            .iter()
            .find_map(|rule| rule(text).map(<[u8]>::len))?;
        Some(match line {
            Cow::Borrowed(line) => Cow::Borrowed(&line[line.len() - skipped..]),
            Cow::Owned(line) => Cow::Owned(line[line.len() - skipped..].to_vec()),
        })
    }
}

/// Removes the escape sequences that colour text on a terminal.
fn without_colours(text: &[u8]) -> Vec<u8> {
    let mut parts = text.split(|&c| c == 0x1b);
    let mut plain = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let end = part.iter().position(|&c| c == b'm').map_or(0, |at| at + 1);
        plain.extend_from_slice(&part[end..]);
    }
    plain
}

/// Returns the text of a line in quotes, which is the whole line or the last of several values between commas. Quotes in it are doubled or
/// escaped.
fn quoted(text: &[u8]) -> Option<Vec<u8>> {
    let inner = text.trim_ascii_end().strip_suffix(b"\"")?;
    let inner = match inner.strip_prefix(b"\"") {
        Some(inner) => match memchr::memmem::find(inner, b"\",\"") {
            Some(end) => &inner[end + 3..],
            None => inner,
        },
        None => {
            let end = memchr::memmem::find(inner, b",\"")?;
            // After a bracket or another quote, this quote is part of a field.
            let is_first = memchr::memchr2(b'[', b'"', &inner[..end]).is_none();
            is_first.then_some(&inner[end + 2..])?
        }
    };
    let mut line = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        match byte {
            // A single quote would have ended the field.
            b'"' => line.push(bytes.next_if_eq(&b'"')?),
            b'\\' if next == Some(b'"') => line.extend(bytes.next()),
            byte => line.push(byte),
        }
    }
    Some(line)
}

/// RFC 3164 `<134>Mar 12 10:00:00 host tag[pid]: `, RFC 5424 `<134>1 TIME host app pid id data `, and journald's short forms.
fn syslog(line: &[u8]) -> Option<&[u8]> {
    let rest = without_count(line);
    let prioritised = rest.strip_prefix(b"<").and_then(|rest| {
        let (priority, rest) = split_once(rest, b'>')?;
        number(priority).map(|_| rest)
    });
    if let Some(rest) = prioritised.and_then(|rest| rest.strip_prefix(b"1 ")) {
        let rest = (0..5).try_fold(rest, |rest, _| split_once(rest, b' ').map(|(_, rest)| rest))?;
        return behind_data(rest);
    }
    let rest = behind_time(prioritised.unwrap_or(rest))?;
    tagged(rest).or_else(|| tagged(split_once(rest, b' ')?.1))
}

/// Returns the text after the length of a message, as in RFC 6587.
fn without_count(line: &[u8]) -> &[u8] {
    match split_once(line, b' ') {
        Some((count, rest)) if rest.starts_with(b"<") && number(count).is_some() => rest,
        _ => line,
    }
}

/// Returns the text after structured data: `-` or `[id name="value"]...`.
fn behind_data(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = text.strip_prefix(b"- ") {
        return Some(rest);
    }
    let end = memchr::memmem::find(text.strip_prefix(b"[")?, b"] ")?;
    Some(&text[end + 3..])
}

/// Returns the text after `Mar 12 10:00:00 `, perhaps with the year, or after a time in one word.
fn behind_time(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = timed_word(text) {
        return Some(rest);
    }
    let (month, rest) = split_once(text, b' ')?;
    if date::month_number(month).is_none() {
        // journald's `Tue 2024-03-12 10:00:00 UTC `.
        let (day, rest) = split_once(rest, b' ')?;
        let (time, rest) = split_once(rest, b' ')?;
        date::year_month_day(day).zip(date::time_of_day_us(time))?;
        return split_once(rest, b' ').map(|(_zone, rest)| rest);
    }
    let (day, rest) = split_once(rest.trim_ascii_start(), b' ')?;
    number(day)?;
    let (time, rest) = match split_once(rest, b' ')? {
        (year, rest) if number(year).is_some() => split_once(rest, b' ')?,
        other => other,
    };
    date::time_of_day_us(time).map(|_| rest)
}

/// Returns the text after a time as in RFC 3339, Unix seconds with a fraction, or TAI64N as multilog and s6 write it.
fn timed_word(text: &[u8]) -> Option<&[u8]> {
    let (time, rest) = split_once(text, b' ')?;
    let is_tai =
        time.len() == 25 && time.starts_with(b"@4") && time[1..].iter().all(u8::is_ascii_hexdigit);
    let is_unix = || time.len() > 11 && time[10] == b'.' && date::unix(time).is_some();
    (is_tai || is_unix() || date::rfc3339(time).is_some()).then_some(rest)
}

/// `2024-03-12T10:00:00Z `, perhaps followed by `stdout F ` of a container runtime (CRI) or by `web/1f2e `, a stream of CloudWatch.
fn timed(line: &[u8]) -> Option<&[u8]> {
    let rest = timed_word(line)?;
    if let Some((_, rest)) = split_once(rest, b' ').filter(|(stream, _)| stream.contains(&b'/')) {
        return Some(rest);
    }
    let stream = rest
        .strip_prefix(b"stdout ")
        .or(rest.strip_prefix(b"stderr "));
    Some(stream.map_or(rest, |rest| {
        let whole = rest.strip_prefix(b"F ").or(rest.strip_prefix(b"P "));
        whole.unwrap_or(rest)
    }))
}

/// `nginx: ` or `haproxy[9]: `.
fn tagged(line: &[u8]) -> Option<&[u8]> {
    let (tag, rest) = split_once(line, b' ')?;
    let tag = tag.strip_suffix(b":")?;
    let name = match tag.strip_suffix(b"]") {
        Some(tag) => {
            split_once(tag, b'[')
                .filter(|(_, pid)| number(pid).is_some())?
                .0
        }
        None => tag,
    };
    is_name(name).then_some(rest.trim_ascii_start())
}

/// `web_1  | ` of `docker compose logs`; `10:00:00 web.1  | ` and `0|web  | ` of programs that start several.
fn compose(line: &[u8]) -> Option<&[u8]> {
    let numbered = split_once(line, b'|').filter(|(number, _)| self::number(number).is_some());
    let (name, rest) = split_once(numbered.map_or(line, |(_, rest)| rest), b'|')?;
    let name = match split_once(name, b' ') {
        Some((time, name)) if date::time_of_day(time).is_some() => name,
        _ => name,
    };
    let is_first = name.ends_with(b" ") && is_name(name.trim_ascii());
    is_first.then_some(rest.trim_ascii_start())
}

/// `[pod/web-1/nginx] ` of `kubectl logs --prefix`.
fn kubectl(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"[pod/")?;
    let end = memchr::memmem::find(rest, b"] ")?;
    Some(&rest[end + 2..])
}

fn is_name(text: &[u8]) -> bool {
    !text.is_empty()
        && text
            .iter()
            .all(|c| c.is_ascii_alphanumeric() || b"._-/@".contains(c))
}
