//! File cache, directories, coherence and affinity, one thing at a time: a kernel with real NICs, and a client on a wire that loses
//! nothing.

use baton_bus::handoff::{CacheCommand, Part, ToNic};
use baton_host::{
    AffinityConfig, Bypass, CoherenceConfig, Config, DropReason, FileCacheConfig, FileContent,
    FileId, FileStore, Gone, Kernel, NicCacheConfig, NicCacheStats, NicId, NoMeter, NotOffloaded,
    Ready, SelectionConfig, SocketId, Sockets,
};
use baton_nic::{CacheConfig, Firmware};
use baton_tcp::{ConnId, Stack};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use rustc_hash::FxHashMap;
use std::net::{IpAddr, Ipv4Addr};

const FILE: FileId = FileId(5);
const FILE_BYTES: u64 = 10_000;
/// A file that is longer than what may be under way at first.
const LONG: FileId = FileId(99);
const LONG_BYTES: u64 = 30_000;

/// Files of one length each; content tells file and revision.
#[derive(Debug, Default)]
struct Files {
    lengths: FxHashMap<FileId, u64>,
    revisions: FxHashMap<FileId, u32>,
}

impl FileStore<Symbolic> for Files {
    fn len(&mut self, file: FileId, _asked: u64) -> u64 {
        let len = if file == LONG { LONG_BYTES } else { FILE_BYTES };
        *self.lengths.entry(file).or_insert(len)
    }

    fn read(&self, file: FileId, offset: u64, len: u32) -> Symbolic {
        let revision = self.revisions.get(&file).copied().unwrap_or(0);
        Symbolic {
            source: u64::from(file.0) << 32 | u64::from(revision),
            offset,
            len,
        }
    }

    fn edit(&mut self, file: FileId, revision: u32, offset: u64, len: u64) {
        let old = self.len(file, 0);
        self.lengths.insert(file, old.max(offset + len));
        self.revisions.insert(file, revision);
    }

    fn truncate(&mut self, file: FileId, revision: u32, len: u64) {
        self.lengths.insert(file, len);
        self.revisions.insert(file, revision);
    }
}

fn endpoint(subnet: u8, host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, subnet, host)), port)
}

/// What the NIC was given.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given {
    inserts: u32,
    /// Parts of packets from the cache.
    cached_parts: u32,
    /// Packets of which nothing is cached, that carry data.
    plain: u32,
}

struct Bench {
    kernel: Kernel<Symbolic>,
    nics: Vec<Firmware<Symbolic>>,
    given: Vec<Given>,
    client: Stack<Symbolic>,
    now: Time,
    port: u16,
}

impl Bench {
    fn new(config: Config, nics: u8, cache_kib: u32) -> Self {
        config.validate().expect("a kernel can work so");
        let mut kernel = Kernel::new(config, baton_tcp::Config::default(), 1);
        let mut bench = Vec::new();
        for subnet in 0..nics {
            kernel.listen(endpoint(subnet, 1, 80));
            kernel.attach_nic(endpoint(subnet, 1, 80).addr, 100);
            let config = baton_nic::Config {
                cache: CacheConfig {
                    kib: cache_kib,
                    ..CacheConfig::default()
                },
                ..baton_nic::Config::default()
            };
            bench.push(Firmware::new(config, baton_tcp::Config::default(), 2));
        }
        kernel.set_file_store(Box::new(Files::default()));
        let mut bench = Self {
            kernel,
            given: bench.iter().map(|_| Given::default()).collect(),
            nics: bench,
            client: Stack::new(baton_tcp::Config::default(), 3),
            now: Time::ZERO,
            port: 1000,
        };
        bench.run();
        bench
    }

    /// One NIC with a cache of 64 KiB.
    fn with(nic_cache: NicCacheConfig, file_cache: FileCacheConfig) -> Self {
        let config = Config {
            selection: SelectionConfig::Never,
            nic_cache: NicCacheConfig {
                enabled: true,
                ..nic_cache
            },
            file_cache,
            ..Config::default()
        };
        Self::new(config, 1, 64)
    }

    fn plain() -> Self {
        Self::with(NicCacheConfig::default(), FileCacheConfig::default())
    }

    /// Everything on its way arrives, until nothing is.
    fn run(&mut self) {
        loop {
            let mut idle = true;
            while let Some((_, segment)) = self.client.poll_transmit(self.now) {
                idle = false;
                let IpAddr::V4(to) = segment.dst.addr else {
                    unreachable!()
                };
                let nic = usize::from(to.octets()[2]);
                self.nics[nic]
                    .handle_frame(self.now, segment)
                    .expect("the NIC has room");
            }
            while let Some((nic, descriptor)) = self.kernel.poll_descriptor() {
                idle = false;
                self.count(nic, &descriptor);
                let taken = self.nics[nic.0 as usize].handle_descriptor(self.now, descriptor);
                assert!(taken.is_ok());
                self.work();
            }
            self.work();
            if idle {
                return;
            }
            self.now += Span::from_us(10);
        }
    }

    fn count(&mut self, nic: NicId, descriptor: &ToNic<Symbolic>) {
        let given = &mut self.given[nic.0 as usize];
        match descriptor {
            ToNic::Cache(CacheCommand::Insert { .. }) => given.inserts += 1,
            ToNic::Parts(packet) => {
                let cached = packet
                    .parts()
                    .filter(|part| matches!(part, Part::Cache { .. }));
                given.cached_parts += cached.count() as u32;
            }
            ToNic::Packet(segment) if !segment.payload.is_empty() => given.plain += 1,
            _ => {}
        }
    }

    fn work(&mut self) {
        for (nic, firmware) in self.nics.iter_mut().enumerate() {
            while firmware
                .poll_work(self.now, &mut baton_nic::NoMeter)
                .is_some()
            {
                while let Some(frame) = firmware.poll_frame() {
                    self.client.handle_segment(self.now, frame.segment);
                }
                while let Some(upcall) = firmware.poll_upcall() {
                    let nic = NicId(nic as u8);
                    self.kernel
                        .handle_upcall(self.now, nic, upcall.item, &mut NoMeter);
                    self.kernel.check();
                }
                firmware.check();
            }
        }
    }

    fn connect(&mut self, subnet: u8) -> (SocketId, ConnId) {
        self.port += 1;
        let flow = Flow {
            local: endpoint(subnet, 2, self.port),
            remote: endpoint(subnet, 1, 80),
        };
        let conn = self
            .client
            .connect(self.now, flow)
            .expect("a new four-tuple");
        self.run();
        (
            self.call(|sockets| sockets.accept()).expect("it came"),
            conn,
        )
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Sockets<Symbolic>) -> T) -> T {
        let mut meter = NoMeter;
        let result = call(&mut self.kernel.sockets(self.now, &mut meter));
        self.kernel.check();
        result
    }

    /// `sendfile` of all of a file from `offset` on.
    fn send_file(&mut self, id: SocketId, file: FileId, offset: u64) -> Result<usize, Gone> {
        let data = Symbolic {
            source: 0,
            offset: 0,
            len: (FILE_BYTES - offset) as u32,
        };
        let sent = self.call(|sockets| {
            sockets.send_file(id, FileContent::new(file, offset, data.len.into()), data)
        });
        self.run();
        sent
    }

    /// What the client has received, in runs.
    fn received(&mut self, conn: ConnId) -> Vec<Symbolic> {
        let mut runs: Vec<Symbolic> = Vec::new();
        while let Some(data) = self.client.read(conn, usize::MAX) {
            self.client.consume(conn, data.len as usize);
            let joined = runs
                .last_mut()
                .is_some_and(|last| baton_wire::Payload::try_append(last, &data));
            if !joined {
                runs.push(data);
            }
        }
        self.run();
        runs
    }

    /// A response of one file over a connection of its own.
    fn serve(&mut self, file: FileId) -> Vec<Symbolic> {
        let (id, conn) = self.connect(0);
        let sent = self.send_file(id, file, 0);
        assert_eq!(sent, Ok(FILE_BYTES as usize));
        self.received(conn)
    }

    fn stats(&self) -> &NicCacheStats {
        self.kernel.nic_cache_stats(NicId(0)).expect("it is used")
    }

    fn wait(&mut self) -> Vec<Ready> {
        let mut ready = Vec::new();
        self.kernel.wait(&mut NoMeter, &mut ready, 100);
        ready
    }
}

fn content(file: FileId, revision: u32, len: u64) -> Symbolic {
    Symbolic {
        source: u64::from(file.0) << 32 | u64::from(revision),
        offset: 0,
        len: len as u32,
    }
}

#[test]
fn a_block_crosses_once_and_its_packets_come_from_the_cache() {
    let mut bench = Bench::plain();
    for _ in 0..3 {
        assert_eq!(bench.serve(FILE), [content(FILE, 0, FILE_BYTES)]);
    }
    let stats = bench.stats();
    assert_eq!((stats.inserts, stats.inserted_bytes), (3, FILE_BYTES));
    assert_eq!((stats.disjoint_inserts, stats.evictions), (0, 0));
    let nic = &bench.nics[0].stats().cache;
    assert_eq!(nic.appended_bytes, 3 * FILE_BYTES);
    assert_eq!(nic.refused.total(), 0);
    let packets = (FILE_BYTES as u32).div_ceil(1448);
    let given = &bench.given[0];
    assert_eq!((given.inserts, given.plain), (3, 0));
    assert_eq!(
        given.cached_parts,
        3 * (packets + 2),
        "packets that straddle two blocks have two parts"
    );
    assert_eq!(bench.kernel.nic_cache_blocks(NicId(0)), (3, 16));
}

#[test]
fn what_is_no_file_content_bypasses() {
    let mut bench = Bench::plain();
    let (id, conn) = bench.connect(0);
    let head = Symbolic {
        source: 1,
        offset: 0,
        len: 300,
    };
    bench.call(|sockets| {
        sockets.set_cork(id, true);
        assert_eq!(sockets.send(id, head), Ok(300));
    });
    bench.send_file(id, FILE, 0).expect("it is open");
    bench.call(|sockets| {
        assert_eq!(sockets.send(id, head), Ok(300));
        sockets.set_cork(id, false);
    });
    bench.run();
    let parts = [head, content(FILE, 0, FILE_BYTES), head];
    assert_eq!(bench.received(conn), parts);
    assert_eq!(bench.nics[0].stats().cache.appended_bytes, FILE_BYTES);
    assert_eq!(bench.stats().inserted_bytes, FILE_BYTES);
}

#[test]
fn a_block_of_several_pages_needs_several_inserts() {
    let nic_cache = NicCacheConfig {
        block_bytes: 16_384,
        ..NicCacheConfig::default()
    };
    let mut bench = Bench::with(nic_cache, FileCacheConfig::default());
    assert_eq!(bench.serve(FILE), [content(FILE, 0, FILE_BYTES)]);
    assert_eq!(
        (bench.stats().inserts, bench.stats().disjoint_inserts),
        (1, 1)
    );
    assert_eq!(bench.given[0].inserts, 3, "pages lie anywhere");
}

fn coherence(coherence: CoherenceConfig) -> Bench {
    let nic_cache = NicCacheConfig {
        coherence,
        ..NicCacheConfig::default()
    };
    Bench::with(nic_cache, FileCacheConfig::default())
}

#[test]
fn lazy_invalidation_notices_at_the_next_lookup() {
    let mut bench = coherence(CoherenceConfig::Lazy);
    bench.serve(FILE);
    bench.kernel.edit(FILE, 0, 1, &mut NoMeter);
    assert_eq!(bench.kernel.file_revision(FILE), 1);
    assert_eq!((bench.stats().stale, bench.stats().invalidated), (0, 0));
    assert_eq!(bench.serve(FILE), [content(FILE, 1, FILE_BYTES)]);
    assert_eq!(
        (bench.stats().stale, bench.stats().inserts),
        (3, 6),
        "every block of the file has an old revision"
    );
}

#[test]
fn eager_invalidation_removes_what_changes() {
    let mut bench = coherence(CoherenceConfig::Eager);
    bench.serve(FILE);
    bench.kernel.edit(FILE, 4096, 1, &mut NoMeter);
    bench.kernel.check();
    assert_eq!((bench.stats().stale, bench.stats().invalidated), (0, 1));
    bench.serve(FILE);
    assert_eq!((bench.stats().stale, bench.stats().inserts), (0, 4));
    bench.kernel.truncate(FILE, 5000, &mut NoMeter);
    bench.kernel.check();
    assert_eq!(
        bench.stats().invalidated,
        3,
        "what is beyond the end is gone"
    );
}

#[test]
fn update_puts_the_new_content_in_place() {
    let mut bench = coherence(CoherenceConfig::Update);
    bench.serve(FILE);
    bench.kernel.edit(FILE, 4096, 4096, &mut NoMeter);
    bench.run();
    assert_eq!((bench.stats().updated, bench.given[0].inserts), (1, 4));
    let received = bench.serve(FILE);
    assert_eq!(bench.given[0].inserts, 4, "nothing is missed");
    assert_eq!(
        received[1],
        Symbolic {
            offset: 4096,
            ..content(FILE, 1, 4096)
        },
        "blocks that did not change keep the name they had"
    );
}

#[test]
fn what_is_being_sent_goes_on_as_it_was() {
    let mut bench = Bench::plain();
    let (id, conn) = bench.connect(0);
    let data = content(LONG, 9, LONG_BYTES);
    let sent = bench
        .call(|sockets| sockets.send_file(id, FileContent::new(LONG, 0, data.len.into()), data));
    assert_eq!(sent, Ok(LONG_BYTES as usize));
    let m = &mut NoMeter;
    bench.kernel.edit(LONG, 0, LONG_BYTES, m);
    bench.run();
    assert_eq!(bench.received(conn), [content(LONG, 0, LONG_BYTES)]);
    let bypassed = &bench.stats().bypassed;
    assert!(
        bypassed.get(&Bypass::OldRevision).is_some_and(|&n| n > 0),
        "what the congestion window held back is not put into the cache any more: {bypassed:?}"
    );
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_connection_early() {
    let config = Config {
        selection: SelectionConfig::Never,
        ..Config::default()
    };
    let mut bench = Bench::new(config, 1, 0);
    let (id, conn) = bench.connect(0);
    let data = content(FILE, 9, 6000);
    let sent = bench
        .call(|sockets| sockets.send_file(id, FileContent::new(FILE, 0, data.len.into()), data));
    assert_eq!(sent, Ok(6000));
    bench.kernel.truncate(FILE, 3000, &mut NoMeter);
    // The page that was begun goes out to its old end; of what follows there is nothing.
    assert_eq!(bench.send_file(id, FILE, 6000), Ok(8192 - 6000));
    assert_eq!(bench.send_file(id, FILE, 8192), Err(Gone));
    assert_eq!(bench.kernel.stats().drops[&DropReason::FileShrunk], 1);
    bench.call(|sockets| sockets.close(id));
    bench.run();
    assert_eq!(bench.received(conn), [content(FILE, 0, 8192)]);
}

#[test]
fn blocks_of_a_live_stream_go_when_all_have_got_them() {
    let mut bench = Bench::plain();
    bench.kernel.set_transient(FILE);
    let clients = [bench.connect(0), bench.connect(0)];
    let data = content(FILE, 9, FILE_BYTES);
    for (id, _) in clients {
        let sent = bench.call(|sockets| {
            sockets.send_file(id, FileContent::new(FILE, 0, data.len.into()), data)
        });
        assert_eq!(sent, Ok(FILE_BYTES as usize));
    }
    bench.run();
    for (_, conn) in clients {
        assert_eq!(bench.received(conn), [content(FILE, 0, FILE_BYTES)]);
    }
    assert_eq!((bench.stats().inserts, bench.stats().delivered), (3, 3));
    assert_eq!(bench.kernel.nic_cache_blocks(NicId(0)).0, 0);
}

#[test]
fn blocks_of_a_live_stream_stay_while_they_are_held() {
    let mut bench = Bench::plain();
    bench.kernel.set_transient(FILE);
    bench.kernel.hold(FILE);
    for _ in 0..2 {
        // One after the other: the first has acknowledged all before the second gets anything.
        let (id, conn) = bench.connect(0);
        let data = content(FILE, 9, FILE_BYTES);
        let sent = bench.call(|sockets| {
            sockets.send_file(id, FileContent::new(FILE, 0, data.len.into()), data)
        });
        assert_eq!(sent, Ok(FILE_BYTES as usize));
        bench.run();
        assert_eq!(bench.received(conn), [content(FILE, 0, FILE_BYTES)]);
        assert_eq!((bench.stats().inserts, bench.stats().delivered), (3, 0));
    }
    bench.kernel.let_go(FILE, &mut NoMeter);
    assert_eq!((bench.stats().inserts, bench.stats().delivered), (3, 3));
    assert_eq!(bench.kernel.nic_cache_blocks(NicId(0)).0, 0);
}

fn small_file_cache(blocking: bool) -> Bench {
    let file_cache = FileCacheConfig {
        kib: 64,
        blocking,
        read_pages: 2,
        ..FileCacheConfig::default()
    };
    Bench::with(NicCacheConfig::default(), file_cache)
}

#[test]
fn a_process_sleeps_until_its_page_is_read() {
    let mut bench = small_file_cache(true);
    let (id, conn) = bench.connect(0);
    bench.wait();
    assert_eq!(bench.send_file(id, FILE, 0), Ok(0));
    assert!(bench.kernel.application_sleeps() && bench.wait().is_empty());
    let read = bench.kernel.poll_disk().expect("a read");
    assert_eq!((read.file, read.first_page, read.pages), (FILE, 0, 2));
    assert_eq!(bench.kernel.poll_disk(), None);
    bench.kernel.handle_disk(read.token, &mut NoMeter);
    bench.kernel.check();
    assert!(!bench.kernel.application_sleeps());
    assert_eq!(bench.wait(), [Ready::Writable(id)]);
    assert_eq!(bench.send_file(id, FILE, 0), Ok(8192));
    let read = bench.kernel.poll_disk().expect("the next read");
    assert_eq!((read.first_page, read.pages), (2, 1), "to the file's end");
    bench.kernel.handle_disk(read.token, &mut NoMeter);
    assert_eq!(
        bench.send_file(id, FILE, 8192),
        Ok(FILE_BYTES as usize - 8192)
    );
    assert_eq!(bench.received(conn), [content(FILE, 0, FILE_BYTES)]);
    let stats = bench.kernel.file_cache_stats().expect("it is limited");
    assert_eq!((stats.reads, stats.pages_read, stats.hits), (2, 3, 3));
}

#[test]
fn others_go_on_where_nobody_sleeps_and_one_read_serves_all() {
    let mut bench = small_file_cache(false);
    let (first, second) = (bench.connect(0).0, bench.connect(0).0);
    bench.wait();
    assert_eq!(bench.send_file(first, FILE, 0), Ok(0));
    assert!(!bench.kernel.application_sleeps());
    assert_eq!(bench.send_file(second, FILE, 4096), Ok(0));
    let read = bench.kernel.poll_disk().expect("a read");
    assert_eq!(bench.kernel.poll_disk(), None, "the page is on its way");
    bench.kernel.handle_disk(read.token, &mut NoMeter);
    let ready = bench.wait();
    assert_eq!(ready, [Ready::Writable(first), Ready::Writable(second)]);
}

#[test]
fn blocks_leave_with_their_pages() {
    let mut bench = small_file_cache(false);
    // 16 pages of memory: the sixth file of three pages makes the first ones go.
    for file in 0..6 {
        let (id, conn) = bench.connect(0);
        let mut sent = 0;
        while sent < FILE_BYTES {
            sent += bench.send_file(id, FileId(file), sent).expect("it is open") as u64;
            while let Some(read) = bench.kernel.poll_disk() {
                bench.kernel.handle_disk(read.token, &mut NoMeter);
                bench.kernel.check();
            }
        }
        assert_eq!(bench.received(conn), [content(FileId(file), 0, FILE_BYTES)]);
    }
    let evicted = bench.kernel.file_cache_stats().expect("limited").evictions;
    assert!(evicted > 0);
    let stats = bench.stats();
    assert_eq!(stats.inserts, 18);
    assert_eq!(stats.excluded + stats.evictions, 18 - 16);
    assert!(stats.excluded > 0, "{stats:?}");
}

#[test]
fn a_connection_is_answered_where_its_file_belongs() {
    let config = Config {
        selection: SelectionConfig::Threshold { enqueues: 1 },
        nic_cache: NicCacheConfig {
            enabled: true,
            ..NicCacheConfig::default()
        },
        affinity: AffinityConfig::ByFile,
        ..Config::default()
    };
    let mut bench = Bench::new(config, 2, 64);
    for subnet in [0, 1, 0, 1] {
        let (id, conn) = bench.connect(subnet);
        bench.send_file(id, FILE, 0).expect("it is open");
        assert_eq!(bench.received(conn), [content(FILE, 0, FILE_BYTES)]);
        let elsewhere = bench.kernel.not_offloaded(id) == Some(NotOffloaded::Affinity);
        let home = bench.kernel.nic_cache_blocks(NicId(subnet)).0 > 0;
        assert_eq!(
            elsewhere, !home,
            "one NIC sees both directions, or it has none"
        );
    }
    assert_eq!(bench.kernel.stats().answered_elsewhere, 2);
    let blocks = [0, 1].map(|nic| bench.kernel.nic_cache_blocks(NicId(nic)).0);
    assert!(blocks == [3, 0] || blocks == [0, 3], "{blocks:?}");
}

#[test]
fn a_reset_empties_the_directory_and_starts_the_cache_again() {
    let mut bench = Bench::plain();
    bench.serve(FILE);
    bench.nics[0].reset();
    while let Some(upcall) = bench.nics[0].poll_upcall() {
        let item = upcall.item;
        bench
            .kernel
            .handle_upcall(bench.now, NicId(0), item, &mut NoMeter);
    }
    bench.kernel.check();
    assert_eq!(bench.kernel.nic_cache_blocks(NicId(0)), (0, 0));
    bench.run();
    assert_eq!(bench.kernel.nic_cache_blocks(NicId(0)), (0, 16));
    assert_eq!(bench.serve(FILE), [content(FILE, 0, FILE_BYTES)]);
    assert_eq!((bench.stats().resets, bench.stats().inserts), (1, 6));
}

#[test]
fn one_hit_wonders_are_not_admitted() {
    let nic_cache = NicCacheConfig {
        admission: baton_cache::AdmissionConfig::SECOND_REQUEST,
        ..NicCacheConfig::default()
    };
    let mut bench = Bench::with(nic_cache, FileCacheConfig::default());
    bench.serve(FILE);
    assert_eq!(
        bench.stats().inserts,
        0,
        "all packets of one response are one request"
    );
    bench.serve(FILE);
    assert_eq!(bench.stats().inserts, 3);
}

#[test]
fn what_a_connection_brings_to_the_nic_comes_from_the_cache_too() {
    let config = Config {
        selection: SelectionConfig::Threshold { enqueues: 8 },
        nic_cache: NicCacheConfig {
            enabled: true,
            ..NicCacheConfig::default()
        },
        ..Config::default()
    };
    let mut bench = Bench::new(config, 1, 64);
    let (id, conn) = bench.connect(0);
    let data = content(LONG, 9, LONG_BYTES);
    let sent = bench
        .call(|sockets| sockets.send_file(id, FileContent::new(LONG, 0, data.len.into()), data));
    assert_eq!(sent, Ok(LONG_BYTES as usize));
    bench.run();
    assert_eq!(bench.received(conn), [content(LONG, 0, LONG_BYTES)]);
    assert_eq!(bench.kernel.stats().handoffs_accepted, 1);
    let nic = bench.nics[0].stats();
    assert_eq!(nic.host_packets_sent, 1, "only the handshake");
    assert_eq!(nic.cache.appended_bytes, LONG_BYTES);
    assert_eq!(nic.cache.inserted_bytes, LONG_BYTES);
}
