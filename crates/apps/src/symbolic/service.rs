//! Any of the protocols in symbols: what a simulated server speaks is part of the experiment.

use super::remote_files::Upload;
use super::{LiveHttp, RemoteFileCalls, SymbolicHttp};
use crate::web::{Http, Parsed, Request};
use baton_wire::Symbolic;
use std::collections::VecDeque;

/// What a server speaks.
#[derive(Clone, Debug)]
pub enum Service {
    /// A web server: files and dynamic content.
    Web(SymbolicHttp),
    /// A live stream.
    Live(LiveHttp),
    /// A server of remote files.
    RemoteFiles(RemoteFileCalls),
}

/// What a service remembers of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    /// Of a live stream: the last block that the client was sent.
    block: u32,
    /// Of remote files: a write under way.
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
