//! Link layer headers of IP packets.

use etherparse::{EtherType, LaxSlicedPacket};

/// Link layer of the frames in a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Ethernet,
    /// IP without a link layer header.
    Ip,
    /// The four-byte header of a loopback interface.
    Loopback,
    /// Linux's "any" interface.
    LinuxCooked,
    /// Version 2 of [`Self::LinuxCooked`].
    LinuxCooked2,
    /// PPP or Cisco's HDLC.
    Hdlc,
    /// LLC and SNAP, as on ATM (RFC 2684).
    LlcSnap,
}

impl Link {
    /// Returns the link layer with this libpcap number.
    pub(super) const fn of_pcap(number: u32) -> Option<Self> {
        Some(match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            9 | 50 | 104 => Self::Hdlc,
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            100 => Self::LlcSnap,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            _ => return None,
        })
    }

    /// Returns the IP packet in a frame, which may be truncated.
    pub(super) fn ip(self, frame: &[u8]) -> Option<LaxSlicedPacket<'_>> {
        let typed = |at: usize, header: usize| {
            let ether_type = frame.get(at..at + 2)?;
            let ether_type = u16::from_be_bytes([ether_type[0], ether_type[1]]);
            // PPP's protocol numbers of IPv4 and IPv6.
            let ether_type = match ether_type {
                0x0021 => 0x0800,
                0x0057 => 0x86dd,
                other => other,
            };
            let packet = frame.get(header..)?;
            Some(LaxSlicedPacket::from_ether_type(
                EtherType(ether_type),
                packet,
            ))
        };
        match self {
            Self::Ethernet => LaxSlicedPacket::from_ethernet(frame).ok(),
            Self::Ip => LaxSlicedPacket::from_ip(frame).ok(),
            Self::Loopback => LaxSlicedPacket::from_ip(frame.get(4..)?).ok(),
            Self::LinuxCooked => typed(14, 16),
            Self::LinuxCooked2 => typed(0, 20),
            Self::Hdlc => typed(2, 4),
            Self::LlcSnap => (frame.first() == Some(&0xaa))
                .then(|| typed(6, 8))
                .flatten(),
        }
    }
}
