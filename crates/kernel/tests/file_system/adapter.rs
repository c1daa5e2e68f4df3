//! Sockets on an adapter that fetches, answers and refuses at random, and is sometimes lost. Data that it may still fetch must stay in
//! memory.

use super::Random;
use baton_bus::descriptor::{Action, Outcome, Request, Status};
use baton_bus::link::MemoryConfig;
use baton_cluster::script::{CLIENT, Script};
use baton_host::adapter::OsLayerConfig;
use baton_host::layer::AdapterId;
use baton_host::{Borrowers, FileContent, FileId, Gone, NicCacheConfig, SocketId};
use baton_kernel::{
    Buffers, Destination, DiskRead, FileCacheConfig, FileStore, FileSystem, NoMeter,
};
use baton_testkit::symbolic;
use baton_wire::{Span, Symbolic};
use std::collections::{BTreeSet, VecDeque};

const ADAPTER: AdapterId = AdapterId(0);
const FILES: u64 = 8;
const FILE_BYTES: u64 = 40_000;
const PAGE_BYTES: u64 = 4096;
/// Number of blocks that fit into the adapter's cache.
const CACHED: u32 = 6;

/// Counts of a run.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    /// SENDs that were refused.
    pub refused: u32,
    /// SENDs that were refused while an earlier SEND of their socket was pending.
    pub out_of_order: u32,
    /// SENDs that were refused while an earlier INSERT was pending.
    pub refused_before_insert: u32,
    pub inserts: u32,
    pub lost: u32,
}

/// A request that the adapter has not answered, and the content of its buffer.
struct Asked {
    request: Request,
    content: Option<Symbolic>,
}

impl Asked {
    fn is_send(&self) -> bool {
        matches!(
            self.request.action,
            Action::Send { .. } | Action::SendCached { .. }
        )
    }

    fn is_insert(&self) -> bool {
        matches!(self.request.action, Action::CacheInsert { .. })
    }
}

/// Files that all have the same length and never change.
#[derive(Debug)]
struct Files;

impl FileStore<Symbolic> for Files {
    fn len(&mut self, _: FileId, _: u64) -> u64 {
        FILE_BYTES
    }

    fn read(&self, file: FileId, offset: u64, len: u32) -> Symbolic {
        symbolic(file.0.into(), offset, len)
    }

    fn edit(&mut self, _: FileId, _: u32, _: u64, _: u64) {}

    fn truncate(&mut self, _: FileId, _: u32, _: u64) {}
}

/// A socket, as the file system sees it.
struct Sink<'a> {
    script: &'a mut Script<Symbolic>,
    socket: SocketId,
}

impl Destination<Symbolic> for Sink<'_> {
    fn room(&mut self) -> Result<usize, Gone> {
        self.script.calls().send_room(self.socket)
    }

    fn want_room(&mut self) {
        self.script.calls().want_room(self.socket);
    }

    fn send(&mut self, content: FileContent, data: Symbolic) -> Result<usize, Gone> {
        let mut calls = self.script.calls();
        calls.send_content(self.socket, &content, &data)
    }

    fn borrowers(&mut self) -> Borrowers {
        self.script.os.borrowers(ADAPTER, self.socket)
    }

    fn cache(&self) -> Option<(AdapterId, u32)> {
        let cache = &self.script.os.config().nic_cache;
        cache.enabled.then_some((ADAPTER, cache.block_bytes))
    }
}

pub struct World {
    random: Random,
    files: FileSystem<Symbolic>,
    buffers: Buffers,
    script: Script<Symbolic>,
    asked: VecDeque<Asked>,
    sockets: Vec<SocketId>,
    disk: VecDeque<DiskRead>,
    pub seen: Seen,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let cache = FileCacheConfig {
            kib: 64 + 4 * random.below(20) as u32,
            blocking: false,
            ..FileCacheConfig::default()
        };
        let config = OsLayerConfig {
            most_sends: 2 + random.below(8) as u32,
            nic_cache: NicCacheConfig {
                enabled: random.percent(70),
                ..NicCacheConfig::default()
            },
            ..OsLayerConfig::default()
        };
        Self {
            files: FileSystem::new(&cache, Box::new(Files)),
            buffers: Buffers::new(1000, 1000),
            script: Script::with_link(config, MemoryConfig::default()),
            asked: VecDeque::new(),
            sockets: Vec::new(),
            disk: VecDeque::new(),
            seen: Seen::default(),
            random,
        }
    }

    /// Runs for a while, and then until all sockets are closed.
    pub fn run(&mut self) {
        for _ in 0..800 {
            match self.random.below(100) {
                0..40 => self.send(),
                40..90 => self.answer(),
                90..93 => self.close(),
                93 if self.random.percent(30) => self.lose(),
                _ => self.read_disk(),
            }
            self.settle();
            if self.sockets.len() < 4 {
                let socket = self.script.os.connect(self.script.now, CLIENT);
                self.sockets.push(socket.expect("a number is free"));
            }
        }
        while !self.sockets.is_empty() || self.script.os.sockets() > 0 {
            self.close();
            self.answer();
            self.settle();
        }
        assert_eq!(
            self.files.wired(),
            0,
            "no page is in use once all sockets are closed"
        );
        assert_eq!(self.files.mbufs_lent(), 0);
    }

    /// Moves requests to the adapter, and completions to the file system.
    fn settle(&mut self) {
        self.script.now += Span::from_ms(1);
        loop {
            let requests = self.script.requests();
            if requests.is_empty() {
                break;
            }
            for request in requests {
                let content = self.script.fetch(&request);
                self.asked.push_back(Asked { request, content });
            }
        }
        self.script.ready();
        let (os, buffers) = (&mut self.script.os, &mut self.buffers);
        self.files
            .handle_adapter(ADAPTER, os, buffers, &mut NoMeter);
        self.files.wake_waiting(&self.buffers);
        while self.files.next_writable().is_some() {}
        while let Some(read) = self.files.poll_disk() {
            self.disk.push_back(read);
        }
        while self.files.poll_evicted().is_some() {}
        self.files.check();
        let content = self.asked.iter().filter_map(|asked| asked.content);
        let pages = content.flat_map(|range| {
            let last = range.offset + u64::from(range.len) - 1;
            (range.offset / PAGE_BYTES..=last / PAGE_BYTES).map(move |page| (range.source, page))
        });
        let pages: BTreeSet<_> = pages.collect();
        let wired = self.files.wired() as usize;
        assert!(
            pages.len() <= wired,
            "{pages:?} may be fetched, {wired} are wired"
        );
    }

    /// Lets a socket send part of a file.
    fn send(&mut self) {
        let Some(&socket) = self.sockets.get(self.random.below(4) as usize) else {
            return;
        };
        let file = FileId(self.random.below(FILES) as u32);
        let offset = match self.random.percent(50) {
            true => 0,
            false => self.random.below(FILE_BYTES),
        };
        let len = 1 + self.random.below(FILE_BYTES - offset);
        let content = FileContent::new(file, offset, len);
        let mut sink = Sink {
            script: &mut self.script,
            socket,
        };
        let sent = self.files.send(
            socket,
            content,
            len as usize,
            &mut sink,
            &mut self.buffers,
            &mut NoMeter,
        );
        if sent.is_err() {
            self.let_go(socket);
        }
    }

    fn close(&mut self) {
        if let Some(&socket) = self.sockets.first() {
            self.let_go(socket);
        }
    }

    fn let_go(&mut self, socket: SocketId) {
        self.sockets.retain(|&other| other != socket);
        self.files.close(socket);
        match self.random.percent(50) {
            true => self.script.os.close(self.script.now, socket),
            false => self.script.os.abort(self.script.now, socket),
        }
    }

    fn read_disk(&mut self) {
        if let Some(read) = self.disk.pop_front() {
            self.files.handle_disk(read.token, &mut NoMeter);
        }
    }

    /// Answers a random request if it is the first pending SEND of its socket, the first pending INSERT, or of another kind; or refuses any SEND.
    fn answer(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let index = self.random.below(self.asked.len() as u64) as usize;
        let asked = &self.asked[index];
        let socket = asked.request.socket;
        let before = || self.asked.iter().take(index);
        let sends_before = before().any(|other| other.is_send() && other.request.socket == socket);
        let inserts_before = before().any(Asked::is_insert);
        let status = match asked.request.action {
            Action::Receive { .. } => return,
            Action::Close { .. } if sends_before => return,
            Action::CacheInsert { .. } if inserts_before => return,
            Action::Send { .. } | Action::SendCached { .. } if self.random.percent(5) => {
                self.seen.refused += 1;
                self.seen.out_of_order += u32::from(sends_before);
                self.seen.refused_before_insert += u32::from(inserts_before);
                Status::Reset
            }
            Action::Send { .. } | Action::SendCached { .. } if sends_before => return,
            Action::SendCached { .. } if inserts_before => return,
            _ => Status::Ok,
        };
        self.seen.inserts += u32::from(asked.is_insert());
        if let Action::Close { .. } = asked.request.action {
            self.cancel_receives(socket);
            return self.answer_one(|other| other.socket == socket, Status::Ok);
        }
        let tag = asked.request.tag;
        self.answer_one(|other| other.tag == tag, status);
    }

    fn cancel_receives(&mut self, socket: u32) {
        let of_socket = |other: &Request| {
            other.socket == socket && matches!(other.action, Action::Receive { .. })
        };
        while self.asked.iter().any(|asked| of_socket(&asked.request)) {
            self.answer_one(of_socket, Status::Cancelled);
        }
    }

    /// Answers the first matching request.
    fn answer_one(&mut self, wanted: impl Fn(&Request) -> bool, status: Status) {
        let index = self.asked.iter().position(|asked| wanted(&asked.request));
        let asked = self.asked.remove(index.expect("the request is pending"));
        let request = asked.expect("the request is pending").request;
        match request.action {
            Action::CacheInit => {
                let outcome = Outcome::CacheReady {
                    bytes: CACHED * PAGE_BYTES as u32,
                    most_inserts: 4,
                };
                self.script.answer(&request, status, outcome);
            }
            _ => self.script.done(&request, status),
        }
    }

    /// Replaces the adapter by another.
    fn lose(&mut self) {
        self.seen.lost += 1;
        self.asked.clear();
        self.script.os.handle_link_lost(self.script.now);
        self.script.reconnect();
        while !self.sockets.is_empty() {
            self.close();
        }
    }
}
