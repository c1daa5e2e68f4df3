//! The Internet checksum (RFC 1071). Besides copying, it is the only operation on every byte of a segment, so it uses the longest registers
//! of the processor; header libraries add one word at a time.

#[cfg(target_arch = "x86_64")]
mod registers;

use etherparse::{Ipv4Header, Ipv4HeaderSlice};

/// Maximum number of bytes before the sums of a vector's lanes are combined: each vector changes a lane by at most 2^16, so that none
/// overflows. No packet is longer.
const MOST_BYTES: usize = 1 << 18;

/// The ones' complement sum of 16-bit words, not yet folded. Words are read in the machine's byte order, which yields the same sum (RFC
/// 1071 2(B)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    sum: u64,
}

impl Checksum {
    /// The sum of no bytes.
    pub const fn new() -> Self {
        Self { sum: 0 }
    }

    /// Adds bytes. An odd last byte counts as if a zero followed (RFC 1071 1), so only the last run may have an odd length; otherwise add
    /// the following runs with [`Checksum::add_piece`].
    #[must_use]
    pub fn add_bytes(self, bytes: &[u8]) -> Self {
        let (run, rest) = bytes.split_at(bytes.len().min(MOST_BYTES));
        let sum = self.add_run(run);
        match rest.is_empty() {
            true => sum,
            false => sum.add_bytes(rest),
        }
    }

    /// Adds at most [`MOST_BYTES`], so that no sum overflows.
    #[inline]
    fn add_run(self, bytes: &[u8]) -> Self {
        let (vectors, rest) = sum_of_most(bytes);
        let (words, rest) = rest.as_chunks();
        let words = sum_of_words(words);
        // Up to three bytes, padded with zeros to a word.
        let last = match *rest {
            [] => 0,
            [a] => u32::from_ne_bytes([a, 0, 0, 0]),
            [a, b] => u32::from_ne_bytes([a, b, 0, 0]),
            [a, b, c, ..] => u32::from_ne_bytes([a, b, c, 0]),
        };
        Self {
            sum: self.sum + vectors + words + u64::from(last),
        }
    }

    /// Adds a fixed number of bytes, a multiple of four, such as an address.
    #[must_use]
    #[inline]
    pub fn add_words<const N: usize>(self, bytes: &[u8; N]) -> Self {
        const { assert!(N.is_multiple_of(4), "whole words") }
        Self {
            sum: self.sum + sum_of_words(bytes.as_chunks().0),
        }
    }

    /// Returns the sum of an IPv4 header, which usually has no options.
    #[inline]
    pub fn of_ipv4_header(header: &Ipv4HeaderSlice<'_>) -> Self {
        match <&[u8; Ipv4Header::MIN_LEN]>::try_from(header.slice()) {
            Ok(plain) => Self::new().add_words(plain),
            Err(_) => Self::new().add_bytes(header.slice()),
        }
    }

    /// Adds bytes that follow `before` other bytes. If that number is odd, each byte has the opposite position in its word, and therefore
    /// in the sum (RFC 1071 2(B)).
    #[must_use]
    #[inline]
    pub fn add_piece(self, bytes: &[u8], before: usize) -> Self {
        if before.is_multiple_of(2) {
            return self.add_bytes(bytes);
        }
        let apart = Self::new().add_bytes(bytes).folded().swap_bytes();
        Self {
            sum: self.sum + u64::from(apart),
        }
    }

    /// Adds a sum of an even number of bytes that was computed separately.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        Self {
            sum: self.sum + other.sum,
        }
    }

    /// Adds a four-byte number.
    #[must_use]
    pub const fn add_u32(self, number: u32) -> Self {
        Self {
            sum: self.sum + number.to_be() as u64,
        }
    }

    /// Adds a two-byte number.
    #[must_use]
    pub const fn add_u16(self, number: u16) -> Self {
        Self {
            sum: self.sum + number.to_be() as u64,
        }
    }

    /// Returns the two bytes of the checksum field: the complement of the sum. They are zero if the data contains its own correct checksum.
    pub const fn to_bytes(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// Returns the two bytes of the checksum field of a segment whose checksum a device is to complete: the sum of the pseudo-header, to which the
    /// device adds that of the segment.
    pub const fn to_partial_bytes(self) -> [u8; 2] {
        self.folded().to_ne_bytes()
    }

    /// Returns whether the data contained its own correct checksum.
    pub const fn is_right(self) -> bool {
        self.folded() == u16::MAX
    }

    const fn folded(self) -> u16 {
        let sum = (self.sum & 0xffff_ffff) + (self.sum >> 32);
        // 33 bits, then 18, then 17.
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }
}

/// Returns the sum of the bytes that long registers can add, and the remaining bytes.
#[inline]
fn sum_of_most(bytes: &[u8]) -> (u64, &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(summed) = registers::sum_of_most(bytes) {
        return summed;
    }
    (0, bytes)
}

/// Returns the sum of 32-bit words, which is equivalent to that of their halves (RFC 1071 2(C)). Compilers vectorise this.
#[inline]
fn sum_of_words(words: &[[u8; 4]]) -> u64 {
    let words = words.iter().map(|&word| u32::from_ne_bytes(word));
    words.map(u64::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The algorithm of RFC 1071 4.1, which is in C there.
    fn plain(bytes: &[u8]) -> [u8; 2] {
        let mut sum: u32 = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_be_bytes()
    }

    #[test]
    fn the_example_of_the_rfc_holds() {
        // RFC 1071 3: the sum of these is ddf2.
        let sum = Checksum::new().add_bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.to_bytes(), (!0xddf2u16).to_be_bytes());
        assert!(sum.add_bytes(&sum.to_bytes()).is_right());
    }

    proptest! {
        #[test]
        fn vector_lanes_sum_like_words(bytes in proptest::collection::vec(any::<u8>(), 0..700), cut in any::<prop::sample::Index>(), odd in any::<prop::sample::Index>()) {
            let cut = cut.index(bytes.len() + 1) & !1;
            let sum = Checksum::new().add_bytes(&bytes[..cut]).add_bytes(&bytes[cut..]);
            prop_assert_eq!(sum.to_bytes(), plain(&bytes));
            let cut = odd.index(bytes.len() + 1);
            let sum = Checksum::new().add_bytes(&bytes[..cut]).add_piece(&bytes[cut..], cut);
            prop_assert_eq!(sum.to_bytes(), plain(&bytes));
            prop_assert_eq!(Checksum::new().add_u16(0x1234), Checksum::new().add_bytes(&[0x12, 0x34]));
        }
    }

    #[test]
    fn many_large_or_small_words_do_not_overflow() {
        for byte in [0xff, 0x80, 0x7f, 0] {
            let bytes = vec![byte; 3 << 20];
            assert_eq!(
                Checksum::new().add_bytes(&bytes).to_bytes(),
                plain_of_many(&bytes)
            );
        }
    }

    /// Computes the same checksum over more bytes than a 32-bit sum allows.
    fn plain_of_many(bytes: &[u8]) -> [u8; 2] {
        let sum = bytes.chunks(1 << 16).fold(0u32, |sum, part| {
            let [high, low] = plain(part);
            sum + u32::from(!u16::from_be_bytes([high, low]))
        });
        let sum = (sum & 0xffff) + (sum >> 16);
        (!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes()
    }
}
