//! What the host asks of the adapter (batching 2.2 and 2.3).

use super::opcode::{Flags, Opcode};
use super::{Descriptor, Malformed, endpoint, inline};
use baton_wire::{Endpoint, Stages};

/// Places in the data cache are multiples of so many bytes: no block is smaller.
pub const CACHE_UNIT_BYTES: u32 = 512;

/// Blocks of the cache that one SEND is of, at most.
pub const MOST_BLOCKS_SENT: u32 = 4;

/// One request. The socket's number is chosen by the host, so it need not wait for one request to be answered before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The socket.
    pub socket: u32,
    /// Comes back with the answer.
    pub tag: u32,
    /// What is asked.
    pub action: Action,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SOCKET: make one of this number.
    Socket,
    /// PACKET SOCKET: make one of this number for IP packets. Each SEND is a packet for the wire, or a part of one as long as more follows:
    /// each lies in a buffer or in the cache, and the last is answered for all. If one is refused, nothing of the packet is sent. A packet
    /// of TCP that arrives and is of no connection and no listener on the adapter, and news of one that the host sent, goes into the
    /// buffer of one RECV. BIND says which are wanted: those to this local address and port, each if it is not 0.
    PacketSocket,
    /// BIND: give it a local address; port 0 is any.
    Bind(Endpoint),
    /// LISTEN, for at most so many connections that wait to be accepted.
    Listen {
        /// Connections that may wait.
        backlog: u32,
    },
    /// ACCEPT: take connections that are established. The new sockets are `first`, `first + 1`, and so on; answered once all
    /// `count` are there, or when the first of them has waited for `timeout_us`, if that is not 0. Not before one is there.
    Accept {
        /// Number of the first new socket.
        first: u32,
        /// Connections; more than one is a bulk accept.
        count: u16,
        /// The longest that an established connection waits for the others, microseconds; 0 is without end.
        timeout_us: u32,
    },
    /// CONNECT.
    Connect(Endpoint),
    /// CLOSE.
    Close(Close),
    /// SETSOCKOPT.
    SetOption {
        /// Which.
        option: SocketOption,
        /// Its value; 0 and 1 for those that are on or off.
        value: u32,
    },
    /// STATUS: ask for the socket's state.
    Status,
    /// CANCEL the ACCEPT, CONNECT, SEND or RECV of this tag. What was cancelled is answered too, before.
    Cancel {
        /// Its tag.
        target: u32,
    },
    /// NAME: ask for the socket's own address and port, as far as it has some.
    Name,
    /// SEND data; answered once it has been fetched from the buffer, which is free then.
    Send {
        /// Where it is.
        data: Buffer,
        /// More follows at once: a partial segment may wait for it.
        more: bool,
        /// When its last byte reaches these stages is told; on a socket with [`SocketOption::Times`].
        times: Stages,
    },
    /// SEND of data that stands in the cache (data-caching 4.3, nic_pkt_append_cache): what an INSERT before it has put there, whatever is
    /// put there after it. In line with the other SENDs of the socket, and answered as they are. It is of [`MOST_BLOCKS_SENT`] blocks
    /// that stand side by side, at most, and no longer than as many buffers.
    SendCached {
        /// First byte, from the start of the cache.
        offset: u32,
        /// Bytes.
        len: u32,
        /// More follows at once: a partial segment may wait for it.
        more: bool,
    },
    /// RECV into a buffer; answered once something is there, or nothing will be any more.
    Receive {
        /// Address in host memory.
        address: u64,
        /// Bytes for which there is room.
        len: u32,
    },
    /// FORWARD, on a packet socket: a packet that reached the host while its connection was on its way to the adapter, which treats it as
    /// if it had just arrived. Answered once it has been fetched.
    Forward {
        /// Address in host memory.
        address: u64,
        /// Bytes.
        len: u32,
    },
    /// IMPORT (handoff-policies 2, "handoff"): take over a connection as a new socket of this number. Its portable state stands in the
    /// buffers of one or several of these in order; each is answered once fetched, the last one when it is known whether the adapter
    /// has taken the connection. If not, the host goes on with it.
    Import {
        /// Address in host memory.
        address: u64,
        /// Bytes.
        len: u32,
        /// This is not all of the state.
        more: bool,
    },
    /// EXPORT (handoff-policies 2, "restore"): give the connection back, after all that was asked before. SENDs are answered
    /// once fetched, RECVs without data when they are cancelled; what has not been delivered is part of the state. Answered when the
    /// first part of the state stands in the buffer; as long as there is more, another EXPORT has to follow. With the last answer
    /// the number is free.
    Export {
        /// Address in host memory.
        address: u64,
        /// Bytes for which there is room.
        len: u32,
    },
    /// CACHE INIT (data-caching 4.3, nic_cache_init): start the data cache that the adapter has for this host, empty. Of no socket: the
    /// number only comes back with the answer, which tells how large the cache is.
    CacheInit,
    /// INSERT (data-caching 4.3, nic_cache_insert): put data into the cache. What an earlier one has put into any part of that place goes
    /// as a whole. Answered once the data has been fetched from the buffer, which is free then. Of no socket, as CACHE INIT.
    CacheInsert {
        /// Address in host memory.
        address: u64,
        /// Bytes.
        len: u32,
        /// First byte, from the start of the cache: a multiple of [`CACHE_UNIT_BYTES`].
        offset: u32,
    },
}

/// Data of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// In host memory.
    Memory {
        /// Address.
        address: u64,
        /// Bytes.
        len: u32,
    },
    /// In the descriptor and its continuations: see [`write_inline`](super::write_inline) and [`read_inline`](super::read_inline).
    Inline {
        /// Bytes.
        len: u16,
    },
}

impl Buffer {
    /// Bytes.
    pub fn len(&self) -> u32 {
        match *self {
            Self::Memory { len, .. } => len,
            Self::Inline { len } => len.into(),
        }
    }

    /// Whether it is without data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Flag, length, and word 2.
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
    /// SEND, of which nobody wants to know times.
    pub const fn send(data: Buffer, more: bool) -> Self {
        let times = Stages::empty();
        Self::Send { data, more, times }
    }
}

/// How a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Nothing more will be sent; what comes can still be received.
    Write,
    /// Both directions, after all that waits has been sent. Answered when the connection is over.
    Both,
    /// At once, by a reset.
    Abort,
}

/// Options of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum SocketOption {
    /// TCP_NODELAY.
    NoDelay = 1,
    /// TCP_CORK: hold partial segments back. (The host's own cork comes before it.)
    Cork = 2,
    /// SO_KEEPALIVE.
    KeepAlive = 3,
    /// SO_SNDBUF, bytes.
    SendBuffer = 4,
    /// SO_RCVBUF, bytes.
    ReceiveBuffer = 5,
    /// TCP_USER_TIMEOUT, milliseconds; 0 is none.
    UserTimeout = 6,
    /// TCP_FASTOPEN (RFC 7413), before LISTEN or on a listener: most requests that may be pending, 0 is off. Such connections are there for
    /// ACCEPT before their handshake is complete. Before CONNECT, 1: ask for it; inline SENDs that follow the CONNECT at once go with the
    /// SYN, as far as there is room and the peer gave a cookie, and are answered then: whether they arrived, the answer to the CONNECT
    /// tells. 2: the same without a cookie, to a peer that takes it so.
    FastOpen = 7,
    /// SO_TIMESTAMPING, on a connection: [`Times`]. Refused where adapter and host have no clock in common.
    Times = 8,
}

bitflags::bitflags! {
    /// What of times a socket's host wants to know.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Times: u32 {
        /// When received data arrived: told before the answer of each RECV that it stands in.
        const RECEIVED = 1;
        /// Bytes of SENDs are counted from the first that is not acknowledged now. Without, and without the next, the count goes on; it begins
        /// with the option.
        const FROM_UNACKNOWLEDGED = 1 << 1;
        /// They are counted from the first of the next SEND.
        const FROM_NEXT = 1 << 2;
    }
}

impl SocketOption {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NoDelay,
        Self::Cork,
        Self::KeepAlive,
        Self::SendBuffer,
        Self::ReceiveBuffer,
        Self::UserTimeout,
        Self::FastOpen,
        Self::Times,
    ];

    fn from_number(number: u16) -> Result<Self, Malformed> {
        let mut all = Self::ALL.into_iter();
        all.find(|&option| option as u16 == number)
            .ok_or(Malformed::Option(number))
    }
}

impl Request {
    /// Its descriptor. Inline data is still to be [written](super::write_inline) into it.
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

    /// The request that `descriptor` begins.
    ///
    /// # Errors
    /// It is none.
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
