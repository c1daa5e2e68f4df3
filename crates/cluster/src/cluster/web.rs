//! The web server, unchanged, over requests and responses of a fixed length.

use super::conversation::Script;
use baton_apps::web::{Config, Http, Parsed, Program, Request, Server};
use baton_host::FileId;
use baton_testkit::{Pattern, Random};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;

/// Length of a request: a file, the length of its content, and whether a program generates the content.
const REQUEST_BYTES: usize = 9;
/// Length of the header of a response.
const HEAD_BYTES: usize = 200;
/// Key of the bytes of headers; the keys of files and programs follow.
const HEADS: u64 = 1000;

/// Requests and responses whose bytes follow from file and program.
pub struct FixedHttp;

/// Returns the bytes of the content.
fn content(file: FileId, program: Option<Program>) -> Pattern {
    Pattern::new(HEADS + 1 + u64::from(file.0) * 2 + u64::from(program.is_some()))
}

fn head(file: FileId) -> Bytes {
    Pattern::new(HEADS).piece(file.0.into(), HEAD_BYTES)
}

impl Http<Bytes> for FixedHttp {
    type Session = BytesMut;

    fn parse(&mut self, session: &mut BytesMut, received: &mut VecDeque<Bytes>) -> Parsed<Bytes> {
        let Some(first) = received.front_mut() else {
            return Parsed::Incomplete;
        };
        let len = first.len().min(REQUEST_BYTES - session.len());
        session.put(first.split_to(len));
        if first.is_empty() {
            received.pop_front();
        }
        if session.len() < REQUEST_BYTES {
            return Parsed::Taken(len as u32);
        }
        let word = |at: usize| u32::from_be_bytes(session[at..at + 4].try_into().expect("four"));
        let request = Request {
            file: FileId(word(0)),
            content_len: word(4).into(),
            program: (session[8] != 0).then_some(Program::Answer),
            len: len as u32,
            last: false,
        };
        session.clear();
        Parsed::Request(request)
    }

    fn head(&mut self, request: &Request) -> Bytes {
        head(request.file)
    }

    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<Bytes> {
        Some(content(request.file, request.program).piece(offset, len as usize))
    }
}

/// Returns the server.
pub fn server(random: &mut Random) -> Server<Bytes, FixedHttp> {
    let config = Config {
        cork: random.percent(70),
        ..Config::default()
    };
    Server::with_config(config, FixedHttp)
}

/// Draws some requests; returns them and the responses.
pub fn exchange(random: &mut Random) -> (Script, Script) {
    let (mut requests, mut responses) = (BytesMut::new(), BytesMut::new());
    for _ in 0..1 + random.below(4) {
        let file = FileId(random.below(50) as u32);
        let len = random.one_of(&[0, 700, 1024, 9_000, 60_000]);
        let program = random.percent(30).then_some(Program::Answer);
        requests.put_u32(file.0);
        requests.put_u32(len as u32);
        requests.put_u8(program.is_some().into());
        responses.put(head(file));
        responses.put(&content(file, program).bytes(len)[..]);
    }
    (
        Script::once(requests.freeze()),
        Script::once(responses.freeze()),
    )
}
