//! The system call bpf(2): maps, programs and links. Arguments are the members of `union bpf_attr` that a command reads; the kernel treats
//! members beyond them as zero.
#![allow(unsafe_code)]

mod link;
mod map;
mod program;

pub(super) use link::{AttachPoint, Link};
pub(super) use map::{Map, MapKind};
pub(super) use program::{Instruction, LoadError, Program, ProgramKind};

use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd};

/// Commands, by their numbers in `enum bpf_cmd`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    ProgramLoad = 5,
    TestRun = 10,
    Info = 15,
    LinkCreate = 28,
    LinkUpdate = 29,
    LinkDetach = 34,
}

const NAME_BYTES: usize = 16;

/// Calls the kernel.
///
/// # Safety
/// `attributes` must be a prefix of those of `command`, without padding; what they point to must be alive, and as large as they say.
unsafe fn bpf<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    let attributes: *mut T = attributes;
    // SAFETY: the kernel accesses at most the given size, and the memory that the attributes point to, which the caller guarantees to be
    // valid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            attributes,
            mem::size_of::<T>(),
        )
    };
    match result {
        0.. => Ok(result as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes ownership of a descriptor that a command has created.
fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel has just created the descriptor, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn address_of<T>(value: &[T]) -> u64 {
    value.as_ptr().expose_provenance() as u64
}

/// Converts a name to the form in which the kernel stores it and `bpftool` shows it; truncates it if it is too long.
fn kernel_name(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (target, byte) in bytes[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *target = byte;
    }
    bytes
}
