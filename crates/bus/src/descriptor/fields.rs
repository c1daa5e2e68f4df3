//! Descriptors of handoff, packets and the data cache, as fields.

use super::opcode::{Flags, Opcode, Room};
use super::{Descriptor, Malformed};

/// The fields of a descriptor of [`Room::Handoff`]. Their meaning belongs to the firmware; here is only where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// What it is.
    pub opcode: Opcode,
    /// The adapter tells it; otherwise the host does.
    pub from_adapter: bool,
    /// Which of several.
    pub kind: u16,
    /// The connection.
    pub handle: u32,
    /// A number.
    pub tag: u32,
    /// Bytes, or a count.
    pub len: u32,
    /// An address in host memory, as a rule.
    pub address: u64,
    /// Another value.
    pub value: u64,
}

impl Fields {
    /// All zero but these.
    pub fn new(opcode: Opcode, from_adapter: bool) -> Self {
        Self {
            opcode,
            from_adapter,
            kind: 0,
            handle: 0,
            tag: 0,
            len: 0,
            address: 0,
            value: 0,
        }
    }

    /// The descriptor.
    ///
    /// Panics when the opcode is one of sockets.
    pub fn encode(&self) -> Descriptor {
        assert_eq!(self.opcode.room(), Room::Handoff);
        let flags = match self.from_adapter {
            true => Flags::RESPONSE,
            false => Flags::empty(),
        };
        Descriptor([
            Descriptor::first(self.opcode, flags, self.kind, self.handle),
            Descriptor::second(self.tag, self.len),
            self.address,
            self.value,
        ])
    }

    /// The fields of `descriptor`.
    ///
    /// # Errors
    /// It is about a socket, or none at all.
    pub fn decode(descriptor: &Descriptor) -> Result<Self, Malformed> {
        let opcode = descriptor.opcode_in(Room::Handoff)?;
        let flags = descriptor.flags_among(opcode, Flags::RESPONSE)?;
        let [_, _, address, value] = descriptor.0;
        Ok(Self {
            opcode,
            from_adapter: !flags.is_empty(),
            kind: descriptor.count(),
            handle: descriptor.socket(),
            tag: descriptor.tag(),
            len: descriptor.len(),
            address,
            value,
        })
    }
}
