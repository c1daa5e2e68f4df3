//! Turns the packets of a trace into frames for a router, and derives the routes that the router needs for them.

use crate::frame::LinkRate;
use baton_inet::{InterfaceConfig, Route};
use baton_workload::packets::{PacketTrace, TracePacket};
use etherparse::{EtherType, Ethernet2Header, IpNumber, Ipv4Header};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Prefix length of the networks, each of which has one route in the router (assumed).
const NETWORK_BITS: u8 = 24;

/// Addresses of the router and of its clients, by interface (RFC 2544, C.2.2: networks for tests).
const ROUTER: [[u8; 4]; 2] = [[198, 18, 0, 1], [198, 19, 0, 1]];
const CLIENTS: [[u8; 4]; 2] = [[198, 18, 0, 2], [198, 19, 0, 2]];

/// Bytes of a frame's check sequence.
const CHECK_SEQUENCE: usize = baton_sim::hardware::CHECK_SEQUENCE as usize;

/// Prefix length of the networks between router and clients.
const LINK_BITS: u8 = 24;

fn router_mac(interface: usize) -> [u8; 6] {
    [2, 0, 0, 0, 1, interface as u8]
}

fn client_mac(interface: usize) -> [u8; 6] {
    [2, 0, 0, 0, 2, interface as u8]
}

/// Traffic that two clients send through a router.
///
/// The trace's destination networks are split so that each half gets about as many packets: one half is behind the first client, the other
/// behind the second, and the client that is not a packet's destination sends it. Packets keep their order, addresses, lengths and TTLs.
/// Their payload does not matter, and checksums are recomputed, since those of traces with anonymized addresses are wrong.
#[derive(Clone, Debug)]
pub struct RouterTraffic {
    /// Name of the trace.
    pub name: String,
    /// Frames that each client sends, without check sequences.
    frames: [Arc<[Vec<u8>]>; 2],
    /// Networks behind each client.
    networks: [Vec<Ipv4Addr>; 2],
}

impl RouterTraffic {
    /// Creates the traffic of a trace, which must not be empty.
    pub fn of(trace: &PacketTrace) -> Self {
        let mut packets: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
        for packet in &trace.packets {
            *packets.entry(network(packet.dst)).or_default() += 1;
        }
        let mut heaviest_first: Vec<(Ipv4Addr, usize)> = packets.into_iter().collect();
        heaviest_first.sort_by_key(|(network, packets)| (std::cmp::Reverse(*packets), *network));
        let (mut behind, mut sums) = (BTreeMap::new(), [0; 2]);
        let mut networks = [Vec::new(), Vec::new()];
        for (network, packets) in heaviest_first {
            let lighter = usize::from(sums[1] < sums[0]);
            sums[lighter] += packets;
            networks[lighter].push(network);
            behind.insert(network, lighter);
        }
        let mut frames = [Vec::new(), Vec::new()];
        for packet in &trace.packets {
            let sender = 1 - behind[&network(packet.dst)];
            frames[sender].push(frame(packet, sender));
        }
        Self {
            name: trace.name.clone(),
            frames: frames.map(Arc::from),
            networks,
        }
    }

    /// Returns the frames that each client sends.
    pub fn frames(&self) -> &[Arc<[Vec<u8>]>; 2] {
        &self.frames
    }

    /// Returns the number of routes in the router's table, not counting those to its links.
    pub fn routes(&self) -> usize {
        self.networks.iter().map(Vec::len).sum()
    }

    /// Returns the share of all packets that each client sends.
    pub fn shares(&self) -> [f64; 2] {
        let all = self.frames[0].len() + self.frames[1].len();
        [0, 1].map(|client| self.frames[client].len() as f64 / all as f64)
    }

    /// Returns how many packets per second the links can carry, in both directions together.
    pub fn line_rate(&self, link: LinkRate) -> f64 {
        let of_client = |client: usize| {
            let frames = &self.frames[client];
            let on_line =
                |frame: &Vec<u8>| baton_wire::line_len(frame.len() + CHECK_SEQUENCE) as f64;
            let bytes: f64 = frames.iter().map(on_line).sum();
            link.bits_per_second() as f64 / 8.0 / bytes
        };
        // How often all frames of a client fit into a second. The client that has more to send limits both.
        let senders = (0..2).filter(|client| !self.frames[*client].is_empty());
        let all = self.frames[0].len() + self.frames[1].len();
        senders.map(of_client).fold(f64::INFINITY, f64::min) * all as f64
    }

    /// Returns the router's interfaces, with all routes.
    pub(crate) fn interfaces(&self) -> Vec<InterfaceConfig> {
        let interface = |number: usize| {
            let address = format!("{}/{LINK_BITS}", Ipv4Addr::from(ROUTER[number]));
            let gateway = Some(IpAddr::from(CLIENTS[number]));
            let route = |network: &Ipv4Addr| Route {
                destination: format!("{network}/{NETWORK_BITS}")
                    .parse()
                    .expect("a network"),
                gateway,
            };
            InterfaceConfig {
                routes: self.networks[number].iter().map(route).collect(),
                ..InterfaceConfig::new(
                    router_mac(number),
                    vec![
                        address
                            .parse()
                            .expect("the address and the network are valid"),
                    ],
                )
            }
        };
        vec![interface(0), interface(1)]
    }

    /// Returns the first frame of each client, an ARP request for the router's Ethernet address (RFC 826), from which the router learns the
    /// client's.
    pub(crate) fn greetings(&self) -> [Vec<u8>; 2] {
        [0, 1].map(|client| {
            let header = Ethernet2Header {
                destination: [0xff; 6],
                source: client_mac(client),
                ether_type: EtherType::ARP,
            };
            let mut frame = header.to_bytes().to_vec();
            frame.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
            frame.extend_from_slice(&client_mac(client));
            frame.extend_from_slice(&CLIENTS[client]);
            frame.extend_from_slice(&[0; 6]);
            frame.extend_from_slice(&ROUTER[client]);
            frame
        })
    }
}

fn network(address: Ipv4Addr) -> Ipv4Addr {
    let mask = u32::MAX << (32 - NETWORK_BITS);
    Ipv4Addr::from(u32::from(address) & mask)
}

/// Returns the frame in which a client sends a packet to the router, padded to the minimum length.
fn frame(packet: &TracePacket, client: usize) -> Vec<u8> {
    let ethernet = Ethernet2Header {
        destination: router_mac(client),
        source: client_mac(client),
        ether_type: EtherType::IPV4,
    };
    let data = usize::from(packet.len).saturating_sub(Ipv4Header::MIN_LEN);
    let protocol = IpNumber(packet.protocol);
    let (src, dst) = (packet.src.octets(), packet.dst.octets());
    let mut ip = Ipv4Header::new(data as u16, packet.ttl, protocol, src, dst)
        .expect("no packet of a trace is longer than a frame");
    ip.header_checksum = ip.calc_header_checksum();
    let mut frame = ethernet.to_bytes().to_vec();
    frame.extend_from_slice(&ip.to_bytes());
    frame.resize(baton_wire::frame_len(packet.len.into()) - CHECK_SEQUENCE, 0);
    frame
}
