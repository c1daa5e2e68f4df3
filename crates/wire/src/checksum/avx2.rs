//! The sum in registers of 32 bytes, twice those that every x86-64 processor has.
//!
//! Vector units are reached by `std::arch`, whose functions may run only where the processor has them; hence `unsafe`.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi16,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256,
};

/// Bytes of a register.
pub(super) const VECTOR: usize = 32;

/// Registers summed at a time, each into a sum of its own, which need not wait for the others.
const ABREAST: usize = 4;

/// The sum of 16-bit words, as [`super::sum_of_vectors`] has it; `None` where the processor has no such registers.
#[inline]
pub(super) fn sum_of_vectors(vectors: &[[u8; VECTOR]]) -> Option<u64> {
    if !is_x86_feature_detected!("avx2") {
        return None;
    }
    // SAFETY: the processor has AVX2, which is all that the function asks for.
    Some(unsafe { sum(vectors) })
}

#[target_feature(enable = "avx2")]
fn sum(vectors: &[[u8; VECTOR]]) -> u64 {
    let (flip, ones) = (_mm256_set1_epi16(i16::MIN), _mm256_set1_epi16(1));
    let sum_pairs = |vector: &[u8; VECTOR]| {
        // SAFETY: 32 bytes can be read there, and the load asks for no alignment.
        let words = unsafe { _mm256_loadu_si256(vector.as_ptr().cast::<__m256i>()) };
        _mm256_madd_epi16(_mm256_xor_si256(words, flip), ones)
    };
    let mut sums = [_mm256_setzero_si256(); ABREAST];
    let (strides, rest) = vectors.as_chunks::<ABREAST>();
    for stride in strides {
        for (sum, vector) in sums.iter_mut().zip(stride) {
            *sum = _mm256_add_epi32(*sum, sum_pairs(vector));
        }
    }
    for (sum, vector) in sums.iter_mut().zip(rest) {
        *sum = _mm256_add_epi32(*sum, sum_pairs(vector));
    }
    let halves = [
        _mm256_add_epi32(sums[0], sums[1]),
        _mm256_add_epi32(sums[2], sums[3]),
    ];
    let mut lanes = [0i32; VECTOR / 4];
    // SAFETY: the array has room for 32 bytes, and the store asks for no alignment.
    unsafe {
        _mm256_storeu_si256(
            lanes.as_mut_ptr().cast::<__m256i>(),
            _mm256_add_epi32(halves[0], halves[1]),
        );
    }
    let signed: i64 = lanes.map(i64::from).iter().sum();
    super::unflipped(signed, vectors.len() * VECTOR)
}
