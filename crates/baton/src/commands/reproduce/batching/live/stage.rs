//! The processes that are measured: an adapter on a TAP device, in a network namespace of its own, and a web server on it.

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
/// The kernel's end of the link.
const KERNEL: &str = "10.9.0.1/24";
/// What answers at the control sockets.
const SERVER: &str = "`baton live adapter` or `baton live serve`";
/// The processes are ready within this time.
const TIMEOUT: Duration = Duration::from_secs(20);
/// What nothing has crossed for so long is at rest; longer than any timer of batching that is tried.
const QUIET: Duration = Duration::from_millis(50);

/// Adapter and web server. They end, and namespace and device go, when this is dropped: the server first.
pub(super) struct Stage {
    server: Process,
    adapter: Process,
    control: PathBuf,
    namespace: String,
    _folder: TempDir,
}

impl Stage {
    /// Starts them with these settings, and waits until they are ready to serve the files in `site`.
    ///
    /// # Errors
    /// There is no permission, or one of them does not start; an interrupt.
    pub fn set(
        site: &Path,
        settings: Settings,
        seed: u64,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::Failed(format!("cannot make a folder: {error}")))?;
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

    /// Where the clients are.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What has crossed by the time when nothing crosses any more.
    ///
    /// # Errors
    /// The adapter does not answer, or it never rests.
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
        let message = "something crosses all the time though nobody asks for anything";
        Err(Failure::Failed(message.to_owned()))
    }

    /// Why a client failed: by itself, or because one of these two has ended.
    pub fn blame(&mut self, client: Failure) -> Failure {
        let both = self.adapter.runs().and_then(|()| self.server.runs());
        both.err().unwrap_or(client)
    }

    /// Ends both.
    ///
    /// # Errors
    /// One of them had ended before.
    pub fn end(self) -> Result<(), Failure> {
        self.server.end()?;
        self.adapter.end()
    }
}

/// `baton live`, this program.
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

/// What the adapter tells of its application, the web server.
fn application(control: &Path) -> Result<ApplicationRow, Failure> {
    let snapshot: Snapshot = serde_json::from_slice(&ask(control, SERVER)?)
        .map_err(|error| Failure::Failed(format!("the adapter's answer: {error}")))?;
    let application = snapshot.applications.into_iter().next();
    application.ok_or_else(|| Failure::Failed("the web server has left the adapter".to_owned()))
}

/// Waits until `process` has done what makes `ready` true.
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
