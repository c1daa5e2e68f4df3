//! Kinds of entries.

use super::Malformed;
use bitflags::bitflags;

bitflags! {
    /// Flags of a descriptor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Flags: u8 {
        /// The descriptor answers a request.
        const RESPONSE = 1;
        /// The address is of IP version 6.
        const V6 = 1 << 1;
        /// The data is in the descriptor and its continuations.
        const INLINE = 1 << 2;
        /// More data follows immediately, so a partial segment may wait for it.
        const MORE = 1 << 3;
        /// The answer completes all sends of the socket up to this one.
        const CUMULATIVE = 1 << 4;
        /// CLOSE: closes only the sending direction.
        const WRITE_ONLY = 1 << 5;
        /// CLOSE: resets the connection.
        const ABORT = 1 << 6;
    }
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// Kind of entry that a descriptor begins.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode {
            $($(#[$doc])* $name = $byte,)*
        }

        impl Opcode {
            /// Returns the opcode with this value.
            ///
            /// # Errors
            /// Fails if the opcode does not exist.
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
    /// Create a socket.
    Socket = 0x01,
    /// Bind a socket to a local address.
    Bind = 0x02,
    /// Listen for connections.
    Listen = 0x03,
    /// Accept established connections.
    Accept = 0x04,
    /// Open a connection.
    Connect = 0x05,
    /// Close a connection; from the adapter: the peer has closed, or the connection has ended.
    Close = 0x06,
    /// Set an option.
    SetOption = 0x07,
    /// Get the state of a socket.
    Status = 0x08,
    /// Cancel a request.
    Cancel = 0x09,
    /// Get the local address of a socket.
    Name = 0x0a,
    /// Create a packet socket.
    PacketSocket = 0x0b,
    /// Get TCP's information about a connection.
    Info = 0x0c,
    /// Send data.
    Send = 0x10,
    /// Receive data into a buffer.
    Receive = 0x11,
    /// Pass on a packet that arrived for a connection while that was being handed off to the adapter.
    Forward = 0x12,
    /// Send data from the adapter's cache.
    SendCached = 0x13,
    /// Take over a connection from the host.
    Import = 0x20,
    /// Give a connection back to the host.
    Export = 0x21,
    /// From the adapter: the host should take a connection back.
    Relief = 0x22,
    /// From the adapter: the maximum number of connections on it at present.
    SoftLimit = 0x23,
    /// From the adapter: the time at which a byte was sent or acknowledged, or at which data arrived.
    Time = 0x24,
    /// Initialise the data cache.
    CacheInit = 0x30,
    /// Put data into the cache.
    CacheInsert = 0x31,
}

impl Opcode {
    /// Returns the value of the opcode.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Returns whether the opcode is a command of the data cache, which belongs to no socket.
    pub const fn is_of_cache(self) -> bool {
        matches!(self, Self::CacheInit | Self::CacheInsert)
    }
}
