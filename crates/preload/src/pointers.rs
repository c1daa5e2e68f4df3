//! Recognizes pointers at which no program can have memory. The kernel fails with EFAULT on them, and this library would crash. The check
//! compares numbers only, so it costs no system call; it does not notice other invalid pointers, such as those to memory that was unmapped.

use crate::sys::Errno;
use libc::{c_int, iovec};

/// The lowest address that Linux lets programs map by default (`vm.mmap_min_addr`).
const LOWEST: usize = 1 << 16;
/// The end of the user's address space on processors that have the largest one.
const END: usize = 1 << 56;

/// Returns whether no program can have `len` bytes of memory at this address.
pub fn is_bad<T>(at: *const T, len: usize) -> bool {
    len > 0 && ((at as usize) < LOWEST || is_beyond(at, len))
}

/// Returns whether the bytes reach into the kernel's half of the address space, which the kernel checks before it does anything else.
pub fn is_beyond<T>(at: *const T, len: usize) -> bool {
    // The kernel limits each call to this many bytes, and checks no more.
    let end = (at as usize).checked_add(len.min(c_int::MAX as usize));
    len > 0 && end.is_none_or(|end| end > END)
}

/// Returns EFAULT if no program can have a `T` at this address.
pub fn check<T>(at: *const T) -> Result<(), Errno> {
    match is_bad(at, size_of::<T>()) {
        true => Err(libc::EFAULT),
        false => Ok(()),
    }
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

/// Returns the parts before the first bad one, and whether there is a bad one.
pub fn good_parts(parts: &[iovec]) -> (&[iovec], bool) {
    let is_bad = |part: &iovec| is_bad(part.iov_base, part.iov_len);
    match parts.iter().position(is_bad) {
        Some(at) => (&parts[..at], true),
        None => (parts, false),
    }
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
        assert!(!is_bad(&here, usize::MAX), "no more than 2 GiB count");
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
        let (good, has_bad) = good_parts(&parts);
        assert_eq!((good.len(), has_bad, len_of(good)), (2, true, 4));
        let (good, has_bad) = good_parts(&parts[..2]);
        assert_eq!((good.len(), has_bad), (2, false));
        assert_eq!(len_of(&[part(at, usize::MAX), part(at, 2)]), usize::MAX);
    }
}
