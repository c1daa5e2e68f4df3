//! One of the server's adapters: its address, its stack, and the host's end of its link.

use crate::machine::{PORT, host, tcp_config};
use baton_bus::link::{Faults, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_host::layer::AdapterEnd;
use baton_host::{NicCacheConfig, SocketId};
use baton_inet::Host;
use baton_live::adapter::{Below, work};
use baton_nic::adapter::{Adapter, AdapterConfig, Ending, OnBoardMemory, SessionId};
use baton_nic::{Config, Links, Lower, Process, QueueLengths, Scheduler};
use baton_testkit::Random;
use baton_wire::{Endpoint, Time};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

/// Maximum number of pieces of work that an adapter does in one event.
const MOST_PIECES: usize = 5;

/// Links of an adapter that has only one application.
struct OnlyLink<'a>(SessionId, &'a mut MemoryAdapter<Bytes>);

impl Links<Bytes> for OnlyLink<'_> {
    type Link = MemoryAdapter<Bytes>;

    fn link(&mut self, session: SessionId) -> Option<&mut Self::Link> {
        (session == self.0).then_some(&mut *self.1)
    }
}

/// The host's end of an adapter.
pub type End = AdapterEnd<Bytes, MemoryHost<Bytes>>;

/// Last octet of the first adapter's address; the others follow.
const FIRST: u8 = 100;

/// Returns the address of an adapter.
pub fn address(number: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, FIRST + number as u8))
}

/// Returns the adapter that an IPv4 packet comes from.
pub fn source(packet: &[u8]) -> usize {
    usize::from(packet[15] - FIRST)
}

/// Returns the adapter that an IPv4 packet goes to.
pub fn destination(packet: &[u8]) -> usize {
    usize::from(packet[19] - FIRST)
}

/// An adapter.
pub struct AdapterSide {
    pub host: Host,
    pub adapter: Adapter<Bytes>,
    session: SessionId,
    end: MemoryAdapter<Bytes>,
    process: Process<Bytes>,
    pub faults: Faults,
    /// The socket through which the host receives its packets.
    pub packets: SocketId,
    pub is_lost: bool,
}

impl AdapterSide {
    /// Creates a random adapter, and the host's end of its link.
    pub fn new(number: usize, random: &mut Random) -> (Self, End) {
        let transfer = [200, 1500, 4096][random.below(3) as usize].max(1500);
        let (link, end) = memory_link(MemoryConfig {
            ring_depth: 16 << random.below(3),
            buffers: 100,
            buffer_bytes: transfer,
        });
        let mut os_config = OsLayerConfig {
            packet_buffers: 8 + random.below(20) as u32,
            receive_buffers: 1 + random.below(4) as u32,
            most_sends: 1 + random.below(8) as u32,
            most_inline: 40 * random.below(2) as u32,
            half_close: true,
            cork_timer_us: random.below(2000) as u32,
            nic_cache: NicCacheConfig {
                enabled: random.percent(70),
                block_bytes: 512 << random.below(2),
                ..NicCacheConfig::default()
            },
            ..OsLayerConfig::default()
        };
        os_config.batching.max_transfer_bytes = transfer;
        let mut adapter_config = AdapterConfig {
            addresses: vec![address(number)],
            cumulative_sends: random.percent(50),
            hard_limit: 1 + random.below(20) as u32,
            cache_bytes: 40_000 * random.below(3) as u32,
            // Memory for one connection.
            memory: random.percent(50).then_some(OnBoardMemory {
                kib: 64,
                connection_bytes: 30_000,
            }),
            ..AdapterConfig::default()
        };
        adapter_config.batching.max_transfer_bytes = transfer;
        let mut adapter = Adapter::new(adapter_config).expect("the parameters are valid");
        let session = adapter.attach().expect("the first session");
        let mut host = host(vec![address(number)], tcp_config(random), random.draw());
        host.pass_unclaimed(true);
        let mut process = process(random);
        process.attach(session);
        let mut os = OsLayer::new(os_config).expect("the parameters are valid");
        let at = Endpoint::new(address(number), PORT);
        let packets = os.packet_socket(Time::ZERO, at);
        let side = Self {
            host,
            adapter,
            session,
            end,
            process,
            faults: link.faults(),
            packets: packets.expect("the first socket"),
            is_lost: false,
        };
        (side, End { os, link })
    }

    /// Handles a frame that has arrived.
    pub fn receive(&mut self, now: Time, frame: Bytes) {
        if self.process.does_all() {
            self.host.handle_frame(now, frame);
            return;
        }
        let bytes = frame.len() as u32;
        // A dropped frame is counted.
        let _ = (self.process).receive(now, &mut self.adapter, frame, bytes);
    }

    /// Does all pending work, or some pieces of it, and passes frames to `send`. Returns true if there may be more.
    pub fn work(&mut self, now: Time, mut send: impl FnMut(Bytes)) -> bool {
        let mut below = Below {
            host: &mut self.host,
            beside: None,
            quiet: false,
            arrived: 1,
            unclaimed: 0,
            room: MOST_PIECES,
            frames: &mut Vec::new(),
            end: &mut |frame| send(std::mem::take(frame).into()),
        };
        let (process, adapter) = (&mut self.process, &mut self.adapter);
        let mut links = OnlyLink(self.session, &mut self.end);
        let did = process.look(now, adapter, &mut below, &mut links);
        let did = did.expect("the host obeys the protocol");
        if process.does_all() {
            below.room = usize::MAX;
            below.transmit(now, usize::MAX);
            return did;
        }
        let worked = work(now, process, adapter, &mut below, &mut links);
        worked.expect("the host obeys the protocol");
        process.check();
        did || process.queue_lengths() != QueueLengths::default()
    }

    /// Returns when the adapter next has something to do; `None` once the adapter is lost.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timers = [self.host.poll_timeout(), self.adapter.poll_timeout()];
        timers.into_iter().flatten().min().filter(|_| !self.is_lost)
    }

    /// Cuts the link, and drops all state of the adapter.
    pub fn lose(&mut self, now: Time) {
        self.is_lost = true;
        self.faults.cut();
        let stack = self.host.stack_mut();
        self.adapter.detach(now, stack, self.session, Ending::Reset);
        self.process.detach(self.session);
    }
}

/// Returns a process that does all work at once, or one with a random scheduler, with queues that may be short.
fn process(random: &mut Random) -> Process<Bytes> {
    if random.percent(50) {
        return Process::all_at_once();
    }
    let scheduler = match random.percent(50) {
        true => Scheduler::Fcfs,
        false => Scheduler::HostFirst,
    };
    let mut length = || 1 + random.below(40) as u32;
    Process::new(&Config {
        scheduler,
        arrival_queue_packets: length(),
        receive_queue_packets: length(),
        descriptor_queue_entries: length(),
        transmit_burst_segments: length(),
        ..Config::default()
    })
}
