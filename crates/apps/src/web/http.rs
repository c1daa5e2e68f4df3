//! What the server needs to know of HTTP. Requests are symbols in the simulator and bytes live.

use baton_host::{FileContent, FileId};
use std::collections::VecDeque;

/// What makes the content of a response for one request: a program that answers at once, or those of SPECweb99.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Program {
    /// Makes bytes of nothing.
    Answer = 1,
    /// Puts a file into a page.
    Page = 2,
    /// The same, in a process that is made for the request.
    Cgi = 3,
    /// Puts an advertisement into the page that suits who asks.
    Advertisement = 4,
    /// Enters what was sent in a log, and answers with a page.
    Post = 5,
}

/// A request for a file, or for dynamic content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub file: FileId,
    /// Content bytes of the response.
    pub content_len: u64,
    /// What produces the content for this request; nothing does where it is taken from the file cache.
    pub program: Option<Program>,
    /// Bytes of the request.
    pub len: u32,
    /// The connection ends with the response.
    pub last: bool,
}

/// What stands at the start of what a client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<P> {
    /// Not yet a whole request.
    Incomplete,
    /// A request; its bytes were taken.
    Request(Request),
    /// So many bytes were taken of a request that goes on, such as part of an upload.
    Taken(u32),
    /// More of the request comes when the client has got this interim response (RFC 9110 15.2).
    Interim {
        /// The response.
        response: P,
        /// Bytes taken.
        len: u32,
    },
    /// No request, and nothing to be said to it.
    Bad,
}

/// Reads requests and makes responses.
pub trait Http<P> {
    /// What is remembered of a connection from one request, or part of one, to the next.
    type Session: Default;

    /// Takes one request off the front of `received`, if it is there as a whole, or that part of one that can be used.
    fn parse(&mut self, session: &mut Self::Session, received: &mut VecDeque<P>) -> Parsed<P>;

    /// The header of the response.
    fn head(&mut self, request: &Request) -> P;

    /// At most `len` bytes of the response's content from `offset` on, where `len` is at most 2 GiB. Asked again from where
    /// the socket took no more. `None` when the content is no longer what the header said.
    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<P>;

    /// What is left of the response's content from `offset` on, as what it is of which file; nothing when it is of none that may be
    /// kept under its name.
    fn name(&self, request: &Request, offset: u64) -> Option<FileContent> {
        let left = request.content_len - offset;
        Some(FileContent::new(request.file, offset, left))
    }

    /// The response is over: given to the socket, or given up.
    fn finish(&mut self, _request: &Request) {}

    /// The answer to a client that began a request and did not go on with it.
    fn too_late(&mut self, _session: &mut Self::Session) -> Option<Request> {
        None
    }

    /// The connection is over; what was begun is given up.
    fn end(&mut self, _session: &mut Self::Session) {}
}
