//! Network namespaces with a veth pair.

pub use baton_testkit::process::run;
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::thread;

/// The interface under test.
pub const NEAR: &str = "va";
/// The other end of its cable.
pub const FAR: &str = "vb";

/// Runs `work` in a new network namespace, which is removed afterwards. Processes and threads that `work` starts are in this namespace too.
pub fn apart(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            leave_namespace();
            run("ip", &["link", "set", "lo", "up"]);
            work();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Moves this thread to a new network namespace.
#[allow(unsafe_code)]
pub fn leave_namespace() {
    // SAFETY: a network namespace does not affect memory or open descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("the test runs as root");
}

/// Like [`apart`], with a veth pair that is up and has this number of queues in each direction.
pub fn on_veth(queues: u32, work: impl FnOnce() + Send) {
    apart(|| {
        let queues = queues.to_string();
        let each = ["numrxqueues", &queues, "numtxqueues", &queues];
        let add = [
            "link",
            "add",
            NEAR,
            &each.join(" "),
            "type",
            "veth",
            "peer",
            "name",
            FAR,
        ];
        let line = format!("{} {}", add.join(" "), each.join(" "));
        run("ip", &line.split(' ').collect::<Vec<_>>());
        for name in [NEAR, FAR] {
            run("ip", &["link", "set", name, "up"]);
        }
        work();
    });
}
