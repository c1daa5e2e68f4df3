//! The control buffer of recvmsg(2), which the program may not be able to write to.

use crate::pointers;
use baton_abi::control::Controls;
use libc::msghdr;

/// Number of bytes that all control messages of a call need at most.
const MOST_USED: usize = 1024;

/// Starts to fill the control buffer of a message.
///
/// # Safety
/// The control buffer is valid for its length, or [bad](pointers::is_bad_mut).
pub unsafe fn of(message: &mut msghdr) -> Controls<'_> {
    // This library puts no more than that into one message.
    let used = message.msg_controllen.min(MOST_USED);
    let room = match pointers::is_bad_mut(message.msg_control, used) {
        true => 0,
        false => message.msg_controllen,
    };
    // SAFETY: by this function's contract, and checked.
    unsafe { Controls::new(message, room) }
}
