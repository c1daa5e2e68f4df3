//! Tests that need what not every machine has. If it is missing, they are reported as ignored, with the reason.

use libtest_mimic::{Arguments, Trial};
#[cfg(target_os = "linux")]
use std::os::linux::fs::MetadataExt;
use std::process::Command;

/// A test with its name.
pub type Test = (&'static str, fn());

/// A requirement of a test.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// Root, to make interfaces and namespaces.
    #[cfg(target_os = "linux")]
    Root,
    /// A program that answers to `--version`.
    Program(&'static str),
    /// The name of another requirement, and whether it is met.
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

/// Runs the tests if their requirement is met, ignores them otherwise, and ends the program.
pub fn run(arguments: &Arguments, need: Need, tests: &[Test]) -> ! {
    run_all(arguments, &[(&[need], tests)])
}

/// Runs each group of tests if all its requirements are met, ignores it otherwise, and ends the program.
pub fn run_all(arguments: &Arguments, all: &[(&[Need], &[Test])]) -> ! {
    let trials = all.iter().flat_map(|(needs, tests)| {
        let unmet = needs.iter().find(|need| !need.is_met());
        let reason = unmet.or(needs.last()).map_or("", |need| need.name());
        let reason = format!("needs {reason}");
        if unmet.is_some() {
            // With `--quiet`, libtest does not list the ignored tests.
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
