use super::*;
use crate::memory::PageBuffer;
use crate::meter::{Access, NoMeter, Owner, Pool};
use baton_tcp::Segment;
use baton_testkit::{Random, endpoint, for_each_seed};
use baton_wire::Span;
use bytes::Bytes;
use std::iter::{empty, once};

const RING: u32 = 8;
const CONN: ConnId = ConnId(0);
const SOCKET: SocketId = SocketId(3);

/// Creates a memory with `more` buffers of each kind in addition to those of the ring.
fn memory(more: u32) -> NetworkMemory {
    NetworkMemory::new(&config(more), 1)
}

fn config(more: u32) -> Config {
    Config {
        receive_ring_entries: RING,
        mbufs: RING + more,
        clusters: RING + more,
        hash_buckets: 512,
        ..Config::default()
    }
}

fn segment(pieces: usize) -> Segment<Bytes> {
    Segment {
        src: endpoint(1, 80),
        dst: endpoint(2, 1000),
        ecn: Default::default(),
        header: Default::default(),
        payload: (0..pieces).map(|_| Bytes::from_static(b"data")).collect(),
    }
}

fn in_use(memory: &NetworkMemory) -> (u32, u32) {
    let Buffers {
        mbufs, clusters, ..
    } = &memory.buffers;
    (mbufs.in_use() - RING, clusters.in_use() - RING)
}

#[test]
fn received_data_stays_in_its_buffer_until_it_is_read() {
    let (mut memory, m) = (memory(2), &mut NoMeter);
    for readable in [100, 250] {
        assert!(memory.packet_received(0, 200, m));
        memory.keep_received(CONN, readable, m);
        memory.packet_handled(m);
    }
    assert_eq!(in_use(&memory), (2, 2));
    assert!(!memory.packet_received(0, 60, m), "no fresh buffer is left");
    assert_eq!(memory.drops().receive_buffers, 1);
    memory.accepted(CONN, SOCKET, m);
    memory.read(CONN, SOCKET, 99, m);
    assert_eq!(in_use(&memory), (2, 2));
    memory.read(CONN, SOCKET, 2, m);
    assert_eq!(in_use(&memory), (1, 1));
    assert!(memory.packet_received(0, 60, m));
    memory.packet_handled(m);
    memory.check(0);
    memory.closed(CONN, Time::ZERO, |_| None, m);
    assert_eq!(in_use(&memory), (0, 0));
}

#[test]
fn written_data_stays_until_acknowledged_and_packets_until_sent() {
    let (mut memory, m) = (memory(100), &mut NoMeter);
    let from = SeqNr(u32::MAX - 50);
    assert_eq!(memory.write(CONN, SOCKET, (from, 2148), m), 2148);
    assert_eq!(in_use(&memory), (2, 1), "the last bytes are in an mbuf");
    assert!(memory.transmit(0, Some(CONN), &segment(1), empty(), m));
    assert!(memory.transmit(0, None, &segment(0), empty(), m));
    assert_eq!(in_use(&memory), (5, 1));
    memory.acknowledged(CONN, |end| (from + 2147).at_or_after(end), m);
    assert_eq!(in_use(&memory), (4, 0));
    memory.transmitted(0, 1, m);
    assert_eq!(in_use(&memory), (2, 0));
    memory.acknowledged(CONN, |_| true, m);
    memory.transmitted(0, 1, m);
    assert_eq!(in_use(&memory), (0, 0));
    memory.check(0);
}

/// The memory that a packet refers to, the mbufs whose header is passed or whose data is read, and the number of bytes that the device reads.
#[derive(Default)]
struct Referred(Vec<(Pool, u32)>, Vec<(Pool, u32)>);

impl Meter for Referred {
    fn owner(&mut self, _owner: Owner) {}
    fn run(&mut self, _op: Op, _count: u32) {}
    fn touch(&mut self, _: Layer, pool: Pool, slot: u32, _: u32, _: u32, access: Access) {
        let is_source = pool == Pool::Mbuf && access == Access::Read;
        if is_source || matches!(pool, Pool::ClusterReferences | Pool::SfBuf) {
            self.0.push((pool, slot));
        }
    }
    fn dma(&mut self, pool: Pool, _: u32, _: u32, len: u32, access: Access) {
        if access == Access::Read {
            self.1.push((pool, len));
        }
    }
}

#[test]
fn a_segment_refers_to_the_buffers_of_its_data() {
    let mut memory = memory(100);
    let len = 2 * CLUSTER_BYTES + 100;
    memory.write(CONN, SOCKET, (SeqNr(0), len), &mut NoMeter);
    let (first, cluster) = (RING, RING);
    let page = SendPage {
        end: SeqNr(len + 4096),
        frame: 17,
        buffer: PageBuffer {
            mbuf: 90,
            sf_buf: 5,
        },
    };
    let mut referred = |from: u32| {
        let mut packet = segment(1);
        packet.header.seq = SeqNr(from);
        let mut m = Referred::default();
        assert!(memory.transmit(0, Some(CONN), &packet, once(page), &mut m));
        memory.transmitted(0, 1, &mut m);
        m.0
    };
    let source = |mbuf| (Pool::Mbuf, mbuf);
    let counted = |cluster| (Pool::ClusterReferences, cluster);
    assert_eq!(
        referred(CLUSTER_BYTES - 2),
        [
            source(first),
            counted(cluster),
            source(first + 1),
            counted(cluster + 1),
            counted(cluster),
            counted(cluster + 1),
        ],
        "two clusters, which are counted again when the packet is sent"
    );
    let (passed, last) = ([source(first), source(first + 1)], source(first + 2));
    let mapped = (Pool::SfBuf, 5);
    assert_eq!(
        referred(len - 2),
        [&passed[..], &[last, last, source(90), mapped, mapped],].concat(),
        "the last written bytes are in the mbuf itself, and the page is mapped"
    );
}

/// Records what TCP reads and writes of clusters and pages.
#[derive(Default)]
struct Content(Vec<(Pool, u32, u32, u32)>);

impl Meter for Content {
    fn owner(&mut self, _: Owner) {}
    fn run(&mut self, _: Op, _: u32) {}
    fn touch(&mut self, _: Layer, pool: Pool, slot: u32, offset: u32, len: u32, _: Access) {
        if matches!(pool, Pool::Cluster | Pool::FilePage) && len > 60 {
            self.0.push((pool, slot, offset, len));
        }
    }
    fn dma(&mut self, _: Pool, _: u32, _: u32, _: u32, _: Access) {}
}

#[test]
fn a_host_that_computes_checksums_reads_the_content() {
    let page = SendPage {
        end: SeqNr(4096),
        frame: 17,
        buffer: PageBuffer {
            mbuf: 90,
            sf_buf: 5,
        },
    };
    for by_host in [false, true] {
        let mut memory = memory(100);
        let checksums = AdapterChecksums {
            send: !by_host,
            receive: !by_host,
        };
        memory.set_checksums(0, checksums);
        memory.write(CONN, SOCKET, (SeqNr(0), 0), &mut NoMeter);
        let mut read = Content::default();
        for from in [0, 1448, 2896] {
            let mut packet = segment(1);
            packet.header.seq = SeqNr(from);
            packet.payload = once(Bytes::from_static(&[0; 1200])).collect();
            assert!(memory.transmit(0, Some(CONN), &packet, once(page), &mut read));
        }
        assert!(memory.packet_received(0, 1000, &mut read));
        let pages = read.0.iter().filter(|read| read.0 == Pool::FilePage);
        let pages: Vec<_> = pages
            .map(|&(_, frame, offset, len)| (frame, offset, len))
            .collect();
        let clusters = read.0.iter().filter(|read| read.0 == Pool::Cluster).count();
        match by_host {
            true => assert_eq!(pages, [(17, 0, 1200), (17, 1448, 1200), (17, 2896, 1200)]),
            false => assert_eq!(pages, []),
        }
        assert_eq!(clusters, usize::from(by_host));
    }
}

#[test]
fn the_device_reads_entries_headers_and_data() {
    let mut memory = memory(100);
    memory.write(CONN, SOCKET, (SeqNr(0), CLUSTER_BYTES), &mut NoMeter);
    let mut m = Referred::default();
    assert!(memory.transmit(0, Some(CONN), &segment(1), empty(), &mut m));
    let (data, headers) = ((Pool::Cluster, 4), (Pool::Mbuf, 66));
    let entry = (Pool::TransmitRing, 32);
    assert_eq!(m.1, [data, entry, entry, headers]);
}

#[test]
fn writers_and_packets_stop_when_memory_is_exhausted() {
    let (mut memory, m) = (memory(18), &mut NoMeter);
    let written = memory.write(CONN, SOCKET, (SeqNr(0), 10_000), m);
    assert_eq!(written, 2 * CLUSTER_BYTES, "the reserve is left");
    assert!(!memory.transmit(0, Some(CONN), &segment(16), empty(), m));
    assert_eq!(memory.drops().transmit_buffers, 1);
    assert!(memory.transmit(0, Some(CONN), &segment(15), empty(), m));
    memory.check(0);
}

#[test]
fn no_buffer_is_lost_in_random_sequences() {
    for_each_seed(50, |seed| {
        let (mut random, mut memory, m) = (Random::new(seed), memory(60), &mut NoMeter);
        let mut unsent = 0;
        let (mut sent, mut readable) = ([SeqNr(7); 4], [0; 4]);
        for _ in 0..500 {
            let index = random.below(4) as usize;
            let (conn, socket) = (ConnId(index as u32), SocketId(index as u32));
            match random.below(10) {
                0 | 1 if memory.packet_received(0, 1500, m) => {
                    if random.percent(70) {
                        readable[index] += 1 + random.below(3000) as usize;
                        memory.keep_received(conn, readable[index], m);
                    }
                    match random.percent(90) {
                        true => memory.packet_handled(m),
                        false => memory.packet_forwarded(),
                    }
                }
                2 => {
                    let len = random.below(readable[index] as u64 + 1) as u32;
                    memory.read(conn, socket, len, m);
                    readable[index] -= len as usize;
                }
                3 | 4 => {
                    let len = random.below(9000) as u32;
                    sent[index] += memory.write(conn, socket, (sent[index], len), m);
                }
                5 => {
                    let first = sent[index] - random.below(9000) as u32;
                    memory.acknowledged(conn, |end| first.at_or_after(end), m);
                }
                6 | 7 => {
                    let packet = segment(random.below(3) as usize);
                    unsent += u32::from(memory.transmit(0, Some(conn), &packet, empty(), m));
                }
                8 if unsent > 0 => {
                    let count = 1 + random.below(unsent.into()) as u32;
                    memory.transmitted(0, count, m);
                    unsent -= count;
                }
                9 => {
                    match random.below(3) {
                        0 => memory.closed(conn, Time::ZERO, |_| None, m),
                        1 => memory.handed_off(conn, (socket, None), m),
                        _ => {
                            let flow = segment(0).flow_at_receiver();
                            memory.handed_back((conn, &flow), (socket, Some(9)), 100, m);
                            memory.closed(conn, Time::ZERO, |_| None, m);
                        }
                    }
                    readable[index] = 0;
                }
                _ => {}
            }
            memory.check(0);
        }
        (0..4).for_each(|conn| memory.closed(ConnId(conn), Time::ZERO, |_| None, m));
        memory.transmitted(0, unsent, m);
        assert_eq!(in_use(&memory), (0, 0));
    });
}

/// Records accesses to structures of connections.
#[derive(Default)]
struct Structures(Vec<(Pool, u32)>);

impl Meter for Structures {
    fn owner(&mut self, _owner: Owner) {}
    fn run(&mut self, _op: Op, _count: u32) {}
    fn touch(&mut self, _: Layer, pool: Pool, slot: u32, _: u32, _: u32, _: Access) {
        if matches!(pool, Pool::Connection | Pool::Syncache) && self.0.last() != Some(&(pool, slot))
        {
            self.0.push((pool, slot));
        }
    }
    fn dma(&mut self, _: Pool, _: u32, _: u32, _: u32, _: Access) {}
}

#[test]
fn a_connection_has_an_entry_of_the_syn_cache_until_the_third_packet_makes_its_block() {
    let (mut memory, mut m) = (memory(100), Structures::default());
    let stack = baton_tcp::Stack::<Bytes>::new(baton_tcp::Config::default(), 0);
    let flow = segment(0).flow_at_receiver();
    let mut arrives = |memory: &mut NetworkMemory, conn, syn| {
        let handled = Handled {
            conn: Some(conn),
            syn,
            data_len: 0,
            new_ack: false,
            refused: None,
        };
        memory.segment_handled(&stack, &flow, &handled, &mut m);
        memory.transmit(0, Some(conn), &segment(0), empty(), &mut m);
        memory.check(0);
        std::mem::take(&mut m.0)
    };
    let (failed, conn) = (ConnId(1), ConnId(0));
    let (syn, block) = ((Pool::Syncache, 0), (Pool::Connection, 0));
    assert_eq!(arrives(&mut memory, failed, true), [syn]);
    assert_eq!(
        arrives(&mut memory, failed, true),
        [syn],
        "a repeated SYN, or the SYN of a later connection"
    );
    let second = (Pool::Syncache, 1);
    assert_eq!(arrives(&mut memory, conn, true), [syn, second, syn, second]);
    assert_eq!(arrives(&mut memory, conn, false), [syn, second, syn, block]);
    assert_eq!(arrives(&mut memory, conn, false), [block]);
    memory.closed(failed, Time::ZERO, |_| None, &mut NoMeter);
    memory.closed(conn, Time::ZERO, |_| None, &mut NoMeter);
    memory.transmitted(0, 5, &mut NoMeter);
    memory.check(0);
    assert_eq!(in_use(&memory), (0, 0));
}

fn handled(conn: Option<ConnId>, syn: bool) -> Handled {
    Handled {
        conn,
        syn,
        data_len: 0,
        new_ack: false,
        refused: None,
    }
}

/// Returns two connections in the same one of 512 hash chains.
fn flows_in_one_chain() -> [Flow; 2] {
    [1000, 1512].map(|port| Flow {
        local: endpoint(1, 80),
        remote: endpoint(2, port),
    })
}

#[test]
fn a_block_in_time_wait_stays_in_its_chain_until_its_end_or_a_syn() {
    let (mut memory, mut m) = (memory(100), Structures::default());
    let stack = baton_tcp::Stack::<Bytes>::new(baton_tcp::Config::default(), 0);
    let flows = flows_in_one_chain();
    let (none, end) = (&mut NoMeter, Time::ZERO + Span::from_secs(60));
    for flow in &flows {
        memory.handed_back((CONN, flow), (SOCKET, None), 0, none);
        memory.closed(CONN, Time::ZERO, |_| Some(end), none);
    }
    let [older, newer] = [0, 1].map(|block| (Pool::Connection, block));
    memory.segment_handled(&stack, &flows[0], &handled(None, false), &mut m);
    assert_eq!(
        m.0,
        [newer, older, newer],
        "found behind the other block, and now the last in TIME-WAIT"
    );
    m.0.clear();
    memory.segment_handled(&stack, &flows[1], &handled(Some(CONN), true), &mut m);
    let freed = [older, newer, older, (Pool::Syncache, 0)];
    assert_eq!(
        m.0, freed,
        "the block's neighbours and the block; then another search"
    );
    memory.check(0);
    memory.closed(CONN, Time::ZERO + Span::from_secs(59), |_| None, none);
    assert_eq!(memory.block_slots.in_use(), 1);
    memory.closed(CONN, end, |_| None, none);
    assert_eq!(memory.block_slots.in_use(), 0);
    memory.check(0);
}

#[test]
fn a_block_stays_in_its_chain_while_its_connection_is_on_an_adapter_and_waits() {
    let kept = Config {
        keep_blocks: true,
        ..config(100)
    };
    let (mut memory, none) = (NetworkMemory::new(&kept, 1), &mut NoMeter);
    let stack = baton_tcp::Stack::<Bytes>::new(baton_tcp::Config::default(), 0);
    let [older, newer] = flows_in_one_chain();
    let (moving, end) = (ConnId(1), Time::ZERO + Span::from_secs(60));
    let blocks = [0, 1].map(|block| (Pool::Connection, block));
    let compared = |memory: &mut NetworkMemory| {
        let mut m = Structures::default();
        memory.segment_handled(&stack, &older, &handled(Some(CONN), false), &mut m);
        m.0.first().copied()
    };
    memory.handed_back((CONN, &older), (SOCKET, None), 0, none);
    memory.handed_back((moving, &newer), (SOCKET, None), 0, none);
    for back in [true, false] {
        memory.handed_off(moving, (SOCKET, Some(9)), none);
        assert_eq!(compared(&mut memory), Some(blocks[1]));
        memory.check(0);
        if back {
            memory.handed_back((moving, &newer), (SOCKET, Some(9)), 0, none);
            assert_eq!(memory.block_slots.in_use(), 2, "it has its block again");
        }
    }
    memory.ended_elsewhere(&newer, Time::ZERO, Some(end), none);
    assert_eq!(compared(&mut memory), Some(blocks[1]), "it waits");
    memory.ended_elsewhere(&newer, end, None, none);
    memory.closed(moving, end, |_| None, none);
    memory.check(0);
    memory.closed(CONN, end, |_| None, none);
    assert_eq!(memory.block_slots.in_use(), 0);
}
