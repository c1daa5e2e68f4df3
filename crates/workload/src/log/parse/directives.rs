//! Formats in the notation of Apache's `LogFormat` (`%h %t "%r" %>s %b`) or nginx's `log_format` (`$remote_addr "$request"`): fields
//! separated by literal text. A field ends where the text after it begins. A request may contain that text: it ends where the rest of the
//! line has the format. Two blanks stand for one or more; `...` at the end stands for anything.

use super::record::Record;
use super::{Entry, SkipReason, bytes, date, status};
use crate::log::fields::{Field, FieldMap, push_normal};
use crate::log::spec::SpecError;

/// A parsed format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::log) struct Directives {
    /// The format as given.
    text: String,
    parts: Vec<Part>,
    /// The strptime format of the time, if one is given; several time fields are joined with newlines.
    strptime: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    /// Literal text in every line.
    Literal(Vec<u8>),
    /// One blank or more.
    Blanks,
    /// The rest of the line, which is ignored.
    Rest,
    /// Variable text.
    Field(Meaning),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Meaning {
    /// A field that is ignored.
    Other,
    /// A field of the request, and the rank of the directive (0 is best).
    Of(Field, u8),
    /// A part of the time, in a strptime format.
    TimePart(String),
}

impl Directives {
    /// Parses a format.
    ///
    /// # Errors
    /// The end of a field cannot be determined, or fields are missing.
    pub(in crate::log) fn parse(text: &str) -> Result<Self, SpecError> {
        let directives = Self::parse_any(text)?;
        directives.has_enough()?;
        Ok(directives)
    }

    /// Parses a format that may lack fields.
    pub(in crate::log) fn parse_any(text: &str) -> Result<Self, SpecError> {
        let mut directives = Self {
            text: text.to_owned(),
            parts: Vec::new(),
            strptime: None,
        };
        let known = FieldMap::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = match first {
                '.' if rest == "..." => {
                    directives.parts.push(Part::Rest);
                    ""
                }
                ' ' if rest.starts_with("  ") => {
                    directives.parts.push(Part::Blanks);
                    rest.trim_start_matches(' ')
                }
                '%' if rest.starts_with("%%") => {
                    directives.literal(b"%");
                    &rest[2..]
                }
                '%' => directives.directive(rest)?,
                '$' => directives.variable(rest, &known)?,
                '\\' if rest.len() > 1 => directives.escaped(&rest[1..]),
                _ => {
                    let (literal, rest) = rest.split_at(first.len_utf8());
                    directives.literal(literal.as_bytes());
                    rest
                }
            };
        }
        directives.keep_the_best();
        let times = directives.parts.iter().filter_map(|part| match part {
            Part::Field(Meaning::TimePart(format)) => Some(format.as_str()),
            _ => None,
        });
        let times: Vec<&str> = times.collect();
        directives.strptime = (!times.is_empty()).then(|| times.join("\n"));
        Ok(directives)
    }

    pub(in crate::log) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn has(&self, field: Field) -> bool {
        let is =
            |part: &Part| matches!(part, Part::Field(Meaning::Of(found, _)) if *found == field);
        self.parts.iter().any(is)
    }

    fn literal(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(Part::Literal(text)) => text.extend_from_slice(bytes),
            _ => self.parts.push(Part::Literal(bytes.to_vec())),
        }
    }

    /// Handles an escape sequence, with the same meaning as in a server's configuration.
    fn escaped<'t>(&mut self, rest: &'t str) -> &'t str {
        let end = rest.chars().next().map_or(0, char::len_utf8);
        let (text, rest) = rest.split_at(end);
        self.literal(match text {
            "t" => b"\t",
            text => text.as_bytes(),
        });
        rest
    }

    fn field(&mut self, meaning: Meaning, name: &str) -> Result<(), SpecError> {
        match (self.parts.last(), &meaning) {
            // The query belongs to the URL before it, or is absent.
            (Some(Part::Field(Meaning::Of(Field::Url, _))), Meaning::Of(Field::Query, _)) => {
                return Ok(());
            }
            (Some(Part::Field(_)), _) => return Err(SpecError::NothingBetween(name.to_owned())),
            _ => {}
        }
        self.parts.push(Part::Field(meaning));
        Ok(())
    }

    /// Parses `%h`, `%>s`, `%{Referer}i`, `%!200,304{Referer}i`, `%^ti`.
    fn directive<'t>(&mut self, rest: &'t str) -> Result<&'t str, SpecError> {
        let wrong = || SpecError::NoDirective(rest.chars().take(20).collect());
        let modifier = |c: char| c.is_ascii_digit() || "<>!,".contains(c);
        let after = rest[1..].trim_start_matches(modifier);
        let modifiers = &rest[1..rest.len() - after.len()];
        let (argument, after) = match after.strip_prefix('{') {
            Some(inner) => {
                let (argument, after) = inner.split_once('}').ok_or_else(wrong)?;
                (Some(argument), after.trim_start_matches(modifier))
            }
            None => (None, after),
        };
        let length = if after.starts_with('^') { 3 } else { 1 };
        let name = after.get(..length).ok_or_else(wrong)?;
        let last_request = !modifiers.contains('<');
        match (name, argument) {
            ("t", None) => {
                self.literal(b"[");
                self.field(Meaning::Of(Field::Time, 0), "%t")?;
                self.literal(b"]");
            }
            _ => {
                let meaning = meaning(name, argument, last_request && modifiers.contains('>'));
                let end = rest.len() - after.len() + length;
                self.field(meaning, &rest[..end])?;
            }
        }
        if name.chars().all(|c| c.is_ascii_alphabetic() || c == '^') {
            Ok(&after[length..])
        } else {
            Err(wrong())
        }
    }

    /// Parses `$remote_addr`, `${remote_addr}`.
    fn variable<'t>(&mut self, rest: &'t str, known: &FieldMap) -> Result<&'t str, SpecError> {
        let wrong = || SpecError::NoDirective(rest.chars().take(20).collect());
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = match rest[1..].strip_prefix('{') {
            Some(inner) => inner.split_once('}').ok_or_else(wrong)?,
            None => {
                let after = rest[1..].trim_start_matches(is_name);
                (&rest[1..rest.len() - after.len()], after)
            }
        };
        if name.is_empty() {
            return Err(wrong());
        }
        let mut normal = String::new();
        push_normal(&mut normal, name);
        let meaning = match known.find(&normal) {
            Some((field, rank)) => Meaning::Of(field, rank),
            None => Meaning::Other,
        };
        self.field(meaning, &rest[..rest.len() - after.len()])?;
        Ok(after)
    }

    /// Ignores all but the best of several directives for a field.
    fn keep_the_best(&mut self) {
        for field in Field::ALL {
            let ranks = self
                .parts
                .iter()
                .enumerate()
                .filter_map(|(at, part)| match part {
                    Part::Field(Meaning::Of(found, rank)) if *found == field => Some((*rank, at)),
                    _ => None,
                });
            let best = ranks.min();
            for (at, part) in self.parts.iter_mut().enumerate() {
                let is = matches!(part, Part::Field(Meaning::Of(found, _)) if *found == field);
                if is && best.is_some_and(|(_, best)| best != at) {
                    *part = Part::Field(Meaning::Other);
                }
            }
        }
    }

    fn has_enough(&self) -> Result<(), SpecError> {
        let in_parts = |part: &Part| matches!(part, Part::Field(Meaning::TimePart(_)));
        if !self.has(Field::Client) && !self.has(Field::Forwarded) {
            Err(SpecError::Lacks("client (%h, $remote_addr)"))
        } else if !self.has(Field::Time) && !self.parts.iter().any(in_parts) {
            Err(SpecError::Lacks("time (%t, $time_local)"))
        } else if !self.has(Field::Request) && !self.has(Field::Url) {
            Err(SpecError::Lacks(
                "request (%r, $request) or URL (%U, $request_uri)",
            ))
        } else {
            Ok(())
        }
    }

    /// Returns whether a line has this format.
    pub(in crate::log) fn fits(&self, line: &[u8]) -> bool {
        cut(&self.parts, line, &mut Record::default(), &mut Vec::new()).is_ok()
    }
}

/// Splits a line into fields for the record, and appends parts of the time to `time`.
fn cut<'a>(
    parts: &[Part],
    line: &'a [u8],
    record: &mut Record<'a>,
    time: &mut Vec<u8>,
) -> Result<(), SkipReason> {
    let mut rest = line;
    for (at, part) in parts.iter().enumerate() {
        let meaning = match part {
            Part::Literal(text) => {
                let after = rest.strip_prefix(text.as_slice());
                rest = after.ok_or(SkipReason::MissingFields)?;
                continue;
            }
            Part::Blanks => {
                let after = rest.strip_prefix(b" ").ok_or(SkipReason::MissingFields)?;
                rest = after.trim_ascii_start();
                continue;
            }
            Part::Rest => return Ok(()),
            Part::Field(meaning) => meaning,
        };
        let end = match parts.get(at + 1) {
            Some(Part::Literal(text)) if meaning.is_request() => {
                return cut_request(&parts[at..], text, rest, record, time);
            }
            Some(Part::Literal(text)) => end_of_field(rest, text, meaning),
            Some(Part::Blanks) => memchr::memchr(b' ', rest),
            Some(Part::Rest) => memchr::memchr(b' ', rest).or(Some(rest.len())),
            _ => Some(rest.len()),
        };
        let text;
        (text, rest) = rest.split_at(end.ok_or_else(|| meaning.lacking())?);
        meaning.take(text, record, time)?;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(SkipReason::ExtraFields)
    }
}

/// Splits a line from the request or the URL on, which ends at the first place after which the rest of the line has the format.
fn cut_request<'a>(
    parts: &[Part],
    end: &[u8],
    line: &'a [u8],
    record: &mut Record<'a>,
    time: &mut Vec<u8>,
) -> Result<(), SkipReason> {
    let [Part::Field(meaning), after @ ..] = parts else {
        return Err(SkipReason::Request);
    };
    let mut first = None;
    for at in ends(line, end).take(MOST_ENDS) {
        let (text, rest) = line.split_at(at);
        let kept = (*record, time.len());
        let cut = meaning
            .take(text, record, time)
            .and_then(|()| cut(after, rest, record, time));
        match cut {
            Ok(()) => return Ok(()),
            Err(reason) => {
                *record = kept.0;
                time.truncate(kept.1);
                first.get_or_insert(reason);
            }
        }
    }
    Err(first.unwrap_or(meaning.lacking()))
}

/// Maximum number of places that are tried as the end of a request.
const MOST_ENDS: usize = 32;

impl Meaning {
    const fn is_request(&self) -> bool {
        matches!(self, Self::Of(Field::Request | Field::Url, _))
    }

    /// Stores the text of the field, if it can be one.
    fn take<'a>(
        &self,
        text: &'a [u8],
        record: &mut Record<'a>,
        time: &mut Vec<u8>,
    ) -> Result<(), SkipReason> {
        match self {
            Self::Of(field, _) => {
                match field {
                    Field::Status => drop(status(text)?),
                    Field::Bytes => drop(bytes(text)?),
                    _ => {}
                }
                record.set(*field, text);
            }
            Self::TimePart(_) => {
                if !time.is_empty() {
                    time.push(b'\n');
                }
                time.extend_from_slice(text);
            }
            Self::Other => {}
        }
        Ok(())
    }

    /// Returns the reason for skipping a line that lacks this field.
    const fn lacking(&self) -> SkipReason {
        match self {
            Self::TimePart(_) | Self::Of(Field::Time, _) => SkipReason::Time,
            Self::Of(Field::Request | Field::Url, _) => SkipReason::Request,
            _ => SkipReason::MissingFields,
        }
    }

    /// Returns how often the text that ends the field also occurs within the field.
    fn occurrences(&self, text: &[u8]) -> usize {
        match self {
            Self::TimePart(format) => memchr::memmem::find_iter(format.as_bytes(), text).count(),
            _ => 0,
        }
    }
}

/// Returns the meaning of an Apache directive; `%a` is better than `%h`, which is better than `%{c}a`.
fn meaning(name: &str, argument: Option<&str>, is_final: bool) -> Meaning {
    let field = match (name, argument) {
        ("a", None) => (Field::Client, 0),
        ("h", _) => (Field::Client, 1),
        ("a", Some(_)) => (Field::Client, 2),
        ("r", _) => (Field::Request, 0),
        ("m", _) => (Field::Method, 0),
        ("U", _) => (Field::Url, 0),
        ("q", _) => (Field::Query, 0),
        ("s", _) => (Field::Status, u8::from(!is_final)),
        ("b" | "B", _) => (Field::Bytes, 0),
        ("O", _) => (Field::Bytes, 1),
        ("i", Some(header)) if header.eq_ignore_ascii_case("X-Forwarded-For") => {
            (Field::Forwarded, 0)
        }
        ("t", Some(format)) => return time(format),
        _ => return Meaning::Other,
    };
    Meaning::Of(field.0, field.1)
}

/// Returns the meaning of `%{...}t`.
fn time(format: &str) -> Meaning {
    let format = format.strip_prefix("begin:").unwrap_or(format);
    match format.strip_prefix("end:").unwrap_or(format) {
        "sec" | "msec" | "usec" => Meaning::Of(Field::Time, 0),
        "msec_frac" | "usec_frac" => Meaning::Other,
        format => Meaning::TimePart(format.to_owned()),
    }
}

/// Returns where `text` ends a field.
fn end_of_field(rest: &[u8], text: &[u8], meaning: &Meaning) -> Option<usize> {
    if text == b":" && matches!(meaning, Meaning::Of(Field::Client, _)) {
        // A port follows the last colon; IPv6 addresses have more of them.
        let word = &rest[..memchr::memchr(b' ', rest).unwrap_or(rest.len())];
        return memchr::memrchr(b':', word);
    }
    ends(rest, text).nth(meaning.occurrences(text))
}

/// Returns the position of `text`. A quote that a backslash escapes does not count.
fn ends<'a>(rest: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let escaped = move |at: usize| {
        let backslashes = rest[..at].iter().rev().take_while(|&&c| c == b'\\');
        text.starts_with(b"\"") && backslashes.count() % 2 == 1
    };
    memchr::memmem::find_iter(rest, text).filter(move |&at| !escaped(at))
}

/// A parser with its buffers.
pub(in crate::log) struct LogFormat {
    directives: Directives,
    /// The parts of the time, joined.
    time: Vec<u8>,
    /// Buffer for the URL with its query.
    url: Vec<u8>,
}

impl LogFormat {
    pub(super) const fn new(directives: Directives) -> Self {
        Self {
            directives,
            time: Vec::new(),
            url: Vec::new(),
        }
    }

    pub(super) fn has_sizes(&self) -> bool {
        self.directives.has(Field::Bytes)
    }

    pub(super) fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Entry<'a>, SkipReason> {
        self.time.clear();
        let mut record = Record::default();
        cut(&self.directives.parts, line, &mut record, &mut self.time)?;
        let time_us = match &self.directives.strptime {
            Some(format) => date::strptime(format, &self.time),
            None => record.time_us(),
        };
        record.entry(time_us, &mut self.url)
    }
}
