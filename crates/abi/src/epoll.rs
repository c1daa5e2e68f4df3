//! Rules of epoll_ctl(2).

use crate::Errno;
use libc::c_int;

/// EPOLLET.
pub const EDGE_TRIGGERED: u32 = libc::EPOLLET as u32;
/// EPOLLONESHOT.
pub const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;
/// EPOLLEXCLUSIVE.
pub const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
/// The bits of `events` that are not conditions.
pub const MODES: u32 = EDGE_TRIGGERED | ONE_SHOT | EXCLUSIVE | libc::EPOLLWAKEUP as u32;
/// Conditions that are always reported.
pub const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

/// The bits that may be combined with EPOLLEXCLUSIVE (EPOLLEXCLUSIVE_OK_BITS of Linux).
const WITH_EXCLUSIVE: u32 = (libc::EPOLLIN | libc::EPOLLOUT) as u32
    | ALWAYS
    | EDGE_TRIGGERED
    | EXCLUSIVE
    | libc::EPOLLWAKEUP as u32;

/// Checks a call of epoll_ctl(2) with `events` for a descriptor that is registered with the events `registered`, or not registered.
///
/// # Errors
/// EEXIST, ENOENT and EINVAL, as in the manual page.
pub fn check_control(operation: c_int, events: u32, registered: Option<u32>) -> Result<(), Errno> {
    let is_exclusive = events & EXCLUSIVE != 0;
    match (operation, registered) {
        (libc::EPOLL_CTL_MOD, _) if is_exclusive => Err(libc::EINVAL),
        (libc::EPOLL_CTL_ADD, _) if is_exclusive && events & !WITH_EXCLUSIVE != 0 => {
            Err(libc::EINVAL)
        }
        (libc::EPOLL_CTL_ADD, Some(_)) => Err(libc::EEXIST),
        (libc::EPOLL_CTL_ADD, None) | (libc::EPOLL_CTL_DEL, Some(_)) => Ok(()),
        (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, None) => Err(libc::ENOENT),
        (libc::EPOLL_CTL_MOD, Some(old)) if old & EXCLUSIVE == 0 => Ok(()),
        _ => Err(libc::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD};

    #[test]
    fn calls_are_checked_as_by_the_kernel() {
        let readable = libc::EPOLLIN as u32;
        assert_eq!(check_control(EPOLL_CTL_ADD, readable, None), Ok(()));
        assert_eq!(
            check_control(EPOLL_CTL_ADD, readable, Some(0)),
            Err(libc::EEXIST)
        );
        assert_eq!(
            check_control(EPOLL_CTL_MOD, readable, Some(readable)),
            Ok(())
        );
        assert_eq!(
            check_control(EPOLL_CTL_MOD, readable, None),
            Err(libc::ENOENT)
        );
        assert_eq!(check_control(EPOLL_CTL_DEL, 0, None), Err(libc::ENOENT));
        assert_eq!(
            check_control(9, readable, Some(readable)),
            Err(libc::EINVAL)
        );
    }

    #[test]
    fn exclusive_registrations_are_only_added() {
        let exclusive = libc::EPOLLIN as u32 | EXCLUSIVE;
        assert_eq!(check_control(EPOLL_CTL_ADD, exclusive, None), Ok(()));
        assert_eq!(
            check_control(EPOLL_CTL_ADD, exclusive | ONE_SHOT, None),
            Err(libc::EINVAL)
        );
        assert_eq!(
            check_control(EPOLL_CTL_MOD, exclusive, Some(1)),
            Err(libc::EINVAL)
        );
        assert_eq!(
            check_control(EPOLL_CTL_MOD, 1, Some(exclusive)),
            Err(libc::EINVAL)
        );
    }
}
