//! Recognizes pointers to memory that the program cannot access. The kernel fails with EFAULT on them, and this library would crash.
//!
//! Addresses that no program can have are found by their number, others by [probing] a byte of each page.

use crate::probing;
use crate::signals::SET_BYTES;
use crate::sys::Errno;
use libc::{c_int, iovec, sigset_t};
use std::borrow::Cow;

/// The lowest address that Linux lets programs map by default (`vm.mmap_min_addr`).
const LOWEST: usize = 1 << 16;
/// The end of the user's address space on processors that have the largest one.
const END: usize = 1 << 56;
/// Number of bytes that Linux copies at once between a program and segments: all of them, or none if the program cannot access one of them.
const COPIED: usize = 32 << 10;

/// Returns whether the program cannot read `len` bytes at this address.
pub fn is_bad<T>(at: *const T, len: usize) -> bool {
    is_impossible(at, len) || !probing::can_read(at as usize, len)
}

/// Returns whether the program cannot write `len` bytes at this address.
pub fn is_bad_mut<T>(at: *mut T, len: usize) -> bool {
    is_impossible(at, len) || !probing::can_write(at as usize, len)
}

fn is_impossible<T>(at: *const T, len: usize) -> bool {
    len > 0 && ((at as usize) < LOWEST || is_beyond(at, len))
}

/// Returns whether the bytes reach into the kernel's half of the address space, which the kernel checks before it does anything else.
pub fn is_beyond<T>(at: *const T, len: usize) -> bool {
    // The kernel limits each call to this many bytes, and checks no more.
    let end = (at as usize).checked_add(len.min(c_int::MAX as usize));
    len > 0 && end.is_none_or(|end| end > END)
}

/// Returns EFAULT if the program cannot read a `T` at this address.
pub fn check<T>(at: *const T) -> Result<(), Errno> {
    match is_bad(at, size_of::<T>()) {
        true => Err(libc::EFAULT),
        false => Ok(()),
    }
}

/// Returns EFAULT if the program cannot write a `T` at this address.
pub fn check_mut<T>(at: *mut T) -> Result<(), Errno> {
    match is_bad_mut(at, size_of::<T>()) {
        true => Err(libc::EFAULT),
        false => Ok(()),
    }
}

/// Returns whether the kernel cannot read a signal mask at this address, which may be null.
pub fn is_bad_mask(at: *const sigset_t) -> bool {
    !at.is_null() && is_bad(at, SET_BYTES)
}

/// Reads the value, or returns `None` if the pointer is null.
///
/// # Safety
/// The pointer is null, [bad](is_bad), or good.
pub unsafe fn read<T: Copy>(at: *const T) -> Result<Option<T>, Errno> {
    if at.is_null() {
        return Ok(None);
    }
    check(at)?;
    // SAFETY: by this function's contract.
    Ok(Some(unsafe { at.read_unaligned() }))
}

/// Returns EFAULT if a part of a buffer reaches into the kernel's half of the address space.
pub fn check_parts(parts: &[iovec]) -> Result<(), Errno> {
    let mut each = parts.iter();
    match each.any(|part| is_beyond(part.iov_base, part.iov_len)) {
        true => Err(libc::EFAULT),
        false => Ok(()),
    }
}

/// Returns how many of `wanted` bytes Linux copies if it can access the first `good` of them. Fails with EFAULT if it copies none.
pub fn copied(good: usize, wanted: usize) -> Result<usize, Errno> {
    match good / COPIED * COPIED {
        _ if good == wanted => Ok(wanted),
        0 => Err(libc::EFAULT),
        whole => Ok(whole),
    }
}

/// Returns how many of these bytes the program can read before the first that it cannot.
pub fn readable<T>(at: *const T, len: usize) -> usize {
    match is_impossible(at, len) {
        true => 0,
        false => probing::readable(at as usize, len),
    }
}

/// Returns how many of the first `most` bytes of the parts the program can write (if `writes`) or read.
pub fn accessible(parts: &[iovec], most: usize, writes: bool) -> usize {
    let mut good = 0;
    for part in parts {
        let (at, len) = (part.iov_base, part.iov_len.min(most - good));
        // Writing to each page would allocate it, even if no data arrives for it, so only the first page is checked for being read-only.
        let is_read_only = writes && is_bad_mut(at, len.min(1));
        let found = if is_read_only { 0 } else { readable(at, len) };
        good += found;
        if found < len {
            break;
        }
    }
    good
}

/// Returns the parts, or if they are longer than `len` bytes, those bytes.
pub fn first(parts: &[iovec], len: usize) -> Cow<'_, [iovec]> {
    if len_of(parts) <= len {
        return Cow::Borrowed(parts);
    }
    let mut left = len;
    let take = |part: &iovec| {
        let iov_len = part.iov_len.min(left);
        left -= iov_len;
        iovec { iov_len, ..*part }
    };
    Cow::Owned(parts.iter().map(take).collect())
}

/// Returns the total length of the parts, bytes.
pub fn len_of(parts: &[iovec]) -> usize {
    let lens = parts.iter().map(|part| part.iov_len);
    lens.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_addresses_are_recognised() {
        for at in [0, 1, 16, LOWEST - 1, END, usize::MAX - 3, usize::MAX] {
            assert!(is_bad(at as *const u8, 4) && check(at as *const u8).is_err());
            assert!(!is_bad(at as *const u8, 0));
        }
        let here = 5_u64;
        assert!(!is_bad(&here, 8) && check(&here).is_ok());
        assert!(
            !is_impossible(&here, usize::MAX),
            "no more than 2 GiB count"
        );
        assert!(
            !is_beyond(16 as *const u8, 4),
            "the kernel finds it when it gets there"
        );
        // SAFETY: the pointers are good, null or bad.
        unsafe {
            assert_eq!(read(&here), Ok(Some(5)));
            assert_eq!(read::<u64>(std::ptr::null()), Ok(None));
            assert_eq!(read(24 as *const u64), Err(libc::EFAULT));
        }
    }

    #[test]
    fn parts_are_valid_up_to_the_first_invalid_one() {
        let mut room = [0_u8; 8];
        let part = |at: *mut u8, iov_len| iovec {
            iov_base: at.cast(),
            iov_len,
        };
        let at = room.as_mut_ptr();
        let parts = [part(at, 4), part(16 as *mut u8, 0), part(16 as *mut u8, 1)];
        assert_eq!(accessible(&parts, 5, true), 4);
        assert_eq!(accessible(&parts[..2], 9, false), 4);
        assert_eq!(accessible(&parts, 3, false), 3);
        let two = [parts[0], part(at, 4)];
        assert_eq!(len_of(&first(&two, 5)), 5);
        assert_eq!((first(&two, 8).len(), first(&two, 0).len()), (2, 2));
        assert_eq!(len_of(&[part(at, usize::MAX), part(at, 2)]), usize::MAX);
    }
}
