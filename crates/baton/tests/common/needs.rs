//! Tests that need what not every machine has. Without it they are reported as ignored, and why.

use libtest_mimic::{Arguments, Trial};
#[cfg(target_os = "linux")]
use std::os::linux::fs::MetadataExt;
use std::process::Command;

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
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Root => {
                std::fs::metadata("/proc/self").is_ok_and(|process| process.st_uid() == 0)
            }
            Self::Program(name) => Command::new(name).arg("--version").output().is_ok(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(target_os = "linux")]
            Self::Root => "root",
            Self::Program(name) => name,
        }
    }
}

/// Runs the tests if their need is met, ignores them otherwise, and ends.
pub fn run(arguments: &Arguments, need: Need, tests: &[(&'static str, fn())]) -> ! {
    let (is_met, reason) = (need.is_met(), format!("needs {}", need.name()));
    if !is_met {
        // The list of tests is left out by `--quiet`.
        eprintln!("{} tests are ignored: {reason}", tests.len());
    }
    let trials = tests.iter().map(|&(name, test)| {
        let run = move || {
            test();
            Ok(())
        };
        let trial = Trial::test(name, run).with_kind(&reason);
        trial.with_ignored_flag(!is_met)
    });
    libtest_mimic::run(arguments, trials.collect()).exit()
}
