//! The Internet checksum (RFC 1071). It is the one thing done to every byte of a segment besides copying it, so it is
//! summed in the longest registers that the processor has; header libraries add one word after the other.

#[cfg(target_arch = "x86_64")]
mod registers;

use etherparse::{Ipv4Header, Ipv4HeaderSlice};

/// Most bytes before the sums of a vector's lanes are gathered into one: each vector changes a lane by 2^16 at most, so that none overflows.
/// No packet is longer.
const MOST_BYTES: usize = 1 << 18;

/// The ones' complement sum of 16-bit words, not yet folded. Words are taken in the machine's own byte order, which comes
/// to the same sum (RFC 1071 2(B)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    sum: u64,
}

impl Checksum {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Self { sum: 0 }
    }

    /// Adds bytes; a last odd one counts as if a zero followed it (RFC 1071 1), so only the last run may be odd, or else
    /// what follows must be told so ([`Checksum::add_piece`]).
    #[must_use]
    pub fn add_bytes(self, bytes: &[u8]) -> Self {
        let (run, rest) = bytes.split_at(bytes.len().min(MOST_BYTES));
        let sum = self.add_run(run);
        match rest.is_empty() {
            true => sum,
            false => sum.add_bytes(rest),
        }
    }

    /// Adds so few bytes that no sum overflows.
    #[inline]
    fn add_run(self, bytes: &[u8]) -> Self {
        let (vectors, rest) = sum_of_most(bytes);
        let (words, rest) = rest.as_chunks();
        let words = sum_of_words(words);
        // Three bytes at most, as they would stand before zeros in a word.
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

    /// Adds bytes of an even number that is known beforehand, such as an address.
    #[must_use]
    #[inline]
    pub fn add_words<const N: usize>(self, bytes: &[u8; N]) -> Self {
        const { assert!(N.is_multiple_of(4), "whole words") }
        Self {
            sum: self.sum + sum_of_words(bytes.as_chunks().0),
        }
    }

    /// The sum of an IPv4 header, which mostly has no options.
    #[inline]
    pub fn of_ipv4_header(header: &Ipv4HeaderSlice<'_>) -> Self {
        match <&[u8; Ipv4Header::MIN_LEN]>::try_from(header.slice()) {
            Ok(plain) => Self::new().add_words(plain),
            Err(_) => Self::new().add_bytes(header.slice()),
        }
    }

    /// Adds bytes that come after `before` others. After an odd number of them each byte has the other place in its word, and
    /// so in the sum (RFC 1071 2(B)).
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

    /// Adds what was summed apart, an even number of bytes.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        Self {
            sum: self.sum + other.sum,
        }
    }

    /// Adds one number of four bytes.
    #[must_use]
    pub const fn add_u32(self, number: u32) -> Self {
        Self {
            sum: self.sum + number.to_be() as u64,
        }
    }

    /// Adds one number of two bytes.
    #[must_use]
    pub const fn add_u16(self, number: u16) -> Self {
        Self {
            sum: self.sum + number.to_be() as u64,
        }
    }

    /// The field's two bytes as they stand in a header: the complement of the sum. Over data that contains its own right
    /// checksum it is zero.
    pub const fn to_bytes(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// True when the data summed contained its own right checksum.
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

/// The sum of as many bytes as are summed in long registers, and the bytes that are left.
#[inline]
fn sum_of_most(bytes: &[u8]) -> (u64, &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(summed) = registers::sum_of_most(bytes) {
        return summed;
    }
    (0, bytes)
}

/// The sum of words of 32 bits, which comes to that of their halves (RFC 1071 2(C)). Compilers add several at a time.
#[inline]
fn sum_of_words(words: &[[u8; 4]]) -> u64 {
    let words = words.iter().map(|&word| u32::from_ne_bytes(word));
    words.map(u64::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As RFC 1071 4.1 has it, in C there.
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
    fn the_example_of_the_rfc_comes_out() {
        // RFC 1071 3: the sum of these is ddf2.
        let sum = Checksum::new().add_bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.to_bytes(), (!0xddf2u16).to_be_bytes());
        assert!(sum.add_bytes(&sum.to_bytes()).is_right());
    }

    proptest! {
        #[test]
        fn lanes_sum_like_words(bytes in proptest::collection::vec(any::<u8>(), 0..700), cut in any::<prop::sample::Index>(), odd in any::<prop::sample::Index>()) {
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

    /// The same over more bytes than 32 bits can sum.
    fn plain_of_many(bytes: &[u8]) -> [u8; 2] {
        let sum = bytes.chunks(1 << 16).fold(0u32, |sum, part| {
            let [high, low] = plain(part);
            sum + u32::from(!u16::from_be_bytes([high, low]))
        });
        let sum = (sum & 0xffff) + (sum >> 16);
        (!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes()
    }
}
