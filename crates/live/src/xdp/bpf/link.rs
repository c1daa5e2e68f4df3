//! Links: what holds programs at interfaces.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{Command, Program, bpf, owned};

/// Where a link attaches a program, by the numbers of `enum bpf_attach_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::xdp) enum AttachPoint {
    Xdp = 37,
    TcxIngress = 46,
    TcxEgress = 47,
}

/// The interface at which a link holds an XDP program, or one of traffic control.
fn interface_of(link: BorrowedFd<'_>) -> io::Result<u32> {
    /// `struct bpf_link_info` up to the interface, which stands first for both kinds.
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
    // SAFETY: these are the attributes of the command. The kernel writes at most that many bytes, of which any are valid, to where there is
    // room for them.
    unsafe { bpf(Command::Info, &mut attributes) }?;
    match info.kind {
        XDP | TCX => Ok(info.interface),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// What holds a program at an interface: until it is dropped, at the latest until the process is gone.
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
    /// Closing would do, if no child of this process had the descriptor too, as between fork and exec.
    fn drop(&mut self) {
        #[repr(C)]
        struct Attributes {
            link: u32,
        }
        let mut attributes = Attributes {
            link: self.fd.as_raw_fd() as u32,
        };
        // SAFETY: these are the attributes of the command, and there are no pointers in them.
        let _ = unsafe { bpf(Command::LinkDetach, &mut attributes) };
    }
}

impl Program {
    /// Attaches the program to an interface.
    ///
    /// # Errors
    /// There is no permission, another program is in the way, or the driver refuses it.
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
        // SAFETY: these are the attributes of the command, and there are no pointers in them.
        let fd = unsafe { bpf(Command::LinkCreate, &mut attributes) }?;
        Ok(Link { fd: owned(fd) })
    }

    /// Takes the place of the program that a link, which another process has made, holds at this interface. No packet meets neither.
    ///
    /// # Errors
    /// It is no link of this interface, or of programs of another kind; there is no permission.
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
        // SAFETY: these are the attributes of the command, and there are no pointers in them.
        unsafe { bpf(Command::LinkUpdate, &mut attributes) }?;
        Ok(Link { fd: link })
    }
}
