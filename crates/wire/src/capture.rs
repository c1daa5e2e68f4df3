//! Capture files in the pcapng format (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump read.

use crate::Time;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

/// Timestamps count units of 10^-9 s (option `if_tsresol`).
const RESOLUTION_NS: u8 = 9;

/// Directions in the option `epb_flags`.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Metadata of a captured frame in addition to its time and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameNotes<'a> {
    /// Whether the frame was received rather than sent; `None` if unknown.
    pub is_inbound: Option<bool>,
    /// A comment for people.
    pub comment: Option<&'a str>,
    /// Number of frames lost before this frame.
    pub lost_before: u64,
}

/// Writes the Ethernet frames of one interface to a file.
///
/// Each frame is written immediately, so use a buffered writer. Only [`CaptureWriter::flush`] flushes the writer.
pub struct CaptureWriter<W: Write> {
    file: PcapNgWriter<W>,
    /// Wall-clock time of [`Time::ZERO`].
    epoch: Duration,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a file for one interface.
    ///
    /// # Errors
    /// When `writer` fails.
    pub fn new(writer: W, interface_name: &str) -> io::Result<Self> {
        let mut file = PcapNgWriter::new(writer).map_err(io_error)?;
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(interface_name)),
                InterfaceDescriptionOption::IfTsResol(RESOLUTION_NS),
            ],
        };
        file.write_pcapng_block(interface).map_err(io_error)?;
        Ok(Self {
            file,
            epoch: Duration::ZERO,
        })
    }

    /// Sets the time that [`Time::ZERO`] stands for, as a duration since the start of 1970. The default is zero.
    #[must_use]
    pub fn with_epoch(self, epoch: Duration) -> Self {
        Self { epoch, ..self }
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.get_mut().flush()
    }

    /// Adds a frame that passed at `at`, without its frame check sequence. `original_len` is its length on the link in bytes, which is
    /// greater than that of `frame` if only the beginning is kept.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_frame(&mut self, at: Time, frame: &[u8], original_len: usize) -> io::Result<()> {
        self.write_noted(at, frame, original_len, FrameNotes::default())
    }

    /// Adds a frame with metadata; see [`CaptureWriter::write_frame`].
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_noted(
        &mut self,
        at: Time,
        frame: &[u8],
        original_len: usize,
        notes: FrameNotes<'_>,
    ) -> io::Result<()> {
        debug_assert!(
            original_len >= frame.len(),
            "no more is kept than there was"
        );
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: self.epoch + Duration::from_nanos(at.as_ps() / 1000),
            original_len: u32::try_from(original_len).unwrap_or(u32::MAX),
            data: Cow::Borrowed(frame),
            options: options_of(notes),
        };
        self.file.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }

    /// Ends the capture of an interface with its total number of frames, and the number of lost frames.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_totals(&mut self, at: Time, frames: u64, lost: u64) -> io::Result<()> {
        let at_ns = (self.epoch + Duration::from_nanos(at.as_ps() / 1000)).as_nanos() as u64;
        let block = InterfaceStatisticsBlock {
            interface_id: 0,
            // The format stores the upper half first in either byte order; the library does not do this here.
            timestamp: match cfg!(target_endian = "little") {
                true => at_ns.rotate_left(32),
                false => at_ns,
            },
            options: vec![
                InterfaceStatisticsOption::IsbIfRecv(frames),
                InterfaceStatisticsOption::IsbIfDrop(lost),
            ],
        };
        self.file.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }

    /// Returns the writer.
    pub fn get_mut(&mut self) -> &mut W {
        self.file.get_mut()
    }

    /// Returns the underlying writer and drops the capture's state.
    pub fn into_inner(self) -> W {
        self.file.into_inner()
    }
}

fn options_of(notes: FrameNotes<'_>) -> Vec<EnhancedPacketOption<'_>> {
    let FrameNotes {
        is_inbound,
        comment,
        lost_before,
    } = notes;
    let mut options = Vec::new();
    options.extend(comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))));
    options.extend(is_inbound.map(|is_inbound| {
        let direction = if is_inbound { INBOUND } else { OUTBOUND };
        EnhancedPacketOption::Flags(direction)
    }));
    if lost_before > 0 {
        options.push(EnhancedPacketOption::DropCount(lost_before));
    }
    options
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
