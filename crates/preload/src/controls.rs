//! Control messages of recvmsg(2), in the kernel's layout.

use crate::pointers;
use libc::{c_int, cmsghdr, msghdr};

/// Number of bytes that all control messages of a call need at most.
const MOST_USED: usize = 1024;

/// The control buffer of a message; messages are appended from its start.
pub struct Controls<'a> {
    message: &'a mut msghdr,
    room: usize,
}

impl<'a> Controls<'a> {
    /// Starts with an empty buffer.
    ///
    /// # Safety
    /// The control buffer is valid for its length, or [bad](pointers::is_bad_mut).
    pub unsafe fn new(message: &'a mut msghdr) -> Self {
        // This library puts no more than that into one message.
        let used = message.msg_controllen.min(MOST_USED);
        let room = match pointers::is_bad_mut(message.msg_control, used) {
            true => 0,
            false => message.msg_controllen,
        };
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
        // SAFETY: all zeros are a valid header.
        let mut header: cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = len;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        let used = self.message.msg_controllen;
        // SAFETY: the buffer has `room` bytes after the used ones, which is enough for the header and the data.
        unsafe {
            let at = self.message.msg_control.byte_add(used);
            at.cast::<cmsghdr>().write_unaligned(header);
            let data_at = at.byte_add(header_len).cast::<u8>();
            std::ptr::copy_nonoverlapping(data.as_ptr(), data_at, len - header_len);
        }
        let padded = len.next_multiple_of(size_of::<usize>()).min(self.room);
        self.message.msg_controllen = used + padded;
        self.room -= padded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts messages of 5 and 8 bytes into a buffer of `len` bytes. Returns the used length, the flags, and the lengths of the messages.
    fn put(len: usize) -> (usize, c_int, Vec<usize>) {
        let mut buffer = vec![0_u64; 16];
        // SAFETY: all zeros are a valid, empty message.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = buffer.as_mut_ptr().cast();
        message.msg_controllen = len;
        // SAFETY: the buffer is longer than `len`.
        let mut controls = unsafe { Controls::new(&mut message) };
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
}
