//! Control messages (cmsg(3)) of recvmsg(2) and sendmsg(2): timestamps and reports of the error queue (Linux, networking/timestamping).

use crate::Errno;
use crate::address::Family;
use baton_wire::{Stage, Timestamping};
use libc::{c_int, cmsghdr, msghdr, sock_extended_err};
use std::time::Duration;

/// Number of SO_TIMESTAMPING for programs with 64-bit seconds (asm-generic/socket.h).
const SO_TIMESTAMPING_NEW: c_int = 65;
/// Origins of reports, and the code of a zero-copy report whose data was copied after all (linux/errqueue.h).
const SO_EE_ORIGIN_TIMESTAMPING: u8 = 4;
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

/// Returns whether an option of SOL_SOCKET is SO_TIMESTAMPING, by either of its numbers.
pub const fn is_timestamping(name: c_int) -> bool {
    matches!(name, libc::SO_TIMESTAMPING | SO_TIMESTAMPING_NEW)
}

/// The control buffer of a message that recvmsg(2) fills, from its start.
#[derive(Debug)]
pub struct Controls<'a> {
    message: &'a mut msghdr,
    room: usize,
}

impl<'a> Controls<'a> {
    /// Starts with an empty buffer of `room` bytes.
    ///
    /// # Safety
    /// The program can write `room` bytes to the control buffer.
    #[allow(unsafe_code)]
    pub unsafe fn new(message: &'a mut msghdr, room: usize) -> Self {
        message.msg_controllen = 0;
        Self { message, room }
    }

    /// Appends a control message. Truncates it if the buffer is too small, and sets MSG_CTRUNC (put_cmsg of Linux).
    pub fn put(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        let header_len = size_of::<cmsghdr>();
        if self.room < header_len {
            self.message.msg_flags |= libc::MSG_CTRUNC;
            return;
        }
        let whole = header_len + data.len();
        let len = whole.min(self.room);
        if len < whole {
            self.message.msg_flags |= libc::MSG_CTRUNC;
        }
        let used = self.message.msg_controllen;
        // SAFETY: the buffer has `room` bytes after the used ones, which is enough for the header and the data. All zeros are a valid header.
        #[allow(unsafe_code)]
        unsafe {
            let mut header: cmsghdr = std::mem::zeroed();
            (header.cmsg_len, header.cmsg_level, header.cmsg_type) = (len, level, kind);
            let at = self.message.msg_control.byte_add(used);
            at.cast::<cmsghdr>().write_unaligned(header);
            let data_at = at.byte_add(header_len).cast::<u8>();
            std::ptr::copy_nonoverlapping(data.as_ptr(), data_at, len - header_len);
        }
        let padded = len.next_multiple_of(size_of::<usize>()).min(self.room);
        self.message.msg_controllen = used + padded;
        self.room -= padded;
    }

    /// Appends a software timestamp: the time since 1970. `kind` is the number of SO_TIMESTAMPING that the program used.
    pub fn put_timestamp(&mut self, kind: c_int, at: Duration) {
        let parts = [at.as_secs() as i64, at.subsec_nanos().into(), 0, 0, 0, 0];
        self.put(
            libc::SOL_SOCKET,
            kind,
            parts.map(i64::to_ne_bytes).as_flattened(),
        );
    }

    /// Appends a report of the error queue, with an empty address of the offender (ip(7)).
    pub fn put_error(&mut self, family: Family, error: &ExtendedError) {
        let (level, kind) = match family {
            Family::V4 => (libc::SOL_IP, libc::IP_RECVERR),
            Family::V6 => (libc::SOL_IPV6, libc::IPV6_RECVERR),
        };
        let mut data = [0; size_of::<sock_extended_err>() + size_of::<libc::sockaddr_in6>()];
        data[..error.0.len()].copy_from_slice(&error.0);
        self.put(level, kind, &data[..error.0.len() + family.address_len()]);
    }
}

/// A `struct sock_extended_err`.
#[derive(Clone, Copy, Debug)]
pub struct ExtendedError([u8; size_of::<sock_extended_err>()]);

impl ExtendedError {
    fn new(errno: Errno, origin: u8, code: u8, [info, data]: [u32; 2]) -> Self {
        let mut bytes = [0; size_of::<sock_extended_err>()];
        bytes[..4].copy_from_slice(&errno.to_ne_bytes());
        (bytes[4], bytes[6]) = (origin, code);
        bytes[8..12].copy_from_slice(&info.to_ne_bytes());
        bytes[12..].copy_from_slice(&data.to_ne_bytes());
        Self(bytes)
    }

    /// Returns the report that a byte with this number has reached a stage.
    pub fn of_timestamp(stage: Stage, byte: u32) -> Self {
        let origin = SO_EE_ORIGIN_TIMESTAMPING;
        Self::new(libc::ENOMSG, origin, 0, [stage as u32, byte])
    }

    /// Returns the report that the calls with the numbers `first` to `last` no longer need their buffers (MSG_ZEROCOPY).
    pub fn of_zero_copy(first: u32, last: u32, copied: bool) -> Self {
        let code = if copied {
            SO_EE_CODE_ZEROCOPY_COPIED
        } else {
            0
        };
        Self::new(0, SO_EE_ORIGIN_ZEROCOPY, code, [first, last])
    }
}

/// Returns the timestamps that a control message of sendmsg(2) requests for the bytes of this call, or `None` if no message does.
///
/// # Errors
/// EINVAL if the message has another length or requests something else.
///
/// # Safety
/// The control buffer is null or readable for its length.
#[allow(unsafe_code)]
pub unsafe fn requested_timestamps(message: &msghdr) -> Result<Option<u32>, Errno> {
    let mut requested = None;
    // SAFETY: by this function's contract; the macros stay within the buffer's length.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && is_timestamping(control.cmsg_type) {
                let needed = libc::CMSG_LEN(size_of::<u32>() as u32) as usize;
                if control.cmsg_len != needed {
                    return Err(libc::EINVAL);
                }
                let flags = libc::CMSG_DATA(header).cast::<u32>().read_unaligned();
                // Linux accepts the flag for hardware timestamps, and here it has no effect.
                if flags & !(Timestamping::OF_CALL.bits() | 1) != 0 {
                    return Err(libc::EINVAL);
                }
                requested = Some(flags);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    Ok(requested)
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    /// Puts messages of 5 and 8 bytes into a buffer of `len` bytes. Returns the used length, the flags, and the lengths of the messages.
    fn put(len: usize) -> (usize, c_int, Vec<usize>) {
        let mut buffer = vec![0_u64; 16];
        // SAFETY: all zeros are a valid, empty message.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = buffer.as_mut_ptr().cast();
        // SAFETY: the buffer is longer than `len`.
        let mut controls = unsafe { Controls::new(&mut message, len) };
        controls.put(1, 2, b"hello");
        controls.put(1, 3, b"12345678");
        let mut lens = Vec::new();
        // SAFETY: the macros stay within the bytes that were put.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(&message);
            while let Some(control) = header.as_ref() {
                lens.push(control.cmsg_len - size_of::<cmsghdr>());
                header = libc::CMSG_NXTHDR(&message, header);
            }
        }
        (message.msg_controllen, message.msg_flags, lens)
    }

    #[test]
    fn control_messages_that_do_not_fit_are_truncated() {
        assert_eq!(put(64), (48, 0, vec![5, 8]));
        assert_eq!(put(48), (48, 0, vec![5, 8]));
        assert_eq!(put(44), (44, libc::MSG_CTRUNC, vec![5, 4]));
        assert_eq!(put(30), (24, libc::MSG_CTRUNC, vec![5]));
        assert_eq!(put(18), (18, libc::MSG_CTRUNC, vec![2]));
        assert_eq!(put(8), (0, libc::MSG_CTRUNC, vec![]));
        assert_eq!(put(0), (0, libc::MSG_CTRUNC, vec![]));
    }

    /// Returns what a control message of these flags requests.
    fn requested(flags: &[u8]) -> Result<Option<u32>, Errno> {
        let mut buffer = vec![0_u64; 8];
        // SAFETY: all zeros are a valid, empty message; the buffer has 64 bytes.
        unsafe {
            let mut message: msghdr = std::mem::zeroed();
            message.msg_control = buffer.as_mut_ptr().cast();
            Controls::new(&mut message, 64).put(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags);
            requested_timestamps(&message)
        }
    }

    #[test]
    fn requests_of_other_lengths_or_flags_are_refused() {
        let sent = Timestamping::TX_SOFTWARE.bits();
        assert_eq!(requested(&sent.to_ne_bytes()), Ok(Some(sent)));
        assert_eq!(requested(&[2, 0]), Err(libc::EINVAL));
        let arrival = Timestamping::RX_SOFTWARE.bits();
        assert_eq!(requested(&arrival.to_ne_bytes()), Err(libc::EINVAL));
    }
}
