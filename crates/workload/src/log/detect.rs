//! Detection of a log's format by its first lines.

use super::error::{Fitting, LogError};
use super::format::Format;
use super::guess;
use super::lines::HeadLine;
use super::parse::{Directives, Parser};
use super::skipped::SkipReason;
use super::spec::FormatSpec;
use super::text::excerpt;
use super::wrapper::Wrapper;
use std::borrow::Cow;
use std::path::Path;

/// Number of lines that are examined.
pub(super) const SAMPLE_LINES: usize = 100;

const NO_ACCESS_LOG: &str = "expected an access log";

/// Kinds of logs without requests: patterns of their lines, the name of the kind, and advice.
const WITHOUT_REQUESTS: [(&str, &str, &str); 4] = [
    (
        "$addr:$port [$a/$b/$c] $frontend $backend/$server $a/$b/$c $sent $state $a/$b/$c/$d/$e $a/$b",
        "HAProxy's log of TCP connections, in which there are no requests",
        "have it log requests, by `option httplog`",
    ),
    (
        "$year/$month/$day $a:$b:$c [$level] $pid#$tid: ...",
        "nginx's error log",
        NO_ACCESS_LOG,
    ),
    (
        "[$day $month $date $a:$b:$c $year] [$module:$level] [pid $pid...",
        "Apache's error log",
        NO_ACCESS_LOG,
    ),
    (
        "[$day $month $date $a:$b:$c $year] [$level] ...",
        "Apache's error log",
        NO_ACCESS_LOG,
    ),
];

/// How a line fits a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    Yes,
    /// The line is in the format, but reports a connection without a request.
    NoRequest,
    No,
}

/// Returns the format that fits most of the lines, the first in [`Format::ALL`] in case of a tie. This format and those that may be mixed
/// with it must fit half of the non-blank lines, or a single line if `few` is set.
pub(super) fn detect(path: &Path, lines: &[HeadLine], few: bool) -> Result<Format, LogError> {
    let with_text: Vec<&HeadLine> = lines.iter().filter(|line| !line.is_blank()).collect();
    let Some(&first) = with_text.first() else {
        return Err(LogError::Empty {
            path: path.to_owned(),
        });
    };
    let mut wrapper = Wrapper::new();
    let texts: Vec<Vec<Cow<'_, [u8]>>> = with_text
        .iter()
        .map(|line| {
            let text = line.as_raw().text;
            let layers = wrapper.layers(text);
            std::iter::once(Cow::Borrowed(text)).chain(layers).collect()
        })
        .collect();
    let all = Format::ALL.map(|format| (format, fits(format, &texts)));
    let count = |fits: &[Fit], fit| fits.iter().filter(|&&found| found == fit).count();
    let score = |fits: &[Fit]| (count(fits, Fit::Yes), count(fits, Fit::NoRequest));
    let (format, best) = all
        .iter()
        .reduce(|best, next| {
            if score(&next.1) > score(&best.1) {
                next
            } else {
                best
            }
        })
        .expect("there are formats");
    let (fitting, no_request) = score(best);
    let in_any = |at: &usize| {
        let fits = |(other, fits): &(Format, Vec<Fit>)| other.mixes() && fits[*at] == Fit::Yes;
        best[*at] == Fit::Yes || all.iter().any(fits)
    };
    let read = (0..texts.len()).filter(in_any).count();
    let of = texts.len() - no_request;
    if fitting > 0 && (few || 2 * read >= of) || of == 0 {
        return Ok(*format);
    }
    if fitting == 0 && is_binary(first.as_raw().text) {
        return Err(LogError::Other {
            path: path.to_owned(),
            what: "a binary file",
            remedy: NO_ACCESS_LOG,
        });
    }
    if let Some((what, remedy)) = without_requests(&texts) {
        return Err(LogError::Other {
            path: path.to_owned(),
            what,
            remedy,
        });
    }
    // Report the first line that does not have this format.
    let blamed = best.iter().position(|fit| *fit == Fit::No);
    let blamed = with_text[blamed.unwrap_or(0)].as_raw();
    let raw: Vec<&[u8]> = with_text.iter().map(|line| line.as_raw().text).collect();
    Err(LogError::UnknownFormat {
        path: path.to_owned(),
        line: blamed.number,
        text: excerpt(blamed.text),
        best: (fitting > 0).then_some(Fitting {
            format: *format,
            lines: fitting,
            of,
        }),
        guess: guess::format(&raw),
    })
}

/// Returns the kind of the log, if most of its lines belong to a kind without requests.
fn without_requests(lines: &[Vec<Cow<'_, [u8]>>]) -> Option<(&'static str, &'static str)> {
    let is = |pattern: &&(&str, &str, &str)| {
        let pattern = Directives::parse_any(pattern.0).expect("patterns of logs are valid");
        let fits = |layers: &&Vec<Cow<'_, [u8]>>| layers.iter().any(|text| pattern.fits(text));
        2 * lines.iter().filter(fits).count() > lines.len()
    };
    let found = WITHOUT_REQUESTS.iter().find(is);
    found.map(|&(_, what, remedy)| (what, remedy))
}

/// Returns whether a line is not text in any encoding that extends ASCII.
fn is_binary(line: &[u8]) -> bool {
    let controls = line.iter().filter(|c| c.is_ascii_control() && **c != b'\t');
    let others = line.iter().filter(|c| !c.is_ascii());
    controls.count() > 0 && others.count() > line.len() / 8 || line.contains(&0)
}

/// Returns how each line, or the line inside it, fits a format.
fn fits(format: Format, lines: &[Vec<Cow<'_, [u8]>>]) -> Vec<Fit> {
    let Some(spec) = FormatSpec::named(format) else {
        return vec![Fit::No; lines.len()];
    };
    let mut parser = Parser::new(&spec);
    let mut fit = |layers: &Vec<Cow<'_, [u8]>>| {
        let mut fit = Fit::No;
        for text in layers {
            match parser.parse(text) {
                Ok(_) => return Fit::Yes,
                Err(SkipReason::NoRequest) => fit = Fit::NoRequest,
                Err(_) => {}
            }
        }
        fit
    };
    lines.iter().map(&mut fit).collect()
}
