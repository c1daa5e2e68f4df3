//! Sockets with little buffer space, slow disks, and writers that change files.

use super::Random;
use super::adapter::{Adapter, Seen};
use super::files::Files;
use baton_cluster::script::{CLIENT, Script};
use baton_host::layer::AdapterId;
use baton_host::{Borrower, Borrowers, FileContent, FileId, Gone, Ready, SocketId};
use baton_kernel::{
    Buffers, Destination, DiskRead, FileCacheConfig, FileCacheStats, FileSystem, NoMeter,
};
use baton_tcp::ConnId;
use baton_wire::{SeqNr, Symbolic};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of unacknowledged bytes of a connection of the stack.
const ROOM: usize = 20_000;
/// Number of mbufs: 16 that are reserved for other uses, and 12, fewer than all sockets could use.
const MBUFS: u32 = 16 + 12;
const ADAPTER: AdapterId = AdapterId(0);
/// Number of the stack's first socket. Those of the adapter have smaller numbers.
const ON_STACK: u32 = 100;
/// Maximum number of sockets on the adapter.
const ON_ADAPTER: usize = 4;

/// A socket and its current download.
#[derive(Default)]
struct Socket {
    /// Its connection in the stack; `None` if it is on the adapter.
    connection: Option<Connection>,
    download: Option<Download>,
}

/// A connection of the stack.
#[derive(Clone, Copy, Default)]
struct Connection {
    /// Whether the stack refers to file pages instead of copying them.
    refers: bool,
    /// Sequence number of the first unacknowledged byte.
    first: SeqNr,
    /// Number of unacknowledged bytes.
    unacknowledged: usize,
    wants_room: bool,
}

#[derive(Clone, Copy)]
struct Download {
    file: FileId,
    offset: u64,
    end: u64,
    /// The moment at which the download began.
    since: u64,
}

/// One socket, as the file system sees it.
struct Sink<'a> {
    id: SocketId,
    connection: Option<&'a mut Connection>,
    script: &'a mut Script<Symbolic>,
    files: &'a Files,
    /// The moment at which the download began.
    since: u64,
    /// Maximum number of bytes accepted, which may be less than announced.
    most: usize,
}

impl Destination<Symbolic> for Sink<'_> {
    fn room(&mut self) -> Result<usize, Gone> {
        match &self.connection {
            Some(connection) => Ok(ROOM - connection.unacknowledged),
            None => self.script.calls().send_room(self.id),
        }
    }

    fn want_room(&mut self) {
        match &mut self.connection {
            Some(connection) => connection.wants_room = true,
            None => self.script.calls().want_room(self.id),
        }
    }

    fn send(&mut self, content: FileContent, data: Symbolic) -> Result<usize, Gone> {
        self.files.history().verify(&content, data, self.since);
        let Some(connection) = &mut self.connection else {
            return self.script.calls().send_content(self.id, &content, &data);
        };
        let taken = self.most.min(data.len as usize);
        connection.wants_room = taken < data.len as usize;
        connection.unacknowledged += taken;
        Ok(taken)
    }

    fn borrowers(&mut self) -> Borrowers {
        let Some(connection) = &self.connection else {
            return self.script.os.borrowers(ADAPTER, self.id);
        };
        let end = connection.first + connection.unacknowledged as u32;
        let refers = connection.refers.then_some((borrower(self.id), end));
        refers.into_iter().collect()
    }

    fn cache(&self) -> Option<(AdapterId, u32)> {
        None
    }
}

fn borrower(socket: SocketId) -> Borrower {
    Borrower::Connection(ConnId(socket.0))
}

pub struct World {
    random: Random,
    files: FileSystem<Symbolic>,
    buffers: Buffers,
    store: Files,
    count: u64,
    sockets: BTreeMap<SocketId, Socket>,
    adapter: Adapter,
    /// Sockets that can continue a download or begin one.
    runnable: BTreeSet<SocketId>,
    disk: VecDeque<DiskRead>,
    /// Number of downloads that are still to begin.
    left: u32,
}

impl World {
    /// Creates a world with this many connections of a stack.
    pub fn new(mut random: Random, on_stack: u32) -> Self {
        let lengths: Vec<u64> = (0..6).map(|_| 1 + random.below(40_000)).collect();
        let store = Files::new(&lengths);
        let config = FileCacheConfig {
            kib: 64 + 4 * random.below(20) as u32,
            blocking: false,
            read_pages: 1 + random.below(8) as u32,
            reads: 1 + random.below(4) as u32,
            ..FileCacheConfig::default()
        };
        let mut connection = || Connection {
            refers: random.percent(50),
            first: SeqNr(random.draw() as u32),
            ..Connection::default()
        };
        let connections = (0..on_stack).map(|number| {
            let socket = Socket {
                connection: Some(connection()),
                download: None,
            };
            (SocketId(ON_STACK + number), socket)
        });
        let sockets: BTreeMap<SocketId, Socket> = connections.collect();
        Self {
            runnable: sockets.keys().copied().collect(),
            sockets,
            files: FileSystem::new(&config, Box::new(store.clone())),
            buffers: Buffers::new(MBUFS, 1000),
            store,
            count: lengths.len() as u64,
            adapter: Adapter::new(&mut random),
            disk: VecDeque::new(),
            left: 150,
            random,
        }
    }

    /// Runs until all downloads are complete. Returns the counters of the file cache and of the adapter.
    pub fn run(mut self) -> (FileCacheStats, Seen) {
        for _ in 0..200_000 {
            self.step();
            self.settle();
            if self.left == 0 && self.is_idle() {
                assert_eq!(
                    self.files.wired(),
                    0,
                    "no page is in use once all downloads are complete"
                );
                assert_eq!(self.files.mbufs_lent(), 0);
                let stats = self.files.cache_stats();
                return (*stats.expect("the cache is limited"), self.adapter.seen);
            }
        }
        panic!("a download is stuck");
    }

    fn is_idle(&self) -> bool {
        let is_idle = |socket: &Socket| {
            let connection = socket.connection;
            socket.download.is_none() && connection.is_some_and(|it| it.unacknowledged == 0)
        };
        // An INSERT may outlast the socket that caused it.
        let adapter_is_idle =
            self.adapter.script.os.sockets() == 0 && self.adapter.pages().is_empty();
        self.sockets.values().all(is_idle) && adapter_is_idle
    }

    fn step(&mut self) {
        self.store.history().moment += 1;
        match self.random.below(100) {
            0..10 => self.acknowledge(),
            10..20 => {
                if let Some(read) = self.disk.pop_front() {
                    self.files.handle_disk(read.token, &mut NoMeter);
                }
            }
            20 => {
                let (file, len) = self.any_file();
                let offset = self.random.below(len);
                let len = 1 + self.random.below(9_000);
                self.files.edit(file, offset, len);
            }
            21 if self.random.percent(10) => {
                let (file, len) = self.any_file();
                self.files.truncate(file, 1 + self.random.below(len));
            }
            22..25 => self.files.wake_waiting(&self.buffers),
            25..60 => self.adapter.answer(&mut self.random),
            60..62 => self.close_any(),
            62 if self.random.percent(20) => self.lose_adapter(),
            _ => self.write(),
        }
    }

    /// Returns a file and its length.
    fn any_file(&mut self) -> (FileId, u64) {
        let file = FileId(self.random.below(self.count) as u32);
        (file, self.store.history().len(file))
    }

    /// Handles all consequences of a step.
    fn settle(&mut self) {
        self.adapter.settle();
        let (script, buffers) = (&mut self.adapter.script, &mut self.buffers);
        for ready in script.ready() {
            if let Ready::Readable(id) | Ready::Writable(id) = ready {
                self.runnable.insert(id);
            }
        }
        (self.files).handle_adapter(ADAPTER, &mut script.os, buffers, &mut NoMeter);
        while let Some(id) = self.files.next_writable() {
            self.runnable.insert(id);
        }
        while let Some(read) = self.files.poll_disk() {
            self.disk.push_back(read);
        }
        while let Some((file, offset)) = self.files.poll_evicted() {
            assert!(offset.is_multiple_of(4096) && u64::from(file.0) < self.count);
        }
        self.files.check();
        let (pages, wired) = (self.adapter.pages(), self.files.wired() as usize);
        assert!(
            pages.len() <= wired,
            "{pages:?} may be fetched, {wired} are wired"
        );
        let script = &mut self.adapter.script;
        if self.left > 0 && self.sockets.range(..SocketId(ON_STACK)).count() < ON_ADAPTER {
            let socket = script.os.connect(script.now, CLIENT);
            let socket = socket.expect("a number is free");
            self.sockets.insert(socket, Socket::default());
        }
    }

    fn acknowledge(&mut self) {
        let index = self.random.below(self.sockets.len() as u64) as usize;
        let any = self.sockets.iter_mut().nth(index);
        let Some((&id, connection)) =
            any.and_then(|(id, socket)| Some((id, socket.connection.as_mut()?)))
        else {
            return;
        };
        let len = self.random.below(connection.unacknowledged as u64 + 1) as usize;
        // Sometimes acknowledge everything, so that each download completes.
        let len = if self.random.percent(30) {
            connection.unacknowledged
        } else {
            len
        };
        connection.first += len as u32;
        connection.unacknowledged -= len;
        let first = connection.first;
        if connection.refers {
            let is_done = |seq| first.at_or_after(seq);
            self.files
                .handle_done_with(borrower(id), is_done, &mut self.buffers, &mut NoMeter);
        }
        if len > 0 && std::mem::take(&mut connection.wants_room) {
            self.runnable.insert(id);
        }
        // The connection moves to an adapter, or back.
        if self.random.percent(5) {
            self.files
                .handle_left(borrower(id), &mut self.buffers, &mut NoMeter);
            connection.refers = !connection.refers;
        }
    }

    /// Closes a socket on the adapter.
    fn close(&mut self, id: SocketId) {
        self.sockets.remove(&id);
        self.runnable.remove(&id);
        self.files.close(id);
        let Script { os, now, .. } = &mut self.adapter.script;
        match self.random.percent(50) {
            true => os.close(*now, id),
            false => os.abort(*now, id),
        }
    }

    fn close_any(&mut self) {
        if let Some((&id, _)) = self.sockets.range(..SocketId(ON_STACK)).next() {
            self.close(id);
        }
    }

    fn lose_adapter(&mut self) {
        self.adapter.lose();
        for _ in 0..ON_ADAPTER {
            self.close_any();
        }
    }

    /// Lets a socket that can continue its download do so, or begin a new one.
    fn write(&mut self) {
        let index = self.random.below(self.runnable.len().max(1) as u64) as usize;
        let Some(&id) = self.runnable.iter().nth(index) else {
            return;
        };
        let Some(socket) = self.sockets.get_mut(&id) else {
            self.runnable.remove(&id);
            return;
        };
        let is_on_adapter = socket.connection.is_none();
        let download = match socket.download {
            Some(download) => download,
            None if self.left == 0 && is_on_adapter => return self.close(id),
            None if self.left == 0 => return,
            None => self.begin(),
        };
        let socket = self.sockets.get_mut(&id).expect("the socket still exists");
        let len = (download.end - download.offset) as usize;
        let content = FileContent::new(download.file, download.offset, len as u64);
        let mut sink = Sink {
            id,
            connection: socket.connection.as_mut(),
            script: &mut self.adapter.script,
            files: &self.store,
            since: download.since,
            most: match self.random.percent(80) {
                true => usize::MAX,
                false => self.random.below(6_000) as usize,
            },
        };
        let sent = self
            .files
            .send(id, content, len, &mut sink, &mut self.buffers, &mut NoMeter);
        let offset = download.offset + *sent.as_ref().unwrap_or(&0) as u64;
        if sent.is_err() && is_on_adapter {
            // The file became shorter, or the adapter refused earlier data.
            return self.close(id);
        }
        if sent.is_err() {
            let history = self.store.history();
            let shrank = history.was_truncated(download.file, download.since);
            assert!(shrank, "a send fails only if the file became shorter");
        }
        let is_over = sent.is_err() || offset == download.end || self.random.percent(2);
        socket.download = (!is_over).then_some(Download { offset, ..download });
        match is_over {
            true => self.files.close(id),
            false => drop(self.runnable.remove(&id)),
        }
        if let Some(connection) = &mut socket.connection {
            connection.wants_room &= !is_over;
            // A socket that accepted less than it had announced tries again later.
            if connection.wants_room && connection.unacknowledged == 0 {
                self.runnable.insert(id);
            }
        }
    }

    /// Returns a new download of a file, or of a part of it.
    fn begin(&mut self) -> Download {
        self.left -= 1;
        let (file, len) = self.any_file();
        let offset = match self.random.percent(50) {
            true => 0,
            false => self.random.below(len),
        };
        Download {
            file,
            offset,
            end: len,
            since: self.store.history().moment,
        }
    }
}
