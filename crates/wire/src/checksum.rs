//! The Internet checksum (RFC 1071). It is the one thing done to every byte of a segment besides copying it, so it is
//! summed in lanes that compilers turn into vector instructions; header libraries add one word after the other.

/// Bytes summed at a time.
const STRIDE: usize = 32;

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

    /// Adds bytes; a last odd one counts as if a zero followed it (RFC 1071 1), so only the last run may be odd.
    #[must_use]
    pub fn add_bytes(self, bytes: &[u8]) -> Self {
        let (strides, rest) = bytes.as_chunks::<STRIDE>();
        let mut lanes = [0u64; STRIDE / 4];
        for stride in strides {
            for (lane, word) in lanes.iter_mut().zip(stride.as_chunks::<4>().0) {
                *lane += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let (words, rest) = rest.as_chunks::<2>();
        let tail: u64 = words
            .iter()
            .map(|&word| u64::from(u16::from_ne_bytes(word)))
            .sum();
        let odd = rest
            .first()
            .map_or(0, |&byte| u16::from_ne_bytes([byte, 0]).into());
        Self {
            sum: self.sum + lanes.iter().sum::<u64>() + tail + odd,
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
        let mut sum = self.sum;
        while sum > u16::MAX as u64 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
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
        fn lanes_sum_like_words(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in any::<prop::sample::Index>()) {
            let cut = cut.index(bytes.len() + 1) & !1;
            let sum = Checksum::new().add_bytes(&bytes[..cut]).add_bytes(&bytes[cut..]);
            prop_assert_eq!(sum.to_bytes(), plain(&bytes));
            prop_assert_eq!(Checksum::new().add_u16(0x1234), Checksum::new().add_bytes(&[0x12, 0x34]));
        }
    }

    #[test]
    fn many_large_words_do_not_overflow() {
        assert_eq!(
            Checksum::new().add_bytes(&[0xff; 65_536]).to_bytes(),
            [0, 0]
        );
    }
}
