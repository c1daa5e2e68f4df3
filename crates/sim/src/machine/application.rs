//! What runs on the server's sockets: a web server, a live stream, a server of remote files.

use super::changes::Change;
use super::meter::HostMeter;
use super::program::Program;
use crate::config::{ApplicationConfig, LiveConfig};
use baton_apps::symbolic::{Service, SymbolicFiles, Write};
use baton_host::{FileId, Kernel, Ready, SocketId};
use baton_wire::{Span, Symbolic, Time};
use std::collections::VecDeque;

/// The file of a live stream: each block is a revision of it.
const CHANNEL: FileId = FileId(0);

/// The application, and when it acts by itself.
pub(super) struct Application {
    program: Program,
    live: Option<Live>,
    /// Connections that are to have the present block of a live stream.
    backlog: VecDeque<SocketId>,
    /// Changes of files that nobody has been told of.
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

impl Application {
    /// The application that `config` describes, which may have to tell the kernel something beforehand.
    pub(super) fn new(config: &ApplicationConfig, kernel: &mut Kernel<Symbolic>) -> Self {
        let live = match config {
            ApplicationConfig::Web(_) | ApplicationConfig::Pages(_) => None,
            ApplicationConfig::Live(config) => {
                let mut files = SymbolicFiles::new();
                files.set_len(CHANNEL, config.block_bytes.into());
                kernel.set_file_store(Box::new(files));
                if config.evict_delivered {
                    kernel.set_transient(CHANNEL);
                }
                Some(Live::new(config))
            }
            ApplicationConfig::RemoteFiles => {
                kernel.set_file_store(Box::new(SymbolicFiles::new()));
                None
            }
        };
        Self {
            program: Program::new(config),
            live,
            backlog: VecDeque::new(),
            changes: VecDeque::new(),
        }
    }

    /// Handles one readiness event; writes that were received are carried out at once.
    pub(super) fn step(
        &mut self,
        now: Time,
        kernel: &mut Kernel<Symbolic>,
        meter: &mut HostMeter,
        ready: Ready,
    ) {
        self.program
            .step(now, &mut kernel.sockets(now, meter), ready);
        while let Some(Service::RemoteFiles(calls)) = self.program.service_mut()
            && let Some(Write { file, len }) = calls.poll_write()
        {
            kernel.edit(file, 0, len, meter);
            self.changes.push_back(Change { file, at: now });
        }
    }

    /// When it acts by itself.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let live = self.live.map(|live| live.next_block);
        live.or_else(|| self.program.poll_timeout())
    }

    /// Acts by itself: a live stream has its next block, and will look at all its connections in turn; pages have their next pieces.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        kernel: &mut Kernel<Symbolic>,
        meter: &mut HostMeter,
    ) {
        let (Some(live), Some(Service::Live(http))) = (&mut self.live, self.program.service_mut())
        else {
            let mut sockets = kernel.sockets(now, meter);
            return self.program.handle_timeouts(now, &mut sockets);
        };
        live.next_block += live.interval;
        http.produced();
        kernel.edit(CHANNEL, 0, live.block_bytes, meter);
        self.changes.push_back(Change {
            file: CHANNEL,
            at: now,
        });
        // Blocks stay in the NICs' caches until all viewers have been served.
        kernel.hold(CHANNEL);
        self.backlog.clear();
        self.backlog.extend(self.program.sockets());
    }

    /// Gives the present block of a live stream to the next connection; false when all have it.
    pub(super) fn serve_next(
        &mut self,
        now: Time,
        kernel: &mut Kernel<Symbolic>,
        meter: &mut HostMeter,
    ) -> bool {
        let Some(socket) = self.backlog.pop_front() else {
            return false;
        };
        self.step(now, kernel, meter, Ready::Readable(socket));
        if self.backlog.is_empty() {
            kernel.let_go(CHANNEL, meter);
        }
        true
    }

    /// A change of a file that happened since this was last asked.
    pub(super) fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }
}
