//! Conversions between C pointers and slices, and errno.

use crate::errno::Errno;
use crate::instance::Instance;
use libc::{c_int, c_void, iovec, sockaddr, socklen_t};

/// Maximum number of parts of one readv or writev (UIO_MAXIOV).
const MOST_PARTS: usize = 1024;

/// The instance behind a table's userdata.
///
/// # Safety
/// `data` came from `packetdrill_interface_init` and was not freed; the instance outlives the use of the reference.
pub(super) unsafe fn instance<'a>(data: *mut c_void) -> &'a Instance {
    // SAFETY: it points to a live instance by this function's contract.
    unsafe { &*data.cast::<Instance>() }
}

/// Converts an outcome to the C library's convention: -1 and errno for errors.
pub(super) fn report<T: From<i8>>(outcome: Result<T, Errno>) -> T {
    outcome.unwrap_or_else(|Errno(errno)| {
        // SAFETY: the C library's errno of the calling thread can always be written.
        unsafe { *libc::__errno_location() = errno };
        T::from(-1)
    })
}

/// The bytes that a caller passes. A null pointer with a length fails with EFAULT.
///
/// # Safety
/// `at` is null or valid for `len` bytes while the slice is used.
pub(super) unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Result<&'a [u8], Errno> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno(libc::EFAULT)),
        // SAFETY: not null, and so valid for `len` bytes by this function's contract.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) }),
    }
}

/// A socket address of the length that the caller passes, up to the length of the largest address.
///
/// # Safety
/// As for [`bytes`].
pub(super) unsafe fn address<'a>(at: *const sockaddr, len: socklen_t) -> Result<&'a [u8], Errno> {
    if len as usize > size_of::<libc::sockaddr_storage>() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: by this function's contract.
    unsafe { bytes(at.cast(), len as usize) }
}

/// Copies as much of `value` as fits into the caller's buffer, and sets its length.
///
/// # Safety
/// `len` is null or points to a length for which `to` is good.
pub(super) unsafe fn give_back(
    value: &[u8],
    to: *mut c_void,
    len: *mut socklen_t,
    tell_whole: bool,
) -> Result<(), Errno> {
    if len.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: not null, and so a length by this function's contract.
    let room = unsafe { *len };
    let room = usize::try_from(room as c_int).map_err(|_| Errno(libc::EINVAL))?;
    let copied = value.len().min(room);
    if copied > 0 {
        if to.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        // SAFETY: `to` is valid for `room` bytes, of which these are the first, and is not used elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), to.cast(), copied) };
    }
    let told = if tell_whole { value.len() } else { copied };
    // SAFETY: as above.
    unsafe { *len = told as socklen_t };
    Ok(())
}

/// The parts of a scattered buffer.
///
/// # Safety
/// `parts` is null or valid for `count` parts.
pub(super) unsafe fn parts<'a>(parts: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    match (parts.is_null(), count) {
        (_, 0) => Ok(&[]),
        (_, count) if count > MOST_PARTS => Err(Errno(libc::EINVAL)),
        (true, _) => Err(Errno(libc::EFAULT)),
        // SAFETY: not null, and so valid for `count` parts by this function's contract.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(parts, count) }),
    }
}

/// Bytes in all parts.
pub(super) fn len_of(parts: &[iovec]) -> usize {
    parts
        .iter()
        .fold(0, |sum, part| sum.saturating_add(part.iov_len))
}

/// Copies all parts into one buffer.
///
/// # Safety
/// Every part is valid for its length.
pub(super) unsafe fn gather(parts: &[iovec]) -> Result<Vec<u8>, Errno> {
    let mut all = Vec::with_capacity(len_of(parts).min(1 << 20));
    for part in parts {
        // SAFETY: by this function's contract.
        all.extend_from_slice(unsafe { bytes(part.iov_base, part.iov_len) }?);
    }
    Ok(all)
}

/// Fills the parts one after the other.
///
/// # Safety
/// Every part is valid for its length and may be written.
pub(super) unsafe fn scatter(mut data: &[u8], parts: &[iovec]) -> Result<(), Errno> {
    for part in parts {
        let len = data.len().min(part.iov_len);
        if len == 0 {
            continue;
        }
        if part.iov_base.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        // SAFETY: the part is valid for at least `len` bytes by this function's contract.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), part.iov_base.cast(), len) };
        data = &data[len..];
    }
    Ok(())
}
