//! Tests that need what not every machine has. Without it they are reported as ignored, and why.

use libtest_mimic::{Arguments, Trial};
#[cfg(target_os = "linux")]
use std::os::linux::fs::MetadataExt;
use std::process::Command;

/// A test and its name.
pub type Test = (&'static str, fn());

/// What a test can need.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// To make interfaces and namespaces.
    #[cfg(target_os = "linux")]
    #[allow(dead_code, reason = "each test program has needs of its own")]
    Root,
    /// A program that answers to `--version`.
    #[allow(dead_code, reason = "each test program has needs of its own")]
    Program(&'static str),
    /// What this names, and whether it is there.
    #[allow(dead_code, reason = "each test program has needs of its own")]
    Other(&'static str, bool),
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Root => {
                std::fs::metadata("/proc/self").is_ok_and(|process| process.st_uid() == 0)
            }
            Self::Program(name) => Command::new(name).arg("--version").output().is_ok(),
            Self::Other(_, is_met) => is_met,
        }
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(target_os = "linux")]
            Self::Root => "root",
            Self::Program(name) | Self::Other(name, _) => name,
        }
    }
}

/// Runs the tests if their need is met, ignores them otherwise, and ends.
#[allow(dead_code, reason = "each test program has needs of its own")]
pub fn run(arguments: &Arguments, need: Need, tests: &[Test]) -> ! {
    run_all(arguments, &[(&[need], tests)])
}

/// Runs tests if all their needs are met, ignores them otherwise, and ends.
pub fn run_all(arguments: &Arguments, all: &[(&[Need], &[Test])]) -> ! {
    let trials = all.iter().flat_map(|(needs, tests)| {
        let unmet = needs.iter().find(|need| !need.is_met());
        let reason = unmet.or(needs.last()).map_or("", |need| need.name());
        let reason = format!("needs {reason}");
        if unmet.is_some() {
            // The list of tests is left out by `--quiet`.
            eprintln!("{} tests are ignored: {reason}", tests.len());
        }
        tests.iter().map(move |&(name, test)| {
            let run = move || {
                test();
                Ok(())
            };
            let trial = Trial::test(name, run).with_kind(&reason);
            trial.with_ignored_flag(unmet.is_some())
        })
    });
    libtest_mimic::run(arguments, trials.collect()).exit()
}
