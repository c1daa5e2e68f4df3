//! Symbolic protocol of a remote file server: calls and replies have the lengths of NFS version 3 over TCP, but nothing else of NFS is
//! modelled.
//!
//! A range of a file that is always read or written as a whole is represented as a separate file.

use super::{CONTENT_LIMIT, Exchange, FILES, Kind};
use crate::web::{Http, Parsed, Request};
use baton_host::FileId;
use baton_wire::Symbolic;
use std::collections::VecDeque;

/// Size of a read call: record mark, RPC call with Unix credentials, file handle, offset and count (RFC 5531, RFC 1813 section 3.3.6). The
/// length of the credentials is assumed.
pub(super) const READ_CALL_BYTES: u32 = 148;
/// Size of a write call, which has in addition the stability of the write and the length of the data (RFC 1813 section 3.3.7).
pub(super) const WRITE_CALL_BYTES: u32 = 156;
/// Size of a read reply: record mark, RPC reply, attributes, count, end of file, length of the data.
pub(super) const READ_REPLY_BYTES: u32 = 132;
/// Size of a write reply: record mark, RPC reply, attributes before and after, count, verifier.
pub(super) const WRITE_REPLY_BYTES: u32 = 164;

/// Returns the length of the header of a reply with `content_len` bytes.
pub(super) fn reply_len(content_len: u64) -> u32 {
    if content_len > 0 {
        READ_REPLY_BYTES
    } else {
        WRITE_REPLY_BYTES
    }
}

/// Returns a call that reads the `len` bytes (at least 1) of `file`. Panics when `file` or `len` is too large.
pub fn read_call(file: u32, len: u64) -> Symbolic {
    call(Kind::ReadCall, file, len)
}

/// Returns a call that writes the `len` bytes (at least 1) of `file`, and the data to write. Panics when `file` or `len` is too large.
pub fn write_call(file: u32, len: u64) -> [Symbolic; 2] {
    let call = call(Kind::WriteCall, file, len);
    let upload = Symbolic {
        source: exchange(Kind::Upload, file, len).source(Kind::Upload),
        offset: 0,
        len: len as u32,
    };
    [call, upload]
}

fn exchange(kind: Kind, file: u32, content_len: u64) -> Exchange {
    Exchange {
        kind,
        file,
        content_len,
        program: None,
        last: false,
    }
}

fn call(kind: Kind, file: u32, len: u64) -> Symbolic {
    assert!(file < FILES, "file {file} has a number below {FILES}");
    assert!(
        (1..CONTENT_LIMIT).contains(&len),
        "a range has 1 to {CONTENT_LIMIT} bytes, not {len}"
    );
    let exchange = exchange(kind, file, len);
    Symbolic {
        source: exchange.source(kind),
        offset: 0,
        len: exchange.request_len(),
    }
}

/// A write by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The file.
    pub file: FileId,
    /// Number of bytes from the start of the file.
    pub len: u64,
}

/// A write whose data has arrived in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    write: Write,
    received: u32,
}

/// The server's side, for [`crate::web::Server`]. The caller carries the writes out before it receives more data.
#[derive(Clone, Debug, Default)]
pub struct RemoteFileCalls {
    writes: VecDeque<Write>,
}

impl RemoteFileCalls {
    /// Returns the oldest write that was received completely and must be carried out.
    pub fn poll_write(&mut self) -> Option<Write> {
        self.writes.pop_front()
    }

    /// Continues an upload.
    fn receive(
        &mut self,
        session: &mut Option<Upload>,
        mut upload: Upload,
        received: &mut VecDeque<Symbolic>,
    ) -> Parsed<Symbolic> {
        let Some(first) = received.front_mut() else {
            return Parsed::Incomplete;
        };
        let expected = exchange(Kind::Upload, upload.write.file.0, upload.write.len);
        let fits = u64::from(first.len) <= upload.write.len - u64::from(upload.received);
        let in_order = first.offset == u64::from(upload.received);
        if first.source != expected.source(Kind::Upload) || !fits || !in_order {
            return Parsed::Bad;
        }
        let len = first.len;
        received.pop_front();
        upload.received += len;
        if u64::from(upload.received) < upload.write.len {
            *session = Some(upload);
            return Parsed::Taken(len);
        }
        *session = None;
        self.writes.push_back(upload.write);
        Parsed::Request(reply(upload.write.file, 0, len))
    }
}

/// Returns the request to answer after another `len` bytes were received; `content_len` is the size of the reply's content, 0 for a write.
fn reply(file: FileId, content_len: u64, len: u32) -> Request {
    Request {
        file,
        content_len,
        program: None,
        len,
        last: false,
    }
}

/// Returns the exchange whose reply answers `request`.
fn replied(request: &Request) -> Exchange {
    let kind = if request.content_len > 0 {
        Kind::ReadCall
    } else {
        Kind::WriteCall
    };
    exchange(kind, request.file.0, request.content_len)
}

impl Http<Symbolic> for RemoteFileCalls {
    type Session = Option<Upload>;

    fn parse(
        &mut self,
        session: &mut Self::Session,
        received: &mut VecDeque<Symbolic>,
    ) -> Parsed<Symbolic> {
        if let Some(upload) = *session {
            return self.receive(session, upload, received);
        }
        let Some(first) = received.front() else {
            return Parsed::Incomplete;
        };
        let call = match Exchange::of(first.source) {
            Some(exchange) if first.offset == 0 => exchange,
            _ => return Parsed::Bad,
        };
        let (len, file) = (call.request_len(), FileId(call.file));
        if !matches!(call.kind, Kind::ReadCall | Kind::WriteCall) || first.len > len {
            return Parsed::Bad;
        }
        if first.len < len {
            return Parsed::Incomplete;
        }
        received.pop_front();
        if call.kind == Kind::ReadCall {
            return Parsed::Request(reply(file, call.content_len, len));
        }
        let write = Write {
            file,
            len: call.content_len,
        };
        *session = Some(Upload { write, received: 0 });
        Parsed::Taken(len)
    }

    fn head(&mut self, request: &Request) -> Symbolic {
        replied(request).head()
    }

    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<Symbolic> {
        Some(replied(request).content(offset, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::ResponseReader;
    use baton_wire::Payload;

    #[test]
    fn a_read_is_answered_with_a_header_and_the_content() {
        let (mut calls, mut session) = (RemoteFileCalls::default(), None);
        let call = read_call(7, 8_192);
        let mut received = VecDeque::from([call]);
        let Parsed::Request(request) = calls.parse(&mut session, &mut received) else {
            panic!("a whole call");
        };
        assert_eq!((request.file, request.content_len), (FileId(7), 8_192));
        assert_eq!(request.len, READ_CALL_BYTES);
        let mut reader = ResponseReader::new(call);
        let mut head = calls.head(&request);
        assert_eq!(head.len, READ_REPLY_BYTES);
        reader.take(&mut head).unwrap();
        reader
            .take(&mut calls.content(&request, 0, 8_192).unwrap())
            .unwrap();
        assert!(reader.is_complete());
        assert_eq!(calls.poll_write(), None);
    }

    #[test]
    fn a_write_is_received_in_parts_and_then_replied_to() {
        let (mut calls, mut session) = (RemoteFileCalls::default(), None);
        let [call, data] = write_call(7, 10_000);
        let mut received = VecDeque::from([call, data.slice(0, 4_000)]);
        assert_eq!(
            calls.parse(&mut session, &mut received),
            Parsed::Taken(WRITE_CALL_BYTES)
        );
        assert_eq!(
            calls.parse(&mut session, &mut received),
            Parsed::Taken(4_000)
        );
        assert_eq!(calls.parse(&mut session, &mut received), Parsed::Incomplete);
        received.push_back(data.slice(4_000, 6_000));
        let Parsed::Request(request) = calls.parse(&mut session, &mut received) else {
            panic!("all of it");
        };
        assert_eq!((request.len, request.content_len), (6_000, 0));
        let written = Write {
            file: FileId(7),
            len: 10_000,
        };
        assert_eq!(calls.poll_write(), Some(written));
        assert_eq!(calls.poll_write(), None);
        let mut reader = ResponseReader::new(call);
        let mut head = calls.head(&request);
        assert_eq!(head.len, WRITE_REPLY_BYTES);
        reader.take(&mut head).unwrap();
        assert!(reader.is_complete());
    }

    #[test]
    fn records_are_rendered_with_their_marks() {
        let mut bytes = Vec::new();
        let [call, data] = write_call(7, 64);
        crate::symbolic::render(&call, &mut bytes);
        crate::symbolic::render(&data, &mut bytes);
        assert_eq!(bytes.len(), 156 + 64);
        let mark = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        assert_eq!(
            mark,
            1 << 31 | (152 + 64),
            "the last fragment, without the mark"
        );
        bytes.clear();
        let mut calls = RemoteFileCalls::default();
        crate::symbolic::render(&calls.head(&reply(FileId(7), 0, 64)), &mut bytes);
        assert_eq!(bytes.len(), WRITE_REPLY_BYTES as usize);
        assert_eq!(bytes[..4], (1_u32 << 31 | 160).to_be_bytes());
    }

    #[test]
    fn invalid_calls_are_refused() {
        let parse = |ranges: &[Symbolic]| {
            let mut received = ranges.iter().copied().collect();
            let (mut calls, mut session) = (RemoteFileCalls::default(), None);
            loop {
                match calls.parse(&mut session, &mut received) {
                    Parsed::Taken(_) => {}
                    other => return other,
                }
            }
        };
        let [call, data] = write_call(7, 10_000);
        let [_, other] = write_call(8, 10_000);
        assert_eq!(parse(&[data]), Parsed::Bad);
        assert_eq!(parse(&[call, other]), Parsed::Bad);
        assert_eq!(parse(&[call, data.slice(1, 9_999)]), Parsed::Bad);
        assert_eq!(parse(&[crate::symbolic::request(1, 10, None)]), Parsed::Bad);
        assert_eq!(parse(&[call.slice(0, 20)]), Parsed::Incomplete);
    }
}
