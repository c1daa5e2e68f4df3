//! Host, link, adapter, network and peers, with random faults.

#[path = "../../common/patient.rs"]
mod patient;
#[path = "../../common/tcp.rs"]
mod tcp;

use super::Summary;
use baton_bus::link::{LinkError, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_bus::{Batching, BatchingPolicy, HostLink};
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_host::{NicCacheConfig, SocketId};
use baton_nic::adapter::{Adapter, AdapterConfig, Ending, SessionId, pump};
use baton_tcp::{Segment, Stack};
pub use baton_testkit::endpoint;
use baton_testkit::{Network, Random};
use baton_wire::{Span, Symbolic, Time};
use std::fmt::{Debug, Formatter, Result};
use tcp::tcp_config;

/// Port on which the host's application listens.
pub const PORT: u16 = 80;
/// Value of the clock that host and adapter share at [`Time::ZERO`].
pub const EPOCH_NS: u64 = 1_000_000_007;
/// Maximum number of links lost in one run.
const MOST_LOSSES: u32 = 2;

/// Sizes and other parameters.
#[derive(Clone, Debug)]
pub struct Settings {
    pub host: OsLayerConfig,
    pub adapter: AdapterConfig,
    pub link: MemoryConfig,
    /// Whether host and adapter run only when notified or when a timer is due; otherwise they run at any time.
    pub by_doorbell: bool,
    pub faults: bool,
    pub losses: bool,
}

pub struct Machine {
    pub os: OsLayer<Symbolic>,
    pub host: MemoryHost<Symbolic>,
    pub adapter: Adapter<Symbolic>,
    session: SessionId,
    adapter_end: MemoryAdapter<Symbolic>,
    stack: Stack<Symbolic>,
    pub peers: Stack<Symbolic>,
    to_adapter: Network<Segment<Symbolic>>,
    to_peers: Network<Segment<Symbolic>>,
    pub listeners: Vec<SocketId>,
    pub config: Settings,
    pub random: Random,
    pub now: Time,
    /// Whether the host has been notified.
    pub host_rings: bool,
    adapter_rings: bool,
    losses: u32,
    /// Whether the link currently refuses requests or responses, or delays DMA.
    hampered: bool,
}

fn batching(random: &mut Random, depth: u32, max_transfer_bytes: u32) -> Batching {
    let level = if random.percent(30) {
        1
    } else {
        1 + random.below(depth.into()) as u32
    };
    let policy = if random.percent(25) {
        BatchingPolicy::Adaptive
    } else {
        BatchingPolicy::Fixed
    };
    Batching {
        policy,
        level,
        timer_us: random.below(3) as u32 * random.below(1000) as u32,
        max_descriptors: [1, 3, 128][random.below(3) as usize],
        max_transfer_bytes,
        ..Batching::default()
    }
}

impl Settings {
    /// Draws valid parameters.
    pub fn draw(random: &mut Random) -> Self {
        let one_of = |random: &mut Random, choices: &[u32]| {
            choices[random.below(choices.len() as u64) as usize]
        };
        let inline = one_of(random, &[0, 0, 16, 40, 240]);
        let bulk_accept = one_of(random, &[1, 1, 2, 3]) as u16;
        let longest = 1
            + (inline.saturating_sub(16))
                .div_ceil(32)
                .max(u32::from(bulk_accept));
        let mut depth = || longest.max(one_of(random, &[1, 2, 3, 8, 128]));
        let (host_depth, adapter_depth, link_depth) = (depth(), depth(), depth());
        let transfer = one_of(random, &[64, 500, 4096, 4096]);
        let host = OsLayerConfig {
            batching: batching(random, host_depth, transfer),
            ring_depth: host_depth,
            cork_timer_us: random.below(1000) as u32,
            receive_buffers: 1 + random.below(6) as u32,
            most_inline: inline * random.below(2) as u32,
            bulk_accept,
            accept_timeout_us: 1 + random.below(1000) as u32,
            accepts_posted: 1 + random.below(3) as u32,
            most_sends: 1 + random.below(10) as u32,
            packet_buffers: 1 + random.below(20) as u32,
            most_sockets: 10 + random.below(20) as u32,
            half_close: random.percent(50),
            nic_cache: NicCacheConfig {
                // A block must fit into one transfer.
                enabled: transfer >= 512 && random.percent(60),
                block_bytes: one_of(random, &[512, 2048]).min(transfer.next_power_of_two()),
                ..NicCacheConfig::default()
            },
        };
        let adapter = AdapterConfig {
            addresses: vec![endpoint(1, 0).addr],
            ring_depth: adapter_depth,
            cumulative_sends: random.percent(50),
            most_inline: inline * random.below(2) as u32,
            data_at_once: random.percent(50),
            batching: batching(random, adapter_depth, transfer),
            cache_bytes: one_of(random, &[0, 2048, 9000, 20_000]),
            most_inserts: 1 + random.below(5) as u32,
            ..AdapterConfig::default()
        };
        let link = MemoryConfig {
            ring_depth: link_depth as usize,
            buffers: one_of(random, &[8, 12, 20, 200]) as usize,
            buffer_bytes: transfer,
        };
        Self {
            host,
            adapter,
            link,
            by_doorbell: random.percent(50),
            faults: random.percent(30),
            losses: random.percent(20),
        }
    }
}

impl Debug for Machine {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Machine")
            .field("now", &self.now)
            .field("config", &self.config)
            .field("os", &self.os)
            .field(
                "rows",
                &self
                    .adapter
                    .sockets(&self.stack, self.session)
                    .collect::<Vec<_>>(),
            )
            .field("session", self.adapter.stats_of(self.session))
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// Creates a machine in which everything is drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let config = Settings::draw(&mut random);
        Self::with(config, random)
    }

    pub fn with(config: Settings, mut random: Random) -> Self {
        let (host, adapter_end) = memory_link(config.link);
        let mut adapter = Adapter::new(config.adapter.clone()).expect("the parameters are valid");
        let session = adapter.attach().expect("the first session");
        adapter.set_epoch(session, EPOCH_NS);
        let stack = Stack::new(tcp_config(&mut random), random.draw());
        let peers = Stack::new(tcp_config(&mut random), random.draw());
        let lossy = random.percent(60);
        let mut network = || {
            let mut percent = |most| if lossy { random.below(most) } else { 0 };
            let (loss, duplicate) = (percent(15), percent(10));
            let delay = Span::from_us(1 + random.below(300));
            Network::new(loss, duplicate, delay, random.draw())
        };
        Self {
            to_adapter: network(),
            to_peers: network(),
            os: OsLayer::new(config.host.clone()).expect("the parameters are valid"),
            host,
            adapter,
            session,
            adapter_end,
            stack,
            peers,
            listeners: Vec::new(),
            config,
            random,
            now: Time::ZERO,
            host_rings: true,
            adapter_rings: true,
            losses: 0,
            hampered: false,
        }
    }

    // --- host and adapter ---

    pub fn listen(&mut self) {
        let backlog = 1 + self.random.below(8) as u32;
        let listener = self.os.listen(self.now, endpoint(1, PORT), backlog);
        self.listeners.push(listener.expect("the first socket"));
        self.host_rings = true;
    }

    pub fn close_listeners(&mut self) {
        for listener in self.listeners.drain(..) {
            self.os.close(self.now, listener);
        }
        self.host_rings = true;
    }

    pub fn pump_host(&mut self) -> bool {
        let due = self.os.poll_timeout().is_some_and(|due| due <= self.now);
        if self.config.by_doorbell && !self.host_rings && !due {
            return false;
        }
        self.host_rings = false;
        match self.os.pump(self.now, &mut self.host) {
            Ok(did) => {
                self.host_rings = did;
                self.adapter_rings |= did;
                self.os.check();
                did
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub fn pump_adapter(&mut self) -> bool {
        let due = self
            .adapter
            .poll_timeout()
            .is_some_and(|due| due <= self.now);
        if self.config.by_doorbell && !self.adapter_rings && !due {
            return false;
        }
        self.adapter_rings = false;
        let transfers = self
            .adapter
            .queue(self.session)
            .stats()
            .per_transfer
            .transfers;
        let did = pump(
            self.now,
            &mut self.adapter,
            &mut self.stack,
            self.session,
            &mut self.adapter_end,
        );
        let did = match did {
            Ok(did) => did,
            Err(LinkError::Gone) => panic!("the host is connected"),
            Err(error) => panic!("{error}"),
        };
        let after = self
            .adapter
            .queue(self.session)
            .stats()
            .per_transfer
            .transfers;
        self.host_rings |= after > transfers;
        self.adapter_rings |= did;
        self.stack_settles();
        did
    }

    /// Handles the events of the adapter's TCP and sends its segments.
    fn stack_settles(&mut self) {
        loop {
            let any = self.adapter.handle_events(self.now, &mut self.stack);
            self.adapter_rings |= any;
            let mut idle = !any;
            while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
                idle = false;
                self.to_peers.send(self.now, segment);
            }
            if idle {
                self.stack.check();
                return self.adapter.check();
            }
        }
    }

    // --- faults ---

    pub fn draws_a_loss(&mut self) -> bool {
        self.config.losses && self.losses < MOST_LOSSES && self.random.below(1000) < 3
    }

    /// Replaces the adapter by a new one.
    pub fn lose_link(&mut self) {
        self.losses += 1;
        self.host.faults().cut();
        if self.random.percent(50) {
            assert_eq!(self.os.pump(self.now, &mut self.host), Err(LinkError::Gone));
        }
        self.os.handle_link_lost(self.now);
        self.os.check();
        assert_eq!(self.os.outstanding(), 0);
        let ending = if self.random.percent(50) {
            Ending::Reset
        } else {
            Ending::Drain
        };
        self.adapter
            .detach(self.now, &mut self.stack, self.session, ending);
        self.stack_settles();
        (self.host, self.adapter_end) = memory_link(self.config.link);
        self.hampered = false;
        self.session = self.adapter.attach().expect("the previous session is over");
        self.adapter.set_epoch(self.session, EPOCH_NS);
        (self.host_rings, self.adapter_rings) = (true, true);
    }

    pub fn draw_faults(&mut self) {
        if !self.config.faults || !self.random.percent(3) {
            return;
        }
        let faults = self.host.faults();
        let (requests, responses) = (self.random.percent(30), self.random.percent(30));
        let dma_polls = if self.config.by_doorbell {
            0
        } else {
            self.random.below(5) as u32
        };
        self.hampered = requests || responses || dma_polls > 0;
        faults.refuse_requests(requests);
        faults.refuse_responses(responses);
        faults.delay_dma(dma_polls);
        // The adapter is notified when there is space for responses again, but not when there is space for requests.
        self.adapter_rings |= !responses;
    }

    // --- network ---

    pub fn frame_to_adapter(&mut self) -> bool {
        let Some(segment) = self.to_adapter.receive(self.now) else {
            return false;
        };
        self.stack.handle_segment(self.now, segment);
        self.stack_settles();
        true
    }

    pub fn frame_to_peers(&mut self) -> bool {
        let Some(segment) = self.to_peers.receive(self.now) else {
            return false;
        };
        self.peers.handle_segment(self.now, segment);
        true
    }

    pub fn peers_transmit(&mut self) {
        while let Some((_, segment)) = self.peers.poll_transmit(self.now) {
            self.to_adapter.send(self.now, segment);
        }
    }

    /// Advances the time to the next event that is due, or by a few microseconds if something still has work to do.
    pub fn pass_time(&mut self) {
        let due = [
            self.to_adapter.next_arrival(),
            self.to_peers.next_arrival(),
            self.os.poll_timeout(),
            self.adapter.poll_timeout(),
            self.stack.poll_timeout(),
            self.peers.poll_timeout(),
        ];
        let due = due.into_iter().flatten().min();
        let little = self.now + Span::from_us(1 + self.random.below(20));
        let busy = self.host_rings || self.adapter_rings || self.hampered || self.os.has_ready();
        self.now = match due {
            Some(due) if !busy => due.max(self.now),
            _ => little,
        };
        if self.stack.poll_timeout().is_some_and(|due| due <= self.now) {
            self.stack.handle_timeouts(self.now);
            self.stack_settles();
        }
        if self
            .adapter
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.adapter.handle_timeouts(self.now, &mut self.stack);
            self.stack_settles();
        }
        if self.peers.poll_timeout().is_some_and(|due| due <= self.now) {
            self.peers.handle_timeouts(self.now);
        }
    }

    // --- the end ---

    /// Asserts that no socket, request or buffer is in use.
    pub fn assert_empty(&self) {
        assert_eq!(self.os.outstanding(), 0);
        assert_eq!(self.host.free_buffers(), self.config.link.buffers);
        let sockets = self.adapter.sockets(&self.stack, self.session).count();
        assert_eq!(sockets, 0, "no socket remains on the adapter");
    }

    pub fn summary(&self) -> Summary {
        Summary {
            host: *self.os.stats(),
            transfers: self.os.queue().stats().per_transfer.transfers,
            ended_at: self.now,
        }
    }
}
