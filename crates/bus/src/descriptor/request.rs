//! Requests of the host to the adapter (batching 2.2 and 2.3).

use super::opcode::{Flags, Opcode};
use super::{Descriptor, Malformed, endpoint, inline};
use baton_wire::{Endpoint, Stages};

/// Offsets in the data cache are multiples of this many bytes, so no block is smaller.
pub const CACHE_UNIT_BYTES: u32 = 512;

/// Maximum number of cache blocks in one SEND.
pub const MOST_BLOCKS_SENT: u32 = 4;

/// One request. The host chooses the socket's number, so it need not wait for an answer before it sends the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the socket.
    pub socket: u32,
    /// Tag that the answer returns.
    pub tag: u32,
    /// The requested action.
    pub action: Action,
}

/// A requested action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SOCKET: creates a socket with this number.
    Socket,
    /// PACKET SOCKET: creates a socket with this number for IP packets. Each SEND is a packet for the wire, or a part of one if more
    /// follows. Each part is in a buffer or in the cache, and the last part is answered for all. If one is refused, nothing of the packet
    /// is sent. Each RECV receives one packet of TCP that belongs to no connection or listener on the adapter, or an error message about a
    /// packet that the host sent. BIND selects the packets to receive: those to this local address and port, each if it is not 0.
    PacketSocket,
    /// BIND: binds the socket to a local address; port 0 means any.
    Bind(Endpoint),
    /// LISTEN, with a limit on the connections that wait to be accepted.
    Listen {
        /// Maximum number of connections that wait.
        backlog: u32,
    },
    /// ACCEPT: accepts established connections. The new sockets are `first`, `first + 1`, and so on. Answered once all `count` connections
    /// are established, or when the first of them has waited for `timeout_us`, if that is not 0; but not before there is one.
    Accept {
        /// Number of the first new socket.
        first: u32,
        /// Number of connections; more than one is a bulk accept.
        count: u16,
        /// Longest time that an established connection waits for the others, microseconds; 0 means forever.
        timeout_us: u32,
    },
    /// CONNECT to this endpoint.
    Connect(Endpoint),
    /// CLOSE.
    Close(Close),
    /// SETSOCKOPT.
    SetOption {
        /// The option.
        option: SocketOption,
        /// Value of the option; 0 and 1 for those that are on or off.
        value: u32,
    },
    /// STATUS: gets the socket's state.
    Status,
    /// CANCEL the ACCEPT, CONNECT, SEND or RECV with this tag. The cancelled request is answered too, before the CANCEL.
    Cancel {
        /// Tag of the request to cancel.
        target: u32,
    },
    /// NAME: gets the socket's local address and port, as far as it has them.
    Name,
    /// INFO: gets TCP's information about the socket's connection.
    Info,
    /// SEND data; answered once it has been fetched from the buffer, which is then free, or read from the file. If the file is shorter by
    /// then or cannot be read, the connection is reset, because data that was to be sent is missing.
    Send {
        /// Location of the data.
        data: Buffer,
        /// Whether more data follows immediately, so that a partial segment may wait for it.
        more: bool,
        /// Stages of the last byte whose times are reported, on a socket with [`SocketOption::Times`].
        times: Stages,
    },
    /// SEND of cached data (data-caching 4.3, nic_pkt_append_cache): sends what earlier INSERTs have put there, even if later ones replace
    /// it. Such SENDs are sent in order with the socket's other SENDs, and answered like them. Covers at most [`MOST_BLOCKS_SENT`] adjacent
    /// blocks, and is no longer than as many buffers.
    SendCached {
        /// Offset of the first byte in the cache.
        offset: u32,
        /// Number of bytes.
        len: u32,
        /// Whether more data follows immediately, so that a partial segment may wait for it.
        more: bool,
    },
    /// RECV into a buffer; answered once data has arrived, or once no more data can arrive.
    Receive {
        /// Address in host memory.
        address: u64,
        /// Size of the buffer, bytes.
        len: u32,
    },
    /// FORWARD, on a packet socket: passes on a packet that reached the host while its connection was being handed off to the adapter,
    /// which treats the packet as if it had just arrived. Answered once it has been fetched.
    Forward {
        /// Address in host memory.
        address: u64,
        /// Number of bytes.
        len: u32,
    },
    /// IMPORT (handoff-policies 2, "handoff"): takes over a connection as a new socket with this number. Its portable state is in the
    /// buffers of one or several of these requests in order. Each is answered once fetched, the last one when the adapter has taken or
    /// refused the connection. If it was refused, the host keeps the connection.
    Import {
        /// Address in host memory.
        address: u64,
        /// Number of bytes.
        len: u32,
        /// Whether more of the state follows.
        more: bool,
    },
    /// EXPORT (handoff-policies 2, "restore"): gives the connection back, after all earlier requests. SENDs are answered once fetched;
    /// RECVs are cancelled without data; undelivered data is part of the state. Answered when the first part of the state is in the buffer.
    /// While more of the state remains, another EXPORT must follow. With the last answer, the number is free.
    Export {
        /// Address in host memory.
        address: u64,
        /// Size of the buffer, bytes.
        len: u32,
    },
    /// CACHE INIT (data-caching 4.3, nic_cache_init): initialises the adapter's data cache for this host, empty. Belongs to no socket: the
    /// number is only returned with the answer, which contains the size of the cache.
    CacheInit,
    /// INSERT (data-caching 4.3, nic_cache_insert): puts data into the cache. An earlier block that overlaps this range is removed as a
    /// whole. Answered once the data has been fetched from the buffer, which is then free. Belongs to no socket, like CACHE INIT.
    CacheInsert {
        /// Address in host memory.
        address: u64,
        /// Number of bytes.
        len: u32,
        /// Offset of the first byte in the cache: a multiple of [`CACHE_UNIT_BYTES`].
        offset: u32,
    },
}

/// Location of the data of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// In host memory, or in a file.
    Memory {
        /// Address; only a SEND on a connection may have one [in a file](super::FilePlace).
        address: u64,
        /// Number of bytes.
        len: u32,
    },
    /// In the descriptor and its continuations: see [`write_inline`](super::write_inline) and [`read_inline`](super::read_inline).
    Inline {
        /// Number of bytes.
        len: u16,
    },
}

impl Buffer {
    /// Returns the number of bytes.
    pub fn len(&self) -> u32 {
        match *self {
            Self::Memory { len, .. } => len,
            Self::Inline { len } => len.into(),
        }
    }

    /// Returns whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the flags, the length, and word 2.
    pub(super) fn write(self) -> (Flags, u32, u64) {
        match self {
            Self::Memory { address, len } => (Flags::empty(), len, address),
            Self::Inline { len } => (Flags::INLINE, len.into(), 0),
        }
    }

    pub(super) fn read(descriptor: &Descriptor) -> Result<Self, Malformed> {
        if descriptor.flags().contains(Flags::INLINE) {
            let len = inline::check(descriptor.len())?;
            return Ok(Self::Inline { len });
        }
        let (address, len) = (descriptor.0[2], descriptor.len());
        Ok(Self::Memory { address, len })
    }
}

impl Action {
    /// Creates a SEND without times.
    pub const fn send(data: Buffer, more: bool) -> Self {
        let times = Stages::empty();
        Self::Send { data, more, times }
    }
}

/// Ways to close a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Closes the sending direction; data can still be received.
    Write,
    /// Closes both directions after all pending data has been sent. Answered when the connection has ended.
    Both,
    /// Resets the connection immediately.
    Abort,
}

/// Options of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum SocketOption {
    /// TCP_NODELAY.
    NoDelay = 1,
    /// TCP_CORK: holds partial segments back. (The host's own cork comes before it.)
    Cork = 2,
    /// SO_KEEPALIVE.
    KeepAlive = 3,
    /// SO_SNDBUF, bytes.
    SendBuffer = 4,
    /// SO_RCVBUF, bytes.
    ReceiveBuffer = 5,
    /// TCP_USER_TIMEOUT, milliseconds; 0 means none.
    UserTimeout = 6,
    /// TCP_FASTOPEN (RFC 7413). Before LISTEN or on a listener: maximum number of pending requests, 0 is off; such connections can be
    /// accepted before their handshake is complete. Before CONNECT, 1: uses Fast Open; inline SENDs that immediately follow the CONNECT go
    /// with the SYN, as far as they fit and the peer gave a cookie, and are answered then; the answer to the CONNECT shows whether they
    /// arrived. 2: does the same without a cookie, to a peer that accepts that.
    FastOpen = 7,
    /// SO_TIMESTAMPING, on a connection: [`Times`]. Refused if adapter and host share no clock.
    Times = 8,
    /// TCP_KEEPIDLE, seconds. On a connection, has no effect while SO_KEEPALIVE is off, and is reset when that is turned off.
    KeepIdle = 9,
    /// TCP_KEEPINTVL, seconds. Depends on SO_KEEPALIVE like `KeepIdle`.
    KeepInterval = 10,
    /// TCP_KEEPCNT, number of probes. Depends on SO_KEEPALIVE like `KeepIdle`.
    KeepProbes = 11,
    /// Sockets of one user with the same number, which is not 0, may listen at the same address (SO_REUSEPORT, or an inherited listener).
    /// The connections are accepted by each of them in turn. Must be set before BIND.
    Share = 12,
}

bitflags::bitflags! {
    /// The timestamps that a socket's host wants.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Times: u32 {
        /// The arrival of received data: reported before the answer to the RECV with the data.
        const RECEIVED = 1;
        /// Count bytes of SENDs from the first unacknowledged byte. Without this flag and `FROM_NEXT`, a count that was begun continues;
        /// otherwise, it begins with the next SEND.
        const FROM_UNACKNOWLEDGED = 1 << 1;
        /// Count bytes from the first byte of the next SEND.
        const FROM_NEXT = 1 << 2;
    }
}

impl SocketOption {
    /// All options.
    pub const ALL: [Self; 12] = [
        Self::NoDelay,
        Self::Cork,
        Self::KeepAlive,
        Self::SendBuffer,
        Self::ReceiveBuffer,
        Self::UserTimeout,
        Self::FastOpen,
        Self::Times,
        Self::KeepIdle,
        Self::KeepInterval,
        Self::KeepProbes,
        Self::Share,
    ];

    fn from_number(number: u16) -> Result<Self, Malformed> {
        let mut all = Self::ALL.into_iter();
        all.find(|&option| option as u16 == number)
            .ok_or(Malformed::Option(number))
    }
}

impl Request {
    /// Returns the request's descriptor. The caller must still [write](super::write_inline) inline data into it.
    #[inline]
    pub fn encode(&self) -> Descriptor {
        use Action as A;
        let none = Flags::empty();
        let (opcode, flags, count, len, words) = match self.action {
            A::Socket => (Opcode::Socket, none, 0, 0, [0; 2]),
            A::PacketSocket => (Opcode::PacketSocket, none, 0, 0, [0; 2]),
            A::Bind(local) => {
                let (words, flags) = endpoint::write(local.addr);
                (Opcode::Bind, flags, 0, local.port.into(), words)
            }
            A::Listen { backlog } => (Opcode::Listen, none, 0, backlog, [0; 2]),
            A::Accept {
                first,
                count,
                timeout_us,
            } => {
                let words = [first.into(), timeout_us.into()];
                (Opcode::Accept, none, count, 0, words)
            }
            A::Connect(remote) => {
                let (words, flags) = endpoint::write(remote.addr);
                (Opcode::Connect, flags, 0, remote.port.into(), words)
            }
            A::Close(close) => (Opcode::Close, close.flags(), 0, 0, [0; 2]),
            A::SetOption { option, value } => {
                (Opcode::SetOption, none, option as u16, value, [0; 2])
            }
            A::Status => (Opcode::Status, none, 0, 0, [0; 2]),
            A::Name => (Opcode::Name, none, 0, 0, [0; 2]),
            A::Info => (Opcode::Info, none, 0, 0, [0; 2]),
            A::Cancel { target } => (Opcode::Cancel, none, 0, target, [0; 2]),
            A::Send { data, more, times } => {
                let (mut flags, len, address) = data.write();
                flags.set(Flags::MORE, more);
                (Opcode::Send, flags, times.bits().into(), len, [address, 0])
            }
            A::SendCached { offset, len, more } => {
                let mut flags = none;
                flags.set(Flags::MORE, more);
                (Opcode::SendCached, flags, 0, len, [offset.into(), 0])
            }
            A::Receive { address, len } => (Opcode::Receive, none, 0, len, [address, 0]),
            A::Forward { address, len } => (Opcode::Forward, none, 0, len, [address, 0]),
            A::Import { address, len, more } => {
                let mut flags = none;
                flags.set(Flags::MORE, more);
                (Opcode::Import, flags, 0, len, [address, 0])
            }
            A::Export { address, len } => (Opcode::Export, none, 0, len, [address, 0]),
            A::CacheInit => (Opcode::CacheInit, none, 0, 0, [0; 2]),
            A::CacheInsert {
                address,
                len,
                offset,
            } => {
                let words = [address, offset.into()];
                (Opcode::CacheInsert, none, 0, len, words)
            }
        };
        Descriptor([
            Descriptor::first(opcode, flags, count, self.socket),
            Descriptor::second(self.tag, len),
            words[0],
            words[1],
        ])
    }

    /// Decodes the request that `descriptor` begins.
    ///
    /// # Errors
    /// Fails if the descriptor is not a valid request.
    pub fn decode(descriptor: &Descriptor) -> Result<Self, Malformed> {
        let opcode = descriptor.opcode()?;
        let allowed = match opcode {
            Opcode::Bind | Opcode::Connect => Flags::V6,
            Opcode::Close => Flags::WRITE_ONLY | Flags::ABORT,
            Opcode::Send => Flags::INLINE | Flags::MORE,
            Opcode::Import | Opcode::SendCached => Flags::MORE,
            _ => Flags::empty(),
        };
        let flags = descriptor.flags_among(opcode, allowed)?;
        let action = match opcode {
            Opcode::Socket => Action::Socket,
            Opcode::PacketSocket => Action::PacketSocket,
            Opcode::Bind => Action::Bind(endpoint::read(descriptor)?),
            Opcode::Listen => Action::Listen {
                backlog: descriptor.len(),
            },
            Opcode::Accept => match descriptor.count() {
                0 => return Err(Malformed::Count(0)),
                count => Action::Accept {
                    first: descriptor.0[2] as u32,
                    count,
                    timeout_us: descriptor.0[3] as u32,
                },
            },
            Opcode::Connect => Action::Connect(endpoint::read(descriptor)?),
            Opcode::Close => Action::Close(Close::from_flags(opcode, flags)?),
            Opcode::SetOption => Action::SetOption {
                option: SocketOption::from_number(descriptor.count())?,
                value: descriptor.len(),
            },
            Opcode::Status => Action::Status,
            Opcode::Name => Action::Name,
            Opcode::Info => Action::Info,
            Opcode::Cancel => Action::Cancel {
                target: descriptor.len(),
            },
            Opcode::Send => Action::Send {
                data: Buffer::read(descriptor)?,
                more: flags.contains(Flags::MORE),
                times: stages(descriptor.count())?,
            },
            Opcode::SendCached => Action::SendCached {
                offset: descriptor.0[2] as u32,
                len: descriptor.len(),
                more: flags.contains(Flags::MORE),
            },
            Opcode::Receive => Action::Receive {
                address: descriptor.0[2],
                len: descriptor.len(),
            },
            Opcode::Forward => Action::Forward {
                address: descriptor.0[2],
                len: descriptor.len(),
            },
            Opcode::Import => Action::Import {
                address: descriptor.0[2],
                len: descriptor.len(),
                more: flags.contains(Flags::MORE),
            },
            Opcode::Export => Action::Export {
                address: descriptor.0[2],
                len: descriptor.len(),
            },
            Opcode::CacheInit => Action::CacheInit,
            Opcode::CacheInsert => Action::CacheInsert {
                address: descriptor.0[2],
                len: descriptor.len(),
                offset: descriptor.0[3] as u32,
            },
            Opcode::Relief | Opcode::SoftLimit | Opcode::Time => {
                return Err(Malformed::Direction(opcode));
            }
        };
        Ok(Self {
            socket: descriptor.socket(),
            tag: descriptor.tag(),
            action,
        })
    }
}

fn stages(bits: u16) -> Result<Stages, Malformed> {
    let known = u8::try_from(bits).ok().and_then(Stages::from_bits);
    known.ok_or(Malformed::Count(bits))
}

impl Close {
    fn flags(self) -> Flags {
        match self {
            Self::Write => Flags::WRITE_ONLY,
            Self::Both => Flags::empty(),
            Self::Abort => Flags::ABORT,
        }
    }

    fn from_flags(opcode: Opcode, flags: Flags) -> Result<Self, Malformed> {
        let all = [Self::Write, Self::Both, Self::Abort];
        let flags_bits = flags.bits();
        all.into_iter()
            .find(|close| close.flags() == flags)
            .ok_or(Malformed::Flags {
                opcode,
                flags: flags_bits,
            })
    }
}
