//! Runs the program as a user would, in a temporary folder.

#![allow(dead_code, reason = "each test program uses only some of it")]

pub mod play;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A temporary folder in which the program is run.
pub struct Workbench(TempDir);

/// Exit code and output of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Flags that make any run short.
pub const SHORT: [&str; 4] = ["--warmup", "1000", "--packets", "2000"];

/// An experiment that needs no log, with the profile `defaults`.
pub const FIXED: &str = "profile = \"defaults\"\n[workload]\nkind = \"fixed\"\nbytes = 4000\nrequests = 3\n[clients]\nconnections = 16\n";

impl Workbench {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file in the folder");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file in the folder")
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }

    /// Returns the names of all files, including hidden ones.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder");
        let mut names: Vec<String> = entries
            .map(|e| {
                e.expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("COLUMNS");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(
            self.command(arguments)
                .output()
                .expect("the program starts"),
        )
    }

    /// Runs the program with the words of a line as arguments.
    pub fn baton(&self, line: &str) -> Ran {
        let words: Vec<&str> = line.split(' ').collect();
        self.run(&words)
    }

    /// Runs `baton run EXPERIMENT` with few packets and `more` arguments.
    pub fn run_short(&self, experiment: &str, more: &[&str]) -> Ran {
        let arguments: Vec<&str> = ["run", experiment]
            .iter()
            .chain(&SHORT)
            .chain(more)
            .copied()
            .collect();
        self.run(&arguments)
    }
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Asserts that the program succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Asserts that the output fits into `most` columns. Only a line of a single word may be longer.
    #[track_caller]
    pub fn fits(&self, most: usize) {
        for line in self.stdout.lines() {
            let length = line.chars().count();
            assert!(
                length <= most || !line.trim().contains(' '),
                "{length} columns of {most}: {line:?} in:\n{}",
                self.stdout
            );
        }
    }

    /// Asserts that standard output contains all these parts.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) {
        has(&self.stdout, parts);
    }

    /// Asserts that the input was refused with a message that contains all these parts.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(
            self.stdout, "",
            "nothing is printed about a run that was refused"
        );
        has(&self.stderr, parts);
    }
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    // A message may be wrapped anywhere between words.
    let in_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        let is_there = text.contains(part) || in_one_line.contains(part);
        assert!(is_there, "{part:?} is not in:\n{text}");
    }
}

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
