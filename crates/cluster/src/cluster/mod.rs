//! A host with an application, its adapters, its peers, and the network between them. Everything happens at random: the network loses,
//! delays and duplicates, links are slow and may be lost, connections move at any moment, and each side may abort. No byte is lost,
//! duplicated or reordered, no connection ends without a reason, and none gets stuck.
//!
//! | to find | look in |
//! |---|---|
//! | what may happen next | [`Operation`] |
//! | the parameters, all drawn | `settings.rs` |
//! | the adapter's process and its link | `adapter.rs` |
//! | the host's process and its application; the web server | `server.rs`; `web.rs` |
//! | the peers; what both sides say and expect | `peers.rs`; `conversation.rs` |

mod adapter;
mod conversation;
mod peers;
mod server;
mod settings;
mod times;
mod web;

use adapter::{AdapterSide, End, PORT, address, destination, host, source};
use baton_apps::web::Server as WebServer;
use baton_host::SocketId;
use baton_host::adapter::OsLayerStats;
use baton_host::layer::{AdapterId, LayerStats, SocketLayer};
use baton_host::process::HostProcess;
use baton_inet::Host;
use baton_tcp::ConnId;
use baton_testkit::{Network, Random, Way};
use baton_wire::impairment::{Impairment, Share};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use conversation::Conversation;
use server::Server;
use settings::{selection, tcp_config};
use std::fmt::{Debug, Formatter};
use std::net::{IpAddr, Ipv4Addr};

/// The address of all peers.
const PEERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// A run that takes more operations is stuck.
const MOST_OPERATIONS: u32 = 3_000_000;

/// Where the TCP of the application's sockets is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On an adapter, whose link may be lost and replaced.
    Adapter,
    /// On the host and on one to three adapters, between which connections move.
    Both,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A frame of the peers reaches its adapter.
    FrameToServer,
    FrameToPeers,
    /// An adapter works.
    Adapter(usize),
    /// The host works with an adapter.
    Host(usize),
    Application,
    Peers,
    /// The host hands a connection off, or takes it back.
    Move,
    /// A link refuses requests or responses, or delays DMA by a number of polls, until the next fault.
    Fault {
        adapter: usize,
        requests: bool,
        responses: bool,
        dma_polls: u32,
    },
    /// The link to an adapter is lost and, if the adapter has all of TCP, replaced.
    Loss(usize),
}

/// What a run has done, which is the same for the same seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Counters of the host's sockets.
    pub layer: LayerStats,
    /// Counters of the host's half of the protocol, for each adapter.
    pub adapters: Vec<OsLayerStats>,
    /// Responses of the web server, if the application is one.
    pub responses: u64,
    /// Number of adapters that were lost for good.
    pub lost: usize,
    ended_at: Time,
}

/// Host, adapters, peers and networks.
pub struct Cluster {
    now: Time,
    random: Random,
    peers: Host,
    to_server: Network<Bytes>,
    to_peers: Network<Bytes>,
    adapters: Vec<AdapterSide>,
    server: Server,
    /// The listener, if it is on the adapter.
    listener: Option<SocketId>,
    /// The application, if it is the web server.
    web: Option<WebServer<Bytes, web::FixedHttp>>,
    conversations: Vec<Conversation>,
    to_open: u32,
    next_port: u16,
    next_key: u64,
    /// How often each file has changed.
    revisions: [u32; 3],
    /// Whether host and adapters run only when they are notified or a timer is due; otherwise they run at any time.
    by_doorbell: bool,
    has_faults: bool,
    /// Number of losses that may still happen.
    losses: u32,
    /// Number of moves that may still happen in addition to those of the policy.
    moves: u32,
    last: Option<Operation>,
}

impl Debug for Cluster {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let all = self.conversations.iter();
        let open = all.filter(|conversation| !conversation.is_over());
        f.debug_struct("Cluster")
            .field("now", &self.now)
            .field("last", &self.last)
            .field("by_doorbell", &self.by_doorbell)
            .field("to_open", &self.to_open)
            .field("conversations", &open.collect::<Vec<_>>())
            .field("web", &self.web.as_ref().map(WebServer::stats))
            .field(
                "sockets",
                &self.server.process.layer().states().collect::<Vec<_>>(),
            )
            .field("adapters", &self.adapters)
            .field("ends", &self.server.ends)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Creates a cluster in which everything is drawn from `random`.
    pub fn new(mut random: Random, place: Place) -> Self {
        let is_whole = place == Place::Adapter;
        let count = if is_whole {
            1
        } else {
            1 + random.below(3) as usize
        };
        let both = (0..count).map(|number| AdapterSide::new(number, &mut random, !is_whole));
        let (adapters, ends): (Vec<AdapterSide>, Vec<End>) = both.unzip();
        let packets = (0..).map(AdapterId).zip(&adapters);
        let packets = packets.filter_map(|(id, side)| Some((id, side.packets?)));
        let packets = packets.collect();
        let addresses = (0..count).map(address).collect();
        let own = host(addresses, tcp_config(&mut random), random.draw());
        let layer = SocketLayer::new(1000, Some(selection(&mut random)));
        let lossy = random.percent(60);
        let mut network = || {
            let mut share = |most| match lossy {
                true => Share::from_probability(random.below(most) as f64 / 100.0),
                false => Share::NONE,
            };
            let impairment = Impairment {
                loss: share(12),
                duplicate: share(10),
                jitter: Span::from_us(1 + random.below(400)),
                ..Impairment::default()
            };
            Network::new(impairment, Span::from_us(5), random.draw())
        };
        let (to_server, to_peers) = (network(), network());
        let losses = 2 * u32::from(is_whole && random.percent(20));
        Self {
            now: Time::ZERO,
            peers: host(vec![PEERS], tcp_config(&mut random), random.draw()),
            to_server,
            to_peers,
            adapters,
            server: Server {
                is_whole,
                host: own,
                process: HostProcess::new(layer, packets),
                ends,
                is_behind: false,
            },
            listener: None,
            web: random.percent(25).then(|| web::server(&mut random)),
            conversations: Vec::new(),
            to_open: 1 + random.below(8) as u32,
            next_port: 1000,
            next_key: 1 << 40,
            revisions: [0; 3],
            by_doorbell: random.percent(50),
            has_faults: random.percent(30),
            losses,
            moves: if is_whole { 0 } else { settings::MOST_MOVES },
            last: None,
            random,
        }
    }

    /// Runs until every conversation has ended, and checks that nothing remains.
    pub fn run(self) -> Summary {
        self.run_and_lose(None)
    }

    /// Works like `run`, except that the host loses one of its adapters for good after `lose_after` operations.
    pub fn run_and_lose(mut self, lose_after: Option<u32>) -> Summary {
        self.listen();
        self.open();
        for count in 0..MOST_OPERATIONS {
            let operation = match lose_after {
                Some(after) if after == count => Operation::Loss(self.any_adapter()),
                _ => self.draw(),
            };
            self.last = Some(operation);
            let acted = self.apply(operation);
            if acted {
                self.check();
            } else if self.random.percent(25) {
                self.pass_time();
            }
            if self.is_done() {
                return self.end();
            }
        }
        panic!("stuck: {self:?}");
    }

    fn listen(&mut self) {
        if self.server.is_whole {
            let (local, backlog) = (Endpoint::new(address(0), PORT), self.random.below(8) as u32);
            let listener = self.server.ends[0].os.listen(self.now, local, 1 + backlog);
            self.listener = Some(listener.expect("the first socket"));
            return;
        }
        for number in 0..self.adapters.len() {
            let local = Endpoint::new(address(number), PORT);
            let listener = self.server.host.stack_mut().listen(local, 64);
            let layer = self.server.process.layer_mut();
            layer.add_listener(listener, AdapterId(number as u8));
        }
    }

    fn any_adapter(&mut self) -> usize {
        self.random.below(self.adapters.len() as u64) as usize
    }

    fn draw(&mut self) -> Operation {
        let adapter = self.any_adapter();
        if self.losses > 0 && self.listener.is_some() && self.random.below(1000) < 3 {
            return Operation::Loss(adapter);
        }
        if self.has_faults && self.random.percent(2) {
            let (requests, responses) = (self.random.percent(30), self.random.percent(30));
            // Nobody is notified when a delay is over.
            let most = if self.by_doorbell { 1 } else { 5 };
            let dma_polls = self.random.below(most) as u32;
            return Operation::Fault {
                adapter,
                requests,
                responses,
                dma_polls,
            };
        }
        match self.random.below(7) {
            0 => Operation::FrameToServer,
            1 => Operation::FrameToPeers,
            2 => Operation::Adapter(adapter),
            3 => Operation::Host(adapter),
            4 => Operation::Application,
            5 if self.moves > 0 && self.random.percent(50) => Operation::Move,
            _ => Operation::Peers,
        }
    }

    /// Lets something happen; returns false if there was nothing to do.
    fn apply(&mut self, operation: Operation) -> bool {
        match operation {
            Operation::FrameToServer => self.frame_to_server(),
            Operation::FrameToPeers => self.frame_to_peers(),
            Operation::Adapter(number) => self.adapter_works(number),
            Operation::Host(number) => self.host_works(number),
            Operation::Application => self.application_acts(),
            Operation::Peers => self.peers_act(),
            Operation::Move => self.move_something(),
            Operation::Fault {
                adapter,
                requests,
                responses,
                dma_polls,
            } => {
                let (side, end) = (&mut self.adapters[adapter], &self.server.ends[adapter]);
                let faults = end.link.faults();
                faults.refuse_requests(requests);
                faults.refuse_responses(responses);
                faults.delay_dma(dma_polls);
                side.is_hampered = !side.is_lost && (requests || responses || dma_polls > 0);
                // The adapter is notified when there is space for responses again, but not when there is space for requests.
                side.rings |= !responses && !side.is_lost;
                true
            }
            Operation::Loss(number) if self.server.is_whole => {
                self.losses -= 1;
                let (side, end) = (&mut self.adapters[number], &mut self.server.ends[number]);
                side.lose_link(self.now, end, &mut self.random);
                self.to_open += 2;
                for conversation in &mut self.conversations {
                    let is_open = conversation.outcome.is_none() || !conversation.server_done;
                    conversation.excused |= is_open;
                }
                true
            }
            Operation::Loss(number) => {
                self.lose_adapter(number);
                true
            }
        }
    }

    fn check(&self) {
        if !self.server.is_whole {
            let stack = self.server.host.stack();
            self.server.process.layer().check(stack);
        }
        for (side, end) in self.adapters.iter().zip(&self.server.ends) {
            end.os.check();
            side.adapter.check();
            side.host.check();
        }
    }

    // --- network and time ---

    fn frame_to_server(&mut self) -> bool {
        let Some(frame) = self.to_server.receive(self.now) else {
            return false;
        };
        let number = destination(&frame);
        let side = &mut self.adapters[number];
        if side.is_lost {
            // Connections on the host continue by another path.
            self.host_takes(frame);
        } else {
            side.receive(self.now, frame);
            self.adapter_works(number);
        }
        true
    }

    fn frame_to_peers(&mut self) -> bool {
        let Some(frame) = self.to_peers.receive(self.now) else {
            return false;
        };
        self.peers.handle_frame(self.now, frame);
        self.peers_settle();
        true
    }

    /// Advances the time to the next event that is due, or by a few microseconds if something still has work to do. So links are slow, but
    /// faster than TCP's timers; otherwise, an answer could arrive for a SYN that has been given up.
    fn pass_time(&mut self) {
        let pairs = self.adapters.iter().zip(&self.server.ends);
        let (mut is_busy, mut due) = (self.server.process.layer().has_ready(), Vec::new());
        for (side, end) in pairs.filter(|(side, _)| !side.is_lost) {
            is_busy |= side.rings || side.host_rings || side.is_hampered || end.os.has_ready();
            due.extend([side.poll_timeout(), end.os.poll_timeout()]);
        }
        due.extend([
            self.to_server.next_arrival(),
            self.to_peers.next_arrival(),
            self.peers.poll_timeout(),
            self.server.host.poll_timeout(),
        ]);
        let little = self.now + Span::from_us(1 + self.random.below(20));
        self.now = match due.into_iter().flatten().min() {
            Some(due) if !is_busy => due.max(self.now),
            _ => little,
        };
        if self.peers.poll_timeout().is_some_and(|due| due <= self.now) {
            self.peers.handle_timeouts(self.now);
            self.peers_settle();
        }
        let host = &mut self.server.host;
        if host.poll_timeout().is_some_and(|due| due <= self.now) {
            host.handle_timeouts(self.now);
            self.host_settles();
        }
        for number in 0..self.adapters.len() {
            let due = self.adapters[number].poll_timeout();
            if due.is_some_and(|due| due <= self.now) {
                self.adapter_works(number);
            }
        }
    }

    // --- adapters ---

    /// Lets an adapter work, if it has been notified or a timer is due.
    fn adapter_works(&mut self, number: usize) -> bool {
        let (now, to_peers) = (self.now, &mut self.to_peers);
        let side = &mut self.adapters[number];
        let is_due = side.poll_timeout().is_some_and(|due| due <= now);
        if side.is_lost || self.by_doorbell && !side.rings && !is_due {
            return false;
        }
        side.work(now, |frame| to_peers.send(now, frame))
    }

    /// Loses one of the adapters; the others continue.
    fn lose_adapter(&mut self, number: usize) {
        self.adapters[number].lose(self.now, &mut self.server.ends[number]);
        let layer = self.server.process.layer_mut();
        layer.handle_adapter_lost(AdapterId(number as u8));
        self.tell_layer();
        // Peers of connections that were on the adapter, or moving to it, get no more answers, which a router reports to them.
        let (peers, own) = (self.peers.stack(), self.server.host.stack());
        let is_gone = |&conn: &ConnId| {
            let flow = peers.flow(conn).reversed();
            flow.local.addr == address(number) && own.find(&flow).is_none()
        };
        let gone: Vec<ConnId> = peers.connections().filter(is_gone).collect();
        for conversation in &mut self.conversations {
            conversation.excused |= conversation.conn.is_some_and(|conn| gone.contains(&conn));
        }
        for conn in gone {
            self.peers.stack_mut().abort(conn);
        }
        let (to_server, to_peers) = (&mut self.to_server.frames, &mut self.to_peers.frames);
        to_server.retain(|(_, frame)| destination(frame) != number);
        to_peers.retain(|(_, frame)| source(frame) != number);
        self.host_settles();
        self.peers_settle();
    }

    // --- the end ---

    fn is_done(&mut self) -> bool {
        let open = self.web.as_ref().map_or(0, WebServer::connections);
        if self.to_open > 0 || open > 0 || !self.conversations.iter().all(Conversation::is_over) {
            return false;
        }
        if !self.server.is_whole {
            let mut adapters = self.adapters.iter();
            return self.peers.stack().is_empty()
                && self.server.host.stack().is_empty()
                && adapters.all(|side| side.is_lost || side.host.stack().is_empty())
                && self.server.process.layer().is_empty();
        }
        let os = &mut self.server.ends[0].os;
        if let Some(listener) = self.listener.take() {
            os.close(self.now, listener);
            self.adapters[0].host_rings = true;
        }
        // A request to a new adapter's cache may still be pending when the last socket is closed.
        os.sockets() == 0 && os.outstanding() == 0
    }

    fn end(mut self) -> Summary {
        // Responses may wait for others until a timer is due.
        self.now += Span::from_ms(10);
        for number in 0..self.adapters.len() {
            self.server.ends[number]
                .link
                .faults()
                .refuse_responses(false);
            self.adapters[number].rings = true;
            while self.adapter_works(number) | self.host_works(number) {}
            let (side, end) = (&self.adapters[number], &self.server.ends[number]);
            if self.server.is_whole {
                side.check_empty(end);
            }
            // The host knows the current Soft_Limit.
            let known = end.os.soft_limit().filter(|_| !side.is_lost);
            assert!(known.is_none_or(|known| known == side.adapter.soft_limit()));
        }
        Summary {
            layer: self.server.process.layer().stats().clone(),
            adapters: (self.server.ends.iter())
                .map(|end| *end.os.stats())
                .collect(),
            responses: self.web.as_ref().map_or(0, |web| web.stats().responses),
            lost: self.adapters.iter().filter(|side| side.is_lost).count(),
            ended_at: self.now,
        }
    }
}
