//! getsockopt of the whole process, where the object is preloaded: tools ask the C library, and not the table, what a
//! script's own code wants to know of a socket.

use super::calls;
use crate::instance::Instance;
use libc::{c_int, c_void, socklen_t};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Every instance that was made, and not freed when last looked at.
static INSTANCES: Mutex<Vec<Weak<Instance>>> = Mutex::new(Vec::new());

fn instances() -> MutexGuard<'static, Vec<Weak<Instance>>> {
    INSTANCES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes an instance known.
pub(super) fn register(instance: &Arc<Instance>) {
    let mut instances = instances();
    instances.retain(|known| known.strong_count() > 0);
    instances.push(Arc::downgrade(instance));
}

/// The instance whose descriptor this is.
fn owner(fd: c_int) -> Option<Arc<Instance>> {
    let mut live = instances().clone().into_iter();
    live.find_map(|known| {
        let instance = known.upgrade()?;
        instance.call(|world| world.has(fd)).then_some(instance)
    })
}

/// getsockopt(2): by the instance whose socket it is, and of all others by the kernel.
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
        // SAFETY: an instance that lives, and this function's contract.
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
