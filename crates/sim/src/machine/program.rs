//! The program that answers requests, independent of the owner of the sockets: a server of files, streams or ranges, or a generator of
//! pages.

use super::pages::Pages;
use crate::config::ApplicationConfig;
use baton_apps::symbolic::{LiveHttp, RemoteFileCalls, Service, SymbolicHttp};
use baton_apps::{MeteredSockets, web};
use baton_host::{Ready, SocketId};
use baton_wire::{Symbolic, Time};

/// A program on non-blocking sockets.
pub(super) enum Program {
    Server(web::Server<Symbolic, Service>),
    Pages(Pages),
}

impl Program {
    /// Creates the program that `config` describes.
    pub(super) fn new(config: &ApplicationConfig) -> Self {
        let service = match config {
            ApplicationConfig::Web(config) => {
                let service = Service::Web(SymbolicHttp);
                return Self::Server(web::Server::with_config(config.clone(), service));
            }
            ApplicationConfig::Pages(config) => return Self::Pages(Pages::new(*config)),
            ApplicationConfig::Live(_) => Service::Live(LiveHttp::default()),
            ApplicationConfig::RemoteFiles => Service::RemoteFiles(RemoteFileCalls::default()),
        };
        Self::Server(web::Server::new(service))
    }

    /// Returns the service of the program, if the program is a server.
    pub(super) fn service_mut(&mut self) -> Option<&mut Service> {
        match self {
            Self::Server(server) => Some(server.http_mut()),
            Self::Pages(_) => None,
        }
    }

    /// Returns the sockets of the open connections of a server.
    pub(super) fn sockets(&self) -> impl Iterator<Item = SocketId> {
        let server = match self {
            Self::Server(server) => Some(server),
            Self::Pages(_) => None,
        };
        server.into_iter().flat_map(web::Server::sockets)
    }

    /// Reports whether connections of a server wait for their next turn.
    pub(super) fn has_turn(&self) -> bool {
        matches!(self, Self::Server(server) if server.has_turn())
    }

    /// Returns the connection that has waited longest for its next turn.
    pub(super) fn next_turn(&mut self) -> Option<SocketId> {
        match self {
            Self::Server(server) => server.next_turn(),
            Self::Pages(_) => None,
        }
    }

    /// Handles one event.
    pub(super) fn step(
        &mut self,
        now: Time,
        sockets: &mut impl MeteredSockets<Symbolic>,
        ready: Ready,
    ) {
        match self {
            Self::Server(server) => server.step(sockets, ready),
            Self::Pages(pages) => pages.step(now, sockets, ready),
        }
    }

    /// Returns when the program next acts on its own.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Server(_) => None,
            Self::Pages(pages) => pages.poll_timeout(),
        }
    }

    /// Performs the actions that are due.
    pub(super) fn handle_timeouts(
        &mut self,
        now: Time,
        sockets: &mut impl MeteredSockets<Symbolic>,
    ) {
        if let Self::Pages(pages) = self {
            pages.handle_timeouts(now, sockets);
        }
    }
}
