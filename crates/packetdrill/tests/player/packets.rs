//! Converts packets of scenarios between text and bytes.

use baton_testkit::{Numbers, SegmentText};
use baton_wire::{
    Ecn, Endpoint, Flags, Header, Packet, SeqNr, Timestamps, decode_packet, encode_packet,
};
use std::net::IpAddr;

/// The peer's initial sequence number. It is near the end of the sequence space, so that the scenarios cross the wrap-around.
const PEER_ISS: SeqNr = SeqNr(u32::MAX - 5000);

/// The peer's port, and the application's port as a server.
const PEER_PORT: u16 = 50_000;
pub const SERVER_PORT: u16 = 8080;

/// Returns the data byte with this number. Both directions use the same pattern.
pub fn pattern(number: u32) -> u8 {
    (number % 251) as u8
}

/// The state of a connection that is needed to read and write its packets.
#[derive(Clone, Debug)]
pub struct Wire {
    local: Endpoint,
    remote: Endpoint,
    /// The application's initial sequence number, once it is known.
    iss: Option<SeqNr>,
    /// The application's first timestamp.
    first_stamp: Option<u32>,
    /// Number of the next byte to write and to read.
    pub written: u32,
    pub read: u32,
}

impl Wire {
    pub fn new(v6: bool) -> Self {
        let (local, remote) = match v6 {
            false => ("192.168.0.1", "192.0.2.1"),
            true => ("fd3d:a0b:17d6::1", "fd3d:fa7b:d17d::1"),
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

    /// Encodes a packet from the peer. A SYN starts a new connection.
    pub fn encode(&mut self, text: &SegmentText) -> Vec<u8> {
        if text.flags & (Flags::SYN | Flags::ACK) == Flags::SYN {
            self.iss = None;
            (self.written, self.read) = (1, 1);
        }
        let numbers = Numbers {
            sender: PEER_ISS,
            receiver: self.iss.unwrap_or_default(),
        };
        let given = text.options.as_ref().and_then(|given| given.timestamps);
        let stamp = given.map(|(value, echo)| Timestamps {
            value,
            echo: echo.wrapping_add(self.first_stamp.unwrap_or(0)),
        });
        let first = text.start + u32::from(text.flags.contains(Flags::SYN));
        let len = text.end - text.start;
        let data: Vec<u8> = (first..first + len).map(pattern).collect();
        let packet = Packet {
            src: self.remote,
            dst: self.local,
            ecn: text.ecn.unwrap_or_default(),
            header: text.header(numbers, stamp),
        };
        let mut bytes = Vec::new();
        encode_packet(&packet, &data, &mut bytes).expect("a packet");
        bytes
    }

    /// Decodes a packet to the peer. Returns its text and its type of service.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(SegmentText, u8), String> {
        let (packet, data) = decode_packet(bytes).map_err(|error| error.to_string())?;
        let header = &packet.header;
        if packet.dst.port != self.remote.port || packet.src.addr != self.local.addr {
            return Err(format!("a packet from {} to {}", packet.src, packet.dst));
        }
        self.local.port = packet.src.port;
        if header.flags.contains(Flags::SYN) {
            self.iss = Some(header.seq);
        }
        let numbers = Numbers {
            sender: self.iss.unwrap_or(header.seq),
            receiver: PEER_ISS,
        };
        if let Some(stamp) = header.options.timestamps {
            self.first_stamp.get_or_insert(stamp.value);
        }
        let first = self.first_stamp.unwrap_or(0);
        let text = SegmentText::of(header, data.len() as u32, packet.ecn, numbers, first);
        let syn = u32::from(text.flags.contains(Flags::SYN));
        let mut numbered = data.iter().zip(text.start + syn..);
        if !numbered.all(|(&byte, number)| byte == pattern(number)) {
            let from = text.start;
            return Err(format!("the data from {from} on is not what was written"));
        }
        let service = match packet.src.addr {
            IpAddr::V4(_) => bytes[1] & !3,
            IpAddr::V6(_) => (bytes[0] << 4 | bytes[1] >> 4) & !3,
        };
        Ok((text, service))
    }

    /// Returns a segment that belongs to no connection, which is answered by a reset.
    pub fn stranger(&self) -> Vec<u8> {
        let packet = Packet {
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

    /// Encodes `unreachable CODE seq=N` or `too-big MTU seq=N`: an ICMP error that quotes a segment of the application.
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
            _ => return Err(format!("{kind} is not a kind of error")),
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

    /// Returns the start of a segment of the application, as routers quote it.
    fn quoted(&self, seq: SeqNr) -> Vec<u8> {
        let packet = Packet {
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
