//! HTTP in symbols, for the simulator: what a byte is follows from the name of its range, so that nothing has to be stored,
//! yet every byte that arrives can be checked, and rendered when somebody wants to look at it.
//!
//! A range's source has, from the top: 5 bits of [`Kind`], 3 bits of [`Program`], 24 bits of file, 32 bits of content length.
//! All ranges of one exchange differ in the kind only, but for content of files: that is the same whoever asks for how much of it, so
//! its source has no length. Its offset has, from the top, 32 bits of *revision* and 32 bits of offset in the file; the revision is
//! the one at which the file's page (4 KB) was last changed, so that pieces of different revisions never join.

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

/// What a range is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A request.
    Request = 1,
    /// The header of a response.
    Head = 2,
    /// Content from a file.
    File = 3,
    /// Content made for this response.
    Dynamic = 4,
    /// A call that reads a range of a remote file.
    ReadCall = 5,
    /// A call that writes one; what is to be written follows.
    WriteCall = 6,
    /// The header of the reply to either.
    Reply = 7,
    /// What is to be written.
    Upload = 8,
}

impl Kind {
    /// Whether a range of this kind is content, and not a header of the application's protocol.
    pub fn is_content(self) -> bool {
        matches!(self, Self::File | Self::Dynamic | Self::Upload)
    }

    /// Whether it begins an exchange.
    fn is_request(self) -> bool {
        matches!(self, Self::Request | Self::ReadCall | Self::WriteCall)
    }
}

/// Files have numbers below this.
pub const FILES: u32 = 1 << 24;
/// A response has less than so many bytes of content.
pub const CONTENT_LIMIT: u64 = 1 << 31;
/// Bytes of every response's header.
pub const HEAD_BYTES: u32 = 250;
/// Requests have at least so many bytes ...
pub const LEAST_REQUEST_BYTES: u32 = 250;
/// ... and at most so many, where a program wants nothing else from the client.
pub const MOST_REQUEST_BYTES: u32 = 300;
/// The cookie by which the client is known, in requests for advertisements and of forms. An estimate.
const COOKIE_BYTES: u32 = 80;
/// A form. An estimate.
const FORM_BYTES: u32 = 100;

const KIND_SHIFT: u32 = 59;
const PROGRAM_SHIFT: u32 = 56;
const FILE_SHIFT: u32 = 32;
const LENGTH_MASK: u64 = u32::MAX as u64;

/// Any part of an exchange, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exchange {
    kind: Kind,
    file: u32,
    content_len: u64,
    program: Option<Program>,
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
        })
    }

    fn source(self, kind: Kind) -> u64 {
        let program = self.program.map_or(0, |program| program as u64);
        (kind as u64) << KIND_SHIFT
            | program << PROGRAM_SHIFT
            | u64::from(self.file) << FILE_SHIFT
            | self.content_len
    }

    fn content_kind(self) -> Kind {
        match self.program {
            Some(_) => Kind::Dynamic,
            None => Kind::File,
        }
    }

    /// Length of its request: in HTTP that of the name and of the client's headers vary.
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

    /// Bytes of its request by which the server knows the client.
    fn cookie_len(self) -> u32 {
        match self.program {
            Some(Program::Advertisement | Program::Post) => COOKIE_BYTES,
            _ => 0,
        }
    }

    /// Bytes behind the header of its request.
    fn form_len(self) -> u32 {
        match self.program {
            Some(Program::Post) => FORM_BYTES,
            _ => 0,
        }
    }

    /// The header of the response. That to a write has no content behind it.
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

    /// Bytes of content in the response.
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

/// The name of content of a file: `len` bytes from `offset` on, as they are since `revision`.
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

/// The revision since which content of a file is what it is; 0 for everything else.
pub fn revision(data: &Symbolic) -> u32 {
    (data.offset >> REVISION_SHIFT) as u32
}

/// The offset within its file, header or request.
pub fn offset(data: &Symbolic) -> u64 {
    data.offset & OFFSET_MASK
}

/// What a range is part of. Panics when it has not been made here.
pub fn kind(data: &Symbolic) -> Kind {
    Exchange::of(data.source)
        .expect("a range of an exchange")
        .kind
}

/// The file a range has to do with. Panics when it has not been made here.
pub fn file(data: &Symbolic) -> FileId {
    FileId(
        Exchange::of(data.source)
            .expect("a range of an exchange")
            .file,
    )
}

/// A request for `content_len` bytes of `file`, or for as many of what a program makes of it. Panics when `file` is not below [`FILES`]
/// or `content_len` not below [`CONTENT_LIMIT`].
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
    };
    Symbolic {
        source: exchange.source(Kind::Request),
        offset: 0,
        len: exchange.request_len(),
    }
}

/// HTTP in symbols, for [`crate::web::Server`].
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
            // More of it may stand in a range of its own; any other range behind it is a breach.
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
            ..
        } = exchange;
        Parsed::Request(Request {
            file: FileId(file),
            content_len,
            program,
            len,
            last: false,
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
        ..
    } = request;
    Exchange {
        kind: Kind::Request,
        file: file.0,
        content_len,
        program,
    }
}
