//! Receive-side scaling: the queue of each frame (Microsoft, "RSS Hashing Functions"; the key is that of its verification suite).

use baton_wire::Endpoint;
use std::net::IpAddr;

/// The key of the verification suite, as far as IPv4 addresses and ports need it.
const KEY: [u8; 16] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
];

/// Bytes of input: two addresses and two ports.
const INPUT: usize = 12;

/// Contribution of each value of each input byte to the hash.
const TABLE: [[u32; 256]; INPUT] = table();

const fn table() -> [[u32; 256]; INPUT] {
    let key = u128::from_be_bytes(KEY);
    let mut table = [[0; 256]; INPUT];
    let mut place = 0;
    while place < INPUT {
        let mut value = 0;
        while value < 256 {
            let mut bit = 0;
            while bit < 8 {
                if value & (0x80 >> bit) != 0 {
                    // The 32 bits of the key that start at this bit of the input.
                    table[place][value] ^= (key << (8 * place + bit) >> 96) as u32;
                }
                bit += 1;
            }
            value += 1;
        }
        place += 1;
    }
    table
}

/// Returns the hash of an IPv4 frame from one endpoint to another.
pub fn hash(from: Endpoint, to: Endpoint) -> u32 {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.addr, to.addr) else {
        return 0;
    };
    let ports = [from.port.to_be_bytes(), to.port.to_be_bytes()];
    let input = source
        .octets()
        .into_iter()
        .chain(destination.octets())
        .chain(ports.into_iter().flatten());
    input
        .zip(&TABLE)
        .fold(0, |hash, (byte, row)| hash ^ row[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the specification's verification suite, IPv4 with TCP.
    #[test]
    fn hashes_are_those_of_the_verification_suite() {
        for (from, to, expected) in [
            ("66.9.149.187:2794", "161.142.100.80:1766", 0x51cc_c178),
            ("199.92.111.2:14230", "65.69.140.83:4739", 0xc626_b0ea),
            ("24.19.198.95:12898", "12.22.207.184:38024", 0x5c2b_394a),
            ("38.27.205.30:48228", "209.142.163.6:2217", 0xafc7_327f),
            ("153.39.163.191:44251", "202.188.127.2:1303", 0x10e8_28a2),
        ] {
            let end = |text: &str| {
                let address: std::net::SocketAddr = text.parse().expect("an address");
                Endpoint::new(address.ip(), address.port())
            };
            assert_eq!(hash(end(from), end(to)), expected, "{from} to {to}");
        }
    }
}
