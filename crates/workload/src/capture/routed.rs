//! Packets of a capture that a router would receive.

use super::{CaptureError, read};
use crate::log::open;
use crate::packets::{LeftOut, MOST_BYTES, PacketTrace, TracePacket, is_forwarded};
use etherparse::{LaxNetSlice, LaxSlicedPacket};
use std::path::Path;

/// Reads the packets that a router would forward from the capture at `path`, or from standard input if that is `-`.
///
/// # Errors
/// The file cannot be read, is not a capture, or has no packet to forward.
pub(crate) fn read_routed(path: &Path) -> Result<PacketTrace, CaptureError> {
    let file = open::open(path).map_err(|source| CaptureError::Io {
        path: path.to_owned(),
        packets: 0,
        source,
    })?;
    let (mut packets, mut left_out) = (Vec::new(), LeftOut::default());
    read(path, file, |captured| {
        let ip = captured.link.ip(captured.data).ok();
        let sliced = ip.and_then(|ip| LaxSlicedPacket::from_ip(ip).ok());
        match sliced.as_ref().and_then(packet) {
            None => left_out.not_ipv4 += 1,
            Some(packet) if packet.len > MOST_BYTES => left_out.too_long += 1,
            Some(packet) if !is_forwarded(&packet) => left_out.not_forwarded += 1,
            Some(packet) => packets.push(packet),
        }
    })?;
    if packets.is_empty() {
        return Err(CaptureError::NothingToRoute {
            path: path.to_owned(),
            packets: left_out.total(),
        });
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(PacketTrace {
        name: name.to_string_lossy().into_owned(),
        packets,
        left_out,
    })
}

fn packet(sliced: &LaxSlicedPacket<'_>) -> Option<TracePacket> {
    let LaxNetSlice::Ipv4(ip) = sliced.net.as_ref()? else {
        return None;
    };
    let header = ip.header();
    Some(TracePacket {
        len: header.total_len(),
        src: header.source_addr(),
        dst: header.destination_addr(),
        protocol: header.protocol().0,
        ttl: header.ttl(),
    })
}
