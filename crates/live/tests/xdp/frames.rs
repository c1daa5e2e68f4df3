//! Frames and their flows.

use baton_wire::{Endpoint, Flow};
use std::net::{IpAddr, SocketAddr};

const ETHERNET_BYTES: usize = 14;
const TCP: u8 = 6;

/// Returns the flow between these endpoints.
pub fn flow(local: (&str, u16), remote: (&str, u16)) -> Flow {
    let end = |(addr, port): (&str, u16)| Endpoint::new(addr.parse().expect("an address"), port);
    Flow {
        local: end(local),
        remote: end(remote),
    }
}

/// Returns the flow between these endpoints, the local one first.
pub fn flow_between(local: SocketAddr, remote: SocketAddr) -> Flow {
    let end = |address: SocketAddr| Endpoint::new(address.ip(), address.port());
    Flow {
        local: end(local),
        remote: end(remote),
    }
}

/// Returns a TCP segment with some data from the remote end.
pub fn segment(flow: &Flow) -> Vec<u8> {
    let mut tcp = Vec::new();
    tcp.extend(flow.remote.port.to_be_bytes());
    tcp.extend(flow.local.port.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0]);
    tcp.extend(*b"some data");
    packet(flow, TCP, &[], &tcp)
}

/// Returns a packet from the remote end. `options` are the options of an IPv4 header, or IPv6 extension headers.
pub fn packet(flow: &Flow, protocol: u8, options: &[u8], data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; ETHERNET_BYTES - 2];
    match (flow.remote.addr, flow.local.addr) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = 20 + options.len();
            frame.extend([0x08, 0x00, 0x40 | (header / 4) as u8, 0]);
            frame.extend(((header + data.len()) as u16).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(((options.len() + data.len()) as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => panic!("the addresses have different IP versions"),
    }
    frame.extend(options);
    frame.extend(data);
    frame
}

/// Returns the flow of a received frame if both the frame and the length in the IP header are long enough for a TCP header.
pub fn flow_of(frame: &[u8]) -> Option<Flow> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    let number = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    let (source, destination, length, tcp): (IpAddr, IpAddr, _, &[u8]) =
        match number(&ethernet[12..]) {
            0x0800 => {
                let fixed = packet.first_chunk::<20>()?;
                let header = usize::from(fixed[0] & 15) * 4;
                let is_fragment = number(&fixed[6..]) & 0x3fff != 0;
                if fixed[0] >> 4 != 4 || header < 20 || fixed[9] != TCP || is_fragment {
                    return None;
                }
                let (source, destination) = (&fixed[12..16], &fixed[16..20]);
                let address = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).expect("four bytes").into();
                let length = usize::from(number(&fixed[2..])).checked_sub(header)?;
                let tcp = packet.get(header..)?;
                (address(source), address(destination), length, tcp)
            }
            0x86dd => {
                let (fixed, rest) = packet.split_first_chunk::<40>()?;
                if fixed[0] >> 4 != 6 || fixed[6] != TCP {
                    return None;
                }
                let address = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).expect("16 bytes").into();
                let length = usize::from(number(&fixed[4..]));
                (
                    address(&fixed[8..24]),
                    address(&fixed[24..40]),
                    length,
                    rest,
                )
            }
            _ => return None,
        };
    let ports = tcp.first_chunk::<20>()?;
    (length >= ports.len()).then(|| Flow {
        local: Endpoint::new(destination, number(&ports[2..])),
        remote: Endpoint::new(source, number(ports)),
    })
}
