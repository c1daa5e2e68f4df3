//! A server with one or two NICs that cache, clients, and wires that carry real frames; in bytes, TCP at both ends. Files are
//! edited and truncated, NICs are reset, connections are handed off and taken back. Everything that happens is drawn from one
//! seed; every invariant is checked after every event.

mod client;
mod config;
mod files;
mod network;
mod server;

use crate::bounds::BoundsMeter;
use baton_bus::handoff::{ToHost, ToNic};
use baton_host::{DiskRead, FileId, Kernel, Mode, NicId, Ready};
use baton_nic::{Firmware, NoMeter};
use baton_tcp::{CloseReason, Stack};
use baton_testkit::Random;
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use client::Client;
use files::{ByteFiles, History};
use network::Network;
use server::Server;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

const PORT: u16 = 80;
/// Work done without all connections getting done is a deadlock.
const MOST_EVENTS: u32 = 400_000;
/// Then it is enough: a file that always changes is never sent.
const MOST_CHANGES: u32 = 300;
const MOST_MOVES: u32 = 300;
const MOST_RESETS: u32 = 8;
const MOST_FILE_BYTES: u64 = 60_000;

/// A NIC, its rings and its wires.
pub struct Nic {
    pub firmware: Firmware<Bytes>,
    /// Commands; packets and their parts.
    lines: [Line; 2],
    ring: VecDeque<ToHost<Bytes>>,
    to_server: Network,
    to_client: Network,
}

/// Descriptors in their order.
struct Line {
    ring: VecDeque<ToNic<Bytes>>,
    /// The first, for which the NIC had no room.
    refused: Option<ToNic<Bytes>>,
}

impl Line {
    fn new() -> Self {
        Self {
            ring: VecDeque::new(),
            refused: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.refused.is_none()
    }
}

/// Everything.
pub struct World {
    pub kernel: Kernel<Bytes>,
    pub nics: Vec<Nic>,
    pub server: Server,
    stack: Stack<Bytes>,
    pub clients: Vec<Client>,
    files: ByteFiles,
    file_count: u64,
    /// Reads that the disk is doing.
    disk: Vec<DiskRead>,
    random: Random,
    now: Time,
    ready: Vec<Ready>,
    /// How often each happens, per thousand events, and how often it still may.
    changes: (u64, u32),
    moves: (u64, u32),
    resets: (u64, u32),
}

fn endpoint(subnet: u8, host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, subnet, host)), port)
}

impl World {
    /// A world in which everything is drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let handoff = random.percent(60);
        let server_tcp = config::tcp(random);
        let mut kernel = Kernel::new(
            config::host(handoff, random),
            server_tcp.clone(),
            random.draw(),
        );
        let lossy = random.percent(60);
        let mut nics = Vec::new();
        for subnet in 0..1 + random.below(2) as u8 {
            let local = endpoint(subnet, 1, PORT);
            kernel.listen(local);
            let nic = config::nic(handoff, random);
            nic.validate().expect("the cache fits");
            kernel.attach_nic(local.addr, nic.hard_limit);
            nics.push(Nic {
                firmware: Firmware::new(nic, server_tcp.clone(), random.draw()),
                lines: [Line::new(), Line::new()],
                ring: VecDeque::new(),
                to_server: Network::new(lossy, random),
                to_client: Network::new(lossy, random),
            });
        }
        kernel.config().validate().expect("a kernel can work so");
        let file_count = 1 + random.below(6);
        let lengths: Vec<u64> = (0..file_count)
            .map(|_| random.below(MOST_FILE_BYTES))
            .collect();
        let files = ByteFiles(Arc::new(Mutex::new(History::new(&lengths))));
        kernel.set_file_store(Box::new(files.clone()));
        if random.percent(20) {
            kernel.set_transient(FileId(0));
        }
        let mut stack = Stack::new(config::tcp(random), random.draw());
        let clients = (0..1 + random.below(5) as u16)
            .map(|number| {
                let subnet = random.below(nics.len() as u64) as u8;
                let flow = Flow {
                    local: endpoint(subnet, 2, 1000 + number),
                    remote: endpoint(subnet, 1, PORT),
                };
                let conn = stack.connect(Time::ZERO, flow).expect("a new four-tuple");
                Client::new(conn, random)
            })
            .collect();
        let mut rate = |percent: u64, most: u64| {
            if random.percent(percent) {
                random.below(most)
            } else {
                0
            }
        };
        Self {
            kernel,
            nics,
            server: Server::default(),
            stack,
            clients,
            files,
            file_count,
            disk: Vec::new(),
            now: Time::ZERO,
            ready: Vec::new(),
            changes: (rate(70, 30), MOST_CHANGES),
            moves: (rate(if handoff { 70 } else { 0 }, 60), MOST_MOVES),
            resets: (rate(40, 8), MOST_RESETS),
            random: random.clone(),
        }
    }

    /// Runs until all clients are served and gone; then asserts that no response was lost.
    pub fn run(&mut self) {
        self.kernel_settles();
        self.client_settles();
        for _ in 0..MOST_EVENTS {
            self.event();
            if self.is_over() {
                return self.assert_complete();
            }
        }
        panic!(
            "stuck at {:?}: {:#?}, {:#?}, {:#?}, asleep {}, ready {}, reads {:?}",
            self.now,
            self.clients,
            self.kernel.stats(),
            self.kernel.file_cache_stats(),
            self.kernel.application_sleeps(),
            self.kernel.has_ready(),
            self.disk,
        );
    }

    fn is_over(&self) -> bool {
        let clients = self.clients.iter().all(|client| client.outcome.is_some());
        clients && self.kernel.socket_ids().next().is_none()
    }

    fn assert_complete(&self) {
        for client in &self.clients {
            assert!(client.is_served(), "a response was lost: {client:#?}");
            assert!(
                client.shrunk || client.outcome == Some(CloseReason::Normal),
                "{client:#?}"
            );
        }
        let shrunk = self.clients.iter().filter(|client| client.shrunk).count();
        assert!(shrunk as u64 <= self.server.shrunk);
    }

    /// One thing happens, or time passes.
    fn event(&mut self) {
        self.files.history().moment += 1;
        let mut happens = |(rate, left): &mut (u64, u32)| {
            let happens = *left > 0 && self.random.below(1000) < *rate;
            *left -= u32::from(happens);
            happens
        };
        let (change, moves) = (happens(&mut self.changes), happens(&mut self.moves));
        let reset = happens(&mut self.resets);
        if change {
            self.change_a_file();
        }
        if moves {
            self.ask_for_a_move();
        }
        let nic = self.random.below(self.nics.len() as u64) as usize;
        if reset {
            self.reset(nic);
        }
        let acted = match self.random.below(9) {
            0 => self.frame_to_server(nic),
            1 => self.frame_to_client(nic),
            2 | 3 => self.nic_works(nic),
            4 => self.descriptor_to_nic(nic),
            5 => self.upcall_to_host(nic),
            6 => self.server_acts(),
            7 => self.disk_ends_a_read(),
            _ => self.client_acts(),
        };
        if !acted && self.random.percent(20) {
            self.pass_time();
        }
    }

    fn nic_of(&self, address: IpAddr) -> usize {
        let IpAddr::V4(address) = address else {
            unreachable!("addresses are IPv4")
        };
        address.octets()[2] as usize
    }

    /// The kernel has done something: its descriptors go to its rings.
    fn kernel_settles(&mut self) {
        while let Some((nic, descriptor)) = self.kernel.poll_descriptor() {
            let line = usize::from(descriptor.is_in_packet_order());
            let ring = &mut self.nics[nic.0 as usize].lines[line].ring;
            match descriptor {
                // Now and then its commands come one by one.
                ToNic::Parts(packet) if self.random.percent(50) => {
                    ring.extend(packet.into_commands().map(ToNic::Cache));
                }
                descriptor => ring.push_back(descriptor),
            }
        }
        self.disk
            .extend(std::iter::from_fn(|| self.kernel.poll_disk()));
        self.kernel.check();
    }

    fn change_a_file(&mut self) {
        let file = FileId(self.random.below(self.file_count) as u32);
        let len = self.files.history().len(file);
        let m = &mut BoundsMeter;
        if self.random.percent(25) {
            let len = self.random.below(len + 1);
            self.kernel.truncate(file, len, m);
        } else {
            let beyond = if self.random.percent(15) { 9000 } else { 100 };
            let offset = self.random.below(len + beyond);
            let most = (MOST_FILE_BYTES.saturating_sub(offset)).min(9000);
            let len = 1 + self.random.below(most);
            self.kernel.edit(file, offset, len, m);
        }
        self.kernel_settles();
    }

    /// Some connection is to change its owner, whatever it is doing.
    fn ask_for_a_move(&mut self) {
        let ids: Vec<_> = self.kernel.socket_ids().collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[self.random.below(ids.len() as u64) as usize];
        let m = &mut BoundsMeter;
        match self.kernel.mode(id) {
            Some(Mode::Host(_)) => {
                let _ = self.kernel.hand_off(self.now, id, m);
            }
            _ => {
                self.kernel.restore(id, m);
            }
        }
        self.kernel_settles();
    }

    fn reset(&mut self, nic: usize) {
        let nic = &mut self.nics[nic];
        nic.firmware.reset();
        while let Some(upcall) = nic.firmware.poll_upcall() {
            nic.ring.push_back(upcall.item);
        }
        nic.firmware.check();
    }

    fn frame_to_server(&mut self, nic: usize) -> bool {
        let nic = &mut self.nics[nic];
        let Some(segment) = nic.to_server.receive(self.now) else {
            return false;
        };
        // A full queue drops it, which is one more loss.
        let _ = nic.firmware.handle_frame(self.now, segment);
        nic.firmware.check();
        true
    }

    fn frame_to_client(&mut self, nic: usize) -> bool {
        let Some(segment) = self.nics[nic].to_client.receive(self.now) else {
            return false;
        };
        self.stack.handle_segment(self.now, segment);
        self.client_settles();
        true
    }

    fn nic_works(&mut self, nic: usize) -> bool {
        let nic = &mut self.nics[nic];
        let worked = nic.firmware.poll_work(self.now, &mut NoMeter).is_some();
        while let Some(frame) = nic.firmware.poll_frame() {
            nic.to_client
                .send(self.now, &frame.segment, &mut self.random);
        }
        while let Some(upcall) = nic.firmware.poll_upcall() {
            nic.ring.push_back(upcall.item);
        }
        if worked {
            nic.firmware.check();
        }
        worked
    }

    /// The oldest packet and the oldest command are each first in their line.
    fn descriptor_to_nic(&mut self, nic: usize) -> bool {
        let nic = &mut self.nics[nic];
        let packets = self.random.percent(50);
        let line = &mut nic.lines[usize::from(packets)];
        let Some(descriptor) = line.refused.take().or_else(|| line.ring.pop_front()) else {
            return false;
        };
        let taken = nic.firmware.handle_descriptor(self.now, descriptor);
        line.refused = taken.err();
        line.refused.is_none()
    }

    fn upcall_to_host(&mut self, nic: usize) -> bool {
        let Some(item) = self.nics[nic].ring.pop_front() else {
            return false;
        };
        let (nic, m) = (NicId(nic as u8), &mut BoundsMeter);
        self.kernel.handle_interrupt(m);
        self.kernel.handle_upcall(self.now, nic, item, m);
        self.kernel_settles();
        true
    }

    fn disk_ends_a_read(&mut self) -> bool {
        if self.disk.is_empty() {
            return false;
        }
        let index = self.random.below(self.disk.len() as u64) as usize;
        let read = self.disk.swap_remove(index);
        self.kernel.handle_disk(read.token, &mut BoundsMeter);
        self.kernel_settles();
        true
    }

    /// Time goes on to the next thing that is due, or a little.
    fn pass_time(&mut self) {
        let arrivals = self
            .nics
            .iter()
            .flat_map(|nic| [nic.to_server.next_arrival(), nic.to_client.next_arrival()]);
        let firmware = self.nics.iter().map(|nic| nic.firmware.poll_timeout());
        let timers = [self.kernel.poll_timeout(), self.stack.poll_timeout()];
        let due = arrivals.chain(firmware).chain(timers).flatten().min();
        let little = self.now + Span::from_us(1 + self.random.below(20));
        let nics_busy = self.nics.iter().any(|nic| {
            let lines_busy = nic.lines.iter().any(|line| !line.is_empty());
            !nic.ring.is_empty() || lines_busy || nic.firmware.has_work()
        });
        let busy = nics_busy
            || !self.disk.is_empty()
            || self.kernel.has_ready() && !self.kernel.application_sleeps();
        self.now = match due {
            Some(due) if !busy => due.max(self.now),
            _ => little,
        };
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        let (kernel, clients) = (is_due(timers[0]), is_due(timers[1]));
        if kernel {
            self.kernel.handle_timeouts(self.now, &mut BoundsMeter);
            self.kernel_settles();
        }
        for nic in &mut self.nics {
            nic.firmware.handle_timeouts(self.now);
        }
        if clients {
            self.stack.handle_timeouts(self.now);
            self.client_settles();
        }
    }
}
