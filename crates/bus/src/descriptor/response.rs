//! Answers and notifications of the adapter (batching 2.2).

use super::opcode::{Flags, Opcode};
use super::{Action, Buffer, Descriptor, Malformed, Status, endpoint};
use baton_wire::{Endpoint, Stage};
use std::net::{IpAddr, Ipv4Addr};

/// One answer, or a notification about a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The socket of the request.
    pub socket: u32,
    /// The tag of the request; 0 for a notification.
    pub tag: u32,
    /// How the request ended.
    pub status: Status,
    /// Result of the request.
    pub outcome: Outcome,
}

/// Result of a request, or a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A SOCKET, BIND, LISTEN, CONNECT, CLOSE, SETSOCKOPT, CANCEL or INSERT has completed or failed, according to the status.
    Done(Opcode),
    /// One connection was accepted, as the first socket of the request.
    Accepted(Endpoint),
    /// No connection or several were accepted: one continuation for each, to be read by [`read_peer`], in the order of the sockets.
    AcceptedBulk {
        /// Number of connections; 0 if the request has failed.
        count: u16,
    },
    /// The data has been fetched, and its buffer is free.
    Sent {
        /// Bytes of this request.
        len: u32,
        /// Whether all earlier sends of the socket have been fetched too, and are not answered individually.
        cumulative: bool,
    },
    /// Data has arrived. It is in the buffer of the request, or inline, which frees the buffer. If there is no data, see the status.
    Received(Buffer),
    /// The state of the socket.
    Status(SocketInfo),
    /// The socket's local address and port.
    Name(Endpoint),
    /// TCP's information about the socket's connection: `baton_tcp::Info` as inline bytes. Empty for a failed request.
    Info {
        /// Number of bytes.
        len: u16,
    },
    /// Notification: the peer has closed its sending direction, and all its data has been delivered.
    PeerClosed,
    /// Notification: data waits in the adapter, because the host has posted no buffer for it. The status says whether the connection has failed.
    Unread {
        /// Number of bytes that wait.
        len: u32,
        /// Whether the peer has closed its sending direction, so that no more data will follow.
        ended: bool,
    },
    /// Notification: the connection has ended with this status. All pending requests have been answered.
    Over,
    /// A part of a connection's state has been written to the buffer of an EXPORT.
    Exported {
        /// Address in host memory.
        address: u64,
        /// Number of bytes.
        len: u32,
        /// Whether more of the state remains, so that another EXPORT must follow.
        more: bool,
    },
    /// The data cache has been initialised. Its size is 0 if there is none.
    CacheReady {
        /// Size of the cache, bytes.
        bytes: u32,
        /// Maximum number of INSERTs that may wait to be fetched.
        most_inserts: u32,
    },
    /// Notification: the adapter asks the host to take the connection back (handoff-policies 3.2).
    Relief,
    /// Notification on a packet socket: the limit on IMPORTs has changed (handoff-policies 3.2).
    SoftLimit {
        /// Soft_Limit: the maximum number of connections on the adapter at present.
        connections: u32,
    },
    /// Notification on a socket with [`SocketOption::Times`](super::SocketOption::Times): the time of an event.
    Time {
        /// The event.
        what: Moment,
        /// Time of the event, nanoseconds of the clock that all processes of the machine share (CLOCK_MONOTONIC).
        at_ns: u64,
    },
}

/// An event whose time is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The last byte of a SEND with times reached a stage.
    Reached {
        /// The stage.
        stage: Stage,
        /// Number of the byte, modulo 2^32, as counted by the option.
        byte: u32,
    },
    /// The last byte of the data in the next answer to a RECV arrived.
    Arrived,
}

impl Moment {
    /// Marks arrivals, in place of the number of a stage.
    const ARRIVED: u64 = 255;

    /// Returns the length and word 3.
    fn write(self) -> (u32, u64) {
        match self {
            Self::Reached { stage, byte } => (byte, stage as u64),
            Self::Arrived => (0, Self::ARRIVED),
        }
    }

    fn read(descriptor: &Descriptor) -> Result<Self, Malformed> {
        let number = descriptor.0[3];
        if number == Self::ARRIVED {
            return Ok(Self::Arrived);
        }
        let mut stages = Stage::ALL.into_iter();
        let stage = stages.find(|&stage| stage as u64 == number);
        let stage = stage.ok_or(Malformed::Stage(number))?;
        let byte = descriptor.len();
        Ok(Self::Reached { stage, byte })
    }
}

/// The state of a socket, as reported by STATUS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketInfo {
    /// Free space in the send buffer on the adapter, bytes.
    pub send_room: u32,
    /// Number of bytes that wait to be received.
    pub unread: u32,
    /// Number of sends that wait to be fetched.
    pub sends_waiting: u16,
    /// Number of receives that wait for data.
    pub receives_waiting: u16,
    /// Number of connections that wait to be accepted.
    pub acceptable: u16,
}

/// A connection of a bulk accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Number of the connection's socket.
    pub socket: u32,
    /// Address and port of the peer.
    pub remote: Endpoint,
}

/// Placeholder for the endpoint of a failed request.
const NOWHERE: Endpoint = Endpoint {
    addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    port: 0,
};

impl Outcome {
    /// Returns the outcome of a failed request.
    pub fn of_failed(action: &Action) -> Self {
        match *action {
            Action::Socket => Self::Done(Opcode::Socket),
            Action::PacketSocket => Self::Done(Opcode::PacketSocket),
            Action::Bind(_) => Self::Done(Opcode::Bind),
            Action::Listen { .. } => Self::Done(Opcode::Listen),
            Action::Accept { .. } => Self::AcceptedBulk { count: 0 },
            Action::Connect(_) => Self::Done(Opcode::Connect),
            Action::Close(_) => Self::Done(Opcode::Close),
            Action::SetOption { .. } => Self::Done(Opcode::SetOption),
            Action::Status => Self::Status(SocketInfo::default()),
            Action::Name => Self::Name(NOWHERE),
            Action::Info => Self::Info { len: 0 },
            Action::Cancel { .. } => Self::Done(Opcode::Cancel),
            Action::Send { data, .. } => Self::Sent {
                len: data.len(),
                cumulative: false,
            },
            Action::SendCached { len, .. } => Self::Sent {
                len,
                cumulative: false,
            },
            Action::CacheInit => Self::CacheReady {
                bytes: 0,
                most_inserts: 0,
            },
            Action::CacheInsert { .. } => Self::Done(Opcode::CacheInsert),
            Action::Receive { address, .. } => Self::nothing_received(address),
            Action::Forward { .. } => Self::Done(Opcode::Forward),
            Action::Import { .. } => Self::Done(Opcode::Import),
            Action::Export { address, .. } => Self::Exported {
                address,
                len: 0,
                more: false,
            },
        }
    }

    /// Returns the outcome of a RECV into the buffer at `address` for which no data arrived.
    pub fn nothing_received(address: u64) -> Self {
        Self::Received(Buffer::Memory { address, len: 0 })
    }
}

fn unread(descriptor: &Descriptor, ended: bool) -> Outcome {
    let len = descriptor.len();
    Outcome::Unread { len, ended }
}

impl Response {
    /// Returns the response's descriptor. The caller must still write inline data and the peers of a bulk accept.
    #[inline]
    pub fn encode(&self) -> Descriptor {
        let answer = Flags::RESPONSE;
        let (opcode, flags, count, len, words) = match self.outcome {
            Outcome::Done(opcode) => (opcode, answer, 0, 0, [0; 2]),
            Outcome::Accepted(remote) => {
                let (words, version) = endpoint::write(remote.addr);
                let flags = answer | version;
                (Opcode::Accept, flags, 1, remote.port.into(), words)
            }
            Outcome::AcceptedBulk { count } => (Opcode::Accept, answer, count, 0, [0; 2]),
            Outcome::Sent { len, cumulative } => {
                let mut flags = answer;
                flags.set(Flags::CUMULATIVE, cumulative);
                (Opcode::Send, flags, 0, len, [0; 2])
            }
            Outcome::Received(buffer) => {
                let (flags, len, address) = buffer.write();
                (Opcode::Receive, answer | flags, 0, len, [address, 0])
            }
            Outcome::Status(info) => {
                let bytes = u64::from(info.send_room) | u64::from(info.unread) << 32;
                let counts = u64::from(info.sends_waiting)
                    | u64::from(info.receives_waiting) << 16
                    | u64::from(info.acceptable) << 32;
                (Opcode::Status, answer, 0, 0, [bytes, counts])
            }
            Outcome::Name(local) => {
                let (words, version) = endpoint::write(local.addr);
                let flags = answer | version;
                (Opcode::Name, flags, 0, local.port.into(), words)
            }
            Outcome::Info { len } => {
                let mut flags = answer;
                flags.set(Flags::INLINE, len > 0);
                (Opcode::Info, flags, 0, len.into(), [0; 2])
            }
            Outcome::PeerClosed => (Opcode::Close, Flags::WRITE_ONLY, 0, 0, [0; 2]),
            Outcome::Unread { len, ended } => {
                let mut flags = Flags::empty();
                flags.set(Flags::WRITE_ONLY, ended);
                (Opcode::Receive, flags, 0, len, [0; 2])
            }
            Outcome::Over => (Opcode::Close, Flags::ABORT, 0, 0, [0; 2]),
            Outcome::Exported { address, len, more } => {
                let mut flags = answer;
                flags.set(Flags::MORE, more);
                (Opcode::Export, flags, 0, len, [address, 0])
            }
            Outcome::CacheReady {
                bytes,
                most_inserts,
            } => {
                let words = [most_inserts.into(), 0];
                (Opcode::CacheInit, answer, 0, bytes, words)
            }
            Outcome::Relief => (Opcode::Relief, Flags::empty(), 0, 0, [0; 2]),
            Outcome::SoftLimit { connections } => {
                (Opcode::SoftLimit, Flags::empty(), 0, connections, [0; 2])
            }
            Outcome::Time { what, at_ns } => {
                let (len, what) = what.write();
                (Opcode::Time, Flags::empty(), 0, len, [at_ns, what])
            }
        };
        // In an accept, the count takes the field of the status, which moves to the upper half of the length.
        let (third, len) = match opcode {
            Opcode::Accept => (count, len | u32::from(self.status as u16) << 16),
            _ => (self.status as u16, len),
        };
        Descriptor([
            Descriptor::first(opcode, flags, third, self.socket),
            Descriptor::second(self.tag, len),
            words[0],
            words[1],
        ])
    }

    /// Decodes the response that `descriptor` begins.
    ///
    /// # Errors
    /// Fails if the descriptor is not a valid response.
    pub fn decode(descriptor: &Descriptor) -> Result<Self, Malformed> {
        let opcode = descriptor.opcode()?;
        let flags = descriptor.flags();
        let (status, outcome) = if flags.contains(Flags::RESPONSE) {
            Self::answer(opcode, descriptor)?
        } else {
            let news = match (opcode, flags) {
                (Opcode::Close, Flags::WRITE_ONLY) => Outcome::PeerClosed,
                (Opcode::Close, Flags::ABORT) => Outcome::Over,
                (Opcode::Receive, Flags::WRITE_ONLY) => unread(descriptor, true),
                (Opcode::Receive, none) if none.is_empty() => unread(descriptor, false),
                (Opcode::Relief, none) if none.is_empty() => Outcome::Relief,
                (Opcode::SoftLimit, none) if none.is_empty() => Outcome::SoftLimit {
                    connections: descriptor.len(),
                },
                (Opcode::Time, none) if none.is_empty() => Outcome::Time {
                    what: Moment::read(descriptor)?,
                    at_ns: descriptor.0[2],
                },
                _ => return Err(Malformed::Direction(opcode)),
            };
            (Status::from_number(descriptor.count())?, news)
        };
        Ok(Self {
            socket: descriptor.socket(),
            tag: descriptor.tag(),
            status,
            outcome,
        })
    }

    fn answer(opcode: Opcode, descriptor: &Descriptor) -> Result<(Status, Outcome), Malformed> {
        let allowed = match opcode {
            Opcode::Accept | Opcode::Name => Flags::V6,
            Opcode::Send => Flags::CUMULATIVE,
            Opcode::Receive | Opcode::Info => Flags::INLINE,
            Opcode::Export => Flags::MORE,
            _ => Flags::empty(),
        };
        let flags = descriptor.flags_among(opcode, Flags::RESPONSE | allowed)?;
        if opcode == Opcode::Accept {
            let status = Status::from_number((descriptor.len() >> 16) as u16)?;
            return Ok((status, Self::accepted(descriptor)?));
        }
        let outcome = match opcode {
            Opcode::Send => Outcome::Sent {
                len: descriptor.len(),
                cumulative: flags.contains(Flags::CUMULATIVE),
            },
            Opcode::Receive => Outcome::Received(Buffer::read(descriptor)?),
            Opcode::Status => {
                let [_, _, bytes, counts] = descriptor.0;
                Outcome::Status(SocketInfo {
                    send_room: bytes as u32,
                    unread: (bytes >> 32) as u32,
                    sends_waiting: counts as u16,
                    receives_waiting: (counts >> 16) as u16,
                    acceptable: (counts >> 32) as u16,
                })
            }
            Opcode::Name => Outcome::Name(endpoint::read(descriptor)?),
            Opcode::Info => Outcome::Info {
                len: match flags.contains(Flags::INLINE) {
                    true => super::inline::check(descriptor.len())?,
                    false => 0,
                },
            },
            Opcode::Export => Outcome::Exported {
                address: descriptor.0[2],
                len: descriptor.len(),
                more: flags.contains(Flags::MORE),
            },
            Opcode::CacheInit => Outcome::CacheReady {
                bytes: descriptor.len(),
                most_inserts: descriptor.0[2] as u32,
            },
            // A SEND from the cache is answered like any other SEND.
            Opcode::Relief | Opcode::SoftLimit | Opcode::Time | Opcode::SendCached => {
                return Err(Malformed::Direction(opcode));
            }
            _ => Outcome::Done(opcode),
        };
        Ok((Status::from_number(descriptor.count())?, outcome))
    }

    fn accepted(descriptor: &Descriptor) -> Result<Outcome, Malformed> {
        if descriptor.count() != 1 {
            let count = descriptor.count();
            return Ok(Outcome::AcceptedBulk { count });
        }
        let mut plain = *descriptor;
        plain.0[1] &= 0x0000_ffff_ffff_ffff;
        Ok(Outcome::Accepted(endpoint::read(&plain)?))
    }
}

/// Encodes a continuation of a bulk accept.
pub fn write_peer(peer: Peer) -> Descriptor {
    let (words, flags) = endpoint::write(peer.remote.addr);
    Descriptor([
        Descriptor::first(Opcode::Accept, flags | Flags::RESPONSE, 1, peer.socket),
        Descriptor::second(0, peer.remote.port.into()),
        words[0],
        words[1],
    ])
}

/// Decodes a continuation of a bulk accept.
///
/// # Errors
/// Fails if the descriptor is not such a continuation.
pub fn read_peer(descriptor: &Descriptor) -> Result<Peer, Malformed> {
    let opcode = descriptor.opcode()?;
    if opcode != Opcode::Accept {
        return Err(Malformed::Direction(opcode));
    }
    Ok(Peer {
        socket: descriptor.socket(),
        remote: endpoint::read(descriptor)?,
    })
}
