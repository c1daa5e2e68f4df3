//! An adapter whose address already belongs to the kernel.

use crate::common::Workbench;
use std::{fs, process};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![an_address_that_is_in_use];

/// The kernel answers for its own addresses, so the adapter's TCP engine must not use one of them.
fn an_address_that_is_in_use() {
    let bench = Workbench::new();
    let id = process::id();
    let (tap, namespace) = (format!("ba{id}"), format!("baton-refusals-{id}"));
    let adapter = ["live", "adapter", "--addr", "10.9.0.2/24"];
    let places = ["--listen", "baton.sock", "--control", "control.sock"];
    let link = [
        "--tap",
        &tap,
        "--netns",
        &namespace,
        "--host-addr",
        "10.9.0.2/24",
    ];
    let ran = bench.run(&[&adapter[..], &places, &link].concat());
    ran.refused(&[
        "10.9.0.2 is in use",
        "give the engine an address of its own",
    ]);
    let left = fs::exists(format!("/run/netns/{namespace}"));
    assert!(
        !left.expect("the path can be checked"),
        "the adapter deletes the namespace that it made"
    );
}
