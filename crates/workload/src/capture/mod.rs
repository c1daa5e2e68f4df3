//! Packet captures: how long TCP connections live, and how much they carry.
//!
//! Headers are enough: the length of a segment's data follows from its IP and TCP headers, which are read as far as they were captured.
//! One direction is enough for most purposes: the bytes of the other direction follow from the acknowledgments. [`CaptureAnalysis::limits`]
//! lists what a capture does not show.

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
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// File format of a capture.
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
    /// Returns the name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
            Self::Erf => "erf",
        }
    }

    /// Recognises the format by the first bytes of a capture. ERF has no magic number, so its first record must be valid.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Some(Self::Pcapng),
            _ if pcap::Pcap::<&[u8]>::is_start(start) => Some(Self::Pcap),
            _ => erf::is_start(start).then_some(Self::Erf),
        }
    }
}

/// Counts of the packets in a capture, by kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PacketCounts {
    /// All packets.
    pub all: u64,
    /// TCP segments with captured headers.
    pub tcp: u64,
    /// IP packets of other protocols.
    pub other_ip: u64,
    /// Fragments except the first, which have no TCP header.
    pub fragments: u64,
    /// TCP segments whose flags were not captured.
    pub headers_cut: u64,
    /// Packets without IP.
    pub not_ip: u64,
    /// Packets that may contain TCP in a protocol that is not read, by its name, such as `ESP` or a link type.
    pub not_looked_into: BTreeMap<String, u64>,
    /// Packets without a time in the capture.
    pub without_time: u64,
    /// Packets that were captured only partially.
    pub truncated: u64,
}

/// Why a capture cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Opening, reading or decompressing the file failed.
    #[error("{}: cannot read after packet {packets}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Number of packets read before the error.
        packets: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a packet capture.
    #[error(
        "{}: is not a packet capture; expected pcap, pcapng or ERF (an access log is read by `baton trace`)",
        path.display()
    )]
    NotACapture {
        /// The file.
        path: PathBuf,
    },
    /// The capture is damaged.
    #[error("{}: damaged after packet {packets}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of packets read before the damage.
        packets: u64,
        /// Description of the damage.
        reason: String,
    },
    /// The capture has no packet that a router would forward.
    #[error("{}: has no IPv4 packet that a router would forward among its {packets} packets", path.display())]
    NothingToRoute {
        /// The file.
        path: PathBuf,
        /// Number of packets in the capture.
        packets: u64,
    },
    /// The capture has no TCP segment.
    #[error("{}: has no TCP segment among its {} packets{}", path.display(), packets.all, packets.others())]
    NoConnections {
        /// The file.
        path: PathBuf,
        /// The packets in the capture.
        packets: Box<PacketCounts>,
    },
}

/// An error at a packet of a capture.
enum Problem {
    Io(io::Error),
    Damaged(String),
}

/// A packet as it was captured.
struct Captured<'a> {
    /// Microseconds since 1970.
    time_us: u64,
    link: Link,
    /// Captured bytes of the packet.
    data: &'a [u8],
    /// Whether the packet was longer than `data`.
    truncated: bool,
    /// Number of bytes at the end that were not captured.
    missing: usize,
    /// Whether the capture has a time for the packet. If not, `time_us` is that of the previous packet.
    has_time: bool,
}

impl<'a> Captured<'a> {
    /// Creates a packet of `wire_bytes` bytes, the last of which are a check sequence of `fcs_bytes`.
    fn new(time_us: u64, link: Link, data: &'a [u8], wire_bytes: usize, fcs_bytes: usize) -> Self {
        let frame_bytes = wire_bytes.max(data.len()).saturating_sub(fcs_bytes);
        let data = &data[..data.len().min(frame_bytes)];
        Self {
            time_us,
            link,
            data,
            truncated: data.len() < frame_bytes,
            missing: frame_bytes - data.len(),
            has_time: true,
        }
    }
}

impl PacketCounts {
    /// Describes the packets without TCP, for a message that begins with their number.
    fn others(&self) -> String {
        let named = [
            (self.other_ip, "of other IP".to_owned()),
            (self.fragments, "fragments".to_owned()),
            (self.headers_cut, "cut off before TCP's flags".to_owned()),
            (self.not_ip, "without IP".to_owned()),
        ];
        let unread = self.not_looked_into.iter();
        let unread =
            unread.map(|(name, &count)| (count, format!("in {name}, which is not looked into")));
        let all = named
            .into_iter()
            .chain(unread)
            .filter(|(count, _)| *count > 0);
        let all: Vec<String> = all.map(|(count, name)| format!("{count} {name}")).collect();
        if all.is_empty() {
            String::new()
        } else {
            format!(": {}", all.join(", "))
        }
    }
}

/// A reader of packets.
trait Packets {
    /// Returns the next packet, or `None` at the end.
    fn next(&mut self) -> Result<Option<Captured<'_>>, Problem>;
}

impl CaptureAnalysis {
    /// Analyses the capture at `path`, or on standard input if that is `-`; the capture may be compressed like a log.
    ///
    /// # Errors
    /// The file cannot be read, is not a capture, or has no TCP.
    pub fn read(path: &Path) -> Result<Self, CaptureError> {
        let file = open::open(path).map_err(|source| CaptureError::Io {
            path: path.to_owned(),
            packets: 0,
            source,
        })?;
        Self::from_reader(path, file)
    }

    /// Analyses a capture from `source`; `path` is used in error messages.
    ///
    /// # Errors
    /// The same errors as [`Self::read`].
    pub fn from_reader(path: &Path, source: impl Read) -> Result<Self, CaptureError> {
        let mut counts = PacketCounts::default();
        let mut connections = Connections::default();
        let (format, cut_off) = read(path, source, |packet| {
            take(packet, &mut counts, &mut connections);
        })?;
        if counts.tcp == 0 {
            return Err(CaptureError::NoConnections {
                path: path.to_owned(),
                packets: Box::new(counts),
            });
        }
        Ok(Self::of(format, counts, &connections, cut_off))
    }
}

impl Problem {
    /// Converts the problem to an error for the capture at `path`, of which `packets` packets were read.
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
        }
    }
}

/// Calls `take` for each packet of the capture from `source`. Returns the format, and whether the capture ends within a packet.
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
            CaptureFormat::Pcapng => Box::new(pcap::Pcapng::new(reader)),
            CaptureFormat::Erf => Box::new(erf::Erf::new(reader)),
        };
        loop {
            match all.next() {
                Ok(Some(packet)) => take(&packet),
                Ok(None) => return Ok(Some((format, false))),
                // The capture was interrupted; use what it contains.
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
    counts.without_time += u64::from(!packet.has_time);
    match Segment::of(packet) {
        Content::Tcp(segment) => {
            counts.tcp += 1;
            connections.take(packet.time_us, &segment);
        }
        Content::OtherIp => counts.other_ip += 1,
        Content::Fragment => counts.fragments += 1,
        Content::HeaderCut => counts.headers_cut += 1,
        Content::NotIp => counts.not_ip += 1,
        Content::Unread(name) => *counts.not_looked_into.entry(name).or_default() += 1,
    }
}

#[cfg(test)]
mod tests;
