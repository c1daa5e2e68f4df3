//! Fragmentation of IPv4 packets that are too long for the next link (RFC 791 3.2, RFC 1812 4.2.2.7).

use etherparse::{IpFragOffset, Ipv4Header, Ipv4HeaderSlice, Ipv4Options};

/// An option with this bit is copied to every fragment (RFC 791 3.1).
const COPIED: u8 = 0x80;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

/// The length of every fragment except the last is a multiple of this many bytes.
const UNIT: usize = 8;

/// Reports whether the packet may be fragmented: never for IPv6.
pub(super) fn may_be_cut(packet: &[u8]) -> bool {
    Ipv4HeaderSlice::from_slice(packet).is_ok_and(|ip| !ip.dont_fragment())
}

/// Returns the fragments of a packet that may be fragmented, each no longer than `mtu` bytes.
pub(super) fn cut(packet: &[u8], mtu: usize) -> impl Iterator<Item = Vec<u8>> {
    let read = Ipv4Header::from_slice(packet);
    let (first, data) = read.expect("the packet has a header of IPv4");
    let mut rest = first.clone();
    rest.options = copied_options(first.options.as_slice());
    let (start, more) = (first.fragment_offset, first.more_fragments);
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == data.len() {
            return None;
        }
        let mut header = if at == 0 { first.clone() } else { rest.clone() };
        let room = (mtu - header.header_len()) / UNIT * UNIT;
        let len = (data.len() - at).min(room);
        header.fragment_offset = IpFragOffset::try_new(start.value() + (at / UNIT) as u16)
            .expect("the packet's length fits into sixteen bits");
        header.more_fragments = more || at + len < data.len();
        header
            .set_payload_len(len)
            .expect("a fragment is shorter than its packet");
        header.header_checksum = header.calc_header_checksum();
        let mut fragment = header.to_bytes().to_vec();
        fragment.extend_from_slice(&data[at..at + len]);
        at += len;
        Some(fragment)
    })
}

/// The options that are copied to every fragment, padded.
fn copied_options(options: &[u8]) -> Ipv4Options {
    let mut copied = Vec::new();
    let mut rest = options;
    while let [kind, after @ ..] = rest {
        if *kind == END_OF_OPTIONS {
            break;
        }
        let len = match *kind {
            NO_OPERATION => 1,
            _ => after.first().map_or(1, |&len| usize::from(len).max(2)),
        };
        let (option, behind) = rest.split_at(len.min(rest.len()));
        if kind & COPIED != 0 {
            copied.extend_from_slice(option);
        }
        rest = behind;
    }
    copied.resize(copied.len().next_multiple_of(4), END_OF_OPTIONS);
    Ipv4Options::try_from(&copied[..]).expect("no longer than they were")
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::IpNumber;
    use proptest::prelude::*;

    fn packet(data: &[u8], options: &[u8], offset: u16, more: bool) -> Vec<u8> {
        let mut header = Ipv4Header::new(0, 9, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 1, 1])
            .expect("an empty packet");
        header.options = Ipv4Options::try_from(options).expect("options");
        header.dont_fragment = false;
        header.fragment_offset = IpFragOffset::try_new(offset).expect("an offset");
        header.more_fragments = more;
        header.set_payload_len(data.len()).expect("short");
        header.header_checksum = header.calc_header_checksum();
        [&header.to_bytes()[..], data].concat()
    }

    proptest! {
        #[test]
        fn fragments_reassemble_to_the_packet(
            data in prop::collection::vec(any::<u8>(), 1..3000),
            mtu in 68_usize..1500,
            offset in 0_u16..100,
            more: bool,
        ) {
            let whole = packet(&data, &[], offset, more);
            let mut again = Vec::new();
            let mut last_more = true;
            for fragment in cut(&whole, mtu) {
                let (header, carried) = Ipv4Header::from_slice(&fragment).expect("a header");
                prop_assert!(fragment.len() <= mtu);
                prop_assert_eq!(header.header_checksum, header.calc_header_checksum());
                prop_assert_eq!(usize::from(header.total_len), fragment.len());
                let at = usize::from(header.fragment_offset.value() - offset) * UNIT;
                prop_assert_eq!(at, again.len());
                prop_assert!(last_more);
                last_more = header.more_fragments;
                again.extend_from_slice(carried);
            }
            prop_assert_eq!(again, data);
            prop_assert_eq!(last_more, more);
        }
    }

    #[test]
    fn options_are_in_the_first_fragment_and_copied_ones_in_all() {
        // A timestamp, which is not copied, and a stream identifier, which is.
        let options = [68, 4, 5, 0, 136, 4, 0, 1];
        let whole = packet(&[7; 200], &options, 0, false);
        let headers: Vec<_> = cut(&whole, 100)
            .map(|fragment| Ipv4Header::from_slice(&fragment).expect("a header").0)
            .collect();
        assert_eq!(headers[0].options.as_slice(), options);
        for header in &headers[1..] {
            assert_eq!(header.options.as_slice(), [136, 4, 0, 1]);
        }
    }
}
