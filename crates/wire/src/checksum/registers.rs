//! Computes the sum in the longest registers of the processor: 32 or 64 bytes, while every x86-64 processor has 16.
//!
//! Vector units are accessed through `std::arch`, whose functions may run only if the processor supports them; hence `unsafe`.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi16,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256, _mm512_add_epi32,
    _mm512_loadu_si512, _mm512_madd_epi16, _mm512_set1_epi16, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
};

/// Minimum number of bytes. Shorter runs, such as headers, are summed word by word: combining a register's lanes would cost more.
const LEAST_BYTES: usize = 64;

/// Returns the sum of 16-bit words of all bytes that fill registers, and the remaining bytes. Returns `None` if there are few bytes, or if
/// the processor has no long registers.
#[inline]
pub(super) fn sum_of_most(bytes: &[u8]) -> Option<(u64, &[u8])> {
    if bytes.len() < LEAST_BYTES {
        return None;
    }
    if is_x86_feature_detected!("avx512bw") {
        let (vectors, rest) = bytes.as_chunks();
        // SAFETY: the processor has AVX-512BW, and with it AVX-512F.
        return Some((unsafe { sum_by_64(vectors) }, rest));
    }
    if is_x86_feature_detected!("avx2") {
        let (vectors, rest) = bytes.as_chunks();
        // SAFETY: the processor has AVX2.
        return Some((unsafe { sum_by_32(vectors) }, rest));
    }
    None
}

/// Defines a sum in registers of one kind. Vector units multiply and add neighbouring *signed* words in one instruction; with its highest
/// bit flipped, an unsigned word is a signed word that is smaller by 2^15. Each of two registers adds to a sum of its own, so that neither
/// waits for the other.
macro_rules! define_sum {
    ($name:ident, $feature:literal, $register:ty, $zero:ident, $all:ident, $load:ident, $store:ident, $xor:ident, $madd:ident, $add:ident) => {
        #[target_feature(enable = $feature)]
        fn $name(vectors: &[[u8; size_of::<$register>()]]) -> u64 {
            let (flip, ones) = ($all(i16::MIN), $all(1));
            let sum_pairs = |vector: &[u8; size_of::<$register>()]| {
                // SAFETY: the vector has as many bytes as are loaded, and the load requires no alignment.
                let words = unsafe { $load(vector.as_ptr().cast::<$register>()) };
                $madd($xor(words, flip), ones)
            };
            let mut sums = [$zero(); 2];
            let (pairs, last) = vectors.as_chunks::<2>();
            for [first, second] in pairs {
                sums[0] = $add(sums[0], sum_pairs(first));
                sums[1] = $add(sums[1], sum_pairs(second));
            }
            if let [last] = last {
                sums[0] = $add(sums[0], sum_pairs(last));
            }
            let mut lanes = [0i32; size_of::<$register>() / 4];
            // SAFETY: the array has space for a register, and the store requires no alignment.
            unsafe {
                $store(
                    lanes.as_mut_ptr().cast::<$register>(),
                    $add(sums[0], sums[1]),
                )
            };
            let signed: i64 = lanes.map(i64::from).iter().sum();
            let words = size_of_val(vectors) / 2;
            (signed + ((words as i64) << 15)) as u64
        }
    };
}

define_sum!(
    sum_by_32,
    "avx2",
    __m256i,
    _mm256_setzero_si256,
    _mm256_set1_epi16,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256,
    _mm256_madd_epi16,
    _mm256_add_epi32
);

define_sum!(
    sum_by_64,
    "avx512f,avx512bw",
    __m512i,
    _mm512_setzero_si512,
    _mm512_set1_epi16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_xor_si512,
    _mm512_madd_epi16,
    _mm512_add_epi32
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_all_lengths_give_the_same_sum() {
        let bytes: Vec<u8> = (0..4096u32).map(|at| ((at * at) >> 3) as u8).collect();
        for blocks in 0..64 {
            let bytes = &bytes[..blocks * 64];
            let words = bytes.as_chunks().0.iter();
            let short: u64 = words.map(|&word| u64::from(u16::from_ne_bytes(word))).sum();
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2.
                assert_eq!(unsafe { sum_by_32(bytes.as_chunks().0) }, short);
            }
            if is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has AVX-512BW, and with it AVX-512F.
                assert_eq!(unsafe { sum_by_64(bytes.as_chunks().0) }, short);
            }
        }
    }
}
