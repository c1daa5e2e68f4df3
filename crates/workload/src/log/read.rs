//! Conversion of lines to a [`Log`].

use super::clients::Clients;
use super::compression::other_than_a_log;
use super::detect::{SAMPLE_LINES, detect};
use super::error::LogError;
use super::lines::{Lines, RawLine};
use super::names::Names;
use super::parse::{Entry, Parsed, Parser};
use super::skipped::{SkipReason, Skipped};
use super::spec::FormatSpec;
use super::wrapper::Wrapper;
use super::{Format, Log, Method, Request, open};
use crate::source::FileSet;
use std::io::{self, Read};
use std::path::Path;

/// Number of lines between two checks for cancellation.
const LINES_A_LOOK: u64 = 1024;

/// Options for reading a log.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// The format; `None` to detect it from the first lines.
    pub format: Option<FormatSpec>,
    /// Whether to accept a log of which more than half is skipped.
    pub allow_skipped: bool,
    /// Returns whether the caller has cancelled reading; called regularly.
    pub cancelled: Option<&'a dyn Fn() -> bool>,
}

impl Log {
    /// Reads the log at `path`, or standard input if that is `-`. Compression (bzip2, gzip, xz, Zstandard, none) is detected from the
    /// content, and the format from the first lines.
    ///
    /// # Errors
    /// If the file cannot be read, is in no known format, or most lines cannot be parsed.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        Self::read_with(path, &ReadOptions::default())
    }

    /// Reads the log at `path` with `options`.
    ///
    /// # Errors
    /// As [`Self::read`], or reading was cancelled.
    pub fn read_with(path: &Path, options: &ReadOptions<'_>) -> Result<Self, LogError> {
        let file = open::open(path).map_err(|source| LogError::Io {
            path: path.to_owned(),
            line: 0,
            source,
        })?;
        Self::from_reader(path, file, options)
    }

    /// Reads a log from `source`; `path` is used in error messages.
    ///
    /// # Errors
    /// As [`Self::read_with`].
    pub fn from_reader(
        path: &Path,
        source: impl Read,
        options: &ReadOptions<'_>,
    ) -> Result<Self, LogError> {
        let io_error = |line| {
            move |source: io::Error| LogError::Io {
                path: path.to_owned(),
                line,
                source,
            }
        };
        let (start, reader) = open::decompress(source).map_err(io_error(0))?;
        if let Some((what, remedy)) = other_than_a_log(&start) {
            return Err(LogError::Other {
                path: path.to_owned(),
                what,
                remedy,
            });
        }
        let mut lines = Lines::new(reader);
        let mut head = Vec::new();
        let format = match &options.format {
            Some(format) => format.clone(),
            None => {
                head = lines.take_head(SAMPLE_LINES).map_err(io_error(0))?;
                FormatSpec::detected(detect(path, &head, options.allow_skipped)?)
            }
        };
        let mut builder = LogBuilder::new(&format, options.format.is_none());
        for line in &head {
            builder.line(line.as_raw());
        }
        loop {
            let done = lines.number();
            if done.is_multiple_of(LINES_A_LOOK) && options.cancelled.is_some_and(|asked| asked()) {
                return Err(LogError::Cancelled {
                    path: path.to_owned(),
                });
            }
            match lines.next().map_err(io_error(done))? {
                Some(line) => builder.line(line),
                None => break,
            }
        }
        builder.finish().accept(path, options.allow_skipped)
    }

    /// Returns the log, unless it is empty or mostly skipped.
    fn accept(self, path: &Path, allow_skipped: bool) -> Result<Self, LogError> {
        let path = path.to_owned();
        let format = self.format;
        if self.requests.is_empty() && self.skipped.lines() == self.skipped.count(SkipReason::Blank)
        {
            return Err(LogError::Empty { path });
        }
        if self.requests.is_empty() {
            let skipped = Box::new(self.skipped);
            return Err(LogError::NoRequests {
                path,
                format,
                skipped,
            });
        }
        if self.skipped.share() > 0.5 && !allow_skipped {
            let skipped = Box::new(self.skipped);
            return Err(LogError::MostlySkipped {
                path,
                format,
                skipped,
            });
        }
        Ok(self)
    }
}

/// Collects parsed lines into a [`Log`].
struct LogBuilder {
    /// The log's format, followed by the formats that single lines may have.
    parsers: Vec<Parser>,
    wrapper: Wrapper,
    requests: Requests,
}

/// What was read so far.
struct Requests {
    log: Log,
    sizes: Vec<u64>,
    clients: Clients,
}

impl LogBuilder {
    /// Creates a builder for this format; lines of other formats are read if it was `detected`.
    fn new(format: &FormatSpec, detected: bool) -> Self {
        let others = Format::ALL.into_iter().filter(|&other| {
            detected && other.mixes() && other != format.format() && format.format() != Format::Epa
        });
        let others = others.filter_map(FormatSpec::named);
        let parsers = std::iter::once(format.clone()).chain(others);
        Self {
            parsers: parsers.map(|format| Parser::new(&format)).collect(),
            wrapper: Wrapper::new(),
            requests: Requests {
                log: Log::empty(format.format()),
                sizes: Vec::new(),
                clients: Clients::default(),
            },
        }
    }

    fn line(&mut self, line: RawLine<'_>) {
        self.requests.log.skipped.count_line();
        let taken = match line.truncated {
            true => Err(SkipReason::TooLong),
            false => self.take(line.text),
        };
        if let Err(reason) = taken {
            let skipped = &mut self.requests.log.skipped;
            skipped.add(line.number, reason, line.text);
        }
    }

    /// Reads the request of a line in the log's format, in another format, or inside added text.
    fn take(&mut self, text: &[u8]) -> Result<(), SkipReason> {
        let reason = match self.requests.take(&mut self.parsers[0], text) {
            Ok(()) => return Ok(()),
            Err(reason @ (SkipReason::Blank | SkipReason::NoRequest)) => return Err(reason),
            Err(reason) => reason,
        };
        let layers = self.wrapper.layers(text);
        let texts = || std::iter::once(text).chain(layers.iter().map(|layer| &**layer));
        let (mut other, mut no_request) = (0, false);
        for parser in &mut self.parsers {
            for (depth, text) in texts().enumerate() {
                let taken = self.requests.take(parser, text);
                if taken.is_ok() {
                    self.requests.log.unwrapped += u64::from(depth > 0);
                    self.requests.log.other_formats += other;
                    return Ok(());
                }
                no_request |= taken == Err(SkipReason::NoRequest);
            }
            other = 1;
        }
        Err(if no_request {
            SkipReason::NoRequest
        } else {
            reason
        })
    }

    fn finish(self) -> Log {
        let Requests {
            mut log,
            sizes,
            clients,
        } = self.requests;
        clients.settle(&mut log);
        log.has_sizes = self.parsers[0].has_sizes();
        log.files = FileSet::new(sizes);
        if !log.requests.is_sorted_by_key(|r| r.time_us) {
            log.requests.sort_by_key(|r| r.time_us);
            log.resorted = true;
        }
        log.requests.shrink_to_fit();
        log
    }
}

impl Log {
    /// Creates a log of this format without requests.
    pub(crate) fn empty(format: Format) -> Self {
        Self {
            format,
            requests: Vec::new(),
            files: FileSet::default(),
            urls: Names::default(),
            clients: Names::default(),
            skipped: Skipped::default(),
            has_sizes: true,
            dashes: 0,
            bodiless_bytes: 0,
            forwarded: 0,
            perhaps_forwarded: 0,
            other_formats: 0,
            unwrapped: 0,
            resorted: false,
        }
    }
}

impl Requests {
    /// Reads the request of a line, if the line has one in the parser's format.
    fn take(&mut self, parser: &mut Parser, text: &[u8]) -> Result<(), SkipReason> {
        if let Parsed::Entry(entry) = parser.parse(text)? {
            self.add(&entry);
        }
        Ok(())
    }

    fn add(&mut self, entry: &Entry<'_>) {
        let log = &mut self.log;
        let client = log.clients.insert(entry.client);
        self.clients.note(log.requests.len(), entry.forwarded);
        let file = log.urls.insert(entry.url);
        if file as usize == self.sizes.len() {
            self.sizes.push(0);
        }
        log.dashes += u64::from(entry.bytes.is_none());
        let Entry {
            time_us,
            status,
            method,
            ..
        } = *entry;
        let logged = entry.bytes.unwrap_or(0);
        let bytes = if has_body(method, status) { logged } else { 0 };
        log.bodiless_bytes += logged - bytes;
        let size = &mut self.sizes[file as usize];
        *size = bytes.max(*size);
        log.requests.push(Request {
            time_us,
            bytes,
            client,
            file,
            status,
            method,
        });
    }
}

/// Returns whether a response may have a body: RFC 9110 section 6.4.1.
const fn has_body(method: Method, status: u16) -> bool {
    !matches!(method, Method::Head) && !matches!(status, 100..=199 | 204 | 304)
}
