//! Packets of scenarios, in text and as bytes.

use baton_wire::{
    Ecn, Endpoint, Flags, Header, Options, SackBlock, SeqNr, Timestamps, decode_packet,
    encode_packet,
};
use std::fmt;
use std::net::IpAddr;

/// The peer's initial sequence number: near the end of the number space, so that everything is tried across it.
const PEER_ISS: u32 = u32::MAX - 5000;

/// The peer's ports: as a client, and as a server.
const PEER_PORT: u16 = 50_000;
pub const SERVER_PORT: u16 = 8080;

/// A packet as a line says it: what is not named is not looked at.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    flags: String,
    seq: Option<u32>,
    len: Option<usize>,
    ack: Option<u32>,
    window: Option<u16>,
    mss: Option<u16>,
    scale: Option<u8>,
    sack_permitted: Option<bool>,
    stamp: Option<(Option<u32>, Option<u32>)>,
    sack: Option<Vec<(u32, u32)>>,
    ecn: Option<Ecn>,
    service: Option<u8>,
}

impl Packet {
    /// Reads `FLAGS key=value ...`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut packet = Self {
            flags: words.next().ok_or("a packet has flags")?.to_owned(),
            ..Self::default()
        };
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let bad = || format!("{word} makes no sense");
            match key {
                "seq" => packet.seq = Some(value.parse().map_err(|_| bad())?),
                "len" => packet.len = Some(value.parse().map_err(|_| bad())?),
                "ack" => packet.ack = Some(value.parse().map_err(|_| bad())?),
                "win" => packet.window = Some(value.parse().map_err(|_| bad())?),
                "mss" => packet.mss = Some(value.parse().map_err(|_| bad())?),
                "ws" => packet.scale = Some(value.parse().map_err(|_| bad())?),
                "tos" => packet.service = Some(value.parse().map_err(|_| bad())?),
                "sackok" => packet.sack_permitted = Some(true),
                "nosackok" => packet.sack_permitted = Some(false),
                "ts" => packet.stamp = Some(parse_stamp(value).ok_or_else(bad)?),
                "sack" => packet.sack = Some(parse_blocks(value).ok_or_else(bad)?),
                "ecn" => packet.ecn = Some(parse_ecn(value).ok_or_else(bad)?),
                _ => return Err(bad()),
            }
        }
        Ok(packet)
    }

    /// Every field that is named is the same.
    pub fn compare(&self, got: &Self) -> Result<(), String> {
        let differs = |what: &str| Err(format!("{what} differs: {got}"));
        if self.flags != got.flags {
            return differs("flags");
        }
        if self.seq.is_some() && self.seq != got.seq {
            return differs("seq");
        }
        // No length means no data.
        if self.len.unwrap_or(0) != got.len.unwrap_or(0) {
            return differs("len");
        }
        if self.ack.is_some() && self.ack != got.ack {
            return differs("ack");
        }
        if self.window.is_some() && self.window != got.window {
            return differs("win");
        }
        if self.mss.is_some() && self.mss != got.mss {
            return differs("mss");
        }
        if self.scale.is_some() && self.scale != got.scale {
            return differs("ws");
        }
        if self.sack_permitted.is_some() && self.sack_permitted != got.sack_permitted {
            return differs("sackok");
        }
        if let Some((value, echo)) = self.stamp {
            let Some((got_value, got_echo)) = got.stamp else {
                return differs("ts");
            };
            if value.is_some() && value != got_value || echo.is_some() && echo != got_echo {
                return differs("ts");
            }
        }
        if self.sack.is_some()
            && self.sack.clone().unwrap_or_default() != got.sack.clone().unwrap_or_default()
        {
            return differs("sack");
        }
        if self.ecn.is_some() && self.ecn != got.ecn {
            return differs("ecn");
        }
        if self.service.is_some() && self.service != got.service {
            return differs("tos");
        }
        Ok(())
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out {}", self.flags)?;
        let mut field = |name: &str, value: Option<u32>| match value {
            Some(value) => write!(f, " {name}={value}"),
            None => Ok(()),
        };
        field("seq", self.seq)?;
        field("len", self.len.map(|len| len as u32))?;
        field("ack", self.ack)?;
        field("win", self.window.map(u32::from))?;
        field("mss", self.mss.map(u32::from))?;
        field("ws", self.scale.map(u32::from))?;
        if self.sack_permitted == Some(true) {
            write!(f, " sackok")?;
        }
        if let Some((Some(value), Some(echo))) = self.stamp {
            write!(f, " ts={value}/{echo}")?;
        }
        if let Some(blocks) = self.sack.as_ref().filter(|blocks| !blocks.is_empty()) {
            let blocks: Vec<_> = blocks
                .iter()
                .map(|(start, end)| format!("{start}-{end}"))
                .collect();
            write!(f, " sack={}", blocks.join(","))?;
        }
        write!(
            f,
            " ecn={:?} tos={}",
            self.ecn.unwrap_or_default(),
            self.service.unwrap_or(0)
        )
    }
}

fn parse_stamp(value: &str) -> Option<(Option<u32>, Option<u32>)> {
    let (value, echo) = value.split_once('/')?;
    let number = |text: &str| match text {
        "*" => Some(None),
        text => text.parse().ok().map(Some),
    };
    Some((number(value)?, number(echo)?))
}

fn parse_blocks(value: &str) -> Option<Vec<(u32, u32)>> {
    let blocks = value.split(',').filter(|block| !block.is_empty());
    let block = |block: &str| {
        let (start, end) = block.split_once('-')?;
        Some((start.parse().ok()?, end.parse().ok()?))
    };
    blocks.map(block).collect()
}

fn parse_ecn(value: &str) -> Option<Ecn> {
    match value {
        "0" => Some(Ecn::NotCapable),
        "ect0" => Some(Ecn::Capable0),
        "ect1" => Some(Ecn::Capable1),
        "ce" => Some(Ecn::Congested),
        _ => None,
    }
}

const LETTERS: [(char, Flags); 8] = [
    ('F', Flags::FIN),
    ('S', Flags::SYN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('.', Flags::ACK),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
];

/// The byte with this number in either direction.
pub fn pattern(number: u32) -> u8 {
    (number % 251) as u8
}

/// What both ends know of the connection.
#[derive(Clone, Debug)]
pub struct Wire {
    local: Endpoint,
    remote: Endpoint,
    /// Our initial sequence number, once seen.
    iss: Option<SeqNr>,
    /// Our timestamps start here.
    first_stamp: Option<u32>,
    /// Next number to write and to read, for the pattern.
    pub written: u32,
    pub read: u32,
}

impl Wire {
    pub fn new(v6: bool) -> Self {
        let (local, remote) = match v6 {
            false => ("192.168.0.1", "192.0.2.1"),
            true => ("fd3d:fa7b:d17d::1", "2001:db8::1"),
        };
        let addr = |text: &str| text.parse::<IpAddr>().expect("an address");
        Self {
            local: Endpoint::new(addr(local), SERVER_PORT),
            remote: Endpoint::new(addr(remote), PEER_PORT),
            iss: None,
            first_stamp: None,
            written: 1,
            read: 1,
        }
    }

    pub fn local(&self) -> Endpoint {
        self.local
    }

    pub fn remote(&self) -> Endpoint {
        self.remote
    }

    /// The packet from the peer as bytes. A SYN starts a new connection.
    pub fn encode(&mut self, packet: &Packet) -> Vec<u8> {
        let mut flags = Flags::empty();
        for letter in packet.flags.chars() {
            let known = LETTERS.iter().find(|(known, _)| *known == letter);
            flags |= known.expect("a flag").1;
        }
        if flags & (Flags::SYN | Flags::ACK) == Flags::SYN {
            self.iss = None;
            (self.written, self.read) = (1, 1);
        }
        let (len, seq) = (packet.len.unwrap_or(0), packet.seq.unwrap_or(0));
        let iss = self.iss.unwrap_or_default();
        let stamp = packet.stamp.map(|(value, echo)| Timestamps {
            value: value.unwrap_or(0),
            echo: echo.map_or(0, |echo| echo.wrapping_add(self.first_stamp.unwrap_or(0))),
        });
        let blocks = packet.sack.iter().flatten();
        let header = Header {
            seq: SeqNr(PEER_ISS) + seq,
            ack: packet.ack.map_or(SeqNr(0), |ack| iss + ack),
            flags,
            window: packet.window.unwrap_or(u16::MAX),
            options: Options {
                mss: packet.mss,
                window_scale: packet.scale,
                sack_permitted: packet.sack_permitted.unwrap_or(false),
                timestamps: stamp,
                sack: blocks
                    .map(|&(start, end)| SackBlock {
                        start: iss + start,
                        end: iss + end,
                    })
                    .collect(),
            },
        };
        let data: Vec<u8> = (seq..seq + len as u32).map(pattern).collect();
        let packet = baton_wire::Packet {
            src: self.remote,
            dst: self.local,
            ecn: packet.ecn.unwrap_or_default(),
            header,
        };
        let mut bytes = Vec::new();
        encode_packet(&packet, &data, &mut bytes).expect("a packet");
        bytes
    }

    /// A packet to the peer as text would say it.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Packet, String> {
        let (packet, data) = decode_packet(bytes).map_err(|error| error.to_string())?;
        let header = &packet.header;
        if packet.dst.port != self.remote.port || packet.src.addr != self.local.addr {
            return Err(format!("a packet from {} to {}", packet.src, packet.dst));
        }
        self.local.port = packet.src.port;
        if header.flags.contains(Flags::SYN) {
            self.iss = Some(header.seq);
        }
        let iss = self.iss.unwrap_or(header.seq);
        let stamp = header.options.timestamps;
        let first = stamp.map(|stamp| *self.first_stamp.get_or_insert(stamp.value));
        let seq = header.seq - iss;
        let good = data
            .iter()
            .zip(seq..)
            .all(|(&byte, number)| byte == pattern(number));
        if !good {
            return Err(format!("the data from {seq} on is not what was written"));
        }
        let letters = LETTERS
            .iter()
            .filter(|(_, flag)| header.flags.contains(*flag));
        let has_ack = header.flags.contains(Flags::ACK);
        let service = match packet.src.addr {
            IpAddr::V4(_) => bytes[1] & !3,
            IpAddr::V6(_) => (bytes[0] << 4 | bytes[1] >> 4) & !3,
        };
        Ok(Packet {
            flags: letters.map(|(letter, _)| *letter).collect(),
            seq: Some(seq),
            len: Some(data.len()),
            ack: has_ack.then(|| header.ack - SeqNr(PEER_ISS)),
            window: Some(header.window),
            mss: header.options.mss,
            scale: header.options.window_scale,
            sack_permitted: Some(header.options.sack_permitted),
            stamp: stamp.map(|stamp| {
                let value = stamp.value.wrapping_sub(first.unwrap_or(0));
                (Some(value), Some(stamp.echo))
            }),
            sack: Some(
                header
                    .options
                    .sack
                    .iter()
                    .map(|block| (block.start - SeqNr(PEER_ISS), block.end - SeqNr(PEER_ISS)))
                    .collect(),
            ),
            ecn: Some(packet.ecn),
            service: Some(service),
        })
    }

    /// A segment of no connection, which a reset answers.
    pub fn stranger(&self) -> Vec<u8> {
        let packet = baton_wire::Packet {
            src: Endpoint::new(self.remote.addr, 9),
            dst: Endpoint::new(self.local.addr, 9),
            ecn: Ecn::NotCapable,
            header: Header {
                flags: Flags::ACK,
                ..Header::default()
            },
        };
        let mut bytes = Vec::new();
        encode_packet(&packet, &[], &mut bytes).expect("a packet");
        bytes
    }

    pub fn answers_stranger(&self, bytes: &[u8]) -> bool {
        decode_packet(bytes).is_ok_and(|(packet, _)| packet.dst.port == 9)
    }

    /// `unreachable CODE seq=N` or `too-big MTU seq=N`: an ICMP error that quotes a segment of ours.
    pub fn encode_icmp(&self, text: &str) -> Result<Vec<u8>, String> {
        let words: Vec<_> = text.split_whitespace().collect();
        let [kind, value, seq] = words[..] else {
            return Err("an error has a kind, a value and a number".to_owned());
        };
        let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
        let value = number(value)?;
        let seq = number(seq.strip_prefix("seq=").ok_or("seq=N")?)?;
        let quoted = self.quoted(self.iss.unwrap_or_default() + seq);
        let IpAddr::V4(src) = self.remote.addr else {
            return Err("errors over IPv4 only".to_owned());
        };
        let IpAddr::V4(dst) = self.local.addr else {
            return Err("errors over IPv4 only".to_owned());
        };
        let (code, mtu) = match kind {
            "unreachable" => (value as u8, 0),
            "too-big" => (4, value as u16),
            _ => return Err(format!("{kind} is no kind of error")),
        };
        let mut rest = [0; 4];
        rest[2..].copy_from_slice(&mtu.to_be_bytes());
        let kind = etherparse::Icmpv4Type::Unknown {
            type_u8: 3,
            code_u8: code,
            bytes5to8: rest,
        };
        let builder = etherparse::PacketBuilder::ipv4(src.octets(), dst.octets(), 64).icmpv4(kind);
        let mut bytes = Vec::new();
        builder
            .write(&mut bytes, &quoted)
            .map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// The start of a segment of ours, as routers quote it.
    fn quoted(&self, seq: SeqNr) -> Vec<u8> {
        let packet = baton_wire::Packet {
            src: self.local,
            dst: self.remote,
            ecn: Ecn::NotCapable,
            header: Header {
                seq,
                flags: Flags::ACK,
                ..Header::default()
            },
        };
        let mut bytes = Vec::new();
        encode_packet(&packet, &[], &mut bytes).expect("a packet");
        bytes.truncate(28);
        bytes
    }
}
