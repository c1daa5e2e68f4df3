//! Makes the calls of a sequence by the C library's functions, so that a preloaded library sees them, and reports their results.

mod calls;
mod invalid;
mod player;
mod raw;

pub use raw::{Digest, OPTIONS, error, pattern, reset_on_close, unacknowledged};

use crate::Sequence;
use player::Player;
pub use player::{act, joins_data, waits_for_edges};
use std::io::{self, BufRead, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time after which a sequence counts as hanging.
const LONGEST: Duration = Duration::from_secs(15);

struct Running {
    child: libc::pid_t,
    line: usize,
    told: OwnedFd,
    since: Instant,
}

/// Runs the sequences on standard input, one per line, each in its own process. Prints the transcript of each, one per line and in the same
/// order. `peer` is the socket of the [peer](crate::peer). As many sequences run at a time as `at_once` says, since they mostly wait.
///
/// # Errors
/// A line is not a sequence, or the system cannot create another process.
pub fn all(peer: &Path, at_once: usize) -> io::Result<()> {
    let lines: Vec<String> = io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let mut seen = vec![String::new(); lines.len()];
    let mut running: Vec<Running> = Vec::new();
    let mut next = 0;
    while next < lines.len() || !running.is_empty() {
        if next < lines.len() && running.len() < at_once {
            let sequence = lines[next].parse().map_err(io::Error::other)?;
            running.push(start(&sequence, peer, next)?);
            next += 1;
            continue;
        }
        let mut ended = Vec::new();
        running.retain_mut(|one| match outcome(one) {
            Some(how) => {
                ended.push((one.line, how));
                false
            }
            None => true,
        });
        for (line, how) in ended {
            seen[line] = how;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut out = io::stdout().lock();
    seen.iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn start(sequence: &Sequence, peer: &Path, line: usize) -> io::Result<Running> {
    let mut ends = [0; 2];
    // SAFETY: the array has space for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptors are new, and nobody else owns them.
    let [told, tells] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: this process has a single thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(told);
            let mut out = std::fs::File::from(tells);
            let _ = Player::play(sequence, peer, &mut out);
            std::process::exit(0);
        }
        child => Ok(Running {
            child,
            line,
            told,
            since: Instant::now(),
        }),
    }
}

/// Returns the transcript of a process once the process has ended.
fn outcome(one: &mut Running) -> Option<String> {
    let mut status = 0;
    // SAFETY: `status` is valid, and the child belongs to this process.
    if unsafe { libc::waitpid(one.child, &raw mut status, libc::WNOHANG) } == 0 {
        if one.since.elapsed() > LONGEST {
            // SAFETY: the child's ID stays valid until it is waited for.
            unsafe { libc::kill(one.child, libc::SIGKILL) };
        }
        return None;
    }
    let mut text = String::new();
    let told = one.told.try_clone().ok()?;
    let _ = std::fs::File::from(told).read_to_string(&mut text);
    Some(match (one.since.elapsed() > LONGEST, status) {
        (true, _) => format!("{text} HANGS"),
        (_, 0) => text,
        (_, status) => format!("{text} ENDS WITH STATUS {status}"),
    })
}
