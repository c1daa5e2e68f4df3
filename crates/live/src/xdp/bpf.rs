//! The system call bpf(2): maps, programs, links. Arguments are the members of `union bpf_attr` that a command reads; what the
//! kernel knows beyond them it takes for zero.
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

/// What the call is asked to do, by the numbers of `enum bpf_cmd`.
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
/// `attributes` are those of `command`, as far as they go, without padding; what they point to is alive, and as large as they say.
unsafe fn bpf<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    let attributes: *mut T = attributes;
    // SAFETY: the kernel reads and writes no more than the size that it is given, and what the attributes point to, for which the
    // caller vouches.
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

/// Takes a descriptor that a command has made.
fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel has just made it for the caller, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn address_of<T>(value: &[T]) -> u64 {
    value.as_ptr().expose_provenance() as u64
}

/// A name as the kernel keeps it, to be seen in `bpftool`; cut where it is too long.
fn kernel_name(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (target, byte) in bytes[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *target = byte;
    }
    bytes
}
