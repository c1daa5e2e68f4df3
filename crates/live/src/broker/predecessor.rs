//! Ends the previous adapter, which gives its connections back to the kernel first.

use crate::error::LiveError;
use baton_sockets::broker::BrokerClient;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::path::Path;

/// Longest wait for its end: longer than it allows its connections to leave.
const LONGEST_END: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// Sends SIGTERM to the adapter of the broker at `path` and waits for its end. Returns its process ID, or `None` if there is no adapter.
///
/// # Errors
/// This user may not end the adapter, or the adapter does not end.
pub fn end_predecessor(path: &Path) -> Result<Option<u32>, LiveError> {
    let at = || format!("--replace, --broker {}", path.display());
    let mut broker = match BrokerClient::connect(path) {
        Ok(broker) => broker,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(LiveError::BadInput(format!("{}: {error}", at()))),
    };
    let mut adapter = || {
        let adapter = broker.adapter().map_err(io::Error::other)?;
        let pid = adapter.and_then(|pid| i32::try_from(pid).ok());
        Ok::<_, io::Error>(pid.and_then(Pid::from_raw))
    };
    let mut end = || {
        let Some(pid) = adapter()? else {
            return Ok(None);
        };
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        // If the adapter is still the same, the descriptor refers to its process. The process ID alone might have been reused.
        if adapter()? == Some(pid) {
            pidfd_send_signal(&process, Signal::TERM)?;
        }
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        Ok::<_, io::Error>(Some((pid, poll(&mut fds, Some(&LONGEST_END))? > 0)))
    };
    match end() {
        Ok(None) => Ok(None),
        Ok(Some((pid, true))) => Ok(Some(pid.as_raw_nonzero().get().unsigned_abs())),
        Ok(Some((pid, false))) => Err(LiveError::BadInput(format!(
            "{}: process {} has not ended within {} s",
            at(),
            pid.as_raw_nonzero(),
            LONGEST_END.tv_sec
        ))),
        Err(error) => Err(LiveError::failed(format!(
            "{}: cannot end the running adapter",
            at()
        ))(error)),
    }
}

/// Reports whether an error means that nobody listens at the path.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}
