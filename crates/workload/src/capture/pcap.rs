//! Readers of pcap and pcapng files (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). They check only what they need to find the packets,
//! as tcpdump and Wireshark do: writers differ in everything else.

use super::link::Link;
use super::{Captured, Packets, Problem};
use std::io::{BufRead, Read};

/// Maximum size of a packet or block, bytes, so that a damaged length does not use up the memory.
const MOST_BYTES: u32 = 64 << 20;
/// Flag for a resolution that is a power of two instead of ten.
const BINARY: u8 = 0x80;
/// Microseconds, which are the default resolution.
const USUAL_RESOLUTION: u8 = 6;

/// Order of the bytes of a file's numbers.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let number = bytes.get(at..at + 2).and_then(<[u8]>::first_chunk);
        let number = *number.unwrap_or(&[0; 2]);
        if self.big {
            u16::from_be_bytes(number)
        } else {
            u16::from_le_bytes(number)
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let (low, high) = (self.u16(bytes, at), self.u16(bytes, at + 2));
        let (low, high) = if self.big { (high, low) } else { (low, high) };
        u32::from(high) << 16 | u32::from(low)
    }

    /// Returns a 64-bit number whose upper half comes first in either byte order, as in packets' times.
    fn halves(self, bytes: &[u8], at: usize) -> u64 {
        u64::from(self.u32(bytes, at)) << 32 | u64::from(self.u32(bytes, at + 4))
    }
}

/// Reads `len` bytes into `data`.
fn fill(reader: &mut impl Read, data: &mut Vec<u8>, len: u32) -> Result<(), Problem> {
    if len > MOST_BYTES {
        return Err(Problem::Damaged(format!(
            "a packet or block of {len} bytes; expected at most {MOST_BYTES}"
        )));
    }
    data.resize(len as usize, 0);
    reader.read_exact(data).map_err(Problem::Io)
}

pub(super) struct Pcap<R> {
    reader: R,
    order: Order,
    /// Number of time units in a microsecond.
    units: u32,
    /// Size of the header of a packet, bytes.
    header_bytes: u32,
    /// Whether the captured length may come after the original one, as in files of before 1997.
    old: bool,
    link: Link,
    /// Size of the check sequence at the end of a frame, bytes.
    fcs_bytes: usize,
    header: Vec<u8>,
    data: Vec<u8>,
}

impl<R: BufRead> Pcap<R> {
    /// Returns the order of bytes and the magic number in it, if this is the start of such a file.
    fn magic(start: &[u8]) -> Option<(Order, u32)> {
        let known =
            |&order: &Order| matches!(order.u32(start, 0), 0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34);
        let order = [Order { big: true }, Order { big: false }]
            .into_iter()
            .find(known)?;
        Some((order, order.u32(start, 0)))
    }

    pub(super) fn is_start(start: &[u8]) -> bool {
        start.len() >= 4 && Self::magic(start).is_some()
    }

    pub(super) fn new(mut reader: R) -> Result<Self, Problem> {
        let mut header = Vec::new();
        fill(&mut reader, &mut header, 24)?;
        let no_magic = || Problem::Damaged("no magic number".to_owned());
        let (order, magic) = Self::magic(&header).ok_or_else(no_magic)?;
        // If bit 26 is set, the bits above it have the length of the check sequence, in units of 16 bits.
        let link = order.u32(&header, 20);
        let fcs_bytes = if link & 1 << 26 == 0 {
            0
        } else {
            link >> 28 << 1
        };
        Ok(Self {
            reader,
            order,
            units: if magic == 0xa1b2_3c4d { 1000 } else { 1 },
            // Alexey Kuznetsov's variant adds the interface.
            header_bytes: if magic == 0xa1b2_cd34 { 24 } else { 16 },
            old: (order.u16(&header, 4), order.u16(&header, 6)) <= (2, 3),
            link: Link::of_pcap(link & 0x03ff_ffff),
            fcs_bytes: fcs_bytes as usize,
            header,
            data: Vec::new(),
        })
    }
}

impl<R: BufRead> Packets for Pcap<R> {
    fn next(&mut self) -> Result<Option<Captured<'_>>, Problem> {
        if self.reader.fill_buf().map_err(Problem::Io)?.is_empty() {
            return Ok(None);
        }
        fill(&mut self.reader, &mut self.header, self.header_bytes)?;
        let number = |at| self.order.u32(&self.header, at);
        let (mut kept, mut wire) = (number(8), number(12));
        if self.old && kept > wire {
            (kept, wire) = (wire, kept);
        }
        let time_us = u64::from(number(0)) * 1_000_000 + u64::from(number(4) / self.units);
        fill(&mut self.reader, &mut self.data, kept)?;
        Ok(Some(Captured::new(
            time_us,
            self.link,
            &self.data,
            wire as usize,
            self.fcs_bytes,
        )))
    }
}

/// An interface of a pcapng file.
#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    /// The longest captured part of a packet, 0 for any.
    snaplen: u32,
    /// Time unit as a negative power of ten of a second, or with [`BINARY`] of two.
    resolution: u8,
    /// Seconds to add to times.
    offset_s: u64,
    fcs_bytes: usize,
}

pub(super) struct Pcapng<R> {
    reader: R,
    order: Order,
    interfaces: Vec<Interface>,
    /// Time of the previous packet, for packets without a time.
    last_us: u64,
    block: Vec<u8>,
}

/// A packet within a block.
struct Place {
    interface: usize,
    /// Time in the interface's units; `None` for simple packets.
    time: Option<u64>,
    start: usize,
    kept: usize,
    wire: usize,
}

impl<R: BufRead> Pcapng<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            order: Order { big: false },
            interfaces: Vec::new(),
            last_us: 0,
            block: Vec::new(),
        }
    }

    /// Reads the next block, without its lengths, and returns its type; `None` at the end.
    fn block(&mut self) -> Result<Option<u32>, Problem> {
        const SECTION: u32 = 0x0a0d_0d0a;
        if self.reader.fill_buf().map_err(Problem::Io)?.is_empty() {
            return Ok(None);
        }
        let mut head = [0; 12];
        self.reader
            .read_exact(&mut head[..8])
            .map_err(Problem::Io)?;
        let mut before = 8;
        if self.order.u32(&head, 0) == SECTION {
            self.reader
                .read_exact(&mut head[8..])
                .map_err(Problem::Io)?;
            before = 12;
            self.order.big = head[8..] == [0x1a, 0x2b, 0x3c, 0x4d];
            self.interfaces.clear();
        }
        let (kind, len) = (self.order.u32(&head, 0), self.order.u32(&head, 4));
        let rest = len.checked_next_multiple_of(4);
        let rest = rest.and_then(|len| len.checked_sub(before));
        let rest = rest
            .filter(|&rest| rest >= 4 && len < MOST_BYTES)
            .ok_or_else(|| {
                Problem::Damaged(format!(
                    "a block of {len} bytes; expected 12 to {MOST_BYTES}"
                ))
            })?;
        fill(&mut self.reader, &mut self.block, rest)?;
        // The length is repeated after the block.
        self.block.truncate(rest as usize - 4);
        Ok(Some(kind))
    }

    fn interface(&self) -> Interface {
        let (order, block) = (self.order, self.block.as_slice());
        let mut interface = Interface {
            link: Link::of_pcap(order.u16(block, 0).into()),
            snaplen: order.u32(block, 4),
            resolution: USUAL_RESOLUTION,
            offset_s: 0,
            fcs_bytes: 0,
        };
        let mut rest = block.get(8..).unwrap_or_default();
        while rest.len() >= 4 {
            let (code, len) = (order.u16(rest, 0), usize::from(order.u16(rest, 2)));
            let value = rest.get(4..4 + len).unwrap_or_default();
            match (code, value) {
                (0, _) => break,
                (9, &[resolution, ..]) => interface.resolution = resolution,
                (13, &[bits, ..]) => interface.fcs_bytes = usize::from(bits / 8),
                (14, _) if len == 8 => {
                    let (first, second) = (order.u32(value, 0), order.u32(value, 4));
                    let (low, high) = if order.big {
                        (second, first)
                    } else {
                        (first, second)
                    };
                    interface.offset_s = u64::from(high) << 32 | u64::from(low);
                }
                _ => {}
            }
            rest = rest.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        interface
    }

    /// Returns where the packet of a block is, if the block has one.
    fn packet(&self, kind: u32) -> Option<Place> {
        let (order, block) = (self.order, self.block.as_slice());
        let number = |at| order.u32(block, at) as usize;
        let (interface, time, start, kept, wire) = match kind {
            // Enhanced packet block, obsolete packet block, simple packet block.
            6 => (
                number(0),
                Some(order.halves(block, 4)),
                20,
                number(12),
                number(16),
            ),
            2 => {
                let interface = order.u16(block, 0).into();
                (
                    interface,
                    Some(order.halves(block, 4)),
                    20,
                    number(12),
                    number(16),
                )
            }
            3 => {
                let snaplen = self
                    .interfaces
                    .first()
                    .map_or(0, |first| first.snaplen as usize);
                let kept = if snaplen == 0 {
                    number(0)
                } else {
                    number(0).min(snaplen)
                };
                (0, None, 4, kept, number(0))
            }
            _ => return None,
        };
        Some(Place {
            interface,
            time,
            start: start.min(block.len()),
            kept: kept.min(block.len().saturating_sub(start)),
            wire,
        })
    }
}

impl<R: BufRead> Packets for Pcapng<R> {
    fn next(&mut self) -> Result<Option<Captured<'_>>, Problem> {
        let place = loop {
            let Some(kind) = self.block()? else {
                return Ok(None);
            };
            if kind == 1 {
                self.interfaces.push(self.interface());
            } else if let Some(place) = self.packet(kind) {
                break place;
            }
        };
        let Some(interface) = self.interfaces.get(place.interface) else {
            return Err(Problem::Damaged(format!(
                "interface {} has no description",
                place.interface
            )));
        };
        if let Some(time) = place.time {
            let offset_us = interface.offset_s.wrapping_mul(1_000_000);
            self.last_us = units_us(time, interface.resolution).wrapping_add(offset_us);
        }
        let data = &self.block[place.start..place.start + place.kept];
        let packet = Captured::new(
            self.last_us,
            interface.link,
            data,
            place.wire,
            interface.fcs_bytes,
        );
        Ok(Some(Captured {
            has_time: place.time.is_some(),
            ..packet
        }))
    }
}

fn units_us(units: u64, resolution: u8) -> u64 {
    let units = u128::from(units);
    let micros = match resolution & !BINARY {
        power if resolution & BINARY != 0 => (units * 1_000_000).checked_shr(power.into()),
        power => 10u128
            .checked_pow(power.into())
            .map(|parts| units * 1_000_000 / parts),
    };
    micros.unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_any_resolution_become_microseconds() {
        assert_eq!(units_us(1_500_000, 6), 1_500_000);
        assert_eq!(units_us(1_500_000_000, 9), 1_500_000);
        assert_eq!(units_us(3, 0), 3_000_000);
        assert_eq!(units_us(3, BINARY | 1), 1_500_000);
        assert_eq!(units_us(3, 127), 0);
        assert_eq!(units_us(3, BINARY | 127), 0);
    }
}
