//! Readers of pcap and pcapng files, using a library.

use super::link::Link;
use super::{Captured, Packets, Problem};
use pcap_file::PcapError;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::Block;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use std::io::Read;
use std::time::Duration;

/// Flag for a resolution that is a power of two instead of ten.
const BINARY: u8 = 0x80;
/// Microseconds, which are the default resolution.
const USUAL_RESOLUTION: u8 = 6;

pub(super) struct Pcap<R: Read> {
    reader: PcapReader<R>,
    /// Data of the packet returned last.
    data: Vec<u8>,
}

impl<R: Read> Pcap<R> {
    pub(super) fn new(reader: R) -> Result<Self, Problem> {
        let reader = PcapReader::new(reader).map_err(problem)?;
        Ok(Self {
            reader,
            data: Vec::new(),
        })
    }
}

impl<R: Read> Packets for Pcap<R> {
    fn next(&mut self) -> Result<Option<Captured<'_>>, Problem> {
        let link = link(self.reader.header().datalink.into())?;
        let Some(packet) = self.reader.next_packet().transpose().map_err(problem)? else {
            return Ok(None);
        };
        self.data.clear();
        self.data.extend_from_slice(&packet.data);
        Ok(Some(Captured {
            time_us: micros(packet.timestamp),
            link,
            truncated: packet.data.len() < packet.orig_len as usize,
            data: &self.data,
        }))
    }
}

pub(super) struct Pcapng<R: Read> {
    reader: PcapNgReader<R>,
    data: Vec<u8>,
}

impl<R: Read> Pcapng<R> {
    pub(super) fn new(reader: R) -> Result<Self, Problem> {
        let reader = PcapNgReader::new(reader).map_err(problem)?;
        Ok(Self {
            reader,
            data: Vec::new(),
        })
    }

    /// Reads the next packet into `data`; returns its interface, its time in the interface's units, and its original length.
    fn packet(&mut self) -> Result<Option<(usize, u64, u32)>, Problem> {
        while let Some(block) = self.reader.next_block() {
            let (interface, time, original, data) = match block.map_err(problem)? {
                // The library interprets the units of any interface as nanoseconds.
                Block::EnhancedPacket(packet) => (
                    packet.interface_id as usize,
                    packet.timestamp.as_nanos() as u64,
                    packet.original_len,
                    packet.data,
                ),
                Block::Packet(packet) => (
                    packet.interface_id.into(),
                    packet.timestamp,
                    packet.original_len,
                    packet.data,
                ),
                _ => continue,
            };
            self.data.clear();
            self.data.extend_from_slice(&data);
            return Ok(Some((interface, time, original)));
        }
        Ok(None)
    }
}

impl<R: Read> Packets for Pcapng<R> {
    fn next(&mut self) -> Result<Option<Captured<'_>>, Problem> {
        let Some((number, time, original)) = self.packet()? else {
            return Ok(None);
        };
        let interface = self.reader.interfaces().get(number);
        let interface = interface
            .ok_or_else(|| Problem::Damaged(format!("interface {number} has no description")))?;
        Ok(Some(Captured {
            time_us: units_us(time, resolution(interface)),
            link: link(interface.linktype.into())?,
            truncated: self.data.len() < original as usize,
            data: &self.data,
        }))
    }
}

/// Returns the time unit of an interface as a negative power of ten of a second, or with [`BINARY`] of two.
fn resolution(interface: &InterfaceDescriptionBlock<'_>) -> u8 {
    let given = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    given.unwrap_or(USUAL_RESOLUTION)
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

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

fn link(number: u32) -> Result<Link, Problem> {
    Link::of_pcap(number).ok_or_else(|| Problem::LinkType(number.to_string()))
}

fn problem(error: PcapError) -> Problem {
    match error {
        PcapError::IoError(error) => Problem::Io(error),
        other => Problem::Damaged(other.to_string()),
    }
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
