//! Lines that were not understood, counted by reason.

use serde::Serialize;
use std::fmt;

/// How many skipped lines are kept with their text.
const KEPT: usize = 5;
/// How much of a skipped line is kept.
const KEPT_CHARS: usize = 160;

/// What is wrong with a line of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// Nothing on the line.
    Blank,
    /// Longer than any request.
    TooLong,
    /// Fewer fields than the format has.
    MissingFields,
    /// Fields after the last one that the format has.
    ExtraFields,
    /// No client name or address.
    Client,
    /// The time does not parse.
    Time,
    /// No request (in quotes, where the format has them), or no URL in it.
    Request,
    /// The status is neither a number of three digits nor `-`.
    Status,
    /// The size is neither a number nor `-`.
    Bytes,
    /// A W3C extended line before any `#Fields` that names a client, a time and a URL.
    NoFields,
}

impl SkipReason {
    /// All reasons.
    pub const ALL: [Self; 10] = [
        Self::Blank,
        Self::TooLong,
        Self::MissingFields,
        Self::ExtraFields,
        Self::Client,
        Self::Time,
        Self::Request,
        Self::Status,
        Self::Bytes,
        Self::NoFields,
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
            Self::Time => "unreadable time",
            Self::Request => "no request or no URL in it",
            Self::Status => "status is neither three digits nor `-`",
            Self::Bytes => "size is neither a number nor `-`",
            Self::NoFields => "no #Fields line with date, time, c-ip and cs-uri-stem before it",
        })
    }
}

/// A line that was skipped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SkippedLine {
    /// Its number in the file, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: SkipReason,
    /// Its start.
    pub text: String,
}

/// The skipped lines of a log: how many for each reason, and the first few in full.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Skipped {
    counts: [u64; SkipReason::ALL.len()],
    first: Vec<SkippedLine>,
}

impl Skipped {
    pub(super) fn add(&mut self, line: u64, reason: SkipReason, text: &[u8]) {
        self.counts[reason as usize] += 1;
        if self.first.len() < KEPT {
            self.first.push(SkippedLine {
                line,
                reason,
                text: excerpt(text),
            });
        }
    }

    /// Number of skipped lines.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Number of lines skipped for `reason`.
    pub const fn count(&self, reason: SkipReason) -> u64 {
        self.counts[reason as usize]
    }

    /// The reasons that occurred, with their counts.
    pub fn reasons(&self) -> impl Iterator<Item = (SkipReason, u64)> {
        SkipReason::ALL
            .into_iter()
            .zip(self.counts)
            .filter(|&(_, n)| n > 0)
    }

    /// The first few skipped lines.
    pub fn first(&self) -> &[SkippedLine] {
        &self.first
    }
}

/// One line: `3 lines skipped: 2 unreadable time, 1 no client; first: line 7 (unreadable time): "..."`.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        write!(
            f,
            "{total} {} skipped",
            if total == 1 { "line" } else { "lines" }
        )?;
        for (i, (reason, count)) in self.reasons().enumerate() {
            write!(f, "{} {count} {reason}", if i == 0 { ":" } else { "," })?;
        }
        if let Some(SkippedLine { line, reason, text }) = self.first.first() {
            write!(f, "; first: line {line} ({reason}): {text:?}")?;
        }
        Ok(())
    }
}

/// The start of a line as text, bad bytes replaced.
pub(super) fn excerpt(line: &[u8]) -> String {
    let head = &line[..line.len().min(KEPT_CHARS)];
    String::from_utf8_lossy(head).into_owned()
}
