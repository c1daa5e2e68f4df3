//! What each descriptor moves across the bus.

use super::dma::Parts;
use baton_apps::symbolic::kind;
use baton_bus::handoff::{
    CacheCommand, Command, Event, MainMemory, PacketInParts, Part, ToHost, ToNic,
};
use baton_bus::interconnect::Piece;
use baton_bus::{Accounting, BytesByCategory, Category, Direction};
use baton_host::footprint::PAGE_BYTES;
use baton_nic::HostRead;
use baton_tcp::Segment;
use baton_wire::Symbolic;

/// Bytes of a descriptor or event.
const DESCRIPTOR_BYTES: u64 = 32;

/// One descriptor and the data that moves with it, in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    direction: Direction,
    /// The descriptor or event itself; none for data fetched later.
    descriptor: Option<(Category, u64)>,
    protocol_header: u64,
    http_header: u64,
    content: u64,
}

impl Crossing {
    const fn new(direction: Direction, descriptor: Option<(Category, u64)>) -> Self {
        Self {
            direction,
            descriptor,
            protocol_header: 0,
            http_header: 0,
            content: 0,
        }
    }

    fn carry(mut self, data: &Symbolic) -> Self {
        let bytes = u64::from(data.len);
        if kind(data).is_content() {
            self.content += bytes;
        } else {
            self.http_header += bytes;
        }
        self
    }

    fn carry_packet(mut self, segment: &Segment<Symbolic>, data: &[Symbolic]) -> Self {
        self.protocol_header += 14 + segment.header_len() as u64;
        data.iter().fold(self, Self::carry)
    }

    /// Whether it moves something beside the descriptor or event.
    #[inline]
    pub(super) fn has_data(&self) -> bool {
        self.protocol_header + self.http_header + self.content > 0
    }

    /// What it moves beside the descriptor or event.
    pub(super) fn data(&self) -> BytesByCategory {
        BytesByCategory {
            protocol_header: self.protocol_header,
            http_header: self.http_header,
            content: self.content,
            ..BytesByCategory::default()
        }
    }

    /// Adds it to the books: one DMA for the descriptor, one for what it carries.
    pub(super) fn count(self, bus: &mut Accounting) {
        if let Some((category, bytes)) = self.descriptor {
            bus.cross(self.direction, category, bytes);
        }
        if self.has_data() {
            bus.cross(
                self.direction,
                Category::ProtocolHeader,
                self.protocol_header,
            );
            bus.add_bytes(self.direction, Category::HttpHeader, self.http_header);
            bus.add_bytes(self.direction, Category::Content, self.content);
        }
    }
}

/// A command to the NIC that carries nothing.
const COMMAND: Crossing = Crossing::new(
    Direction::ToNic,
    Some((Category::Descriptor, DESCRIPTOR_BYTES)),
);

/// Adds all that crosses with a descriptor to the books. A host packet is fetched with its descriptor; a command's data is fetched
/// when it is sent.
pub(super) fn count_descriptor(descriptor: &ToNic<Symbolic>, bus: &mut Accounting) {
    let crossing = match descriptor {
        ToNic::Parts(packet) => return count_parts(packet, bus),
        ToNic::Packet(segment) | ToNic::Command(Command::Forward { segment, .. }) => {
            COMMAND.carry_packet(segment, &segment.payload)
        }
        ToNic::Command(Command::Handoff { state, .. }) => {
            let bytes = DESCRIPTOR_BYTES + state.memory_len() as u64;
            Crossing::new(Direction::ToNic, Some((Category::Descriptor, bytes)))
        }
        ToNic::Cache(CacheCommand::AppendMemory { part, .. }) => match part {
            MainMemory::Headers(segment) => COMMAND.carry_packet(segment, &segment.payload),
            MainMemory::Data(data) => COMMAND.carry(data),
        },
        ToNic::Cache(CacheCommand::Insert { data, .. }) => COMMAND.carry(data),
        ToNic::Cache(CacheCommand::Init | CacheCommand::AppendCache { .. }) | ToNic::Command(_) => {
            COMMAND
        }
    };
    crossing.count(bus);
}

/// Each command of a packet in parts crosses for itself.
fn count_parts(packet: &PacketInParts<Symbolic>, bus: &mut Accounting) {
    let (with_headers, _) = packet.data();
    COMMAND.carry_packet(packet.head(), with_headers).count(bus);
    for part in packet.parts() {
        match part {
            Part::Memory(data) => COMMAND.carry(data).count(bus),
            Part::Cache { .. } => COMMAND.count(bus),
        }
    }
}

/// What the NIC fetched from host memory to send data of an offloaded connection.
pub(super) fn of_read(read: &HostRead<Symbolic>) -> Crossing {
    read.data
        .iter()
        .fold(Crossing::new(Direction::ToNic, None), Crossing::carry)
}

/// Data of an offloaded connection, fetched from host memory as it is sent. Headers are made on the NIC.
pub(super) fn of_offloaded_data(segment: &Segment<Symbolic>) -> Crossing {
    segment
        .payload
        .iter()
        .fold(Crossing::new(Direction::ToNic, None), Crossing::carry)
}

/// A packet or event put into host memory, with its data.
pub(super) fn of_upcall(upcall: &ToHost<Symbolic>) -> Crossing {
    let event = Crossing::new(Direction::ToHost, Some((Category::Event, DESCRIPTOR_BYTES)));
    match upcall {
        ToHost::Packet(segment) => Crossing::new(
            Direction::ToHost,
            Some((Category::Descriptor, DESCRIPTOR_BYTES)),
        )
        .carry_packet(segment, &segment.payload),
        ToHost::Event(Event::Receive { data, .. }) => event.carry(data),
        ToHost::Event(Event::Restored { state, .. }) => {
            let bytes = DESCRIPTOR_BYTES + state.memory_len() as u64;
            Crossing::new(Direction::ToHost, Some((Category::Event, bytes)))
        }
        ToHost::Event(_) | ToHost::Sent(_) => event,
    }
}

/// Entries of the driver's ring that a descriptor takes, each for one contiguous piece of host memory.
pub(super) fn ring_entries(descriptor: &ToNic<Symbolic>, entry_bytes: u32) -> u32 {
    match descriptor {
        ToNic::Packet(segment) => {
            let mut runs = Parts::new();
            push_data(&segment.payload, &mut runs);
            1 + runs.len() as u32
        }
        ToNic::Command(Command::Handoff { state, .. }) => {
            1 + (state.memory_len() as u32).div_ceil(entry_bytes)
        }
        ToNic::Parts(packet) => packet.commands() as u32,
        ToNic::Command(_) | ToNic::Cache(_) => 1,
    }
}

/// What a piece of work read of host memory, one DMA for each contiguous part.
pub(super) fn push_parts(read: &HostRead<Symbolic>, parts: &mut Parts) {
    for (category, bytes) in [
        (Category::ProtocolHeader, read.headers),
        (Category::Descriptor, read.state),
    ] {
        if bytes > 0 {
            parts.push(Piece { category, bytes });
        }
    }
    push_data(&read.data, parts);
}

/// A packet that was read from host memory as it is.
pub(super) fn push_packet(segment: &Segment<Symbolic>, parts: &mut Parts) {
    parts.push(Piece {
        category: Category::ProtocolHeader,
        bytes: 14 + segment.header_len() as u32,
    });
    push_data(&segment.payload, parts);
}

/// Content lies in pages; all else is in one piece.
fn push_data<'a>(pieces: impl IntoIterator<Item = &'a Symbolic>, parts: &mut Parts) {
    for piece in pieces {
        let category = if kind(piece).is_content() {
            Category::Content
        } else {
            Category::HttpHeader
        };
        let mut in_page = (piece.offset % u64::from(PAGE_BYTES)) as u32;
        let mut left = piece.len;
        while left > 0 {
            let bytes = left.min(PAGE_BYTES - in_page);
            parts.push(Piece { category, bytes });
            left -= bytes;
            in_page = 0;
        }
    }
}
