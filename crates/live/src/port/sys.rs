//! System calls on interfaces that no safe library offers.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Creates an interface request for `name`.
///
/// # Errors
/// The name is invalid.
pub fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an interface request is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(['\0', '/', ' ']) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (target, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *target = byte as libc::c_char;
    }
    Ok(request)
}

/// Configures or queries an interface. The argument is an `ifreq` that contains no pointer.
///
/// # Errors
/// Errors of the system call.
pub fn interface_ioctl(
    fd: BorrowedFd<'_>,
    operation: libc::Ioctl,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the kernel accesses only the structure, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), operation, request as *mut libc::ifreq) })
}

/// Executes a command of ethtool. Its argument is `words`, the first of which is the command; it must have space for everything that the
/// driver writes.
///
/// # Errors
/// Errors of the system call.
pub fn ethtool_words(fd: BorrowedFd<'_>, name: &str, words: &mut [u32]) -> io::Result<()> {
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request points to words that outlive the call and cover the command's structure with everything that follows it;
    // ethtool's structures are aligned to four bytes in user space.
    check(unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            libc::SIOCETHTOOL as libc::Ioctl,
            &mut request,
        )
    })
}

/// Sets an option whose value is plain data of the type that the kernel expects, a single value or several in a row.
///
/// # Errors
/// Errors of the system call.
pub fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    values: &[T],
) -> io::Result<()> {
    let len = mem::size_of_val(values) as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes, the size of the values.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, values.as_ptr().cast(), len) })
}

/// Spreads the frames that packet sockets receive over them, by a hash of each frame's flow. Both directions of a connection have the same
/// hash.
///
/// # Errors
/// Errors of the system calls.
pub fn share_frames(sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let [first, others @ ..] = sockets else {
        return Ok(());
    };
    let kind = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_UNIQUEID;
    set_option(*first, libc::SOL_PACKET, libc::PACKET_FANOUT, &[kind << 16])?;
    let mut group: u32 = 0;
    let mut len = mem::size_of_val(&group) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the number.
    check(unsafe {
        libc::getsockopt(
            first.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_FANOUT,
            (&raw mut group).cast(),
            &mut len,
        )
    })?;
    // The number of the group, and the kind without the request for a number.
    let group = group & 0xffff | libc::PACKET_FANOUT_HASH << 16;
    for socket in others {
        set_option(*socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &[group])?;
    }
    Ok(())
}

/// Returns the counters of a packet socket since the last call: frames, and those among them that were dropped for lack of space.
///
/// # Errors
/// Errors of the system call.
pub fn packet_statistics(fd: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut stats = libc::tpacket_stats_v3 {
        tp_packets: 0,
        tp_drops: 0,
        tp_freeze_q_cnt: 0,
    };
    let mut len = mem::size_of_val(&stats) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the structure.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &mut len,
        )
    })?;
    Ok((stats.tp_packets, stats.tp_drops))
}

/// Binds a packet socket to an interface, for frames of one protocol; ETH_P_ALL means all protocols, 0 none.
///
/// # Errors
/// Errors of the system call.
pub fn bind_packet(fd: BorrowedFd<'_>, interface_index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: an address is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface_index as i32;
    let len = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes, the size of the address.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })
}

/// Metadata of a frame that a packet socket has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// When the frame passed, since the start of 1970.
    pub at: Duration,
    /// Whether this host sent the frame.
    pub is_outgoing: bool,
    /// Number of bytes that fit into the buffer.
    pub kept: usize,
    /// Length of the frame, bytes.
    pub len: usize,
}

/// Receives a frame from a packet socket with SO_TIMESTAMPNS.
///
/// # Errors
/// Errors of the system call.
pub fn receive_stamped(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Stamped> {
    /// Buffer for a control message with a `timespec`, aligned like its header.
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    // SAFETY: both are plain data, for which zeros are valid.
    let (mut from, mut message): (libc::sockaddr_ll, libc::msghdr) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = mem::size_of_val(&from) as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: the kernel writes at most the given lengths to the name, the buffer and the control message, and all of them outlive the
    // call.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    if len < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut at = Duration::ZERO;
    // SAFETY: the header describes the buffer for control messages, which the kernel has filled; the macros stay within it.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let is_stamp = (*header).cmsg_level == libc::SOL_SOCKET
                && (*header).cmsg_type == libc::SCM_TIMESTAMPNS;
            if is_stamp {
                let stamp = libc::CMSG_DATA(header).cast::<libc::timespec>();
                let stamp = stamp.read_unaligned();
                at = Duration::new(stamp.tv_sec as u64, stamp.tv_nsec as u32);
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    let len = len as usize;
    Ok(Stamped {
        at,
        is_outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
        kept: len.min(buffer.len()),
        len,
    })
}

/// Converts the result of a call that returns a negative number on failure.
///
/// # Errors
/// The call failed.
pub fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
