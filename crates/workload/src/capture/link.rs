//! Headers around IP packets: of links, and of tunnels.

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
    /// PPP without a header, as in tunnels.
    Ppp,
    /// LLC and SNAP, as on ATM (RFC 2684).
    LlcSnap,
    /// FDDI.
    Fddi,
    /// The protocol that an `EtherType` names.
    Typed(u16),
    /// A link type that is not read, by its number in pcap.
    Unread(u32),
    /// A link type that is not read, by its type in ERF.
    UnreadErf(u8),
}

/// Maximum number of headers around a packet. A packet with more is damaged.
const MOST_LAYERS: usize = 16;

impl Link {
    /// Returns the link layer with this libpcap number.
    pub(super) const fn of_pcap(number: u32) -> Self {
        match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            9 | 50 | 104 => Self::Hdlc,
            10 => Self::Fddi,
            51 => Self::Typed(0x8864),
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            100 => Self::LlcSnap,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            other => Self::Unread(other),
        }
    }

    /// Returns the IP packet in a frame, which may be truncated.
    ///
    /// # Errors
    /// The frame has no packet. The error is the name of the protocol that is not read, if it may carry one.
    pub(super) fn ip(self, frame: &[u8]) -> Result<&[u8], Option<String>> {
        let (mut link, mut rest) = (self, frame);
        for _ in 0..MOST_LAYERS {
            if link == Self::Ip {
                return Ok(rest);
            }
            (link, rest) = link.next(rest)?;
        }
        Err(None)
    }

    /// Removes one header, and returns what follows.
    fn next(self, frame: &[u8]) -> Result<(Self, &[u8]), Option<String>> {
        // The type at an offset, and the data after the header.
        let typed = |at: usize, header: usize| {
            Some((Self::Typed(number(frame, at)?), frame.get(header..)?))
        };
        let behind = |link: Self, header: usize| Some((link, frame.get(header..)?));
        let next = match self {
            Self::Ip => Some((Self::Ip, frame)),
            Self::Ethernet => match number(frame, 12) {
                Some(0..=1500) => behind(Self::LlcSnap, 14),
                _ => typed(12, 14),
            },
            Self::Loopback => behind(Self::Ip, 4),
            Self::LinuxCooked => match number(frame, 14) {
                Some(4) => behind(Self::LlcSnap, 16),
                _ => typed(14, 16),
            },
            Self::LinuxCooked2 => typed(0, 20),
            Self::Hdlc if matches!(frame, [0xff | 0x0f | 0x8f, ..]) => typed(2, 4),
            Self::Hdlc | Self::Ppp => ppp(frame),
            Self::Fddi => behind(Self::LlcSnap, 13),
            Self::LlcSnap => match frame {
                [0xaa, 0xaa, 3, ..] => typed(6, 8),
                [6, 6, 3, ..] => behind(Self::Ip, 3),
                _ => None,
            },
            Self::Typed(kind) => return Self::of_type(kind, frame),
            Self::Unread(number) => return Err(Some(format!("link type {number}"))),
            Self::UnreadErf(kind) => return Err(Some(format!("link type ERF {kind}"))),
        };
        next.ok_or(None)
    }

    /// Returns the protocol that an `EtherType` names, and the frame without that protocol's header, if it is a tag.
    fn of_type(kind: u16, frame: &[u8]) -> Result<(Self, &[u8]), Option<String>> {
        let typed = |at: usize| Some((Self::Typed(number(frame, at)?), frame.get(at + 2..)?));
        let next = match kind {
            0x0800 | 0x86dd | 0x0021 | 0x0057 => Some((Self::Ip, frame)),
            // 802.1Q and 802.1ad, also by other numbers; Cisco's VN-tag.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => typed(2),
            0x8926 => typed(4),
            // Cisco's FabricPath, whose type stands where a frame's type does; 802.1ah.
            0x8903 => frame.get(2..).map(|rest| (Self::Ethernet, rest)),
            0x88e7 => frame.get(4..).map(|rest| (Self::Ethernet, rest)),
            0x6558 => Some((Self::Ethernet, frame)),
            0x8847 | 0x8848 | 0x0281 => mpls(frame),
            0x8864 => frame.get(6..).and_then(ppp),
            0x88e5 => return Err(Some("MACsec".to_owned())),
            0x894f => return Err(Some("a network service header".to_owned())),
            _ => None,
        };
        next.ok_or(None)
    }
}

/// Returns what an IP packet of this protocol carries if it is a tunnel. A UDP packet is one if its port is that of a tunnel.
///
/// # Errors
/// The name of a tunnel that is not looked into.
pub(super) fn tunnelled(
    protocol: u8,
    payload: &[u8],
) -> Result<Option<(Link, &[u8])>, &'static str> {
    Ok(match protocol {
        4 | 41 => Some((Link::Ip, payload)),
        17 => over_udp(payload),
        47 => gre(payload),
        50 => return Err("ESP"),
        97 => payload.get(2..).map(|rest| (Link::Ethernet, rest)),
        115 => return Err("L2TP"),
        137 => mpls(payload),
        _ => None,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// PPP's protocol number has one byte if that byte is odd.
fn ppp(frame: &[u8]) -> Option<(Link, &[u8])> {
    let frame = frame.strip_prefix(&[0xff, 3]).unwrap_or(frame);
    let (&first, rest) = frame.split_first()?;
    match first & 1 {
        1 => Some((Link::Typed(first.into()), rest)),
        _ => Some((Link::Typed(number(frame, 0)?), frame.get(2..)?)),
    }
}

/// Labels up to the bottom of the stack (RFC 3032); then IP, or Ethernet, with or without a control word (RFC 4448).
fn mpls(frame: &[u8]) -> Option<(Link, &[u8])> {
    let labels = frame.chunks_exact(4).position(|label| label[2] & 1 == 1)? + 1;
    let rest = &frame[4 * labels..];
    match rest.first()? >> 4 {
        4 | 6 => Some((Link::Ip, rest)),
        0 if number(rest, 0)? == 0 => Some((Link::Ethernet, rest.get(4..)?)),
        _ => Some((Link::Ethernet, rest)),
    }
}

/// GRE (RFC 2784, 2890), as PPTP has it (RFC 2637), and ERSPAN in it.
fn gre(packet: &[u8]) -> Option<(Link, &[u8])> {
    let (flags, kind) = (number(packet, 0)?, number(packet, 2)?);
    let has = |bit: u16| usize::from(flags & bit != 0);
    let is_pptp = flags & 7 == 1;
    let words =
        has(0x8000 | 0x4000) + has(0x2000) + has(0x1000) + if is_pptp { has(0x80) } else { 0 };
    let rest = packet.get(4 + 4 * words..)?;
    match kind {
        0x880b => Some((Link::Ppp, rest)),
        // ERSPAN I has no header, II has one of 8 bytes and a sequence number, III has 12 and perhaps 8 more.
        0x88be => Some((Link::Ethernet, rest.get(8 * has(0x1000)..)?)),
        0x22eb => Some((
            Link::Ethernet,
            rest.get(12 + 8 * usize::from(rest.get(11)? & 1)..)?,
        )),
        other => Some((Link::Typed(other), rest)),
    }
}

fn over_udp(packet: &[u8]) -> Option<(Link, &[u8])> {
    let rest = packet.get(8..)?;
    match number(packet, 2)? {
        // VXLAN (RFC 7348), by its port and by Linux's first one.
        4789 | 8472 if rest.first()? & 8 != 0 => Some((Link::Ethernet, rest.get(8..)?)),
        // VXLAN-GPE names the next protocol.
        4790 => match rest.get(3)? {
            1 | 2 => Some((Link::Ip, rest.get(8..)?)),
            3 => Some((Link::Ethernet, rest.get(8..)?)),
            _ => None,
        },
        // Geneve (RFC 8926).
        6081 => {
            let options = 4 * usize::from(rest.first()? & 0x3f);
            Some((Link::Typed(number(rest, 2)?), rest.get(8 + options..)?))
        }
        2152 => gtp(rest),
        6635 => mpls(rest),
        // Teredo.
        3544 if rest.first()? >> 4 == 6 => Some((Link::Ip, rest)),
        _ => None,
    }
}

/// Packets of users in GTP version 1 (3GPP TS 29.281), behind extension headers.
fn gtp(packet: &[u8]) -> Option<(Link, &[u8])> {
    let (flags, kind) = (*packet.first()?, *packet.get(1)?);
    if flags >> 5 != 1 || kind != 255 {
        return None;
    }
    let mut at = if flags & 7 == 0 { 8 } else { 12 };
    let mut more = flags & 4 != 0 && *packet.get(11)? != 0;
    while more {
        let length = 4 * usize::from(*packet.get(at)?).max(1);
        at += length;
        more = *packet.get(at - 1)? != 0;
    }
    Some((Link::Ip, packet.get(at..)?))
}
