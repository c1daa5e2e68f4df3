//! The parameters of a run, all drawn.

use super::adapter::address;
use baton_bus::link::MemoryConfig;
use baton_bus::{Batching, BatchingPolicy};
use baton_host::adapter::OsLayerConfig;
use baton_host::{Decision, NicCacheConfig, Selection, SelectionConfig, View};
use baton_nic::adapter::{AdapterConfig, OnBoardMemory};
use baton_nic::{Config as NicConfig, Process, Scheduler};
use baton_tcp::{Config, SynCookies};
use baton_testkit::Random;
use bytes::Bytes;

/// Maximum number of moves in a run by the policy that decides at random, and of other moves: connections that move all the time would make
/// no progress.
pub const MOST_MOVES: u32 = 200;

/// Returns parameters with which TCP does not give up because of losses.
pub fn tcp_config(random: &mut Random) -> Config {
    Config {
        send_buffer: 2000 + random.below(32_000) as u32,
        receive_buffer: 3000 + random.below(60_000) as u32,
        window_scaling: random.percent(50),
        timestamps: random.percent(50),
        sack: random.percent(50),
        nagle: random.percent(50),
        syn_retries: 30,
        data_retries: 60,
        rto_max_ms: 4000,
        msl_ms: 60_000,
        // A cookie does not survive the loss of the first data after it (RFC 4987 3.6).
        syn_cookies: SynCookies::Off,
        ..Config::default()
    }
}

/// The parameters of an adapter and of both ends of its link.
#[derive(Clone, Debug)]
pub struct Parameters {
    pub host: OsLayerConfig,
    pub adapter: AdapterConfig,
    pub link: MemoryConfig,
}

impl Parameters {
    /// Draws parameters. If the host has TCP of its own, rings and buffers have space for its packets.
    pub fn draw(random: &mut Random, number: usize, for_packets: bool) -> Self {
        let inline: u32 = random.one_of(&[0, 0, 16, 40, 240]);
        let bulk_accept = random.one_of(&[1, 1, 2, 3]);
        let longest = 1 + inline
            .saturating_sub(16)
            .div_ceil(32)
            .max(u32::from(bulk_accept));
        let depths: &[u32] = if for_packets {
            &[16, 32, 64, 128]
        } else {
            &[1, 2, 3, 8, 128]
        };
        let mut depth = || longest.max(random.one_of(depths));
        let (host_depth, adapter_depth, link_depth) = (depth(), depth(), depth());
        let (transfers, buffers): (&[u32], &[usize]) = match for_packets {
            true => (&[1500, 4096], &[100]),
            false => (&[64, 500, 4096, 4096], &[8, 12, 20, 200]),
        };
        let transfer = random.one_of(transfers);
        let mut host = OsLayerConfig {
            batching: batching(random, host_depth, transfer),
            ring_depth: host_depth,
            cork_timer_us: random.below(2000) as u32,
            receive_buffers: 1 + random.below(6) as u32,
            most_inline: inline * random.below(2) as u32,
            bulk_accept,
            accept_timeout_us: 1 + random.below(1000) as u32,
            accepts_posted: 1 + random.below(3) as u32,
            most_sends: 1 + random.below(10) as u32,
            packet_buffers: 8 + random.below(20) as u32,
            packet_sends: None,
            most_sockets: 10 + random.below(20) as u32,
            reports_unread: false,
            half_close: for_packets || random.percent(50),
            nic_cache: NicCacheConfig {
                // A block must fit into one transfer.
                enabled: transfer >= 512 && random.percent(65),
                block_bytes: random.one_of(&[512, 1024, 2048]).min(1 << transfer.ilog2()),
                ..NicCacheConfig::default()
            },
        };
        let mut adapter = AdapterConfig {
            addresses: vec![address(number)],
            ring_depth: adapter_depth,
            cumulative_sends: random.percent(50),
            most_inline: inline * random.below(2) as u32,
            data_at_once: random.percent(50),
            batching: batching(random, adapter_depth, transfer),
            cache_bytes: random.one_of(&[0, 2048, 9000, 20_000, 80_000]),
            most_inserts: 1 + random.below(5) as u32,
            ..AdapterConfig::default()
        };
        if for_packets {
            adapter.hard_limit = 1 + random.below(20) as u32;
            // Memory for one connection.
            adapter.memory = random.percent(50).then_some(OnBoardMemory {
                kib: 64,
                connection_bytes: 30_000,
            });
        }
        let reports_unread = random.percent(50);
        (host.reports_unread, adapter.reports_unread) = (reports_unread, reports_unread);
        let link = MemoryConfig {
            ring_depth: link_depth as usize,
            buffers: random.one_of(buffers),
            buffer_bytes: transfer,
        };
        Self {
            host,
            adapter,
            link,
        }
    }
}

fn batching(random: &mut Random, depth: u32, max_transfer_bytes: u32) -> Batching {
    let level = match random.percent(30) {
        true => 1,
        false => 1 + random.below(depth.into()) as u32,
    };
    let policy = match random.percent(25) {
        true => BatchingPolicy::Adaptive,
        false => BatchingPolicy::Fixed,
    };
    Batching {
        policy,
        level,
        timer_us: (random.below(3) * random.below(1000)) as u32,
        max_descriptors: random.one_of(&[1, 3, 128]),
        max_transfer_bytes,
        ..Batching::default()
    }
}

/// Returns a process that does all work at once, or one with a random scheduler, with queues that may be short.
pub fn process(random: &mut Random) -> Process<Bytes> {
    if random.percent(50) {
        return Process::all_at_once();
    }
    let scheduler = random.one_of(&[Scheduler::Fcfs, Scheduler::HostFirst]);
    let mut length = || 1 + random.below(40) as u32;
    Process::new(&NicConfig {
        scheduler,
        arrival_queue_packets: length(),
        receive_queue_packets: length(),
        descriptor_queue_entries: length(),
        transmit_burst_segments: length(),
        ..NicConfig::default()
    })
}

/// A policy that hands connections off and takes them back at random. The number limits the handoffs.
#[derive(Debug)]
struct AtRandom(Random, u32);

impl Selection for AtRandom {
    fn on_established(&mut self, _view: &View) -> Decision {
        if self.1 > 0 && self.0.percent(30) {
            self.1 -= 1;
            Decision::HandOff
        } else {
            Decision::Stay
        }
    }

    fn on_send(&mut self, view: &View) -> Decision {
        self.on_established(view)
    }

    fn on_receive(&mut self, view: &View) -> Decision {
        self.on_established(view)
    }

    fn reconsiders(&self, _view: &View) -> bool {
        true
    }

    fn takes_back(&mut self, _view: &View) -> bool {
        self.0.percent(10)
    }
}

/// Returns one of the named policies or, half the time, one that decides at random.
pub fn selection(random: &mut Random) -> Box<dyn Selection> {
    const POLICIES: [&str; 8] = [
        "fcfs",
        "t3",
        "alternate:2",
        "r1",
        "rate:100",
        "benefit:2",
        "retry:fcfs",
        "retry:t2",
    ];
    if random.percent(50) {
        return Box::new(AtRandom(Random::new(random.draw()), MOST_MOVES));
    }
    let policy: SelectionConfig = random.one_of(&POLICIES).parse().expect("a policy");
    policy.build()
}
