//! The data cache: its commands, what they refuse, and what is really sent.

use crate::common::{SERVER, World, client, from_host};
use baton_bus::handoff::{
    CacheCommand, CacheReference, Event, MainMemory, PacketInParts, Part, PartFlags, ToHost, ToNic,
};
use baton_nic::{
    CacheConfig, Config, Firmware, Meter, NoMeter, Stats, Storable, Task, Transmit, write_frame,
};
use baton_tcp::Segment;
use baton_wire::{Payload, Pieces, Symbolic, Time, decode_frame};
use bytes::Bytes;

const FIRST: PartFlags = PartFlags {
    first: true,
    last: false,
};
const MIDDLE: PartFlags = PartFlags {
    first: false,
    last: false,
};
const LAST: PartFlags = PartFlags {
    first: false,
    last: true,
};

fn config(kib: u32) -> Config {
    Config {
        cache: CacheConfig {
            kib,
            ..CacheConfig::default()
        },
        ..Config::default()
    }
}

/// A NIC, and what it did.
struct Bench<P: Storable> {
    nic: Firmware<P>,
    sent: Vec<Segment<P>>,
    events: Vec<Event<P>>,
    /// Host packets that it is done with.
    done: u32,
}

impl<P: Storable> Bench<P> {
    /// A NIC whose cache is started.
    fn new(config: Config) -> Self {
        let mut bench = Self {
            nic: Firmware::new(config, baton_tcp::Config::default(), 1),
            sent: Vec::new(),
            events: Vec::new(),
            done: 0,
        };
        bench.give([CacheCommand::Init]);
        bench
    }

    fn give(&mut self, commands: impl IntoIterator<Item = CacheCommand<P>>) {
        for command in commands {
            let given = self
                .nic
                .handle_descriptor(Time::ZERO, ToNic::Cache(command));
            assert!(given.is_ok(), "there is room");
        }
        self.work(&mut NoMeter);
    }

    fn work(&mut self, meter: &mut impl Meter) {
        while self.nic.poll_work(Time::ZERO, meter).is_some() {
            self.take();
        }
    }

    fn take(&mut self) {
        while self.nic.poll_read().is_some() {}
        self.sent
            .extend(std::iter::from_fn(|| self.nic.poll_frame()).map(|frame| frame.segment));
        while let Some(upcall) = self.nic.poll_upcall() {
            match upcall.item {
                ToHost::Sent(count) => self.done += count,
                ToHost::Event(event) => self.events.push(event),
                ToHost::Packet(packet) => panic!("nobody sent {packet:?}"),
            }
        }
        self.nic.check();
    }

    fn payload(&self) -> &Pieces<P> {
        &self.sent.last().expect("a packet was sent").payload
    }
}

fn name(source: u64, offset: u64, len: u32) -> Symbolic {
    Symbolic {
        source,
        offset,
        len,
    }
}

fn head<P: Payload>() -> Segment<P> {
    Segment {
        src: SERVER,
        dst: client(1),
        ecn: Default::default(),
        header: Default::default(),
        payload: Default::default(),
    }
}

fn headers<P: Payload>(flags: PartFlags) -> CacheCommand<P> {
    CacheCommand::AppendMemory {
        part: MainMemory::Headers(head()),
        flags,
    }
}

fn memory<P>(data: P, flags: PartFlags) -> CacheCommand<P> {
    CacheCommand::AppendMemory {
        part: MainMemory::Data(data),
        flags,
    }
}

fn cached<P>(offset: u32, len: u32, flags: PartFlags) -> CacheCommand<P> {
    CacheCommand::AppendCache { offset, len, flags }
}

fn insert<P>(data: P, offset: u32, generation: u32) -> CacheCommand<P> {
    CacheCommand::Insert {
        data,
        offset,
        generation,
    }
}

#[test]
fn a_packet_is_gathered_from_memory_and_cache() {
    let mut bench: Bench<Symbolic> = Bench::new(config(64));
    assert_eq!(bench.events, [Event::CacheReady(64 * 1024)]);
    bench.give([
        insert(name(7, 0, 4096), 8192, 1),
        insert(name(7, 4096, 1000), 4096, 2),
        headers(FIRST),
        memory(name(1, 0, 250), MIDDLE),
        cached(8192 + 4000, 96, MIDDLE),
        cached(4096, 1000, LAST),
    ]);
    assert_eq!(
        bench.payload()[..],
        [name(1, 0, 250), name(7, 4000, 96), name(7, 4096, 1000)]
    );
    assert_eq!(bench.done, 1);
    let stats = &bench.nic.stats().cache;
    assert_eq!((stats.inserts, stats.inserted_bytes), (2, 5096));
    assert_eq!((stats.appends, stats.appended_bytes), (2, 1096));
}

/// Gives a NIC a packet, as one entry or command by command: what it sent, packets that it was done with, and what it did.
fn sent_in_parts(parts: &[Part<Symbolic>], at_once: bool) -> (Vec<Segment<Symbolic>>, u32, Stats) {
    let mut bench: Bench<Symbolic> = Bench::new(config(64));
    bench.give([insert(name(7, 0, 4096), 0, 1)]);
    let mut segment = head();
    segment.payload.push(name(1, 0, 20));
    let mut packet = PacketInParts::new(segment);
    parts.iter().for_each(|&part| packet.push(part));
    let entries: Vec<_> = match at_once {
        true => vec![ToNic::Parts(packet)],
        false => packet.into_commands().map(ToNic::Cache).collect(),
    };
    for entry in entries {
        let given = bench.nic.handle_descriptor(Time::ZERO, entry);
        assert!(given.is_ok(), "there is room");
    }
    bench.work(&mut NoMeter);
    let stats = bench.nic.stats().clone();
    (bench.sent, bench.done, stats)
}

#[test]
fn a_packet_in_parts_is_its_commands() {
    let cache = |offset, len| Part::Cache { offset, len };
    for parts in [
        vec![cache(10, 90)],
        vec![
            Part::Memory(name(2, 0, 30)),
            cache(0, 4096),
            Part::Memory(name(3, 5, 6)),
        ],
        vec![cache(0, 4096), cache(0, 4096), cache(0, 4096)],
        vec![cache(64 * 1024 - 1, 2)],
        vec![],
    ] {
        let whole = sent_in_parts(&parts, true);
        assert_eq!(whole, sent_in_parts(&parts, false), "{parts:?}");
        assert_eq!(whole.1, 1, "the host is told");
    }
}

#[test]
fn what_stands_there_is_sent_whatever_the_host_believes() {
    let mut bench: Bench<Symbolic> = Bench::new(config(64));
    bench.give([
        insert(name(7, 0, 4096), 0, 1),
        headers(FIRST),
        cached(0, 100, LAST),
        insert(name(8, 0, 50), 0, 2),
        headers(FIRST),
        cached(0, 100, LAST),
        headers(FIRST),
        cached(60_000, 10, LAST),
    ]);
    let payloads: Vec<_> = bench
        .sent
        .iter()
        .map(|sent| sent.payload.to_vec())
        .collect();
    assert_eq!(
        payloads,
        [
            vec![name(7, 0, 100)],
            vec![name(8, 0, 50), name(7, 50, 50)],
            vec![name(0, 60_000 % 4096, 10)],
        ],
        "in order, and nothing where nothing was put"
    );
}

/// A packet that makes no sense is not sent; the reason is counted, and the host hears that it is done.
#[track_caller]
fn refused(commands: Vec<CacheCommand<Symbolic>>, reason: &str, packets: u32) {
    let mut bench: Bench<Symbolic> = Bench::new(config(64));
    bench.give([insert(name(7, 0, 4096), 0, 1)]);
    bench.give(commands);
    assert_eq!(bench.sent, [], "nothing is sent");
    assert_eq!(bench.done, packets, "the host is told");
    let counts = serde_json::to_value(&bench.nic.stats().cache.refused).expect("counters");
    assert_eq!(counts[reason], 1, "{counts}");
    assert_eq!(bench.nic.stats().cache.refused.total(), 1, "{counts}");
    // The next packet goes.
    bench.give([headers(FIRST), cached(0, 10, LAST)]);
    assert_eq!((bench.sent.len(), bench.done), (1, packets + 1));
}

#[test]
fn malformed_commands_are_refused_by_name() {
    let bytes = 64 * 1024;
    refused(
        vec![insert(name(1, 0, 2), bytes - 1, 2)],
        "outside_cache",
        0,
    );
    refused(
        vec![headers(FIRST), cached(bytes - 1, 2, LAST)],
        "outside_cache",
        1,
    );
    refused(vec![cached(0, 10, LAST)], "no_first", 1);
    refused(vec![memory(name(1, 0, 5), LAST)], "no_first", 1);
    refused(
        vec![cached(0, 10, FIRST), cached(0, 10, LAST)],
        "first_without_headers",
        1,
    );
    refused(
        vec![memory(name(1, 0, 5), FIRST), cached(0, 10, LAST)],
        "first_without_headers",
        1,
    );
    refused(vec![headers(FIRST), headers(LAST)], "headers_not_first", 1);
    refused(
        vec![
            headers(FIRST),
            memory(name(1, 0, 8000), MIDDLE),
            cached(0, 1000, LAST),
        ],
        "too_long",
        1,
    );
}

#[test]
fn a_packet_that_is_interrupted_is_refused_and_the_next_one_goes() {
    let mut bench: Bench<Symbolic> = Bench::new(config(64));
    bench.give([headers(FIRST), memory(name(1, 0, 5), MIDDLE)]);
    assert_eq!((bench.sent.len(), bench.done), (0, 0));
    bench.give([headers(FIRST), memory(name(1, 5, 5), LAST)]);
    assert_eq!(bench.payload()[..], [name(1, 5, 5)]);
    assert_eq!(bench.done, 2);
    assert_eq!(bench.nic.stats().cache.refused.unfinished, 1);
}

#[test]
fn a_nic_without_a_cache_says_so() {
    let mut bench: Bench<Symbolic> = Bench::new(config(0));
    assert_eq!(bench.events, [Event::CacheReady(0)]);
    bench.give([
        insert(name(7, 0, 10), 0, 1),
        headers(FIRST),
        cached(0, 10, LAST),
    ]);
    assert_eq!(bench.nic.stats().cache.refused.no_cache, 2);
    assert_eq!((bench.sent.len(), bench.done), (0, 1));
}

#[test]
fn parts_of_a_packet_find_room_once_the_first_has() {
    let mut nic: Firmware<Symbolic> = Firmware::new(
        Config {
            descriptor_queue_entries: 1,
            ..config(64)
        },
        baton_tcp::Config::default(),
        1,
    );
    let mut given_back = |command| {
        nic.handle_descriptor(Time::ZERO, ToNic::Cache(command))
            .err()
    };
    assert_eq!(given_back(headers(FIRST)), None);
    assert_eq!(given_back(memory(name(1, 0, 5), LAST)), None);
    let next = headers(FIRST);
    assert_eq!(given_back(next.clone()), Some(ToNic::Cache(next)));
}

#[test]
fn copying_costs_by_the_line_and_gathering_does_not() {
    #[derive(Default)]
    struct Lines(u32);
    impl Meter for Lines {
        fn run(&mut self, task: Task) {
            self.0 += u32::from(task == Task::CopyLine);
        }
    }
    for (transmit, lines) in [(Transmit::Gather, 0), (Transmit::Copy, 23)] {
        let mut config = config(64);
        config.cache.transmit = transmit;
        let mut bench: Bench<Symbolic> = Bench::new(config);
        for command in [headers(FIRST), cached(0, 1448, LAST)] {
            let given = bench
                .nic
                .handle_descriptor(Time::ZERO, ToNic::Cache(command));
            assert!(given.is_ok());
        }
        let mut counted = Lines::default();
        bench.work(&mut counted);
        assert_eq!(counted.0, lines);
        assert_eq!(bench.nic.stats().task(Task::CopyLine), u64::from(lines));
    }
}

#[test]
fn only_what_is_not_cached_is_read_from_host_memory() {
    let mut bench: Bench<Symbolic> = Bench::new(config(64));
    bench.nic.note_reads();
    let mut reads = |command| {
        let given = bench
            .nic
            .handle_descriptor(Time::ZERO, ToNic::Cache(command));
        assert!(given.is_ok());
        bench.nic.poll_work(Time::ZERO, &mut NoMeter);
        let read = bench
            .nic
            .poll_read()
            .map(|read| (read.headers, read.data.to_vec()));
        bench.take();
        read
    };
    assert_eq!(
        reads(insert(name(7, 0, 4096), 0, 1)),
        Some((0, vec![name(7, 0, 4096)]))
    );
    assert_eq!(reads(headers(FIRST)), None);
    assert_eq!(reads(memory(name(1, 0, 250), MIDDLE)), None);
    assert_eq!(
        reads(cached(0, 1000, LAST)),
        Some((14 + 40, vec![name(1, 0, 250)])),
        "when the packet goes"
    );
}

#[test]
fn a_reset_forgets_packets_and_cache() {
    let mut bench: Bench<Symbolic> = Bench::new(config(64));
    bench.give([insert(name(7, 0, 4096), 0, 1)]);
    bench.events.clear();
    for command in [
        headers(FIRST),
        cached(0, 10, LAST),
        headers(FIRST),
        memory(name(1, 0, 5), MIDDLE),
    ] {
        let given = bench
            .nic
            .handle_descriptor(Time::ZERO, ToNic::Cache(command));
        assert!(given.is_ok());
    }
    bench.nic.reset();
    bench.take();
    assert_eq!((bench.events.len(), bench.done), (1, 1));
    assert_eq!(bench.events[0], Event::Reset);
    // What was under way is refused, and reported all the same.
    bench.give([cached(0, 10, LAST), headers(FIRST), cached(0, 10, LAST)]);
    assert_eq!((bench.sent.len(), bench.done), (0, 3));
    let refused = &bench.nic.stats().cache.refused;
    assert_eq!((refused.no_first, refused.no_cache), (1, 1));
    bench.give([CacheCommand::Init, headers(FIRST), cached(0, 10, LAST)]);
    assert_eq!(bench.payload()[..], [name(0, 0, 10)], "nothing is left");
}

#[test]
fn frames_have_right_checksums_over_what_is_sent() {
    let content: Vec<u8> = (0..4096u32).map(|at| (at * 31 % 251) as u8).collect();
    let mut bench: Bench<Bytes> = Bench::new(config(64));
    bench.give([
        insert(Bytes::from(content.clone()), 512, 1),
        headers(FIRST),
        memory(Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n"), MIDDLE),
        cached(512 + 100, 1001, LAST),
    ]);
    let mut frame = Vec::new();
    write_frame(&bench.sent[0], &mut frame).expect("a frame");
    let (packet, data) = decode_frame(&frame).expect("both checksums are right");
    assert_eq!((packet.src, packet.dst), (SERVER, client(1)));
    assert_eq!(
        data,
        [b"HTTP/1.1 200 OK\r\n\r\n", &content[100..1101]].concat()
    );
}

/// An offloaded connection that has 3000 bytes to send, of which the host says that they stand at 0 in the cache.
fn offloaded_with_reference(generation: u32) -> World {
    let tcp = baton_tcp::Config::default();
    let mut world = World::new(config(64), tcp, &[(3000, 0)]);
    world.settle();
    world.hand_off(0);
    world.settle();
    world
        .host
        .to_nic
        .push_back(ToNic::Cache(CacheCommand::Init));
    let data = name(from_host(0), 0, 3000);
    let inserted = insert(data, 0, 1);
    world.host.to_nic.push_back(ToNic::Cache(inserted));
    world.settle();
    assert_eq!(world.host.cache_bytes, [64 * 1024]);
    let reference = CacheReference {
        offset: 0,
        generation,
    };
    world.host.write_cached(0, 3000, reference);
    world.settle();
    world.finish();
    world.assert_complete();
    world
}

#[test]
fn an_offloaded_connection_sends_from_the_cache() {
    let world = offloaded_with_reference(1);
    let stats = &world.nic.stats().cache;
    assert_eq!((stats.appended_bytes, stats.overwritten), (3000, 0));
}

#[test]
fn what_was_overwritten_comes_from_host_memory() {
    let world = offloaded_with_reference(2);
    let stats = &world.nic.stats().cache;
    assert_eq!(stats.appended_bytes, 0);
    assert!(stats.overwritten > 0);
}
