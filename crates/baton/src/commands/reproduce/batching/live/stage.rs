//! The measured processes: an adapter on a TAP device, in a network namespace of its own, and a web server on the adapter.

use super::process::Process;
use super::{FAULT, LOOK_AGAIN};
use crate::commands::reproduce::batching::settings::{Setting, Settings};
use crate::failure::Failure;
use crate::runner::Interrupt;
use baton_live::{ApplicationRow, BusRow, Snapshot, ask};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The engine's address.
pub(super) const ENGINE: &str = "10.9.0.2";
/// Address of the kernel's end of the link.
const KERNEL: &str = "10.9.0.1/24";
/// Name of the process that answers at the control sockets.
const SERVER: &str = "`baton live adapter` or `baton live serve`";
/// Maximum time until the processes are ready.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Time without crossings after which the link is at rest; longer than any timer of batching in the search.
const QUIET: Duration = Duration::from_millis(50);

/// Adapter and web server. When dropped, both end, the server first, and namespace and device are removed.
pub(super) struct Stage {
    server: Process,
    adapter: Process,
    control: PathBuf,
    namespace: String,
    _folder: TempDir,
}

impl Stage {
    /// Starts adapter and web server with these settings, and waits until they are ready to serve the files in `site`.
    ///
    /// # Errors
    /// Fails without permission, if a process does not start, or if the user interrupts.
    pub fn set(
        site: &Path,
        settings: Settings,
        seed: u64,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::Failed(format!("cannot create a folder: {error}")))?;
        let number = std::process::id();
        let namespace = format!("baton-batching-{number}");
        let [attach, control, web] =
            ["attach", "control", "web"].map(|name| folder.path().join(name));
        let mut command = baton()?;
        command
            .args(["adapter", "--tap", &format!("bb{number}")])
            .args(["--netns", &namespace, "--host-addr", KERNEL])
            .args(["--addr", &format!("{ENGINE}/24"), "--fault", FAULT])
            .args(["--seed", &seed.to_string()])
            .args(batching(settings.adapter))
            .arg("--listen")
            .arg(&attach)
            .arg("--control")
            .arg(&control);
        let mut adapter = Process::start("adapter", &mut command, folder.path())?;
        until(interrupt, &mut adapter, || ask(&control, SERVER).is_ok())?;
        let mut command = baton()?;
        command
            .args(["serve", "--adapter"])
            .arg(&attach)
            .arg("--root")
            .arg(site)
            .args(batching(settings.host))
            .arg("--control")
            .arg(&web);
        let mut server = Process::start("web server", &mut command, folder.path())?;
        let listens = || application(&control).is_ok_and(|row| row.listeners > 0);
        until(interrupt, &mut server, listens)?;
        Ok(Self {
            server,
            adapter,
            control,
            namespace,
            _folder: folder,
        })
    }

    /// Returns the namespace of the clients.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Waits until nothing crosses any more, and returns the state of the bus.
    ///
    /// # Errors
    /// Fails if the adapter does not answer, or if crossings do not end.
    pub fn quiet(&self) -> Result<BusRow, Failure> {
        let limit = Instant::now() + TIMEOUT;
        let mut before = application(&self.control)?.bus;
        while Instant::now() < limit {
            thread::sleep(QUIET);
            let now = application(&self.control)?.bus;
            if now.crossings == before.crossings {
                return Ok(now);
            }
            before = now;
        }
        let message = "crossings between the web server and the adapter do not end although no request is in progress";
        Err(Failure::Failed(message.to_owned()))
    }

    /// Returns why a client failed: its own failure, or the end of one of the two processes.
    pub fn blame(&mut self, client: Failure) -> Failure {
        let both = self.adapter.runs().and_then(|()| self.server.runs());
        both.err().unwrap_or(client)
    }

    /// Ends the web server and the adapter.
    ///
    /// # Errors
    /// Fails if one of the two processes had ended before.
    pub fn end(self) -> Result<(), Failure> {
        self.server.end()?;
        self.adapter.end()
    }
}

/// Returns the command `baton live` of this program.
fn baton() -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    let mut command = Command::new(program);
    command.arg("live");
    Ok(command)
}

fn batching(setting: Setting) -> [String; 4] {
    let Setting { level, timer_us } = setting;
    [
        "--level".to_owned(),
        level.to_string(),
        "--timer-us".to_owned(),
        timer_us.to_string(),
    ]
}

/// Returns the adapter's information about its application, the web server.
fn application(control: &Path) -> Result<ApplicationRow, Failure> {
    let snapshot: Snapshot = serde_json::from_slice(&ask(control, SERVER)?)
        .map_err(|error| Failure::Failed(format!("cannot read the adapter's answer: {error}")))?;
    let application = snapshot.applications.into_iter().next();
    application.ok_or_else(|| {
        Failure::Failed("the web server is no longer attached to the adapter".to_owned())
    })
}

/// Waits until `ready` is true, as long as `process` runs.
fn until(
    interrupt: &Interrupt,
    process: &mut Process,
    ready: impl Fn() -> bool,
) -> Result<(), Failure> {
    let limit = Instant::now() + TIMEOUT;
    while !ready() {
        interrupt.check()?;
        process.runs()?;
        if Instant::now() > limit {
            let words = process.words();
            let message = format!("not ready within {TIMEOUT:?}: {}", words.trim());
            return Err(Failure::Failed(message));
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}
