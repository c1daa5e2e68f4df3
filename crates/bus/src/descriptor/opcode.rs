//! What kinds of entries there are.

use super::Malformed;
use bitflags::bitflags;

bitflags! {
    /// What is said beside the opcode.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Flags: u8 {
        /// It answers a request.
        const RESPONSE = 1;
        /// An Internet address of version 6.
        const V6 = 1 << 1;
        /// The data stands in the descriptor and its continuations.
        const INLINE = 1 << 2;
        /// More data follows at once: a partial segment may wait for it.
        const MORE = 1 << 3;
        /// It completes all sends of the socket up to this one.
        const CUMULATIVE = 1 << 4;
        /// CLOSE: only the sending direction.
        const WRITE_ONLY = 1 << 5;
        /// CLOSE: by a reset.
        const ABORT = 1 << 6;
    }
}

/// The rooms of opcodes: who understands them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// Sockets on the adapter (batching 2.2): [`Request`](super::Request), [`Response`](super::Response).
    Sockets,
    /// Connections handed to the adapter, its data cache, and packets (handoff-policies 2, data-caching 4.3).
    Handoff,
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// What kind of entry a descriptor begins.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode {
            $($(#[$doc])* $name = $byte,)*
        }

        impl Opcode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The kind of this byte.
            ///
            /// # Errors
            /// There is none.
            pub fn from_byte(byte: u8) -> Result<Self, Malformed> {
                match byte {
                    $($byte => Ok(Self::$name),)*
                    _ => Err(Malformed::Opcode(byte)),
                }
            }
        }
    };
}

opcodes! {
    /// Make a socket.
    Socket = 0x01,
    /// Give it a local address.
    Bind = 0x02,
    /// Wait for connections to it.
    Listen = 0x03,
    /// Take connections that are established.
    Accept = 0x04,
    /// Open a connection.
    Connect = 0x05,
    /// Close it; from the adapter: the peer has closed, or the connection is over.
    Close = 0x06,
    /// Set an option.
    SetOption = 0x07,
    /// Ask for its state.
    Status = 0x08,
    /// Take a request back.
    Cancel = 0x09,
    /// Ask for its own address.
    Name = 0x0a,
    /// Send data.
    Send = 0x10,
    /// Receive data into a buffer.
    Receive = 0x11,

    /// Take over a connection.
    Handoff = 0x40,
    /// Give a connection back.
    Restore = 0x41,
    /// Data for a connection that was handed off.
    HandoffSend = 0x42,
    /// Receive buffers for such a connection.
    PostReceive = 0x43,
    /// Data of such a connection has been read; from the adapter: has been received.
    Received = 0x44,
    /// Close it or change an option of it.
    Control = 0x45,
    /// A packet that reached the host while a handoff was under way.
    Forward = 0x46,
    /// The host is done with the handle.
    Release = 0x47,
    /// Data of such a connection was acknowledged.
    Acknowledged = 0x48,
    /// Its peer has closed.
    PeerClosed = 0x49,
    /// It is over.
    Closed = 0x4a,
    /// The adapter asks to be relieved of it.
    Relief = 0x4b,
    /// The most connections that may be on the adapter now.
    SoftLimit = 0x4c,
    /// Connections for which the adapter has memory.
    Memory = 0x4d,
    /// The adapter has been reset.
    Reset = 0x4e,

    /// A packet, to be sent or received.
    Packet = 0x60,
    /// Packets of the host have left.
    PacketsSent = 0x61,

    /// Start the data cache; from the adapter: it is ready.
    CacheInit = 0x70,
    /// Fetch data into the cache.
    CacheInsert = 0x71,
    /// Append data of host memory to a packet.
    AppendMemory = 0x72,
    /// Append data of the cache to a packet.
    AppendCache = 0x73,
}

impl Opcode {
    /// Its byte.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Who understands it.
    pub fn room(self) -> Room {
        if self.byte() < 0x40 {
            Room::Sockets
        } else {
            Room::Handoff
        }
    }
}
