//! Host and adapter as processes that are killed, stopped and misled. Each test makes its own namespace and interface and takes
//! them away again, which needs root.
//!
//! The applications are this program itself, started with the name of a role.

mod address;
mod application;
#[path = "../common/mod.rs"]
mod common;
mod echo;
mod faults;
#[path = "../common/needs.rs"]
mod needs;
mod world;

use libtest_mimic::Arguments;
use needs::Need;

fn main() {
    if let Ok(role) = std::env::var(world::ROLE) {
        application::play(&role);
        return;
    }
    let mut arguments = Arguments::from_args();
    // They measure times; and there are several processes to each as it is.
    arguments.test_threads = Some(1);
    let tests = [faults::ALL, address::ALL].concat();
    needs::run(&arguments, Need::Root, &tests);
}
