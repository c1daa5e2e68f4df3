//! Error numbers of the C library, and the two reasons why an attempt at a call does not succeed.

use baton_wire::Time;
use libc::c_int;

/// An error number as `errno` holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl From<c_int> for Errno {
    fn from(errno: c_int) -> Self {
        Self(errno)
    }
}

/// Why an attempt at a call did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The call fails.
    Fail(Errno),
    /// The call would wait for a change, at most until this moment.
    Wait(Time),
}

/// Outcome of an attempt at a call that may block.
pub type Outcome<T> = Result<T, Stop>;

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fail(errno)
    }
}

/// The attempt fails with this error number.
pub(crate) fn fail<T>(errno: c_int) -> Outcome<T> {
    Err(Stop::Fail(Errno(errno)))
}

/// Returns a wait if the caller may wait until `until` and that time has not passed, otherwise EAGAIN.
pub(crate) fn wait<T>(now: Time, until: Option<Time>) -> Outcome<T> {
    match until {
        Some(until) if until > now => Err(Stop::Wait(until)),
        _ => fail(libc::EAGAIN),
    }
}
