//! Changes to a packet that is forwarded.

/// Positions of IPv4's time to live and checksum, and of IPv6's hop limit.
const TTL: usize = 8;
const CHECKSUM: usize = 10;
const HOP_LIMIT: usize = 7;

/// Decrements the time to live or hop limit, and updates the checksum of an IPv4 header incrementally (RFC 1624 3, equation 3).
pub(super) fn take_hop(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[HOP_LIMIT] -= 1;
        return;
    }
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let before = word(packet, TTL);
    packet[TTL] -= 1;
    let sum = changed(word(packet, CHECKSUM), before, word(packet, TTL));
    packet[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Updates checksum `sum` after a word of the data changed: HC' = ~(~HC + ~m + m').
fn changed(sum: u16, before: u16, after: u16) -> u16 {
    let total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let folded = (total & 0xffff) + (total >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpNumber, Ipv4Header};
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_rfc_holds() {
        // RFC 1624 4: HC = 0xDD2F, m = 0x5555, m' = 0x3285, HC' = 0x0000.
        assert_eq!(changed(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn decrementing_the_hop_count_keeps_the_checksum_right(
            ttl in 2_u8..,
            src: [u8; 4],
            dst: [u8; 4],
            len in 0_u16..1400,
            identification: u16,
        ) {
            let mut header = Ipv4Header::new(len, ttl, IpNumber::UDP, src, dst).expect("short");
            header.identification = identification;
            header.header_checksum = header.calc_header_checksum();
            let mut packet = header.to_bytes().to_vec();
            take_hop(&mut packet);
            let (after, _) = Ipv4Header::from_slice(&packet).expect("a header");
            prop_assert_eq!(after.time_to_live, ttl - 1);
            prop_assert_eq!(after.header_checksum, after.calc_header_checksum());
        }
    }
}
