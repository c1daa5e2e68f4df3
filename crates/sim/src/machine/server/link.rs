//! The link between the simulated host and a simulated adapter: both ends, with time between them.

use super::carrier::{Carrier, Crossing};
use super::data::LinkData;
use super::reads::Pieces;
use crate::config::LinkConfig;
use baton_bus::descriptor::{entries, entries_within};
use baton_bus::interconnect::{DeviceId, Piece};
use baton_bus::link::{
    Dma, DmaId, LinkError, MemoryAdapter, MemoryConfig, MemoryHost, Violation, memory_link,
};
use baton_bus::{
    Accounting, AdapterLink, BytesByCategory, Category, Descriptor, DescriptorQueue, Direction,
    HostLink, Ring,
};
use baton_host::Access;
use baton_wire::{Payload, Symbolic, Time};
use std::collections::VecDeque;

/// What the host's processor did with the link, for it to be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostWork {
    /// Put a request about this socket, of so many descriptors.
    Request { socket: u32, descriptors: u32 },
    /// Began to transfer those that were put before.
    Transfer,
    /// Got a response about this socket, of so many descriptors.
    Response { socket: u32, descriptors: u32 },
    /// Copied data into a buffer, or out of it.
    Copy {
        address: u64,
        bytes: u32,
        access: Access,
    },
    /// The adapter did; no work, but the caches feel it.
    Dma {
        address: u64,
        bytes: u32,
        access: Access,
    },
    /// The adapter read this content from its pages.
    DmaOfPages(Symbolic),
}

/// A DMA between a buffer and the adapter.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    is_over: bool,
    /// Where it reads or writes.
    address: u64,
    /// It moves a packet of the host's own stack, or a part of one.
    is_packet: bool,
    /// It moves a part of the packet of which the one before moves another: both are over at once.
    goes_with_last: bool,
}

/// What the adapter did with the link since that was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AdapterTally {
    /// Descriptors got, but for those of cache commands.
    pub(super) requests: u32,
    /// Commands of the data cache got.
    pub(super) cache_commands: u32,
    /// Descriptors put.
    pub(super) responses: u32,
    /// Transfers of descriptors that were begun.
    pub(super) transfers: u32,
    /// DMAs of data that were begun, and those that were noticed to be over.
    pub(super) dmas: u32,
}

/// Descriptors on their way in one direction; the first of them have arrived.
#[derive(Debug)]
struct Channel {
    ring: Ring<Descriptor>,
    arrived: usize,
}

/// What a piece of work sends, which leaves when the work is done.
#[derive(Debug)]
enum Departure {
    Requests(u32),
    Responses(u32),
    /// What lies here and there, by the number of the first of its DMAs.
    Read {
        number: u64,
        pieces: Pieces,
    },
    Write {
        number: u64,
        bytes: BytesByCategory,
    },
}

impl Departure {
    fn begin(self, now: Time, adapter: DeviceId, carrier: &mut Carrier) {
        match self {
            Self::Requests(count) => carrier.fetch_requests(now, adapter, count),
            Self::Responses(count) => carrier.write_responses(now, adapter, count),
            Self::Read { number, pieces } => carrier.read_data(now, adapter, number, &pieces),
            Self::Write { number, bytes } => {
                carrier.write_data(now, adapter, number, bytes);
            }
        }
    }
}

/// Both ends of the link. What a side puts leaves when its piece of work is [released](Self::release); it is there when it has crossed.
///
/// Buffers are those of a link in memory, with all its rules; only when things arrive is decided here.
#[derive(Debug)]
pub(super) struct SimulatedLink {
    host: MemoryHost<LinkData>,
    adapter: MemoryAdapter<LinkData>,
    buffer_space: u64,
    to_adapter: Channel,
    to_host: Channel,
    device: DeviceId,
    /// Number of the oldest DMA that was not yet told to be over, and it and all later ones.
    first_dma: u64,
    dmas: VecDeque<UnderWay>,
    /// A DMA takes no time: when the adapter looks, after the piece of work that has begun it, it is over.
    dma_at_once: bool,
    by_host: Vec<Departure>,
    by_adapter: Vec<Departure>,
    host_work: Vec<HostWork>,
    /// Descriptors that the host gets at a time, but at least a whole entry.
    host_gets: usize,
    adapter_tally: AdapterTally,
    /// The socket for packets of the host's own stack. What they cost either side is charged where they are sent and received, as of a
    /// driver's packets: their requests, responses and DMAs are nothing beside that.
    packets: Option<u32>,
    accounting: Accounting,
}

impl SimulatedLink {
    /// A link to the adapter that is this device, on which nothing moves yet.
    pub(super) fn new(
        config: &LinkConfig,
        device: DeviceId,
        ring_depth: u32,
        buffer_bytes: u32,
    ) -> Self {
        let (host, adapter) = memory_link(MemoryConfig {
            ring_depth: ring_depth as usize,
            buffers: config.buffers as usize,
            buffer_bytes,
        });
        Self {
            host,
            adapter,
            buffer_space: u64::from(config.buffers) * u64::from(buffer_bytes),
            to_adapter: Channel::new(ring_depth as usize),
            to_host: Channel::new(ring_depth as usize),
            device,
            first_dma: 0,
            dmas: VecDeque::new(),
            dma_at_once: false,
            by_host: Vec::new(),
            by_adapter: Vec::new(),
            host_work: Vec::new(),
            host_gets: usize::MAX,
            adapter_tally: AdapterTally::default(),
            packets: None,
            accounting: Accounting::default(),
        }
    }

    /// Bytes of the host's memory that its buffers take.
    pub(super) fn buffer_space(&self) -> u64 {
        self.buffer_space
    }

    /// DMAs by direction and bytes by category since counting began.
    pub(super) fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// Begins to count anew.
    pub(super) fn restart_counts(&mut self) {
        self.accounting = Accounting::default();
    }

    /// What has crossed arrives.
    pub(super) fn handle_landed(&mut self, crossing: Crossing) {
        match crossing {
            Crossing::Requests(count) => self.to_adapter.arrived += count as usize,
            Crossing::Responses(count) => self.to_host.arrived += count as usize,
            Crossing::Data(number) => {
                let first = (number - self.first_dma) as usize;
                self.dmas[first].is_over = true;
                let others = self.dmas.range_mut(first + 1..);
                for other in others.take_while(|other| other.goes_with_last) {
                    other.is_over = true;
                }
            }
        }
    }

    /// Whether something waits for the host.
    pub(super) fn is_waiting_for_host(&self) -> bool {
        self.to_host.arrived > 0
    }

    /// Whether something waits for the adapter.
    pub(super) fn is_waiting_for_adapter(&self) -> bool {
        self.has_requests() || self.has_moved_data()
    }

    /// Whether requests wait for the adapter.
    pub(super) fn has_requests(&self) -> bool {
        self.to_adapter.arrived > 0
    }

    /// Transfers of data that are under way.
    pub(super) fn dmas(&self) -> usize {
        self.dmas.len()
    }

    /// Whether a transfer of data is over of which the adapter has not heard.
    pub(super) fn has_moved_data(&self) -> bool {
        self.dmas.front().is_some_and(|first| first.is_over)
    }

    /// Whether the ring for responses has room for the first of those that were held up.
    pub(super) fn has_room_for_responses(&self, held_up: &DescriptorQueue) -> bool {
        self.to_host.has_room_for(held_up)
    }

    /// Whether the ring for requests has room for the first of those that were held up.
    pub(super) fn has_room_for_requests(&self, held_up: &DescriptorQueue) -> bool {
        self.to_adapter.has_room_for(held_up)
    }

    /// Whether the host did anything with it since that was last asked.
    pub(super) fn has_host_work(&self) -> bool {
        !self.host_work.is_empty()
    }

    /// What the host did with it since that was last asked, in order.
    pub(super) fn host_work(&mut self) -> std::vec::Drain<'_, HostWork> {
        self.host_work.drain(..)
    }

    /// What the adapter did with it.
    pub(super) fn take_adapter_tally(&mut self) -> AdapterTally {
        std::mem::take(&mut self.adapter_tally)
    }

    /// DMAs take no time, and do not go by the carrier.
    pub(super) fn move_data_at_once(&mut self) {
        self.dma_at_once = true;
    }

    /// The host gets one response at a time.
    pub(super) fn get_one_by_one(&mut self) {
        self.host_gets = 1;
    }

    /// This is the socket for packets of the host's own stack.
    pub(super) fn set_packets(&mut self, socket: u32) {
        self.packets = Some(socket);
    }

    /// Whether an entry is about packets of the host's own stack.
    fn is_of_packets(&self, entry: &[Descriptor]) -> bool {
        self.packets == Some(entry[0].socket())
    }

    /// The host's piece of work is done at `now`: what it put leaves.
    pub(super) fn release_host(&mut self, now: Time, carrier: &mut Carrier) {
        for departure in self.by_host.drain(..) {
            departure.begin(now, self.device, carrier);
        }
    }

    /// The same for the adapter.
    pub(super) fn release_adapter(&mut self, now: Time, carrier: &mut Carrier) {
        for departure in self.by_adapter.drain(..) {
            departure.begin(now, self.device, carrier);
        }
    }

    fn note_copy(&mut self, address: u64, bytes: u32, access: Access) {
        if bytes > 0 {
            self.host_work.push(HostWork::Copy {
                address,
                bytes,
                access,
            });
        }
    }

    /// Numbers and counts a DMA between a buffer and the adapter.
    fn begin_dma(
        &mut self,
        direction: Direction,
        address: u64,
        is_packet: bool,
        goes_with_last: bool,
    ) -> u64 {
        let number = self.first_dma + self.dmas.len() as u64;
        self.dmas.push_back(UnderWay {
            is_over: self.dma_at_once,
            address,
            is_packet,
            goes_with_last,
        });
        self.adapter_tally.dmas += u32::from(!is_packet);
        self.accounting.cross(direction, Category::Content, 0);
        number
    }

    /// The adapter has read or written data where it stands; a packet is charged elsewhere.
    fn note_dma(&mut self, address: u64, data: &LinkData, access: Access) {
        self.host_work.push(match data {
            LinkData::File(content, _) => HostWork::DmaOfPages(*content),
            LinkData::Packet(_) | LinkData::Part(_) => return,
            LinkData::Content(_) | LinkData::Cached(_) | LinkData::State(_) => HostWork::Dma {
                address,
                bytes: data.len() as u32,
                access,
            },
        });
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        for channel in [&self.to_adapter, &self.to_host] {
            assert!(channel.arrived <= channel.ring.len());
            assert!(channel.ring.len() <= channel.ring.capacity());
        }
    }
}

/// What the processor copies: pages and packets stand where they are.
fn copied_bytes(data: &LinkData) -> u32 {
    match data {
        LinkData::Content(_) | LinkData::Cached(_) | LinkData::State(_) => data.len() as u32,
        LinkData::File(..) | LinkData::Packet(_) | LinkData::Part(_) => 0,
    }
}

impl Channel {
    /// One for so many descriptors.
    fn new(depth: usize) -> Self {
        Self {
            ring: Ring::new(depth),
            arrived: 0,
        }
    }

    /// Whether there is something that was held up, and room for the first of it.
    fn has_room_for(&self, held_up: &DescriptorQueue) -> bool {
        let first = held_up.first_held_up();
        first.is_some_and(|first| first <= self.ring.free())
    }

    /// Takes as many whole entries as there is room for.
    #[inline]
    fn put(&mut self, entries: &[Descriptor]) -> u32 {
        let taken = entries_within(entries, self.ring.free());
        let pushed = self.ring.try_extend(&entries[..taken]);
        debug_assert!(pushed, "there was room");
        taken as u32
    }

    /// Gives whole entries that have arrived: at most `most` descriptors, but at least one entry.
    #[inline]
    fn get(&mut self, most: usize, to: &mut Vec<Descriptor>) {
        let arrived = &self.ring.as_slice()[..self.arrived];
        let Some(first) = arrived.first() else {
            return;
        };
        let count = entries_within(arrived, most.max(1 + first.continuations()));
        to.extend_from_slice(&arrived[..count]);
        self.ring.drop_front(count);
        self.arrived -= count;
    }
}

impl HostLink for SimulatedLink {
    type Data = LinkData;

    fn put(&mut self, _now: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        let taken = self.to_adapter.put(requests);
        if taken > 0 {
            let before = self.host_work.len();
            for entry in entries(&requests[..taken as usize]).flatten() {
                if !self.is_of_packets(entry) {
                    self.host_work.push(HostWork::Request {
                        socket: entry[0].socket(),
                        descriptors: entry.len() as u32,
                    });
                }
            }
            if self.host_work.len() > before {
                self.host_work.push(HostWork::Transfer);
            }
            let bytes = taken * Descriptor::BYTES;
            self.accounting
                .cross(Direction::ToNic, Category::Descriptor, bytes.into());
            self.by_host.push(Departure::Requests(taken));
        }
        Ok(taken as usize)
    }

    fn get(&mut self, _now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        let before = responses.len();
        self.to_host.get(self.host_gets, responses);
        for entry in entries(&responses[before..]).flatten() {
            if !self.is_of_packets(entry) {
                self.host_work.push(HostWork::Response {
                    socket: entry[0].socket(),
                    descriptors: entry.len() as u32,
                });
            }
        }
        Ok(())
    }

    fn buffer_bytes(&self) -> u32 {
        self.host.buffer_bytes()
    }

    fn free_buffers(&self) -> usize {
        self.host.free_buffers()
    }

    fn place(&mut self, data: LinkData) -> Result<u64, LinkData> {
        let copied = copied_bytes(&data);
        let address = self.host.place(data)?;
        self.note_copy(address, copied, Access::Write);
        Ok(address)
    }

    fn reserve(&mut self) -> Option<u64> {
        self.host.reserve()
    }

    fn take(&mut self, address: u64, len: u32) -> Result<LinkData, Violation> {
        let data = self.host.take(address, len)?;
        self.note_copy(address, copied_bytes(&data), Access::Read);
        Ok(data)
    }

    fn free(&mut self, address: u64) {
        self.host.free(address);
    }
}

impl AdapterLink for SimulatedLink {
    type Data = LinkData;

    fn get(
        &mut self,
        _now: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        let before = requests.len();
        self.to_adapter.get(most, requests);
        for entry in entries(&requests[before..]).flatten() {
            let opcode = entry[0].opcode();
            if opcode.is_ok_and(|opcode| opcode.is_of_cache()) {
                self.adapter_tally.cache_commands += 1;
            } else if !self.is_of_packets(entry) {
                self.adapter_tally.requests += entry.len() as u32;
            }
        }
        Ok(())
    }

    fn put(&mut self, _now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        let taken = self.to_host.put(responses);
        if taken > 0 {
            let responses = entries(&responses[..taken as usize]).flatten();
            let tallied = responses.filter(|entry| !self.is_of_packets(entry));
            let tallied: usize = tallied.map(<[Descriptor]>::len).sum();
            self.adapter_tally.responses += tallied as u32;
            self.adapter_tally.transfers += u32::from(tallied > 0);
            let bytes = taken * Descriptor::BYTES;
            self.accounting
                .cross(Direction::ToHost, Category::Event, bytes.into());
            self.by_adapter.push(Departure::Responses(taken));
        }
        Ok(taken as usize)
    }

    fn read(&mut self, now: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError> {
        self.adapter.read(now, id, address, len)?;
        let is_packet = self.host.is_placed(address, LinkData::is_packet);
        let is_part = self.host.is_placed(address, LinkData::is_part);
        // What it is shows when it is there; to the bus it is all the same.
        let piece = Piece {
            category: Category::Content,
            bytes: len,
        };
        match self.by_adapter.last_mut() {
            Some(Departure::Read { pieces, .. }) if is_part => {
                pieces.push(piece);
                self.begin_dma(Direction::ToNic, address, is_packet, true);
            }
            _ => {
                let number = self.begin_dma(Direction::ToNic, address, is_packet, false);
                if !self.dma_at_once {
                    let pieces = std::iter::once(piece).collect();
                    self.by_adapter.push(Departure::Read { number, pieces });
                }
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        now: Time,
        id: DmaId,
        address: u64,
        data: LinkData,
    ) -> Result<(), LinkError> {
        let bytes = data.categories(Direction::ToHost);
        let is_packet = data.is_packet();
        self.note_dma(address, &data, Access::Write);
        self.adapter.write(now, id, address, data)?;
        let number = self.begin_dma(Direction::ToHost, address, is_packet, false);
        self.accounting.add(Direction::ToHost, bytes);
        if !self.dma_at_once {
            self.by_adapter.push(Departure::Write { number, bytes });
        }
        Ok(())
    }

    fn poll_dma(&mut self, now: Time) -> Result<Option<Dma<LinkData>>, LinkError> {
        let Some(&first) = self.dmas.front().filter(|first| first.is_over) else {
            return Ok(None);
        };
        self.adapter_tally.dmas += u32::from(!first.is_packet);
        self.dmas.pop_front();
        self.first_dma += 1;
        let over = self.adapter.poll_dma(now)?;
        if let Some(Dma::Read { data, .. }) = &over {
            let bytes = data.categories(Direction::ToNic);
            self.accounting.add(Direction::ToNic, bytes);
            self.note_dma(first.address, data, Access::Read);
        }
        Ok(over)
    }
}
