//! Sockets with little buffer space, slow disks, and writers that change files.

use super::Random;
use super::files::{ByteFiles, History};
use baton_host::layer::AdapterId;
use baton_host::{Borrower, Borrowers, FileContent, FileId, Gone, SocketId};
use baton_kernel::{
    Buffers, Destination, DiskRead, FileCacheConfig, FileCacheStats, FileSystem, NoMeter,
};
use baton_tcp::ConnId;
use baton_wire::SeqNr;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

/// Maximum number of unacknowledged bytes of a socket.
const ROOM: usize = 20_000;
/// Number of mbufs: 16 that are reserved for other uses, and 12, fewer than all sockets could use.
const MBUFS: u32 = 16 + 12;

/// A socket and its current download.
#[derive(Default)]
struct Socket {
    /// Whether the socket's stack refers to file pages instead of copying them.
    refers: bool,
    /// Sequence number of the first unacknowledged byte.
    first: SeqNr,
    /// Number of unacknowledged bytes.
    unacknowledged: usize,
    wants_room: bool,
    download: Option<Download>,
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
    number: u32,
    socket: &'a mut Socket,
    history: &'a ByteFiles,
    /// Maximum number of bytes accepted, which may be less than announced.
    most: usize,
}

impl Destination<Bytes> for Sink<'_> {
    fn room(&mut self) -> Result<usize, Gone> {
        Ok(ROOM - self.socket.unacknowledged)
    }

    fn want_room(&mut self) {
        self.socket.wants_room = true;
    }

    fn send(&mut self, content: FileContent, data: Bytes) -> Result<usize, Gone> {
        let taken = data.len().min(self.most);
        self.socket.wants_room = taken < data.len();
        self.socket.unacknowledged += taken;
        let since = self.socket.download.map_or(0, |download| download.since);
        let history = self.history.history();
        assert!(content.offset + data.len() as u64 <= content.file_len);
        history.verify(content.file, content.offset, &data[..taken], since);
        Ok(taken)
    }

    fn borrowers(&mut self) -> Borrowers {
        let end = self.socket.first + self.socket.unacknowledged as u32;
        let borrower = Borrower::Connection(ConnId(self.number));
        let refers = self.socket.refers.then_some((borrower, end));
        refers.into_iter().collect()
    }

    fn cache(&self) -> Option<(AdapterId, u32)> {
        None
    }
}

pub struct World {
    random: Random,
    files: FileSystem<Bytes>,
    buffers: Buffers,
    history: ByteFiles,
    lengths: Vec<u64>,
    sockets: Vec<Socket>,
    /// Sockets that can continue a download or begin one.
    runnable: BTreeSet<u32>,
    disk: VecDeque<DiskRead>,
    left: u32,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let lengths: Vec<u64> = (0..6).map(|_| 1 + random.below(40_000)).collect();
        let history = ByteFiles(Arc::new(Mutex::new(History::new(&lengths))));
        let config = FileCacheConfig {
            kib: 64 + 4 * random.below(20) as u32,
            blocking: false,
            read_pages: 1 + random.below(8) as u32,
            reads: 1 + random.below(4) as u32,
            ..FileCacheConfig::default()
        };
        let count = 2 + random.below(6);
        let sockets = (0..count).map(|_| Socket {
            refers: random.percent(50),
            first: SeqNr(random.draw() as u32),
            ..Socket::default()
        });
        Self {
            sockets: sockets.collect(),
            files: FileSystem::new(&config, Box::new(history.clone())),
            buffers: Buffers::new(MBUFS, 1000),
            history,
            lengths,
            runnable: (0..count as u32).collect(),
            disk: VecDeque::new(),
            left: 150,
            random,
        }
    }

    pub fn stats(&self) -> FileCacheStats {
        *self.files.cache_stats().expect("the cache is limited")
    }

    /// Runs until all downloads are complete.
    pub fn run(&mut self) {
        for _ in 0..200_000 {
            self.step();
            self.files.check();
            let is_idle = |socket: &Socket| socket.download.is_none() && socket.unacknowledged == 0;
            if self.left == 0 && self.sockets.iter().all(is_idle) {
                assert_eq!(
                    self.files.wired(),
                    0,
                    "no page is in use once all downloads are complete"
                );
                assert_eq!(self.files.mbufs_lent(), 0);
                return;
            }
        }
        panic!("a download is stuck");
    }

    fn step(&mut self) {
        self.history.history().moment += 1;
        match self.random.below(100) {
            0..10 => self.acknowledge(),
            10..20 => {
                if let Some(read) = self.disk.pop_front() {
                    self.files.handle_disk(read.token, &mut NoMeter);
                }
            }
            20 => {
                let file = self.random.below(self.lengths.len() as u64) as usize;
                let offset = self.random.below(self.lengths[file]);
                let len = 1 + self.random.below(9_000);
                self.files.edit(FileId(file as u32), offset, len);
                self.lengths[file] = self.lengths[file].max(offset + len);
            }
            21 if self.random.percent(10) => {
                let file = self.random.below(self.lengths.len() as u64) as usize;
                self.lengths[file] = 1 + self.random.below(self.lengths[file]);
                self.files.truncate(FileId(file as u32), self.lengths[file]);
            }
            22..25 => self.files.wake_waiting(&self.buffers),
            _ => self.write(),
        }
        while let Some(id) = self.files.next_writable() {
            self.runnable.insert(id.0);
        }
        while let Some(read) = self.files.poll_disk() {
            self.disk.push_back(read);
        }
        while let Some((file, offset)) = self.files.poll_evicted() {
            assert!(offset.is_multiple_of(4096) && (file.0 as usize) < self.lengths.len());
        }
    }

    fn acknowledge(&mut self) {
        let number = self.random.below(self.sockets.len() as u64) as u32;
        let socket = &mut self.sockets[number as usize];
        let len = self.random.below(socket.unacknowledged as u64 + 1) as usize;
        // Sometimes acknowledge everything, so that each download completes.
        let len = if self.random.percent(30) {
            socket.unacknowledged
        } else {
            len
        };
        socket.first += len as u32;
        socket.unacknowledged -= len;
        let first = socket.first;
        if socket.refers {
            let borrower = Borrower::Connection(ConnId(number));
            let is_done = |seq| first.at_or_after(seq);
            self.files
                .handle_done_with(borrower, is_done, &mut self.buffers, &mut NoMeter);
        }
        if len > 0 && std::mem::take(&mut socket.wants_room) {
            self.runnable.insert(number);
        }
        // The connection moves to an adapter, or back.
        if self.random.percent(5) {
            let borrower = Borrower::Connection(ConnId(number));
            self.files
                .handle_left(borrower, &mut self.buffers, &mut NoMeter);
            socket.refers = !socket.refers;
        }
    }

    /// Lets a socket that can continue its download do so, or begin a new one.
    fn write(&mut self) {
        let index = self.random.below(self.runnable.len().max(1) as u64) as usize;
        let Some(&number) = self.runnable.iter().nth(index) else {
            return;
        };
        let moment = self.history.history().moment;
        let socket = &mut self.sockets[number as usize];
        let download = match socket.download {
            Some(download) => download,
            None if self.left == 0 => return,
            None => {
                self.left -= 1;
                let file = self.random.below(self.lengths.len() as u64) as usize;
                Download {
                    file: FileId(file as u32),
                    offset: 0,
                    end: self.lengths[file],
                    since: moment,
                }
            }
        };
        socket.download = Some(download);
        let len = (download.end - download.offset) as usize;
        let content = FileContent::new(download.file, download.offset, len as u64);
        let mut sink = Sink {
            number,
            socket,
            history: &self.history,
            most: match self.random.percent(80) {
                true => usize::MAX,
                false => self.random.below(6_000) as usize,
            },
        };
        let id = SocketId(number);
        let sent = self
            .files
            .send(id, content, len, &mut sink, &mut self.buffers, &mut NoMeter);
        let offset = download.offset + *sent.as_ref().unwrap_or(&0) as u64;
        if sent.is_err() {
            let history = self.history.history();
            let shrank = history.was_truncated(download.file, download.since);
            assert!(shrank, "a send fails only if the file became shorter");
        }
        let socket = &mut self.sockets[number as usize];
        if sent.is_err() || offset == download.end || self.random.percent(2) {
            self.files.close(id);
            socket.download = None;
            socket.wants_room = false;
        } else {
            socket.download = Some(Download { offset, ..download });
            self.runnable.remove(&number);
            // A socket that accepted less than it had announced tries again later.
            if socket.wants_room && socket.unacknowledged == 0 {
                self.runnable.insert(number);
            }
        }
    }
}
