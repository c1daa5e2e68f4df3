//! Finds out whether the program's memory can be read or written, by accesses that may fault.
//!
//! The kernel fails with EFAULT where a program passes it memory that the program cannot access. This library would crash there. So it first
//! accesses a byte of each page by one of two instructions. If such an access faults, the handler of SIGSEGV and SIGBUS that this library
//! installs in front of the program's ([`signals`](crate::signals)) continues at the place where the access reports its failure. Without a
//! fault, this costs no system call. If a thread blocks these signals, or the program ignores them, a fault ends the program.

use crate::signals;
use libc::{c_void, ucontext_t};
use std::sync::atomic::{AtomicBool, Ordering};

/// Least size of a page, bytes.
const PAGE: usize = 4096;

/// Returns whether `len` bytes at this address can be read now.
pub fn can_read(at: usize, len: usize) -> bool {
    // SAFETY: the access reads a byte into a register, and survives a fault.
    on_each_page(at, len, |at| unsafe { arch::read(at) == 0 })
}

/// Returns whether `len` bytes at this address can be written now. Leaves their values as they are, also if another thread changes them.
pub fn can_write(at: usize, len: usize) -> bool {
    // SAFETY: the access does not change the byte, is atomic, and survives a fault.
    on_each_page(at, len, |at| unsafe { arch::write(at) == 0 })
}

/// Returns the number of bytes, up to `len`, that can be read from this address on.
pub fn readable(at: usize, len: usize) -> usize {
    prepare();
    // SAFETY: as in `can_read`.
    let is_bad = |at: &usize| unsafe { arch::read(*at) != 0 };
    pages(at, len).find(is_bad).map_or(len, |bad| bad - at)
}

/// Installs the handler before the first access.
fn prepare() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if !IS_DONE.load(Ordering::Relaxed) {
        signals::catch_faults();
        IS_DONE.store(true, Ordering::Relaxed);
    }
}

fn on_each_page(at: usize, len: usize, access: impl Fn(usize) -> bool) -> bool {
    prepare();
    pages(at, len).all(access)
}

/// Returns an address in each of the pages that have these bytes, the lowest first.
fn pages(at: usize, len: usize) -> impl Iterator<Item = usize> {
    let end = at.saturating_add(len);
    let others = (at / PAGE * PAGE..end).step_by(PAGE).skip(1);
    (at < end).then_some(at).into_iter().chain(others)
}

/// Continues after a failed access of this file. Returns `false` if the fault is not one of these accesses.
///
/// # Safety
/// The context is that of a handler of SIGSEGV or SIGBUS.
pub unsafe fn recover(context: *mut c_void) -> bool {
    // SAFETY: by this function's contract.
    let at = unsafe { arch::instruction(context.cast::<ucontext_t>()) };
    let is_in = |access: unsafe extern "C" fn(usize) -> usize| {
        at.wrapping_sub(access as usize as u64) < arch::FAULTING
    };
    let is_ours = is_in(arch::read) || is_in(arch::write);
    if is_ours {
        *at = arch::failed as *const () as u64;
    }
    is_ours
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use libc::ucontext_t;
    use std::arch::naked_asm;

    /// Only the first byte of an access can be the address of an instruction that faults.
    pub const FAULTING: u64 = 1;

    /// Reads a byte. Returns 0.
    #[unsafe(naked)]
    pub unsafe extern "C" fn read(_at: usize) -> usize {
        naked_asm!("mov al, [rdi]", "xor eax, eax", "ret")
    }

    /// Writes a byte, which keeps its value. Returns 0.
    #[unsafe(naked)]
    pub unsafe extern "C" fn write(_at: usize) -> usize {
        naked_asm!("lock or byte ptr [rdi], 0", "xor eax, eax", "ret")
    }

    /// The end of an access that has failed: returns 1 in its place.
    #[unsafe(naked)]
    pub unsafe extern "C" fn failed() -> usize {
        naked_asm!("mov eax, 1", "ret")
    }

    /// Returns the place of the instruction's address in an interrupted thread's registers.
    ///
    /// # Safety
    /// The context is that of a signal handler.
    pub unsafe fn instruction<'a>(context: *mut ucontext_t) -> &'a mut u64 {
        // SAFETY: by this function's contract; the handler has the only pointer to it.
        let register = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
        // SAFETY: both types have the same layout.
        unsafe { &mut *std::ptr::from_mut(register).cast::<u64>() }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use libc::ucontext_t;
    use std::arch::naked_asm;

    /// Length of an access's instructions that can fault, bytes.
    pub const FAULTING: u64 = 8;

    /// Reads a byte. Returns 0.
    #[unsafe(naked)]
    pub unsafe extern "C" fn read(_at: usize) -> usize {
        naked_asm!("ldrb w0, [x0]", "mov x0, #0", "ret")
    }

    /// Writes a byte, which keeps its value, by an exclusive load and store, both of which can fault. Returns 0.
    #[unsafe(naked)]
    pub unsafe extern "C" fn write(_at: usize) -> usize {
        naked_asm!(
            "2: ldxrb w1, [x0]",
            "stxrb w2, w1, [x0]",
            "cbnz w2, 2b",
            "mov x0, #0",
            "ret"
        )
    }

    /// The end of an access that has failed: returns 1 in its place.
    #[unsafe(naked)]
    pub unsafe extern "C" fn failed() -> usize {
        naked_asm!("mov x0, #1", "ret")
    }

    /// Returns the place of the instruction's address in an interrupted thread's registers.
    ///
    /// # Safety
    /// The context is that of a signal handler.
    pub unsafe fn instruction<'a>(context: *mut ucontext_t) -> &'a mut u64 {
        // SAFETY: by this function's contract; the handler has the only pointer to it.
        unsafe { &mut (*context).uc_mcontext.pc }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// Maps two pages: anonymous memory, or what a file has.
    fn map(protection: libc::c_int, file: Option<&File>) -> usize {
        let (flags, fd) = match file {
            Some(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: the system chooses the place.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, protection, flags, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        at as usize
    }

    #[test]
    fn memory_that_cannot_be_accessed_is_found() {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let at = map(both, None);
        // SAFETY: the page belongs to the mapping.
        assert_eq!(
            unsafe { libc::mprotect((at + PAGE) as *mut c_void, PAGE, libc::PROT_NONE) },
            0
        );
        let end = at + PAGE;
        assert!(can_read(at, PAGE) && can_write(end - 1, 1) && can_write(at, PAGE));
        assert!(!can_read(end - 1, 2) && !can_write(end - 1, 2) && !can_write(end, 1));
        assert_eq!(
            (readable(end - 5, 9), readable(end, 9), readable(at, 9)),
            (5, 0, 9)
        );
        assert!(can_read(end, 0) && can_write(end, 0));

        let at = map(libc::PROT_READ, None);
        assert!(can_read(at, 2 * PAGE) && !can_write(at + 7, 1));
    }

    #[test]
    fn memory_behind_the_end_of_a_file_is_found() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(PAGE as u64 + 3).expect("it grows");
        let at = map(libc::PROT_READ | libc::PROT_WRITE, Some(&file));
        assert!(can_read(at, 2 * PAGE) && can_write(at, 2 * PAGE));
        let at = map(libc::PROT_READ | libc::PROT_WRITE, Some(&file));
        file.set_len(5).expect("it shrinks");
        assert_eq!(readable(at, 2 * PAGE), PAGE);
        assert!(!can_write(at + PAGE, 1));
    }

    #[test]
    fn a_probe_leaves_memory_as_it_is() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * PAGE).collect();
        let copy = bytes.clone();
        assert!(can_write(bytes.as_ptr() as usize, bytes.len()));
        assert_eq!(bytes, copy);
    }
}
