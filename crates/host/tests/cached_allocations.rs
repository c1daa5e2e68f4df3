//! In steady state content from the NIC's data cache costs no allocation, in host and NIC: for a connection on the host or on the NIC,
//! in bytes or in names, from blocks that are cached or that have to take the place of others. A binary of its own with one test,
//! because it counts what the whole process allocates.

use baton_host::{
    Config, FileCacheConfig, FileContent, FileId, FileStore, Kernel, NicCacheConfig, NicId,
    NoMeter, Ready, SelectionConfig, SocketId, Sockets,
};
use baton_nic::{CacheConfig, Firmware, Storable};
use baton_tcp::{Event, Segment, Stack};
use baton_testkit::{Counting, endpoint};
use baton_wire::{Flow, Span, Symbolic, Time};
use bytes::Bytes;
use std::collections::VecDeque;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NIC: NicId = NicId(0);
/// Whole blocks: no packet has parts of more than two, which is as many pieces as it carries without memory of its own.
const FILE_BYTES: u32 = 7 * 4096;
static CONTENT: [u8; FILE_BYTES as usize] = [7; FILE_BYTES as usize];
/// Files that are on their way at a time: what the client has not got yet.
const UNDER_WAY: u32 = 3;
const SEND_BUFFER: u32 = (UNDER_WAY + 1) * FILE_BYTES;
/// Frames that reach the client at a time. There are always more under way: a connection with nothing in flight gives the memory
/// for what is back.
const FRAMES_AT_A_TIME: usize = 8;
/// Files that the cache has room for.
const CACHED_FILES: u32 = 16;
const CACHE_KIB: u32 = CACHED_FILES * FILE_BYTES / 1024;

/// Payload, and what stands in a file.
trait Content: Storable + Send {
    fn of(file: FileId, offset: u64, len: u32) -> Self;
}

impl Content for Bytes {
    fn of(_: FileId, offset: u64, len: u32) -> Self {
        Self::from_static(&CONTENT[offset as usize..][..len as usize])
    }
}

impl Content for Symbolic {
    fn of(file: FileId, offset: u64, len: u32) -> Self {
        let source = u64::from(file.0) + 1;
        Self {
            source,
            offset,
            len,
        }
    }
}

/// Files that never change.
#[derive(Debug)]
struct Files;

impl<P: Content> FileStore<P> for Files {
    fn len(&mut self, _: FileId, _: u64) -> u64 {
        FILE_BYTES.into()
    }

    fn read(&self, file: FileId, offset: u64, len: u32) -> P {
        P::of(file, offset, len)
    }

    fn edit(&mut self, _: FileId, _: u32, _: u64, _: u64) {}

    fn truncate(&mut self, _: FileId, _: u32, _: u64) {}
}

/// A server with one NIC, and a client with one connection to it, which gets one file after the other.
struct World<P: Content> {
    now: Time,
    kernel: Kernel<P>,
    nic: Firmware<P>,
    client: Stack<P>,
    to_client: VecDeque<Segment<P>>,
    socket: Option<SocketId>,
    ready: Vec<Ready>,
    /// The server sends the first so many files in turn.
    files: u32,
    file: u32,
    sent: u64,
    received: u64,
}

impl<P: Content> World<P> {
    /// `offloaded`: the connection goes to the NIC at once. It is open, and everything was sent once.
    fn new(offloaded: bool, files: u32) -> Self {
        let config = Config {
            selection: if offloaded {
                SelectionConfig::Fcfs
            } else {
                SelectionConfig::Never
            },
            nic_cache: NicCacheConfig {
                enabled: true,
                ..NicCacheConfig::default()
            },
            file_cache: FileCacheConfig {
                kib: 64 * 1024,
                ..FileCacheConfig::default()
            },
            ..Config::default()
        };
        let tcp = || baton_tcp::Config {
            send_buffer: SEND_BUFFER,
            ..baton_tcp::Config::default()
        };
        let mut kernel = Kernel::new(config, tcp(), 1);
        kernel.set_file_store(Box::new(Files));
        for file in 0..2 * CACHED_FILES {
            kernel.preload(FileId(file), FILE_BYTES.into());
        }
        let server = endpoint(1, 80);
        kernel.listen(server);
        kernel.attach_nic(server.addr, 1);
        let nic = baton_nic::Config {
            cache: CacheConfig {
                kib: CACHE_KIB,
                ..CacheConfig::default()
            },
            ..baton_nic::Config::default()
        };
        let mut client = Stack::new(tcp(), 3);
        let flow = Flow {
            local: endpoint(2, 1000),
            remote: server,
        };
        client.connect(Time::ZERO, flow).expect("the first");
        let mut world = Self {
            now: Time::ZERO,
            kernel,
            nic: Firmware::new(nic, tcp(), 2),
            client,
            to_client: VecDeque::new(),
            socket: None,
            ready: Vec::new(),
            files,
            file: 0,
            sent: 0,
            received: 0,
        };
        world.rounds(1);
        world
    }

    /// The client gets each file so often.
    fn rounds(&mut self, rounds: u32) {
        let wanted = self.received + u64::from(rounds * self.files * FILE_BYTES);
        while self.received < wanted {
            self.turn();
        }
    }

    /// Some of what is on its way arrives, and time passes.
    fn turn(&mut self) {
        while let Some((_, segment)) = self.client.poll_transmit(self.now) {
            let taken = self.nic.handle_frame(self.now, segment);
            assert!(taken.is_ok(), "the NIC has room");
        }
        while let Some((_, descriptor)) = self.kernel.poll_descriptor() {
            let taken = self.nic.handle_descriptor(self.now, descriptor);
            assert!(taken.is_ok(), "the NIC has room");
        }
        self.nic_works();
        self.server_acts();
        let frames = self.to_client.len().min(FRAMES_AT_A_TIME);
        for segment in self.to_client.drain(..frames) {
            self.client.handle_segment(self.now, segment);
        }
        self.client_reads();
        self.now += Span::from_us(100);
        self.nic.handle_timeouts(self.now);
        self.kernel.handle_timeouts(self.now, &mut NoMeter);
        self.client.handle_timeouts(self.now);
    }

    fn nic_works(&mut self) {
        while self
            .nic
            .poll_work(self.now, &mut baton_nic::NoMeter)
            .is_some()
        {
            while let Some(frame) = self.nic.poll_frame() {
                self.to_client.push_back(frame.segment);
            }
            while let Some(upcall) = self.nic.poll_upcall() {
                self.kernel
                    .handle_upcall(self.now, NIC, upcall.item, &mut NoMeter);
            }
        }
    }

    fn server_acts(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        self.kernel.wait(&mut NoMeter, &mut ready, 8);
        let m = &mut NoMeter;
        let mut sockets = self.kernel.sockets(self.now, m);
        for event in ready.drain(..) {
            if event == Ready::Acceptable {
                self.socket = sockets.accept();
            }
        }
        self.ready = ready;
        let Some(id) = self.socket else {
            return;
        };
        while self.sent < self.received + u64::from(UNDER_WAY * FILE_BYTES) {
            let file = FileId(self.file);
            let taken = sockets.send_file(
                id,
                FileContent::new(file, 0, FILE_BYTES.into()),
                P::of(file, 0, FILE_BYTES),
            );
            assert_eq!(taken, Ok(FILE_BYTES as usize), "there is room");
            self.sent += u64::from(FILE_BYTES);
            self.file = (self.file + 1) % self.files;
        }
    }

    fn client_reads(&mut self) {
        while let Some((conn, event)) = self.client.poll_event() {
            if event == Event::Readable {
                while let Some(data) = self.client.read(conn, usize::MAX) {
                    self.received += data.len() as u64;
                    self.client.consume(conn, data.len());
                }
            }
        }
    }
}

/// Allocations of sending so many files in turn, once everything has found its size; and asserts that they came from the cache.
fn allocations<P: Content>(offloaded: bool, files: u32) -> u64 {
    let mut world = World::<P>::new(offloaded, files);
    assert_eq!(world.nic.connections(), u32::from(offloaded));
    world.rounds(20);
    let before = world.nic.stats().cache.clone();
    let allocations = baton_testkit::allocations();
    world.rounds(20);
    let allocations = baton_testkit::allocations() - allocations;
    let after = &world.nic.stats().cache;
    let sent = u64::from(20 * files * FILE_BYTES);
    let appended = after.appended_bytes - before.appended_bytes;
    let inserted = after.inserted_bytes - before.inserted_bytes;
    let is_about = |bytes: u64, expected: u64| bytes.abs_diff(expected) <= u64::from(SEND_BUFFER);
    assert!(is_about(appended, sent), "{appended} of {sent} bytes");
    if files <= CACHED_FILES {
        assert_eq!(inserted, 0);
    } else {
        assert!(is_about(inserted, sent), "{inserted} of {sent} bytes");
    }
    assert_eq!(after.refused.total(), 0);
    world.kernel.check();
    world.nic.check();
    allocations
}

#[test]
fn content_from_the_cache_costs_no_allocations() {
    for offloaded in [false, true] {
        for files in [CACHED_FILES, 2 * CACHED_FILES] {
            let in_names = allocations::<Symbolic>(offloaded, files);
            let in_bytes = allocations::<Bytes>(offloaded, files);
            assert_eq!(
                (in_names, in_bytes),
                (0, 0),
                "in names and in bytes; offloaded: {offloaded}, files: {files}"
            );
        }
    }
}
