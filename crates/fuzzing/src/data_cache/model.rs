//! What a NIC's data cache and the packets made of it should hold, as simply as it can be said.

use baton_bus::handoff::{CacheCommand, MainMemory, ToNic};
use baton_nic::Stats;
use baton_tcp::Segment;
use bytes::Bytes;
use std::collections::VecDeque;

/// A command that waits to be carried out.
#[derive(Debug)]
enum Order {
    Init,
    Insert { offset: u32, data: Bytes },
}

/// Where a part of a packet comes from.
#[derive(Debug)]
enum Source {
    Memory(Bytes),
    Cache { offset: u32, len: u32 },
}

/// A packet, by the number in its header.
#[derive(Debug)]
struct Packet {
    number: u32,
    parts: Vec<Source>,
    complete: bool,
}

/// Memory, and what waits.
#[derive(Debug)]
pub struct Model {
    memory: Vec<u8>,
    started: bool,
    orders: VecDeque<Order>,
    packets: VecDeque<Packet>,
    /// Whether parts belong to the last of the packets.
    open: bool,
    numbers: u32,
    inserts: u64,
}

impl Model {
    pub fn new(bytes: u32) -> Self {
        Self {
            memory: vec![0; bytes as usize],
            started: false,
            orders: VecDeque::new(),
            packets: VecDeque::new(),
            open: false,
            numbers: 0,
            inserts: 0,
        }
    }

    /// A number for a packet.
    pub fn next_number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// The NIC has taken this descriptor.
    pub fn given(&mut self, descriptor: ToNic<Bytes>) {
        match descriptor {
            ToNic::Packet(segment) => {
                self.open = false;
                self.begin(segment, true);
            }
            ToNic::Parts(packet) => {
                let commands = packet.into_commands().map(ToNic::Cache);
                commands.for_each(|command| self.given(command));
            }
            ToNic::Cache(CacheCommand::Init) => self.order(Order::Init),
            ToNic::Cache(CacheCommand::Insert { data, offset, .. }) => {
                self.order(Order::Insert { offset, data });
            }
            ToNic::Cache(CacheCommand::AppendMemory { part, flags }) => {
                self.open &= !flags.first;
                match part {
                    MainMemory::Headers(segment) if flags.first => self.begin(segment, flags.last),
                    MainMemory::Headers(_) => self.open = false,
                    MainMemory::Data(data) => self.append(Source::Memory(data), flags.last),
                }
            }
            ToNic::Cache(CacheCommand::AppendCache { offset, len, flags }) => {
                self.open &= !flags.first;
                self.append(Source::Cache { offset, len }, flags.last);
            }
            ToNic::Command(_) => unreachable!("these are not in packet order"),
        }
    }

    fn order(&mut self, order: Order) {
        self.open = false;
        self.orders.push_back(order);
    }

    fn begin(&mut self, segment: Segment<Bytes>, complete: bool) {
        self.packets.push_back(Packet {
            number: segment.header.seq.0,
            parts: segment
                .payload
                .iter()
                .cloned()
                .map(Source::Memory)
                .collect(),
            complete,
        });
        self.open = !complete;
    }

    fn append(&mut self, part: Source, last: bool) {
        if !self.open {
            return;
        }
        self.open = !last;
        if let Some(packet) = self.packets.back_mut() {
            packet.parts.push(part);
            packet.complete = last;
        }
    }

    /// The NIC has carried out the oldest command, or refused to.
    pub fn command_done(&mut self, stats: &Stats) {
        let inserted = stats.cache.inserts - self.inserts;
        self.inserts = stats.cache.inserts;
        match self.orders.pop_front().expect("it was given") {
            Order::Init => {
                self.memory.fill(0);
                self.started = true;
                assert_eq!(inserted, 0);
            }
            Order::Insert { offset, data } => {
                let (start, end) = (offset as usize, offset as usize + data.len());
                let right = self.started && end <= self.memory.len();
                assert_eq!(inserted, u64::from(right), "{offset} + {}", data.len());
                if right {
                    self.memory[start..end].copy_from_slice(&data);
                }
            }
        }
    }

    /// The NIC has sent this packet of the host: those before it that are not sent yet never will be.
    pub fn sent(&mut self, segment: &Segment<Bytes>) {
        let number = segment.header.seq.0;
        let packet = loop {
            let packet = self.packets.pop_front().expect("it was given");
            if packet.number == number {
                break packet;
            }
        };
        assert!(packet.complete, "its last part has come");
        let sent: Vec<u8> = segment.payload.iter().flatten().copied().collect();
        let expected: Vec<u8> = packet
            .parts
            .iter()
            .flat_map(|part| match part {
                Source::Memory(data) => &data[..],
                &Source::Cache { offset, len } => {
                    assert!(self.started, "only what was started is sent from");
                    &self.memory[offset as usize..offset as usize + len as usize]
                }
            })
            .copied()
            .collect();
        assert_eq!(sent, expected, "what stands there is sent");
    }

    /// The NIC is reset.
    pub fn reset(&mut self) {
        self.memory.fill(0);
        self.started = false;
        self.orders.clear();
        self.packets.clear();
        self.open = false;
    }

    /// The NIC has nothing left to do.
    pub fn assert_idle(&self) {
        assert!(self.orders.is_empty(), "all commands are carried out");
    }
}
