//! Peers, a network, adapters with their links, and a host with its own stack.

use crate::adapter::{AdapterSide, End, address, destination, source};
use crate::conversation::{Script, Side};
use crate::patient::patient;
use baton_host::layer::{AdapterId, LayerStats, SocketLayer};
use baton_host::process::HostProcess;
use baton_host::{Decision, Selection, SelectionConfig, View};
use baton_inet::{Cidr, Host, InterfaceConfig, Medium};
use baton_tcp::{Config, ConnId, State};
use baton_testkit::{Network, Random};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

pub const PEERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub const PORT: u16 = 80;
const MOST_EVENTS: u32 = 2_000_000;

/// A policy that hands connections off and takes them back at random.
#[derive(Debug)]
struct Whim(Random);

impl Selection for Whim {
    fn on_established(&mut self, _view: &View) -> Decision {
        match self.0.percent(30) {
            true => Decision::HandOff,
            false => Decision::Stay,
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

/// Returns a random policy; half the time, a [`Whim`].
fn selection(random: &mut Random) -> Box<dyn Selection> {
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
        return Box::new(Whim(Random::new(random.draw())));
    }
    let name = POLICIES[random.below(POLICIES.len() as u64) as usize];
    let policy: SelectionConfig = name.parse().expect("a policy");
    policy.build()
}

/// Creates a host with these addresses.
pub fn host(addresses: Vec<IpAddr>, tcp: Config, seed: u64) -> Host {
    let cidrs = addresses.into_iter().map(|addr| Cidr::new(addr, 24));
    let cidrs = cidrs.collect::<Result<_, _>>().expect("a network");
    let config = InterfaceConfig {
        medium: Medium::Ip,
        ..InterfaceConfig::new([2, 0, 0, 0, 0, 1], cidrs)
    };
    Host::new(config, tcp, seed).expect("the parameters are valid")
}

pub fn tcp_config(random: &mut Random) -> Config {
    Config {
        send_buffer: 4096 + random.below(30_000) as u32,
        receive_buffer: 4096 + random.below(60_000) as u32,
        window_scaling: random.percent(50),
        timestamps: random.percent(50),
        sack: random.percent(50),
        nagle: random.percent(50),
        ..patient()
    }
}

/// A peer's side of a conversation, and the adapter whose address the peer is connected to.
#[derive(Debug)]
pub struct Client {
    pub side: Side,
    pub adapter: usize,
}

/// The server with its adapters, and its peers.
pub struct Machine {
    pub now: Time,
    pub random: Random,
    pub peers: Host,
    pub to_server: Network<Bytes>,
    pub to_peers: Network<Bytes>,

    pub adapters: Vec<AdapterSide>,
    pub ends: Vec<End>,
    pub host: Host,
    pub process: HostProcess<Bytes>,

    pub clients: BTreeMap<u32, Client>,
    pub to_open: u32,
    pub next_key: u64,
    /// The current revisions of the server's files.
    pub files: Vec<Script>,
    pub scripts: BTreeMap<u16, (Script, Script)>,
    pub servers: BTreeMap<u32, Side>,
    lose_after: Option<u64>,
    events: u64,
}

impl Machine {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 1 + random.below(3) as usize;
        let both = (0..count).map(|number| AdapterSide::new(number, &mut random));
        let (adapters, ends): (Vec<AdapterSide>, _) = both.unzip();
        let packets = (0..).map(AdapterId).zip(&adapters);
        let packets = packets.map(|(id, side)| (id, side.packets)).collect();
        let addresses = (0..count).map(address).collect();
        let mut host_ = host(addresses, tcp_config(&mut random), random.draw());
        let selection = selection(&mut random);
        let mut layer = SocketLayer::new(1000, Some(selection));
        for number in 0..count {
            let at = Endpoint::new(address(number), PORT);
            let listener = host_.stack_mut().listen(at, 64);
            layer.add_listener(listener, AdapterId(number as u8));
        }
        let lossy = random.percent(60);
        let mut network = || {
            let mut percent = |most| if lossy { random.below(most) } else { 0 };
            let (loss, duplicate) = (percent(8), percent(8));
            let delay = Span::from_us(1 + random.below(400));
            Network::new(loss, duplicate, delay, random.draw())
        };
        let (to_server, to_peers) = (network(), network());
        Self {
            now: Time::ZERO,
            peers: host(vec![PEERS], tcp_config(&mut random), random.draw()),
            to_server,
            to_peers,
            adapters,
            ends,
            host: host_,
            process: HostProcess::new(layer, packets),
            clients: BTreeMap::new(),
            to_open: 2 + random.below(8) as u32,
            next_key: seed << 8,
            files: Vec::new(),
            scripts: BTreeMap::new(),
            servers: BTreeMap::new(),
            lose_after: None,
            events: 0,
            random,
        }
    }

    pub fn lose_adapter_after(&mut self, events: u64) {
        self.lose_after = Some(events);
    }

    /// Returns the number of adapters that were lost, and of those that were not.
    pub fn lost(&self) -> (usize, usize) {
        let lost = self.adapters.iter().filter(|side| side.is_lost).count();
        (lost, self.adapters.len() - lost)
    }

    /// Asserts that the host knows the current Soft_Limit of each adapter.
    fn check_soft_limits(&self) {
        for (side, end) in self.adapters.iter().zip(&self.ends) {
            if let Some(known) = end.os.soft_limit().filter(|_| !side.is_lost) {
                assert_eq!(known, side.adapter.soft_limit());
            }
        }
    }

    /// Returns the number of SENDs from the adapters' caches.
    pub fn cached_sends(&self) -> u64 {
        let ends = self.ends.iter();
        ends.map(|end| end.os.stats().cached_sends).sum()
    }

    pub fn totals(&self) -> LayerStats {
        self.process.layer().stats().clone()
    }

    /// Runs until every conversation has ended.
    pub fn run(&mut self) {
        for _ in 0..MOST_EVENTS {
            self.events += 1;
            self.event();
            if self.is_done() {
                assert_eq!(self.process.layer().len(), 0, "no socket remains");
                while self.pump_all() {}
                return self.check_soft_limits();
            }
        }
        let states: Vec<_> = self.process.layer().states().collect();
        panic!(
            "stuck at {:?}: {states:?}\nclients {:?}\nservers {:?}\n{:?}",
            self.now, self.clients, self.servers, self.ends
        );
    }

    fn is_done(&self) -> bool {
        let mut adapters = self.adapters.iter();
        self.to_open == 0
            && self.clients.is_empty()
            && self.servers.is_empty()
            && self.peers.stack().is_empty()
            && self.host.stack().is_empty()
            && adapters.all(|side| side.is_lost || side.host.stack().is_empty())
            && self.process.layer().is_empty()
    }

    fn event(&mut self) {
        if self.lose_after.is_some_and(|after| self.events > after) {
            self.lose_after = None;
            self.lose_adapter();
        }
        let number = self.random.below(self.adapters.len() as u64) as usize;
        if self.random.percent(1) {
            let polls = self.random.below(4) as u32;
            self.adapters[number].faults.delay_dma(polls);
        }
        let acted = match self.random.below(7) {
            0 => self.frame_to_server(),
            1 => self.frame_to_peers(),
            2 => self.adapter_works(number),
            3 => self.pump_host(number),
            4 => self.server_acts(),
            5 => self.move_something(),
            _ => self.peers_act(),
        };
        self.process.layer().check(self.host.stack());
        for (side, end) in self.adapters.iter().zip(&self.ends) {
            end.os.check();
            side.adapter.check();
        }
        if !acted && self.random.percent(30) {
            self.pass_time();
        }
    }

    // --- network ---

    fn frame_to_server(&mut self) -> bool {
        let Some(frame) = self.to_server.receive(self.now) else {
            return false;
        };
        let number = destination(&frame);
        let side = &mut self.adapters[number];
        if side.is_lost {
            // The adapter no longer exists; connections on the host continue by another path.
            self.host_takes(frame);
            self.host_settles();
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

    fn pass_time(&mut self) {
        let ends = self.ends.iter().zip(&self.adapters);
        let of_links = ends.filter(|(_, side)| !side.is_lost);
        let times = [
            self.to_server.next_arrival(),
            self.to_peers.next_arrival(),
            self.peers.poll_timeout(),
            self.host.poll_timeout(),
            self.adapters
                .iter()
                .filter_map(AdapterSide::poll_timeout)
                .min(),
            of_links.filter_map(|(end, _)| end.os.poll_timeout()).min(),
        ];
        let next = times.into_iter().flatten().min();
        // The links are slow, but faster than TCP's timers. Otherwise, an answer could arrive for a SYN that has been given up.
        let is_far = next.is_some_and(|next| next > self.now + Span::from_ms(1));
        if is_far && self.pump_all() {
            return;
        }
        if let Some(next) = next.filter(|&next| next > self.now) {
            self.now = next;
        }
        self.peers.handle_timeouts(self.now);
        self.host.handle_timeouts(self.now);
        self.peers_settle();
        self.host_settles();
        for number in 0..self.adapters.len() {
            if !self.adapters[number].is_lost {
                self.adapter_works(number);
            }
        }
    }

    // --- adapters ---

    fn pump_all(&mut self) -> bool {
        let mut did = false;
        for number in 0..self.adapters.len() {
            did |= self.adapter_works(number) | self.pump_host(number);
        }
        did
    }

    fn adapter_works(&mut self, number: usize) -> bool {
        let (now, to_peers) = (self.now, &mut self.to_peers);
        let side = &mut self.adapters[number];
        !side.is_lost && side.work(now, |frame| to_peers.send(now, frame))
    }

    /// Loses one of the adapters; the others continue.
    fn lose_adapter(&mut self) {
        let number = self.random.below(self.adapters.len() as u64) as usize;
        let lost = AdapterId(number as u8);
        self.adapters[number].lose(self.now);
        self.ends[number].os.handle_link_lost(self.now);
        self.process.layer_mut().handle_adapter_lost(lost);
        self.tell_layer();
        // Peers of connections that were on the adapter, or moving to it, get no more answers, which a router reports to them. The server may
        // already have closed one of these connections while the adapter still had to deliver the last bytes.
        let peers = self.peers.stack();
        let here = peers.connections().filter(|&conn| {
            let flow = peers.flow(conn).reversed();
            flow.local.addr == address(number)
                && peers.state(conn) != State::SynSent
                && self.host.stack().find(&flow).is_none()
        });
        let gone: Vec<ConnId> = here.collect();
        for conn in gone {
            self.peers.stack_mut().abort(conn);
            self.clients.remove(&conn.0);
        }
        let (to_server, to_peers) = (&mut self.to_server.frames, &mut self.to_peers.frames);
        to_server.retain(|(_, frame)| destination(frame) != number);
        to_peers.retain(|(_, frame)| source(frame) != number);
    }
}
