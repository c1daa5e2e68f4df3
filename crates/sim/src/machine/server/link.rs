//! The link between the simulated host and a simulated adapter: both ends, and the delay between them.

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
use baton_kernel::Access;
use baton_wire::{Payload, Symbolic, Time};
use std::collections::VecDeque;

/// An operation of the host's processor on the link, to be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostWork {
    /// The host put a request about this socket, with this number of descriptors.
    Request { socket: u32, descriptors: u32 },
    /// The host started the transfer of the requests put before.
    Transfer,
    /// The host got a response about this socket, with this number of descriptors.
    Response { socket: u32, descriptors: u32 },
    /// The host copied data into or out of a buffer.
    Copy {
        address: u64,
        bytes: u32,
        access: Access,
    },
    /// The adapter accessed memory. This is no work for the host, but affects its caches.
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
    /// Address that is read or written.
    address: u64,
    /// Whether the DMA moves a packet of the host's own stack, or a part of one.
    is_packet: bool,
    /// Whether the DMA moves another part of the packet of the previous DMA, so that both complete together.
    goes_with_last: bool,
}

/// The adapter's operations on the link since they were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AdapterTally {
    /// Descriptors received, except those of cache commands.
    pub(super) requests: u32,
    /// Commands of the data cache received.
    pub(super) cache_commands: u32,
    /// Descriptors sent.
    pub(super) responses: u32,
    /// Transfers of descriptors that were started.
    pub(super) transfers: u32,
    /// DMAs of data that were started, and DMAs whose completion was noticed.
    pub(super) dmas: u32,
}

/// Descriptors in transit in one direction; the first `arrived` of them have arrived.
#[derive(Debug)]
struct Channel {
    ring: Ring<Descriptor>,
    arrived: usize,
}

/// Output of a piece of work, which leaves when the work is done.
#[derive(Debug)]
enum Departure {
    Requests(u32),
    Responses(u32),
    /// Data at several places; `number` is that of the first of its DMAs.
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

/// Both ends of the link. Descriptors that a side puts leave when its piece of work is [released](Self::release_host), and are available
/// when they have crossed.
///
/// The buffers are those of a link in memory, with all its rules; only arrival times are decided here.
#[derive(Debug)]
pub(super) struct SimulatedLink {
    host: MemoryHost<LinkData>,
    adapter: MemoryAdapter<LinkData>,
    buffer_space: u64,
    to_adapter: Channel,
    to_host: Channel,
    device: DeviceId,
    /// Number of the oldest DMA whose completion was not yet reported. `dmas` holds this DMA and all later ones.
    first_dma: u64,
    dmas: VecDeque<UnderWay>,
    /// Whether a DMA takes no time: it is complete when the adapter checks after the piece of work that started it.
    dma_at_once: bool,
    by_host: Vec<Departure>,
    by_adapter: Vec<Departure>,
    host_work: Vec<HostWork>,
    /// Maximum number of descriptors that the host gets at a time, but at least a whole entry.
    host_gets: usize,
    adapter_tally: AdapterTally,
    /// The socket for packets of the host's own stack. Both sides charge these packets where they are sent and received, like the packets
    /// of a driver, so their requests, responses and DMAs are not charged separately.
    packets: Option<u32>,
    accounting: Accounting,
}

impl SimulatedLink {
    /// Creates an idle link to the adapter with this device number.
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

    /// Returns the bytes of the host's memory that the buffers occupy.
    pub(super) fn buffer_space(&self) -> u64 {
        self.buffer_space
    }

    /// Returns DMAs by direction and bytes by category since counting began.
    pub(super) fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// Resets the counters.
    pub(super) fn restart_counts(&mut self) {
        self.accounting = Accounting::default();
    }

    /// Handles the arrival of a crossing.
    pub(super) fn handle_landed(&mut self, crossing: Crossing) {
        match crossing {
            Crossing::Requests(count) => self.to_adapter.arrived += count as usize,
            Crossing::Responses(count) => self.to_host.arrived += count as usize,
            Crossing::Interrupt => {}
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

    /// Reports whether descriptors wait for the host.
    pub(super) fn is_waiting_for_host(&self) -> bool {
        self.to_host.arrived > 0
    }

    /// Reports whether requests or completed transfers wait for the adapter.
    pub(super) fn is_waiting_for_adapter(&self) -> bool {
        self.has_requests() || self.has_moved_data()
    }

    /// Reports whether requests wait for the adapter.
    pub(super) fn has_requests(&self) -> bool {
        self.to_adapter.arrived > 0
    }

    /// Returns the number of data transfers in progress.
    pub(super) fn dmas(&self) -> usize {
        self.dmas.len()
    }

    /// Reports whether a data transfer is complete that the adapter has not yet handled.
    pub(super) fn has_moved_data(&self) -> bool {
        self.dmas.front().is_some_and(|first| first.is_over)
    }

    /// Reports whether the ring for responses has space for the first response that was held up.
    pub(super) fn has_room_for_responses(&self, held_up: &DescriptorQueue) -> bool {
        self.to_host.has_room_for(held_up)
    }

    /// Reports whether the ring for requests has space for the first request that was held up.
    pub(super) fn has_room_for_requests(&self, held_up: &DescriptorQueue) -> bool {
        self.to_adapter.has_room_for(held_up)
    }

    /// Reports whether the host used the link since its operations were last taken.
    pub(super) fn has_host_work(&self) -> bool {
        !self.host_work.is_empty()
    }

    /// Returns the host's operations on the link since the last call, in order.
    pub(super) fn host_work(&mut self) -> std::vec::Drain<'_, HostWork> {
        self.host_work.drain(..)
    }

    /// Returns the adapter's operations on the link since the last call.
    pub(super) fn take_adapter_tally(&mut self) -> AdapterTally {
        std::mem::take(&mut self.adapter_tally)
    }

    /// Makes DMAs take no time, so that they bypass the carrier.
    pub(super) fn move_data_at_once(&mut self) {
        self.dma_at_once = true;
    }

    /// Makes the host get one response at a time.
    pub(super) fn get_one_by_one(&mut self) {
        self.host_gets = 1;
    }

    /// Sets the socket for packets of the host's own stack.
    pub(super) fn set_packets(&mut self, socket: u32) {
        self.packets = Some(socket);
    }

    /// Returns whether an entry is about packets of the host's own stack.
    fn is_of_packets(&self, entry: &[Descriptor]) -> bool {
        self.packets == Some(entry[0].socket())
    }

    /// Releases the host's output at the end of its piece of work, at `now`.
    pub(super) fn release_host(&mut self, now: Time, carrier: &mut Carrier) {
        for departure in self.by_host.drain(..) {
            departure.begin(now, self.device, carrier);
        }
    }

    /// Releases the adapter's output at the end of its piece of work, at `now`.
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

    /// Records that the adapter accessed data in memory. Packets are charged elsewhere.
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

    /// Asserts all invariants.
    pub(super) fn check(&self) {
        for channel in [&self.to_adapter, &self.to_host] {
            assert!(channel.arrived <= channel.ring.len());
            assert!(channel.ring.len() <= channel.ring.capacity());
        }
    }
}

/// Returns how many bytes the processor copies. Pages and packets are not copied.
fn copied_bytes(data: &LinkData) -> u32 {
    match data {
        LinkData::Content(_) | LinkData::Cached(_) | LinkData::State(_) => data.len() as u32,
        LinkData::File(..) | LinkData::Packet(_) | LinkData::Part(_) => 0,
    }
}

impl Channel {
    /// Creates a channel with space for `depth` descriptors.
    fn new(depth: usize) -> Self {
        Self {
            ring: Ring::new(depth),
            arrived: 0,
        }
    }

    /// Reports whether an entry is held up and there is space for the first one.
    fn has_room_for(&self, held_up: &DescriptorQueue) -> bool {
        let first = held_up.first_held_up();
        first.is_some_and(|first| first <= self.ring.free())
    }

    /// Takes as many whole entries as there is space for.
    #[inline]
    fn put(&mut self, entries: &[Descriptor]) -> u32 {
        let taken = entries_within(entries, self.ring.free());
        let pushed = self.ring.try_extend(&entries[..taken]);
        debug_assert!(pushed, "the ring has space for these entries");
        taken as u32
    }

    /// Returns whole entries that have arrived: at most `most` descriptors, but at least one entry.
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
        // The kind of data is known when it arrives; to the bus it makes no difference.
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
