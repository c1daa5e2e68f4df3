//! Helpers to interrupt the program while it works.

use crate::common::Workbench;
use baton_testkit::process::until;
use std::process::{Child, Stdio};

/// Starts the program, and waits until it has created its output file.
pub fn started(bench: &Workbench, arguments: &[&str]) -> Child {
    let before = bench.files().len();
    let mut command = bench.command(arguments);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    until("an output file", || bench.files().len() > before);
    child
}

/// Waits until the program has handled all signals: Linux merges a signal with an equal one that is still pending.
pub fn wait_until_signals_are_taken(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let none = "ShdPnd:\t0000000000000000";
    // If the process has ended, its status cannot be read or shows no pending signal, and the wait ends.
    until("no pending signals", || {
        std::fs::read_to_string(&status).map_or(true, |status| status.contains(none))
    });
}
