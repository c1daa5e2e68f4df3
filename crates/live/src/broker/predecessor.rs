//! The adapter that was there before: it gives its connections back to the kernel and ends.

use crate::error::LiveError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// It is given up on after this time: longer than it gives its connections to leave.
const LONGEST_END: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// Has the adapter whose broker listens at `path` end as if it were interrupted, and waits until it is gone. Gives its process; none where
/// nobody listens.
///
/// # Errors
/// This user may not end it, or it does not end.
pub fn end_predecessor(path: &Path) -> Result<Option<u32>, LiveError> {
    let at = || format!("--replace, --broker {}", path.display());
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(LiveError::BadInput(format!("{}: {error}", at()))),
    };
    let end = || -> io::Result<(Pid, bool)> {
        let pid = sockopt::socket_peercred(&stream)?.pid;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        // If it still listens there this is its process; a number alone might be another's by now.
        let listens = UnixStream::connect(path)
            .is_ok_and(|again| sockopt::socket_peercred(&again).is_ok_and(|of| of.pid == pid));
        if listens {
            pidfd_send_signal(&process, Signal::TERM)?;
        }
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        Ok((pid, poll(&mut fds, Some(&LONGEST_END))? > 0))
    };
    match end() {
        Ok((pid, true)) => Ok(Some(pid.as_raw_nonzero().get().unsigned_abs())),
        Ok((pid, false)) => Err(LiveError::BadInput(format!(
            "{}: process {} has not ended within {} s",
            at(),
            pid.as_raw_nonzero(),
            LONGEST_END.tv_sec
        ))),
        Err(error) => Err(LiveError::failed(format!(
            "{}: cannot end the adapter that is there",
            at()
        ))(error)),
    }
}

/// Nobody listens there.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}
