//! Headers of responses (RFC 9112 4 and 5).

use super::body::Framing;
use super::request::RequestHead;
use super::status::Status;
use bytes::{Bytes, BytesMut};
use std::fmt::Write;

/// The fate of the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The connection stays open for more requests.
    KeepAlive,
    /// The connection stays open, which the header states explicitly, for an HTTP/1.0 client.
    TellKeepAlive,
    /// The connection ends.
    Close,
}

impl After {
    /// Returns the fate that the client requested.
    pub(super) fn of(head: &RequestHead<'_>) -> Self {
        match (head.keep_alive, head.version_10) {
            (false, _) => Self::Close,
            (true, false) => Self::KeepAlive,
            (true, true) => Self::TellKeepAlive,
        }
    }

    /// Closes the connection if the request has a body, which will not be read.
    pub(super) fn last(self, head: &RequestHead<'_>) -> Self {
        if head.body == Framing::Length(0) {
            self
        } else {
            Self::Close
        }
    }
}

/// A response header that is being built.
#[derive(Clone, Debug)]
pub(super) struct Head<'a> {
    pub status: Status,
    pub after: After,
    fields: [&'a str; 3],
    count: usize,
}

impl<'a> Head<'a> {
    pub(super) fn new(status: Status, after: After) -> Self {
        Self {
            status,
            after,
            fields: [""; 3],
            count: 0,
        }
    }

    /// Adds fields, each with its end of line.
    pub(super) fn field(mut self, text: &'a str) -> Self {
        self.fields[self.count] = text;
        self.count += 1;
        self
    }

    /// Writes the header to the end of `buffer` and splits it off.
    pub(super) fn write(
        &self,
        buffer: &mut BytesMut,
        date: &str,
        content_len: Option<u64>,
    ) -> Bytes {
        let outcome = self.write_to(buffer, date, content_len);
        debug_assert!(outcome.is_ok(), "memory takes what is written");
        buffer.split().freeze()
    }

    fn write_to(
        &self,
        out: &mut BytesMut,
        date: &str,
        content_len: Option<u64>,
    ) -> std::fmt::Result {
        let (code, phrase) = (self.status.code(), self.status.name());
        write!(out, "HTTP/1.1 {code} {phrase}\r\nServer: baton\r\nDate: ")?;
        out.write_str(date)?;
        out.write_str("\r\n")?;
        for field in self.fields {
            out.write_str(field)?;
        }
        if let Some(len) = content_len {
            write!(out, "Content-Length: {len}\r\n")?;
        }
        out.write_str(match self.after {
            After::KeepAlive => "\r\n",
            After::TellKeepAlive => "Connection: keep-alive\r\n\r\n",
            After::Close => "Connection: close\r\n\r\n",
        })
    }
}
