//! Links, which attach programs to interfaces.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{Command, Program, bpf, owned};

/// Attachment points of a link, by their numbers in `enum bpf_attach_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::xdp) enum AttachPoint {
    Xdp = 37,
    TcxIngress = 46,
    TcxEgress = 47,
}

/// Returns the interface to which a link attaches an XDP or traffic control program.
fn interface_of(link: BorrowedFd<'_>) -> io::Result<u32> {
    /// `struct bpf_link_info` up to the interface, which has the same offset for both kinds.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        kind: u32,
        number: u32,
        program: u32,
        padding: u32,
        interface: u32,
    }
    #[repr(C)]
    struct Attributes {
        fd: u32,
        bytes: u32,
        info: u64,
    }
    const XDP: u32 = 6;
    const TCX: u32 = 11;
    let mut info = Info::default();
    let mut attributes = Attributes {
        fd: link.as_raw_fd() as u32,
        bytes: size_of::<Info>() as u32,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    // SAFETY: these are the attributes of the command. The kernel writes at most `info`'s size, and any bytes are valid there.
    unsafe { bpf(Command::Info, &mut attributes) }?;
    match info.kind {
        XDP | TCX => Ok(info.interface),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Attaches a program to an interface until it is dropped, or until the process ends.
#[derive(Debug)]
pub(in crate::xdp) struct Link {
    fd: OwnedFd,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Link {
    /// Detaches the program. Closing the descriptor would not suffice if a child process has it too, as between fork and exec.
    fn drop(&mut self) {
        #[repr(C)]
        struct Attributes {
            link: u32,
        }
        let mut attributes = Attributes {
            link: self.fd.as_raw_fd() as u32,
        };
        // SAFETY: these are the attributes of the command, which contain no pointers.
        let _ = unsafe { bpf(Command::LinkDetach, &mut attributes) };
    }
}

impl Program {
    /// Attaches the program to an interface.
    ///
    /// # Errors
    /// The process lacks the permission, another program is attached, or the driver refuses the program.
    pub(in crate::xdp) fn attach(
        &self,
        point: AttachPoint,
        interface: u32,
        flags: u32,
    ) -> io::Result<Link> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            interface: u32,
            point: u32,
            flags: u32,
        }
        let mut attributes = Attributes {
            program: self.as_fd().as_raw_fd() as u32,
            interface,
            point: point as u32,
            flags,
        };
        // SAFETY: these are the attributes of the command, which contain no pointers.
        let fd = unsafe { bpf(Command::LinkCreate, &mut attributes) }?;
        Ok(Link { fd: owned(fd) })
    }

    /// Replaces the program that a link, created by another process, attaches to this interface. Every packet meets either the old or the
    /// new program.
    ///
    /// # Errors
    /// The link is not one of this interface, or its program is of another kind; or the process lacks the permission.
    pub(in crate::xdp) fn replace(&self, link: OwnedFd, interface: u32) -> io::Result<Link> {
        #[repr(C)]
        struct Attributes {
            link: u32,
            program: u32,
            flags: u32,
            before: u32,
        }
        if interface_of(link.as_fd())? != interface {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut attributes = Attributes {
            link: link.as_raw_fd() as u32,
            program: self.as_fd().as_raw_fd() as u32,
            flags: 0,
            before: 0,
        };
        // SAFETY: these are the attributes of the command, which contain no pointers.
        unsafe { bpf(Command::LinkUpdate, &mut attributes) }?;
        Ok(Link { fd: link })
    }
}
