//! Packet captures: how long TCP connections live, and what they carry.
//!
//! Headers are enough: what a segment carries follows from the lengths in its IP and TCP headers, which are looked at as far as they were
//! captured. One direction is enough for most: what the other side sent follows from the acknowledgments. [`CaptureAnalysis::limits`] says
//! what cannot be known of a capture.

mod analysis;
mod connections;
mod erf;
mod link;
mod pcap;
mod routed;
mod segment;

pub use analysis::{CaptureAnalysis, ConnectionCounts};

use crate::log::open;
use connections::Connections;
use link::Link;
pub(crate) use routed::read_routed;
use segment::{Content, Segment};
use serde::Serialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How a capture is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureFormat {
    /// libpcap's classic format.
    Pcap,
    /// The format that Wireshark writes.
    Pcapng,
    /// Endace's Extensible Record Format.
    Erf,
}

impl CaptureFormat {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
            Self::Erf => "erf",
        }
    }

    /// Tells it by the first bytes of a capture. ERF has no mark: its first record must make sense.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Some(Self::Pcapng),
            [0xa1, 0xb2, 0xc3, 0xd4, ..]
            | [0xd4, 0xc3, 0xb2, 0xa1, ..]
            | [0xa1, 0xb2, 0x3c, 0x4d, ..]
            | [0x4d, 0x3c, 0xb2, 0xa1, ..] => Some(Self::Pcap),
            _ => erf::is_start(start).then_some(Self::Erf),
        }
    }
}

/// What packets of a capture are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PacketCounts {
    /// All of them.
    pub all: u64,
    /// TCP segments, whose headers are there.
    pub tcp: u64,
    /// IP packets of other protocols.
    pub other_ip: u64,
    /// Fragments but the first, which have no TCP header.
    pub fragments: u64,
    /// TCP segments of which not even the flags were captured.
    pub headers_cut: u64,
    /// No IP.
    pub not_ip: u64,
    /// Packets of which only the start was captured.
    pub truncated: u64,
}

/// Why there is nothing to say about a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Opening or decompressing failed.
    #[error("{}: cannot read after packet {packets}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Packets that could be read.
        packets: u64,
        /// What failed.
        source: io::Error,
    },
    /// It is none.
    #[error(
        "{}: is no packet capture; expected pcap, pcapng or ERF (an access log is read by `baton trace`)",
        path.display()
    )]
    NotACapture {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged.
    #[error("{}: damaged after packet {packets}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Packets that could be read.
        packets: u64,
        /// What is wrong.
        reason: String,
    },
    /// Frames of a kind that is not known.
    #[error(
        "{}: packet {packet} is of link type {link_type}, which is not read; expected Ethernet, raw IP, Linux cooked, loopback, PPP, HDLC or \
         LLC over ATM",
        path.display()
    )]
    LinkType {
        /// The file.
        path: PathBuf,
        /// The number of the packet.
        packet: u64,
        /// As pcap or ERF numbers it.
        link_type: String,
    },
    /// Nothing that a router could forward.
    #[error("{}: has no IPv4 packet that a router would forward among its {packets} packets", path.display())]
    NothingToRoute {
        /// The file.
        path: PathBuf,
        /// Packets that it has.
        packets: u64,
    },
    /// No TCP.
    #[error("{}: has no TCP segment among its {packets} packets", path.display())]
    NoConnections {
        /// The file.
        path: PathBuf,
        /// Packets that it has.
        packets: u64,
    },
}

/// What is wrong with a capture at a packet.
enum Problem {
    Io(io::Error),
    Damaged(String),
    LinkType(String),
}

/// A packet as it was captured.
struct Captured<'a> {
    /// Microseconds since 1970.
    time_us: u64,
    link: Link,
    /// What was kept of it.
    data: &'a [u8],
    /// Whether there was more.
    truncated: bool,
}

/// Gives packets one after the other.
trait Packets {
    /// The next packet, none at the end.
    fn next(&mut self) -> Result<Option<Captured<'_>>, Problem>;
}

impl CaptureAnalysis {
    /// Analyses the capture at `path`, or on standard input if that is `-`; it may be compressed as logs are.
    ///
    /// # Errors
    /// It cannot be read, is no capture, or has no TCP.
    pub fn read(path: &Path) -> Result<Self, CaptureError> {
        let file = open::open(path).map_err(|source| CaptureError::Io {
            path: path.to_owned(),
            packets: 0,
            source,
        })?;
        Self::from_reader(path, file)
    }

    /// Analyses a capture from `source`; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_reader(path: &Path, source: impl Read) -> Result<Self, CaptureError> {
        let mut counts = PacketCounts::default();
        let mut connections = Connections::default();
        let (format, cut_off) = read(path, source, |packet| {
            take(packet, &mut counts, &mut connections);
        })?;
        if counts.tcp == 0 {
            return Err(CaptureError::NoConnections {
                path: path.to_owned(),
                packets: counts.all,
            });
        }
        Ok(Self::of(format, counts, &connections, cut_off))
    }
}

impl Problem {
    /// The problem of the capture at `path`, of which so many packets could be read.
    fn of(self, path: &Path, packets: u64) -> CaptureError {
        let path = path.to_owned();
        match self {
            Self::Io(source) => CaptureError::Io {
                path,
                packets,
                source,
            },
            Self::Damaged(reason) => CaptureError::Damaged {
                path,
                packets,
                reason,
            },
            Self::LinkType(link_type) => CaptureError::LinkType {
                path,
                packet: packets + 1,
                link_type,
            },
        }
    }
}

/// Gives each packet of the capture from `source` to `take`. The format, and whether the capture ends within a packet.
fn read(
    path: &Path,
    source: impl Read,
    mut take: impl FnMut(&Captured<'_>),
) -> Result<(CaptureFormat, bool), CaptureError> {
    let mut packets = 0;
    let read = || {
        let (start, reader) = open::decompress(source).map_err(Problem::Io)?;
        let Some(format) = CaptureFormat::of(&start) else {
            return Ok(None);
        };
        let mut all: Box<dyn Packets> = match format {
            CaptureFormat::Pcap => Box::new(pcap::Pcap::new(reader)?),
            CaptureFormat::Pcapng => Box::new(pcap::Pcapng::new(reader)?),
            CaptureFormat::Erf => Box::new(erf::Erf::new(reader)),
        };
        loop {
            match all.next() {
                Ok(Some(packet)) => take(&packet),
                Ok(None) => return Ok(Some((format, false))),
                // Whoever captured was stopped: what is there counts.
                Err(Problem::Io(error))
                    if error.kind() == io::ErrorKind::UnexpectedEof && packets > 0 =>
                {
                    return Ok(Some((format, true)));
                }
                Err(problem) => return Err(problem),
            }
            packets += 1;
        }
    };
    match read() {
        Ok(Some(read)) => Ok(read),
        Ok(None) => Err(CaptureError::NotACapture {
            path: path.to_owned(),
        }),
        Err(problem) => Err(problem.of(path, packets)),
    }
}

fn take(packet: &Captured<'_>, counts: &mut PacketCounts, connections: &mut Connections) {
    counts.all += 1;
    counts.truncated += u64::from(packet.truncated);
    let segment = match packet.link.ip(packet.data) {
        Some(ip) => Segment::of(&ip),
        None => Content::NotIp,
    };
    match segment {
        Content::Tcp(segment) => {
            counts.tcp += 1;
            connections.take(packet.time_us, &segment);
        }
        Content::OtherIp => counts.other_ip += 1,
        Content::Fragment => counts.fragments += 1,
        Content::HeaderCut => counts.headers_cut += 1,
        Content::NotIp => counts.not_ip += 1,
    }
}

#[cfg(test)]
mod tests;
