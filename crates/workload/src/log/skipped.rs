//! Lines that could not be parsed, counted by reason.

use super::text::excerpt;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Why a line of a log was skipped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The line is empty.
    Blank,
    /// The line is longer than any request.
    TooLong,
    /// The line has fewer fields than the format.
    MissingFields,
    /// The line has fields after the last one of the format.
    ExtraFields,
    /// The line has no client name or address.
    Client,
    /// The time is missing or cannot be parsed.
    Time,
    /// The client opened a connection and sent no request: `"-" 408` of nginx and Apache, `<BADREQ>` of HAProxy.
    NoRequest,
    /// The request is missing (in quotes, if the format has them), or has no URL.
    Request,
    /// The status is neither a number of three digits nor `-`.
    Status,
    /// The size is neither a number nor `-`.
    Bytes,
    /// The line comes before any `#Fields` or header that names time, client and URL.
    NoFields,
    /// The line is not a JSON object.
    NotJson,
}

impl SkipReason {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::Blank,
        Self::TooLong,
        Self::MissingFields,
        Self::ExtraFields,
        Self::Client,
        Self::Time,
        Self::NoRequest,
        Self::Request,
        Self::Status,
        Self::Bytes,
        Self::NoFields,
        Self::NotJson,
    ];
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blank line",
            Self::TooLong => "line longer than 64 KiB",
            Self::MissingFields => "too few fields",
            Self::ExtraFields => "too many fields",
            Self::Client => "no client",
            Self::Time => "no time, or an invalid one",
            Self::NoRequest => "connection without a request",
            Self::Request => "no request or no URL in it",
            Self::Status => "status is neither three digits nor `-`",
            Self::Bytes => "size is neither a number nor `-`",
            Self::NoFields => "no #Fields or header before it that names time, client and URL",
            Self::NotJson => "not a JSON object",
        })
    }
}

/// Lines skipped for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SkippedFor {
    /// Number of lines.
    pub lines: u64,
    /// Number of the first of these lines in the file, from 1.
    pub first_line: u64,
    /// Start of that line.
    pub first_text: String,
}

/// Skipped lines of a log: their number for each reason, with the first one as an example.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Skipped {
    /// Lines of the log, skipped or not.
    lines: u64,
    reasons: BTreeMap<SkipReason, SkippedFor>,
}

impl Skipped {
    /// Counts a line of the log, skipped or not.
    pub(super) const fn count_line(&mut self) {
        self.lines += 1;
    }

    /// Records a skipped line.
    pub(super) fn add(&mut self, line: u64, reason: SkipReason, text: &[u8]) {
        let first = || SkippedFor {
            lines: 0,
            first_line: line,
            first_text: excerpt(text),
        };
        self.reasons.entry(reason).or_insert_with(first).lines += 1;
    }

    /// Returns the number of skipped lines.
    pub fn total(&self) -> u64 {
        self.reasons.values().map(|skipped| skipped.lines).sum()
    }

    /// Returns the number of lines in the log.
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the number of lines skipped for `reason`.
    pub fn count(&self, reason: SkipReason) -> u64 {
        self.reasons.get(&reason).map_or(0, |found| found.lines)
    }

    /// Returns the reasons that occurred.
    pub fn reasons(&self) -> impl Iterator<Item = (SkipReason, &SkippedFor)> {
        self.reasons.iter().map(|(&reason, found)| (reason, found))
    }

    /// Returns the number of lines that are blank or report a connection without a request. Nothing is wrong with them.
    pub fn without_request(&self) -> u64 {
        self.count(SkipReason::Blank) + self.count(SkipReason::NoRequest)
    }

    /// Returns the share of the lines that were skipped, 0 to 1. [Lines without a request](Self::without_request) are not counted at all.
    pub fn share(&self) -> f64 {
        let none = self.without_request();
        crate::analyse::ratio(self.total() - none, self.lines.saturating_sub(none))
    }
}

/// Formats the counts in one line: `3 of 40 lines skipped: 2 no client (as line 7: "..."), 1 blank line (as line 9: "")`.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} lines skipped", self.total(), self.lines)?;
        for (i, (reason, found)) in self.reasons().enumerate() {
            let SkippedFor {
                lines,
                first_line,
                first_text,
            } = found;
            let separator = if i == 0 { ':' } else { ',' };
            write!(
                f,
                "{separator} {lines} {reason} (as line {first_line}: \"{first_text}\")"
            )?;
        }
        Ok(())
    }
}
