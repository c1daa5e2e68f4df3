//! Peers, a network, an adapter, a link and a host with its own stack.

use crate::conversation::{Script, Side};
use crate::patient::patient;
use baton_bus::link::{Faults, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_host::layer::{AdapterEnd, Fate, LayerStats, Place, SocketLayer};
use baton_host::offload::{OsLayer, OsLayerConfig};
use baton_host::{
    Decision, FileId, Gone, NicCacheConfig, Ready, Receive, Selection, SocketId, Sockets, View,
};
use baton_inet::{Cidr, Host, InterfaceConfig, Medium};
use baton_nic::offload::{Adapter, AdapterConfig, Ending, SessionId, pump};
use baton_tcp::{CloseReason, Config, ConnId, Event};
use baton_testkit::{Network, Pattern, Random};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const PEERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 80;
const MOST_EVENTS: u32 = 2_000_000;

/// Hands off at any time, and again.
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

    fn reconsiders(&self, _view: &View) -> bool {
        true
    }

    fn takes_back(&mut self, _view: &View) -> bool {
        self.0.percent(10)
    }
}

fn host(addr: IpAddr, tcp: Config, seed: u64) -> Host {
    let cidr = Cidr::new(addr, 24).expect("a network");
    let config = InterfaceConfig {
        medium: Medium::Ip,
        ..InterfaceConfig::new([2, 0, 0, 0, 0, 1], vec![cidr])
    };
    Host::new(config, tcp, seed).expect("right parameters")
}

fn tcp_config(random: &mut Random) -> Config {
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

/// The server's and the adapter's halves of one host, and its peers.
pub struct Machine {
    pub now: Time,
    random: Random,
    peers: Host,
    to_server: Network<Bytes>,
    to_peers: Network<Bytes>,

    adapter_host: Host,
    adapter: Adapter<Bytes>,
    session: SessionId,
    adapter_end: MemoryAdapter<Bytes>,

    os: OsLayer<Bytes>,
    link: MemoryHost<Bytes>,
    faults: Faults,
    host: Host,
    layer: SocketLayer<Bytes>,
    packets: SocketId,

    clients: BTreeMap<u32, Side>,
    to_open: u32,
    next_key: u64,
    /// The server's files as they are now.
    files: Vec<Script>,
    scripts: BTreeMap<u16, (Script, Script)>,
    servers: BTreeMap<u32, Side>,
    lose_after: Option<u64>,
    events: u64,
    lost: bool,
    cut_off: u32,
}

impl Machine {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let transfer = [200, 1500, 4096][random.below(3) as usize];
        let (link, adapter_end) = memory_link(MemoryConfig {
            ring_depth: 16 << random.below(3),
            buffers: 100,
            buffer_bytes: transfer.max(1500),
        });
        let faults = link.faults();
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
        os_config.batching.max_transfer_bytes = transfer.max(1500);
        let mut adapter_config = AdapterConfig {
            addresses: vec![SERVER],
            cumulative_sends: random.percent(50),
            hard_limit: 1 + random.below(20) as u32,
            cache_bytes: 40_000 * random.below(3) as u32,
            ..AdapterConfig::default()
        };
        adapter_config.batching.max_transfer_bytes = transfer.max(1500);
        let mut adapter = Adapter::new(adapter_config).expect("right parameters");
        let session = adapter.attach().expect("the first");
        let mut adapter_host = host(SERVER, tcp_config(&mut random), random.draw());
        adapter_host.pass_unclaimed(true);
        let mut host_ = host(SERVER, tcp_config(&mut random), random.draw());
        let listener = host_.stack_mut().listen(Endpoint::new(SERVER, PORT), 64);
        let selection: Box<dyn Selection> = Box::new(Whim(Random::new(random.draw())));
        let mut layer = SocketLayer::new(1000, Some(selection));
        layer.add_listener(listener);
        let mut os = OsLayer::new(os_config).expect("right parameters");
        let packets = os.packet_socket(Time::ZERO, Endpoint::new(SERVER, PORT));
        let lossy = random.percent(60);
        let mut network = || Network {
            frames: Vec::new(),
            loss_percent: if lossy { random.below(8) } else { 0 },
            duplicate_percent: if lossy { random.below(8) } else { 0 },
            most_delay_us: 1 + random.below(400),
        };
        let (to_server, to_peers) = (network(), network());
        Self {
            now: Time::ZERO,
            peers: host(PEERS, tcp_config(&mut random), random.draw()),
            to_server,
            to_peers,
            adapter_host,
            adapter,
            session,
            adapter_end,
            os,
            link,
            faults,
            host: host_,
            layer,
            packets: packets.expect("the first socket"),
            clients: BTreeMap::new(),
            to_open: 2 + random.below(8) as u32,
            next_key: seed << 8,
            files: Vec::new(),
            scripts: BTreeMap::new(),
            servers: BTreeMap::new(),
            lose_after: None,
            events: 0,
            lost: false,
            cut_off: 0,
            random,
        }
    }

    pub fn lose_adapter_after(&mut self, events: u64) {
        self.lose_after = Some(events);
    }

    pub fn was_lost(&self) -> bool {
        self.lost
    }

    /// SENDs from the adapter's cache.
    pub fn cached_sends(&self) -> u64 {
        self.os.stats().cached_sends
    }

    pub fn totals(&self) -> LayerStats {
        self.layer.stats().clone()
    }

    /// Runs until every conversation is over.
    pub fn run(&mut self) {
        for _ in 0..MOST_EVENTS {
            self.events += 1;
            self.event();
            if self.is_done() {
                assert_eq!(self.layer.len(), 0, "no socket is left");
                return;
            }
        }
        let states: Vec<_> = self.layer.states().collect();
        panic!(
            "stuck at {:?}: {states:?}\nclients {:?}\nservers {:?}\n{:?}",
            self.now, self.clients, self.servers, self.os
        );
    }

    fn is_done(&self) -> bool {
        self.to_open == 0
            && self.clients.is_empty()
            && self.servers.is_empty()
            && self.peers.stack().is_empty()
            && self.host.stack().is_empty()
            && (self.lost || self.adapter_host.stack().is_empty())
            && self.layer.is_empty()
    }

    fn event(&mut self) {
        if self.lose_after.is_some_and(|after| self.events > after) && !self.lost {
            self.lose_adapter();
        }
        if self.random.percent(1) {
            let polls = self.random.below(4) as u32;
            self.faults.delay_dma(polls);
        }
        let acted = match self.random.below(7) {
            0 => self.frame_to_server(),
            1 => self.frame_to_peers(),
            2 => self.pump_adapter(),
            3 => self.pump_host(),
            4 => self.server_acts(),
            5 => self.move_something(),
            _ => self.peers_act(),
        };
        self.layer.check(self.host.stack());
        self.os.check();
        self.adapter.check();
        if !acted && self.random.percent(30) {
            self.pass_time();
        }
    }

    // --- network ---

    fn frame_to_server(&mut self) -> bool {
        let Some(frame) = self.to_server.receive(self.now) else {
            return false;
        };
        if self.lost {
            // Where the adapter was there is nobody; what is on the host goes on over another way.
            self.host_takes(frame);
            self.host_settles();
        } else {
            self.adapter_host.handle_frame(self.now, frame);
            self.adapter_settles();
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
        let times = [
            self.to_server.next_arrival(),
            self.to_peers.next_arrival(),
            self.peers.poll_timeout(),
            self.host.poll_timeout(),
            self.adapter_host.poll_timeout().filter(|_| !self.lost),
            self.adapter.poll_timeout().filter(|_| !self.lost),
            self.os.poll_timeout().filter(|_| !self.lost),
        ];
        let next = times.into_iter().flatten().min();
        // The link is slow, but not as slow as timers of TCP: an answer to a SYN that had been given up would be a stranger's.
        let is_far = next.is_some_and(|next| next > self.now + Span::from_ms(1));
        if is_far && self.pump_adapter() | self.pump_host() {
            return;
        }
        if let Some(next) = next.filter(|&next| next > self.now) {
            self.now = next;
        }
        let now = self.now;
        self.peers.handle_timeouts(now);
        self.host.handle_timeouts(now);
        self.peers_settle();
        self.host_settles();
        if !self.lost {
            self.adapter_host.handle_timeouts(now);
            self.adapter
                .handle_timeouts(now, self.adapter_host.stack_mut());
            self.adapter_settles();
        }
    }

    // --- adapter ---

    fn pump_adapter(&mut self) -> bool {
        if self.lost {
            return false;
        }
        let did = pump(
            self.now,
            &mut self.adapter,
            self.adapter_host.stack_mut(),
            self.session,
            &mut self.adapter_end,
        );
        let did = did.expect("the host keeps the rules");
        self.adapter_settles();
        did
    }

    fn adapter_settles(&mut self) {
        let now = self.now;
        while let Some(packet) = self.adapter.poll_packet() {
            match packet.to_wire {
                true => self.adapter_host.send_packet(packet.packet),
                false => {
                    self.adapter_host.handle_packet(now, packet.packet);
                }
            }
        }
        while let Some(unclaimed) = self.adapter_host.poll_unclaimed() {
            let local = unclaimed.flow.local;
            match self.adapter.host_for(local) {
                Some(host) => self.adapter.pass(host, unclaimed.packet),
                None => {
                    self.adapter_host.handle_stray(now, unclaimed.packet);
                }
            }
        }
        self.adapter.control_load(now, 0);
        loop {
            while let Some((conn, event)) = self.adapter_host.stack_mut().poll_event() {
                let stack = self.adapter_host.stack_mut();
                self.adapter.handle_event(now, stack, conn, &event);
            }
            let mut frame = Vec::new();
            if !self.adapter_host.poll_frame(now, &mut frame) {
                break;
            }
            self.to_peers.send(now, frame.into(), &mut self.random);
        }
    }

    fn lose_adapter(&mut self) {
        self.lost = true;
        self.faults.cut();
        let stack = self.adapter_host.stack_mut();
        self.adapter
            .detach(self.now, stack, self.session, Ending::Reset);
        self.os.handle_link_lost(self.now);
        self.layer.handle_adapter_lost();
        self.tell_layer();
        let away = |place| !matches!(place, Place::Host(_) | Place::Ended(_));
        // The peers of lost connections get no answer any more: a router says so.
        let lost: Vec<Flow> = self
            .layer
            .states()
            .filter(|state| away(state.place) || matches!(state.place, Place::Ended(_)))
            .map(|state| state.flow)
            .collect();
        for flow in lost {
            let conn = self.peers.stack().find(&flow.reversed());
            if let Some(conn) = conn {
                self.peers.stack_mut().abort(conn);
                self.clients.remove(&conn.0);
            }
        }
        self.to_server.frames.clear();
        self.to_peers.frames.clear();
    }

    // --- host ---

    fn pump_host(&mut self) -> bool {
        if self.lost {
            return false;
        }
        let did = self
            .os
            .pump(self.now, &mut self.link)
            .expect("the adapter keeps the rules");
        if self.random.percent(30) {
            // The layer above looks later.
            return did;
        }
        let mut packets = 0;
        while let Some(packet) = self.os.next_packet(self.packets) {
            packets += 1;
            self.host_takes(packet);
        }
        self.tell_layer();
        self.host_settles();
        did || packets > 0
    }

    fn tell_layer(&mut self) {
        let mut end = AdapterEnd {
            os: &mut self.os,
            link: &mut self.link,
        };
        self.layer
            .handle_adapter(self.now, self.host.stack_mut(), &mut end);
        while let Some(packet) = self.layer.poll_forward() {
            let (now, socket) = (self.now, self.packets);
            self.os
                .send_packet(now, &mut self.link, socket, packet, true);
        }
        while let Some(packet) = self.layer.poll_arrived() {
            self.host_takes(packet);
        }
    }

    fn host_takes(&mut self, packet: Bytes) {
        let layer = &self.layer;
        let is_away = |flow: &Flow| layer.is_away(flow);
        self.host.handle_frame_unless(self.now, packet, is_away);
        while let Some(unclaimed) = self.host.poll_unclaimed() {
            match self.layer.sort(&unclaimed.flow, unclaimed.packet) {
                Fate::Kept => {}
                Fate::Forward(packet) => {
                    let (now, socket) = (self.now, self.packets);
                    self.os
                        .send_packet(now, &mut self.link, socket, packet, true);
                }
            }
        }
    }

    fn host_settles(&mut self) {
        let now = self.now;
        loop {
            while let Some((conn, event)) = self.host.stack_mut().poll_event() {
                self.layer.handle_event(self.host.stack_mut(), conn, &event);
            }
            let mut frame = Vec::new();
            if !self.host.poll_frame(now, &mut frame) {
                return;
            }
            match self.lost {
                true => self.to_peers.send(now, frame.into(), &mut self.random),
                false => {
                    let socket = self.packets;
                    self.os
                        .send_packet(now, &mut self.link, socket, frame.into(), false);
                }
            }
        }
    }

    // --- the server ---

    fn server_acts(&mut self) -> bool {
        let mut acted = false;
        for _ in 0..1 + self.random.below(4) {
            let Some(ready) = self.layer.next_ready() else {
                break;
            };
            acted = true;
            match ready {
                Ready::Acceptable => self.accept(),
                Ready::Readable(id) => self.serve(id, true),
                Ready::Writable(id) => self.serve(id, false),
            }
            self.host_settles();
        }
        acted
    }

    fn accept(&mut self) {
        let (now, stack) = (self.now, self.host.stack_mut());
        let (os, link) = (&mut self.os, &mut self.link);
        let mut calls = self.layer.calls(now, stack, Some(AdapterEnd { os, link }));
        let Some(id) = calls.accept() else {
            return;
        };
        let port = self.layer.state_of(id).map(|state| state.flow.remote.port);
        let Some((client_says, server_says)) = port.and_then(|port| self.scripts.get(&port)) else {
            panic!("nobody else connects");
        };
        let side = Side::new(*server_says, *client_says);
        self.servers.insert(id.0, side);
        self.serve(id, false);
    }

    fn serve(&mut self, id: SocketId, readable: bool) {
        let side = self.servers.remove(&id.0);
        let mut side = side.expect("nothing is told of a closed socket");
        let (now, stack) = (self.now, self.host.stack_mut());
        let (os, link) = (&mut self.os, &mut self.link);
        let mut calls = self.layer.calls(now, stack, Some(AdapterEnd { os, link }));
        if readable {
            loop {
                match calls.receive(id, 1 + self.random.below(5000) as usize) {
                    Receive::Data(data) => side.hear(&data),
                    Receive::WouldBlock => break,
                    Receive::EndOfStream => {
                        if !side.heard_end {
                            side.hear_end();
                        }
                        break;
                    }
                    Receive::Gone => {
                        assert!(self.lost, "no connection is lost");
                        self.cut_off += 1;
                        calls.close(id);
                        return;
                    }
                }
            }
        }
        if self.random.percent(40) {
            calls.set_cork(id, true);
        }
        while !side.has_said_all() {
            let content = side.content().filter(|_| self.random.percent(80));
            match content.map(|content| calls.send_cached(id, &content)) {
                Some(Ok(cached)) if cached.taken > 0 || !cached.has_room => {
                    side.said += cached.taken as usize;
                    if !cached.has_room {
                        break;
                    }
                    continue;
                }
                _ => {}
            }
            let data = side.next(1 + self.random.below(6000) as usize);
            let len = data.len();
            let sent = match content {
                Some(content) => calls.send_file(id, content, data),
                None => calls.send(id, data),
            };
            match sent {
                Ok(taken) => {
                    side.said += taken;
                    if taken < len {
                        break;
                    }
                }
                Err(Gone) => {
                    assert!(self.lost, "no connection is lost");
                    calls.close(id);
                    return;
                }
            }
        }
        if side.has_said_all() || self.random.percent(50) {
            calls.set_cork(id, false);
        }
        if side.has_said_all() && !side.shut && self.random.percent(50) {
            side.shut = true;
            calls.shutdown(id);
        }
        if side.has_said_all() && side.heard_end {
            calls.close(id);
            return;
        }
        self.servers.insert(id.0, side);
    }

    fn move_something(&mut self) -> bool {
        let ids: Vec<u32> = self.servers.keys().copied().collect();
        if ids.is_empty() || self.lost {
            return false;
        }
        let id = SocketId(ids[self.random.below(ids.len() as u64) as usize]);
        let now = self.now;
        let moved = match self.random.percent(50) {
            true => self.layer.restore(now, &mut self.os, id),
            false => {
                let stack = self.host.stack_mut();
                self.layer.hand_off(now, stack, &mut self.os, id).is_ok()
            }
        };
        self.host_settles();
        moved
    }

    // --- the peers ---

    fn peers_act(&mut self) -> bool {
        // Before the host is there the adapter refuses connections.
        let is_served = self.lost || self.os.soft_limit().is_some();
        if is_served && self.to_open > 0 && self.random.percent(20) {
            self.to_open -= 1;
            self.open();
        }
        let ids: Vec<u32> = self.clients.keys().copied().collect();
        let mut acted = false;
        for id in ids {
            acted |= self.client_acts(ConnId(id));
        }
        self.peers_settle();
        acted
    }

    fn open(&mut self) {
        let local = Endpoint::new(PEERS, 1000 + self.to_open as u16);
        let remote = Endpoint::new(SERVER, PORT);
        let flow = Flow { local, remote };
        let says = self.script(None);
        let hears = self.file();
        self.scripts.insert(local.port, (says, hears));
        let conn = self.peers.stack_mut().connect(self.now, flow);
        let conn = conn.expect("the four-tuple is free");
        self.clients.insert(conn.0, Side::new(says, hears));
    }

    fn script(&mut self, file: Option<(FileId, u32)>) -> Script {
        self.next_key += 1;
        Script {
            bytes: Pattern::new(self.next_key),
            len: self.random.below(60_000) as usize,
            file,
        }
    }

    /// One of few files, which may have changed since it was asked for last.
    fn file(&mut self) -> Script {
        let number = self.random.below(3) as usize;
        while self.files.len() <= number {
            let file = FileId(self.files.len() as u32);
            let script = self.script(Some((file, 0)));
            self.files.push(script);
        }
        if let Some((file, revision)) = self.files[number].file
            && self.random.percent(25)
        {
            self.files[number] = self.script(Some((file, revision + 1)));
        }
        self.files[number]
    }

    fn client_acts(&mut self, conn: ConnId) -> bool {
        let Some(side) = self.clients.get_mut(&conn.0) else {
            return false;
        };
        let stack = self.peers.stack_mut();
        let mut acted = false;
        while let Some(data) = stack.read(conn, 1 + self.random.below(20_000) as usize) {
            stack.consume(conn, data.len());
            side.hear(&data);
            acted = true;
        }
        if !side.heard_end && stack.peer_closed(conn) && stack.readable_len(conn) == 0 {
            side.hear_end();
            acted = true;
        }
        if !side.has_said_all() {
            let data = side.next(1 + self.random.below(8000) as usize);
            if let Ok(taken) = stack.write(conn, data) {
                side.said += taken;
                acted |= taken > 0;
            }
        }
        if side.has_said_all() && !side.shut {
            side.shut = true;
            stack.shutdown(conn);
        }
        if side.shut && side.heard_end {
            stack.close(conn);
            self.clients.remove(&conn.0);
        }
        acted
    }

    fn peers_settle(&mut self) {
        let now = self.now;
        loop {
            while let Some((conn, event)) = self.peers.stack_mut().poll_event() {
                // What has been read no reset can take away. Of one that is over all has been read.
                if !matches!(event, Event::Closed(_)) {
                    self.client_acts(conn);
                }
                if let Event::Closed(reason) = event
                    && let Some(side) = self.clients.remove(&conn.0)
                {
                    let is_complete = side.shut && side.heard == side.hears.len;
                    // An old acknowledgment that comes after the last one is answered by a reset (RFC 9293 3.10.7.1).
                    let reset = reason == CloseReason::Reset && is_complete;
                    let in_order = reason == CloseReason::Normal && is_complete;
                    assert!(in_order || reset || self.lost, "lost: {reason:?}, {side:?}");
                }
            }
            let mut frame = Vec::new();
            if !self.peers.poll_frame(now, &mut frame) {
                return;
            }
            self.to_server.send(now, frame.into(), &mut self.random);
        }
    }
}
