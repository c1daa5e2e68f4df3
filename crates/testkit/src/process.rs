//! Other processes: started, read, waited for and killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for an event that must occur, even if the machine is busy.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// A process whose output is read. It is killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a process, and reads those of its outputs for which `command` sets up pipes.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            read(output, sender.clone());
        }
        if let Some(output) = child.stderr.take() {
            read(output, sender);
        }
        Self { child, lines }
    }

    /// Waits for the next line that the process prints, and returns it.
    #[track_caller]
    pub fn line(&self) -> String {
        self.next(TIMEOUT).expect("another line")
    }

    /// Waits until the process prints a line that contains `text`.
    #[track_caller]
    pub fn says(&self, text: &str) {
        let limit = Instant::now() + TIMEOUT;
        let mut heard = Vec::new();
        loop {
            match self.next(limit.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => heard.push(line),
                Err(error) => panic!("no line with {text:?}, but {heard:?}: {error}"),
            }
        }
    }

    fn next(&self, within: Duration) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(within)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the process a signal, such as `STOP`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Kills the process if it still runs, and waits until it has ended.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child process");
        self.child.wait().expect("a child process");
    }

    /// Asks the process to end, and checks that it succeeds.
    pub fn end(mut self) {
        self.signal("TERM");
        let status = self.child.wait().expect("a child process");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read(output: impl Read + Send + 'static, sender: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // The test may have dropped the receiver, which is not an error.
            let _ = sender.send(line);
        }
    });
}

/// Sends a process a signal, such as `INT`.
#[track_caller]
pub fn signal(child: &Child, name: &str) {
    run("kill", &["-s", name, &child.id().to_string()]);
}

/// Runs a program, which must succeed. Returns its output.
#[track_caller]
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Waits until the condition `holds`, which `what` describes.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < limit, "not within {TIMEOUT:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
