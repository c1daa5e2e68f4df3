//! Access logs: readers of every common format, which produce one compact table.
//!
//! # What is replayed
//! The content bytes of a request's response are taken from the log: the logged byte count, 0 where the log has `-`, and 0 for the statuses that
//! have no body (304 Not Modified, 204, 1xx; RFC 9110 section 6.4.1) and for HEAD, no matter which number is logged for them. A file is a distinct
//! URL, including the query. Its size is the largest content seen for that URL; a request with a smaller logged size (206 Partial Content, an
//! aborted transfer) is replayed with its own size, as the first bytes of the file.
//!
//! # Malformed lines
//! A line that cannot be parsed is skipped and counted by reason; the first line of each reason is stored with its number and text:
//! [`Skipped`]. A file of which less than half can be parsed is a [`LogError`], unless that is allowed.
//!
//! # Clients
//! A client is the address or name in the format's field for it; a line without a client is skipped. What syslog, container runtimes and
//! log services put around lines is removed by rule; other text in front of lines makes them unreadable ([`LogError::UnknownFormat`], with
//! a format that would read them where one is found).
//!
//! If a log has X-Forwarded-For, its first address is the client ([`Log::forwarded`]) instead of the proxy that opened the connection. Some
//! formats say where it is: a field of that name, a list of addresses at the start of a line. An address in quotes behind the user agent,
//! among HAProxy's captured headers, or in front of the client may be X-Forwarded-For or something else, such as the server to which a
//! proxy passed the request. The values of all lines decide ([`Log::warnings`] if they do not).

mod clients;
mod compression;
mod detect;
mod error;
mod fields;
mod format;
mod guess;
mod kept;
mod lines;
mod names;
pub(crate) mod open;
mod parse;
mod read;
mod skipped;
mod spec;
mod text;
mod warning;
mod wrapper;
mod write;

pub use compression::Compression;
pub use error::{Fitting, LogError, NotReplayable};
pub use fields::Field;
pub use format::Format;
pub use kept::Logs;
pub use names::Names;
pub use open::{content, give_standard_input, standard_input};
pub use read::ReadOptions;
pub use skipped::{SkipReason, Skipped, SkippedFor};
pub use spec::{FormatSpec, SpecError};
pub use write::{Layout, write_log};

use crate::source::FileSet;
use serde::{Deserialize, Serialize};

/// One logged request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Microseconds since 1970 in UTC, or by the server's clock in logs without a time zone. The EPA format has no month; the time is then
    /// in microseconds since day 0 of the month in which the log starts.
    pub time_us: u64,
    /// Content bytes of the response, by the module's rule.
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
    /// GET; also HTTP/0.9 requests, and requests in formats without a method.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// Any other method.
    Other,
}

/// An access log in memory, sorted by time.
#[derive(Clone, Debug)]
pub struct Log {
    /// The format as which the log was read.
    pub format: Format,
    /// All requests by time; requests of the same time are in file order.
    pub requests: Vec<Request>,
    /// The size of every file (distinct URL).
    pub files: FileSet,
    /// The URL of every file.
    pub urls: Names,
    /// Names or addresses of the clients.
    pub clients: Names,
    /// Lines that could not be parsed.
    pub skipped: Skipped,
    /// Whether the log has response sizes.
    pub has_sizes: bool,
    /// Number of requests whose size was logged as `-` and counts as 0.
    pub dashes: u64,
    /// Bytes logged for responses without a body, by their status or to HEAD; they count as 0.
    pub bodiless_bytes: u64,
    /// Number of requests whose client is the first address of X-Forwarded-For.
    pub forwarded: u64,
    /// Number of requests with an address that may or may not be X-Forwarded-For. Their client is the peer of the connection.
    pub perhaps_forwarded: u64,
    /// Number of requests in a line of another format than [`Self::format`].
    pub other_formats: u64,
    /// Number of requests in lines to which syslog, a container runtime or a log service has added text.
    pub unwrapped: u64,
    /// Whether the lines had to be sorted by time.
    pub resorted: bool,
}

impl Log {
    /// Checks that the log can be replayed.
    ///
    /// # Errors
    /// The reason why the log cannot be replayed.
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

    /// Returns the content bytes of all responses together.
    pub fn content_bytes(&self) -> u64 {
        self.requests.iter().map(|r| r.bytes).sum()
    }

    /// Returns the times of the first and of the last request in microseconds, or `None` if there are no requests.
    pub fn time_range_us(&self) -> Option<(u64, u64)> {
        Some((
            self.requests.first()?.time_us,
            self.requests.last()?.time_us,
        ))
    }
}

#[cfg(test)]
mod tests;
