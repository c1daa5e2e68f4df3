//! What the server needs to know of HTTP. Requests are symbols in the simulator and bytes live.

use baton_host::FileId;
use std::collections::VecDeque;

/// A request for a file, or for dynamic content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub file: FileId,
    /// Content bytes of the response.
    pub content_len: u64,
    /// The content is produced for this request, not taken from the file cache.
    pub dynamic: bool,
    /// Bytes of the request.
    pub len: u32,
}

/// What stands at the start of what a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not yet a whole request.
    Incomplete,
    /// A request; its bytes were taken.
    Request(Request),
    /// No request.
    Bad,
}

/// Reads requests and makes responses.
pub trait Http<P> {
    /// Takes one request off the front of `received`, if it is there as a whole.
    fn parse(&mut self, received: &mut VecDeque<P>) -> Parsed;

    /// The header of the response.
    fn head(&mut self, request: &Request) -> P;

    /// `len` bytes of the response's content from `offset` on; at most 2 GiB.
    fn content(&mut self, request: &Request, offset: u64, len: u32) -> P;
}
