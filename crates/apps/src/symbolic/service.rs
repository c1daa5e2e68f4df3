//! Any of the symbolic protocols, because an experiment chooses the protocol of a simulated server.

use super::remote_files::Upload;
use super::{LiveHttp, RemoteFileCalls, SymbolicHttp};
use crate::web::{Http, Parsed, Request};
use baton_wire::Symbolic;
use std::collections::VecDeque;

/// The protocol of a server.
#[derive(Clone, Debug)]
pub enum Service {
    /// A web server: files and dynamic content.
    Web(SymbolicHttp),
    /// A live stream.
    Live(LiveHttp),
    /// A server of remote files.
    RemoteFiles(RemoteFileCalls),
}

/// A service's state of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    /// For a live stream: the number of the last block that was sent to the client.
    block: u32,
    /// For remote files: the write in progress.
    upload: Option<Upload>,
}

impl Http<Symbolic> for Service {
    type Session = Session;

    fn parse(
        &mut self,
        session: &mut Session,
        received: &mut VecDeque<Symbolic>,
    ) -> Parsed<Symbolic> {
        match self {
            Self::Web(http) => http.parse(&mut (), received),
            Self::Live(http) => http.parse(&mut session.block, received),
            Self::RemoteFiles(calls) => calls.parse(&mut session.upload, received),
        }
    }

    fn head(&mut self, request: &Request) -> Symbolic {
        match self {
            Self::Web(http) => http.head(request),
            Self::Live(http) => http.head(request),
            Self::RemoteFiles(calls) => calls.head(request),
        }
    }

    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<Symbolic> {
        match self {
            Self::Web(http) => http.content(request, offset, len),
            Self::Live(http) => http.content(request, offset, len),
            Self::RemoteFiles(calls) => calls.content(request, offset, len),
        }
    }
}
