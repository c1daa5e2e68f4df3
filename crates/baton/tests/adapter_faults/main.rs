//! Host and adapter as processes that are killed, stopped and misled. Each test makes its own namespace and interface and takes
//! them away again, which needs root.
//!
//! The applications are this program itself, started with the name of a role.

mod application;
mod echo;
mod faults;
mod world;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if let Ok(role) = std::env::var(world::ROLE) {
        application::play(&role);
        return;
    }
    let mut arguments = Arguments::from_args();
    // They measure times; and there are several processes to each as it is.
    arguments.test_threads = Some(1);
    let is_root = rustix::process::geteuid().is_root();
    let trials = faults::ALL.iter().map(|&(name, test)| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_root)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
