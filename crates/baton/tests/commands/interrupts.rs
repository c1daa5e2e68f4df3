//! Helpers to interrupt the program while it works.

use crate::common::Workbench;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Starts the program, and waits until it has created its output file.
pub fn started(bench: &Workbench, arguments: &[&str]) -> Child {
    let before = bench.files().len();
    let mut command = bench.command(arguments);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(120);
    while bench.files().len() <= before && Instant::now() < deadline {
        sleep(Duration::from_millis(5));
    }
    child
}

/// Interrupts the program as Ctrl-C does.
pub fn interrupt(child: &Child) {
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(
        interrupted.is_ok_and(|status| status.success()),
        "kill succeeds"
    );
}

/// Waits until the program has handled all signals: Linux merges a signal with an equal one that is still pending.
pub fn wait_until_signals_are_taken(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let none = "ShdPnd:\t0000000000000000";
    // If the process has ended, its status cannot be read or shows no pending signal, and the loop ends.
    while std::fs::read_to_string(&status).is_ok_and(|status| !status.contains(none)) {
        sleep(Duration::from_millis(1));
    }
}
