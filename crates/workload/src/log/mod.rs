//! Access logs: reading every common format into one compact table.
//!
//! # What is replayed
//! The content bytes of a request's response are what the log says: the logged byte count, 0 where the log has `-`,
//! and 0 for the statuses that have no body (304 Not Modified, 204, 1xx; RFC 9110 section 6.4.1), whatever number is
//! logged for them. A file is a distinct URL, query included. Its size is the largest content seen for that URL; a
//! request that logged less (206 Partial Content, an aborted transfer) is replayed with its own count, as the first
//! bytes of the file.
//!
//! # Malformed lines
//! A line that does not parse is skipped, counted by reason and, for the first few, kept with its number and text:
//! [`Skipped`]. A file of which nothing parses is a [`LogError`].

mod format;
mod lines;
mod names;
mod open;
mod parse;
mod skipped;
mod write;

pub use format::{Compression, Format};
pub use names::Names;
pub use skipped::{SkipReason, Skipped, SkippedLine};
pub use write::write_common_log;

use crate::analyse::BlocksError;
use crate::source::FileSet;
use lines::{Lines, RawLine};
use parse::{Entry, Parsed, Parser};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// One logged request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Microseconds since 1970 in UTC; in logs that name no zone, of the server's clock. The EPA format gives no
    /// month: there, microseconds since day 0 of the month it starts in.
    pub time_us: u64,
    /// Content bytes of the response, by the rule of the module.
    pub bytes: u64,
    /// Index into [`Log::clients`].
    pub client: u32,
    /// Index into [`Log::urls`] and [`Log::files`].
    pub file: u32,
    /// HTTP status, 0 if none is logged.
    pub status: u16,
    /// HTTP method.
    pub method: Method,
}

/// An HTTP method.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET, and requests of HTTP/0.9 or of formats that name no method.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// Any other.
    Other,
}

/// An access log in memory, sorted by time.
#[derive(Clone, Debug)]
pub struct Log {
    /// The format it was read as.
    pub format: Format,
    /// All requests by time; those of the same time in the order of the file.
    pub requests: Vec<Request>,
    /// The size of every file (distinct URL).
    pub files: FileSet,
    /// The URL of every file.
    pub urls: Names,
    /// Names or addresses of the clients.
    pub clients: Names,
    /// Lines that were not understood.
    pub skipped: Skipped,
    /// Whether the log has response sizes at all.
    pub has_sizes: bool,
    /// Requests whose size was logged as `-` and is taken as 0.
    pub dashes: u64,
    /// Whether the lines had to be sorted by time.
    pub resorted: bool,
}

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
        /// What failed.
        source: io::Error,
    },
    /// No known format fits the first lines.
    #[error(
        "{}: line {line}: {text:?} is in no known access log format; expected one of {}",
        path.display(),
        Format::list()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The number of the line shown.
        line: u64,
        /// Start of the first line that has text.
        text: String,
    },
    /// Not one line parsed.
    #[error("{}: no line parses as {format}, expected lines like `{}`; {skipped}", path.display(), format.example())]
    NoRequests {
        /// The file.
        path: PathBuf,
        /// The format that was tried.
        format: Format,
        /// The lines and what is wrong with them.
        skipped: Box<Skipped>,
    },
    /// Nothing in the file.
    #[error("{}: the file is empty, expected an access log", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// ` after line 7`, or nothing where no line was read.
fn after(line: u64) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(" after line {line}")
    }
}

/// Why a log cannot be replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotReplayable {
    /// It has no sizes.
    #[error(
        "the log ({format}) has no response sizes, so nobody knows how much the server has to send; \
         expected a log with a byte count per request (its order and popularity can still be analysed)"
    )]
    NoSizes {
        /// The format of the log.
        format: Format,
    },
    /// It has no requests.
    #[error("the log has no requests")]
    Empty,
    /// All responses are empty.
    #[error("all responses in the log are of 0 bytes, so there is nothing to send")]
    NoContent,
    /// The files are larger than any server's.
    #[error("{0}")]
    Blocks(BlocksError),
}

impl Log {
    /// Reads the log at `path`. Compression (gzip, xz, Zstandard, none) is told by content, the format by the first
    /// lines.
    ///
    /// # Errors
    /// If it cannot be read, is in no known format, or no line parses.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        Self::read_as(path, None)
    }

    /// Reads the log at `path` in the given format, or in the one its first lines fit if `None`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_as(path: &Path, format: Option<Format>) -> Result<Self, LogError> {
        let file = std::fs::File::open(path).map_err(|source| LogError::Io {
            path: path.to_owned(),
            line: 0,
            source,
        })?;
        Self::from_reader(path, file, format)
    }

    /// Reads a log from `source`; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_reader(
        path: &Path,
        source: impl Read,
        format: Option<Format>,
    ) -> Result<Self, LogError> {
        let io_error = |line| {
            move |source| LogError::Io {
                path: path.to_owned(),
                line,
                source,
            }
        };
        let (reader, _) = open::decompress(source).map_err(io_error(0))?;
        let mut lines = Lines::new(reader);
        let mut head = Vec::new();
        let format = match format {
            Some(format) => format,
            None => {
                head = lines.take_head(format::SAMPLE_LINES).map_err(io_error(0))?;
                format::detect(path, &head)?
            }
        };
        let mut builder = LogBuilder::new(format);
        for line in &head {
            builder.line(line.as_raw());
        }
        loop {
            let done = lines.number();
            match lines.next().map_err(io_error(done))? {
                Some(line) => builder.line(line),
                None => break,
            }
        }
        if lines.number() == 0 {
            return Err(LogError::Empty {
                path: path.to_owned(),
            });
        }
        let log = builder.finish();
        if log.requests.is_empty() {
            return Err(LogError::NoRequests {
                path: path.to_owned(),
                format,
                skipped: Box::new(log.skipped),
            });
        }
        Ok(log)
    }

    /// Whether a replay of this log makes sense.
    ///
    /// # Errors
    /// If not, the reason.
    pub fn replayable(&self) -> Result<(), NotReplayable> {
        if self.requests.is_empty() {
            Err(NotReplayable::Empty)
        } else if !self.has_sizes {
            Err(NotReplayable::NoSizes {
                format: self.format,
            })
        } else if self.requests.iter().all(|r| r.bytes == 0) {
            Err(NotReplayable::NoContent)
        } else {
            Ok(())
        }
    }

    /// Content bytes of all responses together.
    pub fn content_bytes(&self) -> u64 {
        self.requests.iter().map(|r| r.bytes).sum()
    }

    /// Time of the first and of the last request in microseconds, `None` if there is none.
    pub fn time_range_us(&self) -> Option<(u64, u64)> {
        Some((
            self.requests.first()?.time_us,
            self.requests.last()?.time_us,
        ))
    }
}

/// Collects parsed lines into a [`Log`].
struct LogBuilder {
    parser: Parser,
    log: Log,
    sizes: Vec<u64>,
}

impl LogBuilder {
    fn new(format: Format) -> Self {
        let log = Log {
            format,
            requests: Vec::new(),
            files: FileSet::default(),
            urls: Names::default(),
            clients: Names::default(),
            skipped: Skipped::default(),
            has_sizes: true,
            dashes: 0,
            resorted: false,
        };
        Self {
            parser: Parser::new(format),
            log,
            sizes: Vec::new(),
        }
    }

    fn line(&mut self, line: RawLine<'_>) {
        let parsed = if line.truncated {
            Err(SkipReason::TooLong)
        } else {
            self.parser.parse(line.text)
        };
        match parsed {
            Ok(Parsed::Entry(entry)) => add(&mut self.log, &mut self.sizes, &entry),
            Ok(Parsed::Directive) => {}
            Err(reason) => self.log.skipped.add(line.number, reason, line.text),
        }
    }

    fn finish(mut self) -> Log {
        let log = &mut self.log;
        log.has_sizes = self.parser.has_sizes();
        log.files = FileSet::new(self.sizes);
        if !log.requests.is_sorted_by_key(|r| r.time_us) {
            log.requests.sort_by_key(|r| r.time_us);
            log.resorted = true;
        }
        log.requests.shrink_to_fit();
        self.log
    }
}

/// Appends one parsed line to `log`.
fn add(log: &mut Log, sizes: &mut Vec<u64>, entry: &Entry<'_>) {
    let client = log.clients.insert(entry.client);
    let file = log.urls.insert(entry.url);
    if file as usize == sizes.len() {
        sizes.push(0);
    }
    if entry.bytes.is_none() {
        log.dashes += 1;
    }
    let bytes = if has_body(entry.status) {
        entry.bytes.unwrap_or(0)
    } else {
        0
    };
    let size = &mut sizes[file as usize];
    *size = bytes.max(*size);
    let Entry {
        time_us,
        status,
        method,
        ..
    } = *entry;
    log.requests.push(Request {
        time_us,
        bytes,
        client,
        file,
        status,
        method,
    });
}

/// Whether a response with this status may have a body: RFC 9110 section 6.4.1.
const fn has_body(status: u16) -> bool {
    !matches!(status, 100..=199 | 204 | 304)
}

#[cfg(test)]
mod tests;
