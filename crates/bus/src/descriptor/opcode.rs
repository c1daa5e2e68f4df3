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

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// What kind of entry a descriptor begins.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode {
            $($(#[$doc])* $name = $byte,)*
        }

        impl Opcode {
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
    /// Make a socket for packets.
    PacketSocket = 0x0b,
    /// Send data.
    Send = 0x10,
    /// Receive data into a buffer.
    Receive = 0x11,
    /// A packet that came for a connection while that was on its way to the adapter.
    Forward = 0x12,
    /// Send data that stands in the adapter's cache.
    SendCached = 0x13,
    /// Take over a connection.
    Import = 0x20,
    /// Give a connection back.
    Export = 0x21,
    /// From the adapter: the host should take a connection back.
    Relief = 0x22,
    /// From the adapter: the most connections that may be on it now.
    SoftLimit = 0x23,
    /// From the adapter: when a byte was sent or acknowledged, or data arrived.
    Time = 0x24,
    /// Start the data cache.
    CacheInit = 0x30,
    /// Put data into it.
    CacheInsert = 0x31,
}

impl Opcode {
    /// Its byte.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Whether it is a command of the data cache, which is of no socket.
    pub const fn is_of_cache(self) -> bool {
        matches!(self, Self::CacheInit | Self::CacheInsert)
    }
}
