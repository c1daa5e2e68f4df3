//! Symbolic HTTP for the simulator: the value of a byte follows from the name of its range. So no bytes need to be stored, but every
//! received byte can be checked, and rendered for display.
//!
//! The source of a range has, from the top: 5 bits of [`Kind`], 3 bits of [`Program`], 24 bits of file, 1 bit that is set in the last
//! exchange of a connection, 31 bits of content length. All ranges of one exchange differ only in the kind, except for content of files:
//! that is the same for all requests, whatever their length, so its source has no length. Its offset has, from the top, 32 bits of
//! *revision* and 32 bits of offset in the file. The revision is the one at which the file's page (4 KB) was last changed, so that pieces
//! of different revisions are never joined.

mod files;
mod live;
mod reader;
mod remote_files;
mod render;
mod service;

#[cfg(test)]
mod tests;

pub use files::SymbolicFiles;
pub use live::LiveHttp;
pub use reader::ResponseReader;
pub use remote_files::{RemoteFileCalls, Write, read_call, write_call};
pub use render::render;
pub use service::{Service, Session};

use crate::web::{Http, Parsed, Program, Request};
use baton_host::FileId;
use baton_wire::Symbolic;
use std::collections::VecDeque;

/// The part of an exchange to which a range belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A request.
    Request = 1,
    /// The header of a response.
    Head = 2,
    /// Content from a file.
    File = 3,
    /// Content generated for this response.
    Dynamic = 4,
    /// A call that reads a range of a remote file.
    ReadCall = 5,
    /// A call that writes a range of a remote file; the data to write follows.
    WriteCall = 6,
    /// The header of the reply to a read or a write call.
    Reply = 7,
    /// Data to write.
    Upload = 8,
}

impl Kind {
    /// Returns whether ranges of this kind are content rather than a header of the application's protocol.
    pub fn is_content(self) -> bool {
        matches!(self, Self::File | Self::Dynamic | Self::Upload)
    }

    /// Returns whether ranges of this kind begin an exchange.
    fn is_request(self) -> bool {
        matches!(self, Self::Request | Self::ReadCall | Self::WriteCall)
    }
}

/// Exclusive upper limit of file numbers.
pub const FILES: u32 = 1 << 24;
/// Exclusive upper limit of the content bytes of a response.
pub const CONTENT_LIMIT: u64 = 1 << 31;
/// Size of every response's header in bytes.
pub const HEAD_BYTES: u32 = 250;
/// Minimum size of a request in bytes.
pub const LEAST_REQUEST_BYTES: u32 = 250;
/// Maximum size of a request in bytes, if a program needs no additional data from the client.
pub const MOST_REQUEST_BYTES: u32 = 300;
/// Size of the cookie that identifies the client, in requests for advertisements and in requests with forms. An estimate.
const COOKIE_BYTES: u32 = 80;
/// Size of a form. An estimate.
const FORM_BYTES: u32 = 100;

const KIND_SHIFT: u32 = 59;
const PROGRAM_SHIFT: u32 = 56;
const FILE_SHIFT: u32 = 32;
/// Set in the source of the exchange that is the last of its connection.
const LAST: u64 = CONTENT_LIMIT;
const LENGTH_MASK: u64 = CONTENT_LIMIT - 1;

/// The decoded source of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exchange {
    kind: Kind,
    file: u32,
    content_len: u64,
    program: Option<Program>,
    /// Whether the connection ends with the exchange.
    last: bool,
}

impl Exchange {
    fn of(source: u64) -> Option<Self> {
        let kind = match source >> KIND_SHIFT {
            1 => Kind::Request,
            2 => Kind::Head,
            3 => Kind::File,
            4 => Kind::Dynamic,
            5 => Kind::ReadCall,
            6 => Kind::WriteCall,
            7 => Kind::Reply,
            8 => Kind::Upload,
            _ => return None,
        };
        let file = (source >> FILE_SHIFT) as u32 & (FILES - 1);
        let program = match source >> PROGRAM_SHIFT & 7 {
            0 => None,
            1 => Some(Program::Answer),
            2 => Some(Program::Page),
            3 => Some(Program::Cgi),
            4 => Some(Program::Advertisement),
            5 => Some(Program::Post),
            _ => return None,
        };
        Some(Self {
            kind,
            file,
            content_len: source & LENGTH_MASK,
            program,
            last: source & LAST != 0,
        })
    }

    fn source(self, kind: Kind) -> u64 {
        let program = self.program.map_or(0, |program| program as u64);
        (kind as u64) << KIND_SHIFT
            | program << PROGRAM_SHIFT
            | u64::from(self.file) << FILE_SHIFT
            | (u64::from(self.last) * LAST)
            | self.content_len
    }

    fn content_kind(self) -> Kind {
        match self.program {
            Some(_) => Kind::Dynamic,
            None => Kind::File,
        }
    }

    /// Returns the length of the request. In HTTP, the lengths of the name and of the client's headers vary.
    fn request_len(self) -> u32 {
        match self.kind {
            Kind::ReadCall => remote_files::READ_CALL_BYTES,
            Kind::WriteCall => remote_files::WRITE_CALL_BYTES,
            _ => {
                let varies = MOST_REQUEST_BYTES - LEAST_REQUEST_BYTES + 1;
                let line = LEAST_REQUEST_BYTES + self.file.wrapping_mul(0x9e37_79b1) % varies;
                line + self.cookie_len() + self.form_len()
            }
        }
    }

    /// Returns the number of bytes of the request that identify the client.
    fn cookie_len(self) -> u32 {
        match self.program {
            Some(Program::Advertisement | Program::Post) => COOKIE_BYTES,
            _ => 0,
        }
    }

    /// Returns the number of bytes after the header of the request.
    fn form_len(self) -> u32 {
        match self.program {
            Some(Program::Post) => FORM_BYTES,
            _ => 0,
        }
    }

    /// Returns the header of the response. The response to a write has no content after the header.
    fn head(self) -> Symbolic {
        let (kind, content_len, len) = match self.kind {
            Kind::ReadCall => (
                Kind::Reply,
                self.content_len,
                remote_files::READ_REPLY_BYTES,
            ),
            Kind::WriteCall => (Kind::Reply, 0, remote_files::WRITE_REPLY_BYTES),
            _ => (Kind::Head, self.content_len, HEAD_BYTES),
        };
        let exchange = Self {
            content_len,
            ..self
        };
        Symbolic {
            source: exchange.source(kind),
            offset: 0,
            len,
        }
    }

    /// Returns the number of content bytes in the response.
    fn response_len(self) -> u64 {
        match self.kind {
            Kind::WriteCall => 0,
            _ => self.content_len,
        }
    }

    fn content(self, offset: u64, len: u32) -> Symbolic {
        debug_assert!(
            offset + u64::from(len) <= self.content_len,
            "the range lies within the content"
        );
        match self.content_kind() {
            Kind::File => file_content(self.file, 0, offset, len),
            kind => Symbolic {
                source: self.source(kind),
                offset,
                len,
            },
        }
    }
}

const REVISION_SHIFT: u32 = 32;
const OFFSET_MASK: u64 = (1 << REVISION_SHIFT) - 1;

/// Returns the range for content of a file: `len` bytes from `offset` on, unchanged since `revision`.
fn file_content(file: u32, revision: u32, offset: u64, len: u32) -> Symbolic {
    debug_assert!(
        offset + u64::from(len) <= CONTENT_LIMIT,
        "content has less than {CONTENT_LIMIT} bytes"
    );
    Symbolic {
        source: (Kind::File as u64) << KIND_SHIFT | u64::from(file) << FILE_SHIFT,
        offset: u64::from(revision) << REVISION_SHIFT | offset,
        len,
    }
}

/// Returns the revision in which content of a file was last changed; 0 for all other ranges.
pub fn revision(data: &Symbolic) -> u32 {
    (data.offset >> REVISION_SHIFT) as u32
}

/// Returns the offset within the file, header or request.
pub fn offset(data: &Symbolic) -> u64 {
    data.offset & OFFSET_MASK
}

/// Returns the kind of a range. Panics if the range was not created by this module.
pub fn kind(data: &Symbolic) -> Kind {
    Exchange::of(data.source)
        .expect("a range of an exchange")
        .kind
}

/// Returns the file to which a range belongs. Panics if the range was not created by this module.
pub fn file(data: &Symbolic) -> FileId {
    FileId(
        Exchange::of(data.source)
            .expect("a range of an exchange")
            .file,
    )
}

/// Returns a request for `content_len` bytes of `file`, or of the output of `program` for it. Panics when `file` is not below [`FILES`] or
/// `content_len` not below [`CONTENT_LIMIT`].
pub fn request(file: u32, content_len: u64, program: Option<Program>) -> Symbolic {
    assert!(file < FILES, "file {file} has a number below {FILES}");
    assert!(
        content_len < CONTENT_LIMIT,
        "content has less than {CONTENT_LIMIT} bytes, not {content_len}"
    );
    let exchange = Exchange {
        kind: Kind::Request,
        file,
        content_len,
        program,
        last: false,
    };
    Symbolic {
        source: exchange.source(Kind::Request),
        offset: 0,
        len: exchange.request_len(),
    }
}

/// Returns the request as the last of its connection, which the server then closes: with `Connection: close` (RFC 2616, 14.10), or in
/// HTTP/1.0 without `Keep-Alive` (RFC 1945, 1.3).
pub fn last(request: Symbolic) -> Symbolic {
    Symbolic {
        source: request.source | LAST,
        ..request
    }
}

/// Symbolic HTTP for [`crate::web::Server`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SymbolicHttp;

impl Http<Symbolic> for SymbolicHttp {
    type Session = ();

    fn parse(&mut self, _session: &mut (), received: &mut VecDeque<Symbolic>) -> Parsed<Symbolic> {
        let Some(first) = received.front_mut() else {
            return Parsed::Incomplete;
        };
        let exchange = match Exchange::of(first.source) {
            Some(exchange) if exchange.kind == Kind::Request && first.offset == 0 => exchange,
            _ => return Parsed::Bad,
        };
        let len = exchange.request_len();
        if first.len < len {
            // The rest of the request may be in a range of its own; any other range after the first is an error.
            let broken = received.len() > 1;
            return if broken {
                Parsed::Bad
            } else {
                Parsed::Incomplete
            };
        }
        if first.len > len {
            return Parsed::Bad;
        }
        received.pop_front();
        let Exchange {
            file,
            content_len,
            program,
            last,
            ..
        } = exchange;
        Parsed::Request(Request {
            file: FileId(file),
            content_len,
            program,
            len,
            last,
        })
    }

    fn head(&mut self, request: &Request) -> Symbolic {
        exchange(request).head()
    }

    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<Symbolic> {
        Some(exchange(request).content(offset, len))
    }
}

fn exchange(request: &Request) -> Exchange {
    let &Request {
        file,
        content_len,
        program,
        last,
        ..
    } = request;
    Exchange {
        kind: Kind::Request,
        file: file.0,
        content_len,
        program,
        last,
    }
}
