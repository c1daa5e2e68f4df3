//! Child processes that end with their owner.

use super::LOOK_AGAIN;
use crate::failure::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

/// Maximum time for an orderly end of a process.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Another process, whose output is kept in a file. It is ended gracefully when dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    words: PathBuf,
}

impl Process {
    /// Starts the process; its output goes into a file in `folder`.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub fn start(
        name: &'static str,
        command: &mut Command,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Failed(format!("cannot start {name}: {error}"));
        let words = folder.join(format!("{name}.words"));
        let file = File::create(&words).map_err(failed)?;
        let both = file.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(both).stderr(file);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { name, child, words })
    }

    /// Returns the exit status if the process has ended.
    ///
    /// # Errors
    /// Fails if the system does not report the status.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let name = self.name;
        let ended = self.child.try_wait();
        ended.map_err(|error| Failure::Failed(format!("{name}: {error}")))
    }

    /// Returns the output so far.
    pub fn words(&self) -> String {
        fs::read_to_string(&self.words).unwrap_or_default()
    }

    /// Checks that the process is running.
    ///
    /// # Errors
    /// Fails if the process has ended unexpectedly.
    pub fn runs(&mut self) -> Result<(), Failure> {
        match self.ended()? {
            Some(status) => Err(self.failure(status)),
            None => Ok(()),
        }
    }

    /// Describes an unexpected end. Bad input of the other process is bad input of this command.
    fn failure(&self, status: ExitStatus) -> Failure {
        let words = self.words();
        let words = words.trim();
        match status.code() {
            Some(2) => Failure::BadInput(format!(
                "{}: {}",
                self.name,
                words.trim_start_matches("error: ")
            )),
            Some(130) => Failure::Interrupted,
            _ => Failure::Failed(format!("{} ended ({status}): {words}", self.name)),
        }
    }

    /// Ends the process gracefully, and waits until it has exited.
    ///
    /// # Errors
    /// Fails if the process had ended before.
    pub fn end(mut self) -> Result<(), Failure> {
        self.runs()
    }

    /// Asks the process to end, and kills it if it does not.
    fn stop(&mut self) -> io::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let until = Instant::now() + TIMEOUT;
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
            while Instant::now() < until {
                if self.child.try_wait()?.is_some() {
                    return Ok(());
                }
                thread::sleep(LOOK_AGAIN);
            }
        }
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors of a process that cannot be ended are not reported.
        let _ = self.stop();
    }
}
