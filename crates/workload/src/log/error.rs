//! Why a log cannot be read or replayed.

use super::format::Format;
use super::skipped::Skipped;
use crate::analyse::BlocksError;
use std::io;
use std::path::PathBuf;

/// Why a file could not be read as an access log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Opening, reading or decompressing failed.
    #[error("{}: cannot read{}: {source}", path.display(), after(*line))]
    Io {
        /// The file.
        path: PathBuf,
        /// The last line that could be read, 0 if none.
        line: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not consist of lines of text.
    #[error("{}: is {what}, which cannot be read; {remedy}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What the file is.
        what: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// No known format fits the first lines.
    #[error("{}: {}", path.display(), unknown(*line, text, best.as_ref(), guess.as_deref()))]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Number of the line in `text`.
        line: u64,
        /// Start of the first line that does not fit.
        text: String,
        /// The format that fits some lines, but not enough.
        best: Option<Fitting>,
        /// A format that reads the lines, if the client was guessed correctly.
        guess: Option<String>,
    },
    /// No line could be parsed.
    #[error("{}: no line is in the format {format}; expected lines like `{}`; {skipped}", path.display(), format.example())]
    NoRequests {
        /// The file.
        path: PathBuf,
        /// The format that was tried.
        format: Format,
        /// The lines, with the reasons why they were skipped.
        skipped: Box<Skipped>,
    },
    /// More lines were skipped than parsed.
    #[error(
        "{}: over half of the log would be skipped as {format}: {skipped}; expected another --format, or --allow-skipped \
         (workload.allow_skipped) to skip such lines",
        path.display()
    )]
    MostlySkipped {
        /// The file.
        path: PathBuf,
        /// The format as which the log was read.
        format: Format,
        /// The lines, with the reasons why they were skipped.
        skipped: Box<Skipped>,
    },
    /// The file is empty.
    #[error("{}: the file is empty; expected an access log", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The caller cancelled reading.
    #[error("{}: reading was cancelled", path.display())]
    Cancelled {
        /// The file.
        path: PathBuf,
    },
}

/// Number of the first lines that a format fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fitting {
    /// The format.
    pub format: Format,
    /// Number of lines that the format fits.
    pub lines: usize,
    /// Number of lines that were examined.
    pub of: usize,
}

/// Returns ` after line 7`, or an empty string if no line was read.
fn after(line: u64) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(" after line {line}")
    }
}

fn unknown(line: u64, text: &str, best: Option<&Fitting>, guess: Option<&str>) -> String {
    let what = match best {
        Some(Fitting { format, lines, of }) => format!(
            "only {lines} of the first {of} lines are in a known access log format ({format}); line {line} is the first that is not: \"{text}\""
        ),
        None => format!("line {line}: \"{text}\" is in no known access log format"),
    };
    let expected = match (guess, best) {
        (Some(guess), _) => format!(
            "this would read it, if $remote_addr is where the client is: --format '{guess}'"
        ),
        (None, Some(_)) => "expected another --format, or --allow-skipped (workload.allow_skipped) to skip such lines".to_owned(),
        (None, None) => format!(
            "expected one of {}; or the format as --format '%h %t \"%r\" %>s %b', json:client=NAME,time=NAME,url=NAME,bytes=NAME, \
             csv:client=NAME,...",
            Format::list()
        ),
    };
    format!("{what}; {expected}")
}

/// Why a log cannot be replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotReplayable {
    /// The log has no response sizes.
    #[error(
        "the log ({format}) has no response sizes, so that it is unknown how much the server has to send; \
         expected a log with a byte count per request (its order and popularity can still be analysed)"
    )]
    NoSizes {
        /// The format of the log.
        format: Format,
    },
    /// The log has no requests.
    #[error("the log has no requests (responses of 2 GiB or more are not replayed)")]
    Empty,
    /// All responses are empty.
    #[error(
        "all responses in the log are of 0 bytes, so there is nothing to send (responses of 2 GiB or more are not replayed)"
    )]
    NoContent,
    /// The files are too large.
    #[error("{0}")]
    Blocks(BlocksError),
}
