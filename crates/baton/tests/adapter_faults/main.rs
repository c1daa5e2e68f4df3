//! Host and adapter as processes that are killed or stopped, or that break the protocol. Each test makes a network namespace and an interface and
//! deletes them at its end, which needs root.
//!
//! The applications are processes of this test program, started with a role in the environment.

mod address;
mod application;
#[path = "../common/mod.rs"]
mod common;
mod echo;
mod faults;
mod world;

use baton_testkit::needs::{self, Need};
use libtest_mimic::Arguments;

fn main() {
    if let Ok(role) = std::env::var(world::ROLE) {
        application::play(&role);
        return;
    }
    let mut arguments = Arguments::from_args();
    // Run one test at a time, because tests measure times and start several processes each.
    arguments.test_threads = Some(1);
    let tests = [faults::ALL, address::ALL].concat();
    needs::run(&arguments, Need::Root, &tests);
}
