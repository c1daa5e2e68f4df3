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
//! A line that does not parse is skipped and counted by reason, the first of each with its number and text: [`Skipped`]. A file of
//! which less than half parses is a [`LogError`], unless that is allowed.
//!
//! # Clients
//! Where a log has X-Forwarded-For, its first address is the client ([`Log::forwarded`]), and not the proxy that the connection came
//! from: in a field of that name, in front of a Common or Combined line, as the third quoted field behind it (nginx's `main`), and as
//! a captured header of HAProxy.

mod compression;
mod detect;
mod error;
mod fields;
mod format;
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
mod write;

pub use compression::Compression;
pub use error::{Fitting, LogError, NotReplayable};
pub use fields::Field;
pub use format::Format;
pub use kept::Logs;
pub use names::Names;
pub use open::{give_standard_input, standard_input};
pub use read::ReadOptions;
pub use skipped::{SkipReason, Skipped, SkippedFor};
pub use spec::{FormatSpec, SpecError};
pub use write::{Layout, write_log};

use crate::source::FileSet;
use serde::{Deserialize, Serialize};

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
    /// Bytes logged for responses whose status has no body, which are taken as 0.
    pub bodiless_bytes: u64,
    /// Requests whose client is the first address of X-Forwarded-For.
    pub forwarded: u64,
    /// Whether the lines had to be sorted by time.
    pub resorted: bool,
}

impl Log {
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

#[cfg(test)]
mod tests;
