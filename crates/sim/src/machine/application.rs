//! The application on the server's sockets: a web server, a live stream, or a server of remote files.

use super::changes::Change;
use super::program::Program;
use crate::config::{ApplicationConfig, LiveConfig};
use baton_apps::MeteredSockets;
use baton_apps::symbolic::{Service, SymbolicFiles, Write};
use baton_host::{FileId, Ready, SocketId};
use baton_wire::{Span, Symbolic, Time};
use std::collections::VecDeque;

/// The file of a live stream; each block is a revision of this file.
const CHANNEL: FileId = FileId(0);

/// The application, and the times at which it acts on its own.
pub(super) struct Application {
    program: Program,
    live: Option<Live>,
    /// Connections that have not yet received the current block of a live stream.
    backlog: VecDeque<SocketId>,
    /// Changes of files that were not yet reported.
    changes: VecDeque<Change>,
}

/// A live stream.
#[derive(Clone, Copy, Debug)]
struct Live {
    block_bytes: u64,
    interval: Span,
    next_block: Time,
}

impl Live {
    fn new(config: &LiveConfig) -> Self {
        Self {
            block_bytes: config.block_bytes.into(),
            interval: Span::from_us(config.interval_us.into()),
            next_block: Time::ZERO + Span::from_us(config.interval_us.into()),
        }
    }
}

/// The sockets and files of the application.
pub(super) trait System: MeteredSockets<Symbolic> {
    /// Changes `len` bytes of a file, from `offset` on.
    fn edit(&mut self, file: FileId, offset: u64, len: u64);
    /// Keeps content of a transient file that is sent from now on, for other connections.
    fn hold(&mut self, file: FileId);
    /// Ends [`System::hold`], because the content was given to all connections.
    fn let_go(&mut self, file: FileId);
}

/// Returns the files of the application that `config` describes.
pub(super) fn files(config: &ApplicationConfig) -> SymbolicFiles {
    let mut files = SymbolicFiles::new();
    if let ApplicationConfig::Live(config) = config {
        files.set_len(CHANNEL, config.block_bytes.into());
    }
    files
}

/// Returns the file whose content is requested only once, if there is one.
pub(super) fn transient_file(config: &ApplicationConfig) -> Option<FileId> {
    match config {
        ApplicationConfig::Live(config) if config.evict_delivered => Some(CHANNEL),
        _ => None,
    }
}

impl Application {
    /// Creates the application that `config` describes.
    pub(super) fn new(config: &ApplicationConfig) -> Self {
        let live = match config {
            ApplicationConfig::Live(config) => Some(Live::new(config)),
            _ => None,
        };
        Self {
            program: Program::new(config),
            live,
            backlog: VecDeque::new(),
            changes: VecDeque::new(),
        }
    }

    /// Handles one readiness event. Writes that were received are carried out immediately.
    pub(super) fn step(&mut self, now: Time, system: &mut impl System, ready: Ready) {
        self.program.step(now, system, ready);
        while let Some(Service::RemoteFiles(calls)) = self.program.service_mut()
            && let Some(Write { file, len }) = calls.poll_write()
        {
            system.edit(file, 0, len);
            self.changes.push_back(Change { file, at: now });
        }
    }

    /// Returns when the application next acts on its own.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let live = self.live.map(|live| live.next_block);
        live.or_else(|| self.program.poll_timeout())
    }

    /// Acts on its own: a live stream gets its next block, which it will offer to all its connections in turn; pages get their next pieces.
    pub(super) fn handle_timeout(&mut self, now: Time, system: &mut impl System) {
        let (Some(live), Some(Service::Live(http))) = (&mut self.live, self.program.service_mut())
        else {
            return self.program.handle_timeouts(now, system);
        };
        live.next_block += live.interval;
        http.produced();
        system.edit(CHANNEL, 0, live.block_bytes);
        self.changes.push_back(Change {
            file: CHANNEL,
            at: now,
        });
        // Blocks stay in the NICs' caches until all viewers have been served.
        system.hold(CHANNEL);
        self.backlog.clear();
        self.backlog.extend(self.program.sockets());
    }

    /// Reports whether connections wait for their next turn, or for the current block of a live stream.
    pub(super) fn has_next(&self) -> bool {
        self.program.has_turn() || !self.backlog.is_empty()
    }

    /// Returns the connection that has waited longest for its next turn; its socket is still writable.
    pub(super) fn next_turn(&mut self) -> Option<SocketId> {
        self.program.next_turn()
    }

    /// Sends the current block of a live stream to the next connection. Returns false if all connections have received it.
    pub(super) fn serve_next(&mut self, now: Time, system: &mut impl System) -> bool {
        let Some(socket) = self.backlog.pop_front() else {
            return false;
        };
        self.step(now, system, Ready::Readable(socket));
        if self.backlog.is_empty() {
            system.let_go(CHANNEL);
        }
        true
    }

    /// Returns the next change of a file that was not yet reported.
    pub(super) fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }
}
