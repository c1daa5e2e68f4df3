//! Copies between this process's memory and memory that another process may write to at the same time.
//!
//! Shared memory is accessed by relaxed atomic operations on whole aligned words, and on single bytes before the first and after the last
//! word. So a copy is well defined whatever the other process does at the same time: the result is a mix of old and new words, whereas a
//! plain copy would be a data race. The model of the rings assumes the same ([`baton_bus::shared`]).
//!
//! The compiler does not merge atomic accesses, so this moves 8 bytes at a time where a plain copy moves 32 or 64, and takes 2.5 times as
//! long in the first-level cache. Long copies therefore use the same wide instructions in assembly, where available. The compiler only
//! knows that the assembly may access each byte atomically, so they are as well defined.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();

/// Copies `len` bytes from `own` to `shared`.
///
/// # Safety
/// - `own` is valid for reads of `len` bytes.
/// - `shared` is valid for reads and writes of `len` bytes, which this process meanwhile accesses only by the functions of this module.
/// - The two do not overlap.
pub(super) unsafe fn to_shared(own: *const u8, shared: *mut u8, len: usize) {
    // SAFETY: by this function's contract.
    let done = unsafe { blocks::copy(own, shared, len) };
    for_each_unit(
        shared,
        done..len,
        // SAFETY: the byte is one of the `len` bytes; it is only accessed atomically.
        |at| unsafe {
            let byte = own.add(at).read();
            AtomicU8::from_ptr(shared.add(at)).store(byte, Ordering::Relaxed);
        },
        // SAFETY: the word's bytes are among the `len` bytes, and it is aligned in shared memory; it is only accessed atomically.
        |at| unsafe {
            let word = own.add(at).cast::<u64>().read_unaligned();
            AtomicU64::from_ptr(shared.add(at).cast()).store(word, Ordering::Relaxed);
        },
    );
}

/// Copies `len` bytes from `shared` to `own`, and initialises all of them.
///
/// # Safety
/// - `own` is valid for writes of `len` bytes.
/// - The other conditions are those of [`to_shared`].
pub(super) unsafe fn from_shared(shared: *mut u8, own: *mut u8, len: usize) {
    // SAFETY: by this function's contract.
    let done = unsafe { blocks::copy(shared, own, len) };
    for_each_unit(
        shared,
        done..len,
        // SAFETY: the byte is one of the `len` bytes; it is only accessed atomically.
        |at| unsafe {
            let byte = AtomicU8::from_ptr(shared.add(at)).load(Ordering::Relaxed);
            own.add(at).write(byte);
        },
        // SAFETY: the word's bytes are among the `len` bytes, and it is aligned in shared memory; it is only accessed atomically.
        |at| unsafe {
            let word = AtomicU64::from_ptr(shared.add(at).cast()).load(Ordering::Relaxed);
            own.add(at).cast::<u64>().write_unaligned(word);
        },
    );
}

/// Copies bytes to words that another process may access, starting at byte `at`.
///
/// # Panics
/// If the bytes do not fit.
pub fn write_words(words: &[AtomicU64], at: usize, bytes: &[u8]) {
    let end = at.checked_add(bytes.len());
    assert!(
        end.is_some_and(|end| end <= size_of_val(words)),
        "the place lies within the words"
    );
    let base = words.as_ptr().cast::<u8>().cast_mut();
    // SAFETY: both ranges are valid, and the words may be written to even though they are shared.
    unsafe { to_shared(bytes.as_ptr(), base.add(at), bytes.len()) };
}

/// Copies bytes from the start of words that another process may access.
///
/// # Panics
/// If there are fewer bytes than requested.
pub fn read_words(words: &[AtomicU64], bytes: &mut [u8]) {
    assert!(bytes.len() <= size_of_val(words), "there are so many");
    let base = words.as_ptr().cast::<u8>().cast_mut();
    // SAFETY: both ranges are valid.
    unsafe { from_shared(base, bytes.as_mut_ptr(), bytes.len()) };
}

/// Passes on the offset of each of `bytes` from `shared` once: by `word` for an aligned word, by `byte` for a byte outside of whole words.
fn for_each_unit(
    shared: *mut u8,
    bytes: Range<usize>,
    mut byte: impl FnMut(usize),
    mut word: impl FnMut(usize),
) {
    let Range { start, end } = bytes;
    let unaligned = shared.wrapping_add(start).align_offset(WORD);
    let words = start + unaligned.min(end - start);
    let tail = end - (end - words) % WORD;
    (start..words).for_each(&mut byte);
    (words..tail).step_by(WORD).for_each(&mut word);
    (tail..end).for_each(&mut byte);
}

/// Copies by wide instructions, which Miri does not support.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod blocks {
    use std::arch::asm;

    const BLOCK: usize = 128;
    /// Minimum length, bytes: shorter copies are faster without the loop over blocks.
    const LEAST: usize = 4 * BLOCK;

    /// Minimum length of a copy by a string instruction, bytes. It need not read the lines that it overwrites, which the other process has in its
    /// cache, and so takes half the time of the loop over blocks; but it takes longer to start.
    const LEAST_STRING: usize = 4096;

    /// Copies everything, or all whole blocks, if there are enough bytes, and returns the number of bytes copied.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap. Other processes may access them.
    #[inline]
    pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) -> usize {
        if len >= LEAST_STRING && is_x86_feature_detected!("ermsb") {
            // SAFETY: by this function's contract.
            unsafe { copy_string(from, to, len) };
            return len;
        }
        if len < LEAST || !is_x86_feature_detected!("avx") {
            return 0;
        }
        // SAFETY: the processor has these instructions, and there are this many blocks, at least one.
        unsafe { copy_blocks(from, to, len / BLOCK) };
        len - len % BLOCK
    }

    /// # Safety
    /// As for [`copy`].
    unsafe fn copy_string(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the instruction copies `len` bytes upwards: the direction flag is clear on entry to an `asm!` block.
        unsafe {
            asm!(
                "rep movsb",
                inout("rsi") from => _,
                inout("rdi") to => _,
                inout("rcx") len => _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// # Safety
    /// As for [`copy`]; there is at least one block.
    #[target_feature(enable = "avx")]
    unsafe fn copy_blocks(from: *const u8, to: *mut u8, blocks: usize) {
        // SAFETY: each round copies the next block and nothing else, and the loop ends after the last block. The calling convention names
        // all registers whose upper halves `vzeroupper` clears so that they do not slow down later code.
        unsafe {
            asm!(
                "2:",
                "vmovdqu ymm0, [rsi]",
                "vmovdqu ymm1, [rsi + 32]",
                "vmovdqu ymm2, [rsi + 64]",
                "vmovdqu ymm3, [rsi + 96]",
                "vmovdqu [rdi], ymm0",
                "vmovdqu [rdi + 32], ymm1",
                "vmovdqu [rdi + 64], ymm2",
                "vmovdqu [rdi + 96], ymm3",
                "add rsi, {block}",
                "add rdi, {block}",
                "dec rdx",
                "jnz 2b",
                "vzeroupper",
                block = const BLOCK,
                inout("rsi") from => _,
                inout("rdi") to => _,
                inout("rdx") blocks => _,
                clobber_abi("sysv64"),
                options(nostack),
            );
        }
    }
}

/// Without wide instructions, words are copied.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod blocks {
    /// Copies nothing, and returns 0.
    ///
    /// # Safety
    /// There are no conditions.
    pub(super) unsafe fn copy(_: *const u8, _: *mut u8, _: usize) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn words_store_bytes_at_any_offset() {
        let words: [AtomicU64; 100] = std::array::from_fn(|_| AtomicU64::new(0));
        let bytes: Vec<u8> = (0..800).map(|at| (at % 251) as u8).collect();
        // Miri takes a tenth of a second for each cut; these begin at every position in a word.
        let step = if cfg!(miri) { 37 } else { 1 };
        for cut in (0..=800).step_by(step) {
            write_words(&words, 0, &[0; 800]);
            write_words(&words, cut, &bytes[cut..]);
            write_words(&words, 0, &bytes[..cut]);
            let mut found = vec![1; 800];
            read_words(&words, &mut found);
            assert_eq!(found, bytes);
        }
    }

    /// Word-aligned memory.
    struct Memory(Vec<u64>);

    impl Memory {
        fn of(byte: u8, bytes: usize) -> Self {
            Self(vec![u64::from_ne_bytes([byte; WORD]); bytes / WORD])
        }

        fn at(&mut self, offset: usize) -> *mut u8 {
            self.0.as_mut_ptr().cast::<u8>().wrapping_add(offset)
        }

        /// Returns whether the memory holds `part` at `offset`, and only `rest` elsewhere.
        fn holds(&self, part: &[u8], offset: usize, rest: u8) -> bool {
            let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let (before, behind) = (&bytes[..offset], &bytes[offset + part.len()..]);
            let is_rest = |bytes: &[u8]| bytes.iter().all(|&byte| byte == rest);
            &bytes[offset..][..part.len()] == part && is_rest(before) && is_rest(behind)
        }
    }

    fn copies_all_and_no_more(len: usize, own_at: usize, shared_at: usize) {
        let part: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let bytes = (len + 24).next_multiple_of(WORD);
        let (mut shared, mut own) = (Memory::of(0xfe, bytes), Memory::of(0xff, bytes));
        // SAFETY: both buffers have at least 16 bytes more than `len`, which is enough for these offsets.
        unsafe {
            to_shared(part.as_ptr(), shared.at(shared_at), len);
            from_shared(shared.at(shared_at), own.at(own_at), len);
        }
        let places = format!("{len} bytes between {own_at} and {shared_at}");
        assert!(shared.holds(&part, shared_at, 0xfe), "{places}");
        assert!(own.holds(&part, own_at, 0xff), "{places}");
    }

    #[test]
    fn exactly_the_given_bytes_are_copied_at_any_offset() {
        for (own_at, shared_at) in [0, 1, 6]
            .into_iter()
            .flat_map(|own| (0..8).map(move |shared| (own, shared)))
        {
            for len in [0, 1, 2, 7, 8, 9, 15, 17] {
                copies_all_and_no_more(len, own_at, shared_at);
            }
        }
        for (at, len) in [511, 512, 513, 639, 640, 777, 4095, 4096, 4099]
            .into_iter()
            .enumerate()
        {
            copies_all_and_no_more(len, at, 0);
            copies_all_and_no_more(len, 0, at);
        }
    }

    /// Two threads write and read at the same time, as two processes can. Miri rejects a plain copy here.
    #[test]
    fn concurrent_copies_are_defined_behaviour() {
        const LEN: usize = 43;
        const ROUNDS: u8 = 50;
        struct Place(*mut u8);
        // SAFETY: until the threads have ended, only the functions under test access the memory.
        unsafe impl Send for Place {}

        let mut shared = Memory::of(0, 64);
        let (first, second) = (Place(shared.at(3)), Place(shared.at(3)));
        thread::scope(|scope| {
            scope.spawn(move || {
                let Place(shared) = { first };
                for round in 0..=ROUNDS {
                    // SAFETY: both ranges have `LEN` bytes, and no other function accesses the shared one.
                    unsafe { to_shared([round; LEN].as_ptr(), shared, LEN) };
                }
            });
            scope.spawn(move || {
                let Place(shared) = { second };
                let mut own = [0; LEN];
                for _ in 0..ROUNDS {
                    // SAFETY: as above.
                    unsafe { from_shared(shared, own.as_mut_ptr(), LEN) };
                    assert!(own.iter().all(|&byte| byte <= ROUNDS));
                }
            });
        });
        assert!(shared.holds(&[ROUNDS; LEN], 3, 0));
    }
}
