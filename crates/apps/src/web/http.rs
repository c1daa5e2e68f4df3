//! The server's interface to HTTP. Requests are symbols in the simulator and bytes when live.

use baton_host::{FileContent, FileId};
use std::collections::VecDeque;

/// Program that generates the content of a response: one that answers immediately, or one of SPECweb99's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Program {
    /// Generates bytes without any input.
    Answer = 1,
    /// Inserts a file into a page.
    Page = 2,
    /// Inserts a file into a page, in a process that is created for the request.
    Cgi = 3,
    /// Inserts an advertisement that suits the client into the page.
    Advertisement = 4,
    /// Logs the data that was sent, and answers with a page.
    Post = 5,
}

/// A request for a file, or for dynamic content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The requested file.
    pub file: FileId,
    /// Content bytes of the response.
    pub content_len: u64,
    /// Program that generates the content, or `None` if the content is taken from the file cache.
    pub program: Option<Program>,
    /// Size of the request in bytes.
    pub len: u32,
    /// Whether the connection ends with the response.
    pub last: bool,
}

/// Result of parsing the start of the received data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<P> {
    /// The request is not complete yet.
    Incomplete,
    /// A request, whose bytes were taken.
    Request(Request),
    /// This number of bytes of an unfinished request was taken, such as part of an upload.
    Taken(u32),
    /// The client sends the rest of the request after it receives this interim response (RFC 9110 15.2).
    Interim {
        /// The response.
        response: P,
        /// Number of bytes taken.
        len: u32,
    },
    /// The data is not a request, and cannot be answered.
    Bad,
}

/// Parses requests and creates responses.
pub trait Http<P> {
    /// State of a connection that is kept between requests, or between parts of one.
    type Session: Default;

    /// Takes one request from the front of `received` if it is complete, or else the part of a request that can be used already.
    fn parse(&mut self, session: &mut Self::Session, received: &mut VecDeque<P>) -> Parsed<P>;

    /// Returns the header of the response.
    fn head(&mut self, request: &Request) -> P;

    /// Returns at most `len` bytes of the response's content from `offset` on; `len` is at most 2 GiB. Called again for bytes that the
    /// socket did not accept. Returns `None` if the content no longer matches the header.
    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<P>;

    /// Identifies the rest of the response's content from `offset` on by its file. Returns `None` if the content belongs to no file under
    /// whose name it may be cached.
    fn name(&self, request: &Request, offset: u64) -> Option<FileContent> {
        let left = request.content_len - offset;
        Some(FileContent::new(request.file, offset, left))
    }

    /// Ends a response, which was either given to the socket or aborted.
    fn finish(&mut self, _request: &Request) {}

    /// Returns the answer to a client that started a request and did not complete it.
    fn too_late(&mut self, _session: &mut Self::Session) -> Option<Request> {
        None
    }

    /// Ends a connection and aborts any unfinished request.
    fn end(&mut self, _session: &mut Self::Session) {}
}
