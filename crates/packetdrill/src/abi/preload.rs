//! Functions that replace those of the C library when the object is preloaded: tools call the C library, not the table, for calls in a
//! script's own code and for functions that the table does not have.

use super::memory::report;
use super::{calls, transfer};
use crate::errno::Errno;
use crate::instance::Instance;
use libc::{c_int, c_void, off64_t, size_t, socklen_t, ssize_t};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All instances that were created and had not been freed at the last check.
static INSTANCES: Mutex<Vec<Weak<Instance>>> = Mutex::new(Vec::new());

fn instances() -> MutexGuard<'static, Vec<Weak<Instance>>> {
    INSTANCES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers an instance.
pub(super) fn register(instance: &Arc<Instance>) {
    let mut instances = instances();
    instances.retain(|known| known.strong_count() > 0);
    instances.push(Arc::downgrade(instance));
}

/// The instance to which the descriptor belongs.
fn owner(fd: c_int) -> Option<Arc<Instance>> {
    let mut live = instances().clone().into_iter();
    live.find_map(|known| {
        let instance = known.upgrade()?;
        instance.call(|world| world.has(fd)).then_some(instance)
    })
}

/// getsockopt(2): by the instance to which the socket belongs, otherwise by the kernel.
///
/// # Safety
/// `len` points to a length for which `value` is good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    match owner(fd) {
        // SAFETY: the instance is alive, and the pointers are valid by this function's contract.
        Some(instance) => unsafe {
            let data = Arc::as_ptr(&instance).cast_mut().cast();
            calls::getsockopt(data, fd, level, name, value, len)
        },
        // SAFETY: the kernel checks everything itself.
        None => unsafe {
            libc::syscall(libc::SYS_getsockopt, fd, level, name, value, len) as c_int
        },
    }
}

/// Number of bytes that sendfile reads at a time.
const PIECE: usize = 64 << 10;

/// sendfile(2): to a socket of an instance by read(2) and write(2), otherwise by the kernel.
///
/// # Safety
/// `offset` is null or points to an offset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    let Some(instance) = owner(to) else {
        // SAFETY: the kernel checks everything itself.
        return unsafe { libc::syscall(libc::SYS_sendfile, to, from, offset, count) as ssize_t };
    };
    // SAFETY: the call only returns a number, or the pointer is valid by this function's contract.
    let start = unsafe {
        match offset.is_null() {
            true => libc::lseek64(from, 0, libc::SEEK_CUR),
            false => *offset,
        }
    };
    if start < 0 {
        return report(Err(Errno(libc::EINVAL)));
    }
    let sent = send_pieces(&instance, to, from, start, count);
    let end = start + sent.max(0) as off64_t;
    // SAFETY: as above.
    unsafe {
        match offset.is_null() {
            true => _ = libc::lseek64(from, end, libc::SEEK_SET),
            false => *offset = end,
        }
    }
    sent
}

/// [`sendfile64`] by its other name: offsets have 64 bits in both.
///
/// # Safety
/// As for [`sendfile64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: by this function's contract.
    unsafe { sendfile64(to, from, offset, count) }
}

/// Sends pieces until the file ends, the socket accepts no more, or an error occurs. Returns the error only if nothing was sent
/// before it.
fn send_pieces(
    instance: &Arc<Instance>,
    to: c_int,
    from: c_int,
    start: off64_t,
    count: size_t,
) -> ssize_t {
    let data = Arc::as_ptr(instance).cast_mut().cast();
    let mut piece = vec![0_u8; count.min(PIECE)];
    let mut sent = 0;
    while (sent as size_t) < count {
        let most = piece.len().min(count - sent as size_t);
        // SAFETY: the piece has at least this length.
        let len = unsafe {
            libc::pread64(
                from,
                piece.as_mut_ptr().cast(),
                most,
                start + sent as off64_t,
            )
        };
        let taken = match len {
            // SAFETY: the instance is alive, and the bytes were read into the piece.
            1.. => unsafe { transfer::write(data, to, piece.as_ptr().cast(), len as size_t) },
            _ => len,
        };
        if taken <= 0 {
            return if sent > 0 { sent } else { taken };
        }
        sent += taken;
        if taken < len {
            break;
        }
    }
    sent
}
