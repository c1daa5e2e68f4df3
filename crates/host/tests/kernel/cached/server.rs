//! The server's application: answers requests for parts of files, in order.

use super::client::{HEAD_BYTES, REQUEST_BYTES, Request, padding};
use super::files::ByteFiles;
use super::{Random, World};
use baton_host::{Access, FileContent, FileId, Gone, Op, Pool, Ready, Receive, SocketId, Sockets};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// A response under way.
#[derive(Debug)]
struct Response {
    file: FileId,
    /// Content that is still to be given to the socket.
    offset: u64,
    end: u64,
    /// What comes before and after it, copied.
    head: Bytes,
    tail: Bytes,
}

/// One connection.
#[derive(Debug, Default)]
struct Served {
    received: BytesMut,
    response: Option<Response>,
    ended: bool,
}

/// What is to become of a connection.
#[derive(PartialEq)]
enum Next {
    Wait,
    Close,
}

/// The application.
#[derive(Debug, Default)]
pub struct Server {
    connections: BTreeMap<SocketId, Served>,
    /// Connections that it closed because a file had become shorter than it had said.
    pub shrunk: u64,
}

impl Server {
    pub fn step(
        &mut self,
        sockets: &mut impl Sockets<Bytes>,
        ready: Ready,
        files: &ByteFiles,
        random: &mut Random,
    ) {
        sockets.work(Op::AppLoop, 1);
        sockets.touch(Pool::AppGlobal, 0, 0, 64, Access::Read);
        let id = match ready {
            Ready::Acceptable => {
                let Some(id) = sockets.accept() else { return };
                self.connections.insert(id, Served::default());
                id
            }
            Ready::Readable(id) | Ready::Writable(id) => id,
        };
        let Some(served) = self.connections.get_mut(&id) else {
            return;
        };
        let next = served.advance(sockets, id, files, random, &mut self.shrunk);
        if next == Next::Close {
            self.connections.remove(&id);
            sockets.close(id);
        }
    }
}

impl Served {
    fn advance(
        &mut self,
        sockets: &mut impl Sockets<Bytes>,
        id: SocketId,
        files: &ByteFiles,
        random: &mut Random,
        shrunk: &mut u64,
    ) -> Next {
        loop {
            match sockets.receive(id, 1 + random.below(64) as usize) {
                Receive::Data(data) => self.received.extend_from_slice(&data),
                Receive::WouldBlock => break,
                Receive::EndOfStream => {
                    self.ended = true;
                    break;
                }
                Receive::Gone => return Next::Close,
            }
        }
        loop {
            if self.response.is_none() {
                if self.received.len() < REQUEST_BYTES {
                    return if self.ended { Next::Close } else { Next::Wait };
                }
                let request = Request::decode(&self.received.split_to(REQUEST_BYTES));
                self.response = Some(Response::to(&request, files));
            }
            if random.percent(10) {
                sockets.set_cork(id, random.percent(50));
            }
            match self.send(sockets, id, random) {
                Ok(true) => self.response = None,
                Ok(false) => return Next::Wait,
                Err(Gone) => {
                    *shrunk += 1;
                    return Next::Close;
                }
            }
            sockets.set_cork(id, false);
        }
    }

    /// Gives the socket what it takes; true when the response is complete.
    fn send(
        &mut self,
        sockets: &mut impl Sockets<Bytes>,
        id: SocketId,
        random: &mut Random,
    ) -> Result<bool, Gone> {
        let Some(response) = &mut self.response else {
            return Ok(true);
        };
        if !copied(sockets, id, &mut response.head)? {
            return Ok(false);
        }
        while response.offset < response.end {
            let len = (1 + random.below(20_000)).min(response.end - response.offset) as usize;
            // The kernel finds the content itself; what the application gives says no more than how much.
            let named = Bytes::from(vec![0xee; len]);
            let taken = sockets.send_file(
                id,
                FileContent::new(response.file, response.offset, len as u64),
                named,
            )?;
            response.offset += taken as u64;
            if taken < len {
                return Ok(false);
            }
        }
        copied(sockets, id, &mut response.tail)
    }
}

/// Sends what is left of `data`; true when nothing is.
fn copied(sockets: &mut impl Sockets<Bytes>, id: SocketId, data: &mut Bytes) -> Result<bool, Gone> {
    if !data.is_empty() {
        let taken = sockets.send(id, data.clone())?;
        *data = data.slice(taken..);
    }
    Ok(data.is_empty())
}

impl Response {
    fn to(request: &Request, files: &ByteFiles) -> Self {
        let file_len = files.history().len(request.file);
        let offset = request.offset.min(file_len);
        let end = (offset + request.len).min(file_len);
        let mut head = BytesMut::with_capacity(HEAD_BYTES);
        head.extend_from_slice(&offset.to_be_bytes());
        head.extend_from_slice(&(end - offset).to_be_bytes());
        Self {
            file: request.file,
            offset,
            end,
            head: head.freeze(),
            tail: padding(request.padding),
        }
    }
}

impl World {
    /// The application handles what is ready, unless it sleeps.
    pub fn server_acts(&mut self) -> bool {
        if self.kernel.application_sleeps() || !self.kernel.has_ready() {
            return false;
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.kernel.wait(&mut super::BoundsMeter, &mut ready, 1);
        for event in ready.drain(..) {
            let mut meter = super::BoundsMeter;
            let mut sockets = self.kernel.sockets(self.now, &mut meter);
            self.server
                .step(&mut sockets, event, &self.files, &mut self.random);
            self.kernel_settles();
        }
        self.ready = ready;
        true
    }
}
