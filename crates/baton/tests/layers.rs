//! The layers of the workspace: which crates each crate depends on, and which dependencies are not allowed.
//!
//! A new dependency between crates must be added to [`LAYERS`], so that reviewers see it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// All crates of the workspace with their dependencies in it, from the lowest layer up: a crate depends only on earlier crates. Its tests may use
/// later ones.
const LAYERS: [(&str, &[&str]); 33] = [
    ("named", &[]),
    ("wire", &[]),
    ("timeline", &["named", "wire"]),
    ("cache", &["named"]),
    ("tcp", &["named", "wire"]),
    ("testkit", &["tcp", "timeline", "wire"]),
    ("inet", &["tcp", "wire"]),
    ("bus", &["wire"]),
    ("nic", &["bus", "tcp", "wire"]),
    ("host", &["bus", "cache", "tcp", "wire"]),
    ("kernel", &["bus", "cache", "host", "tcp", "wire"]),
    ("apps", &["host", "kernel", "wire"]),
    ("workload", &["cache"]),
    ("stats", &[]),
    // A model, for a model checker, of the protocol that `live` follows.
    ("ownership", &[]),
    (
        "sim",
        &[
            "apps", "bus", "cache", "host", "kernel", "named", "nic", "stats", "tcp", "timeline",
            "wire", "workload",
        ],
    ),
    (
        "microbench",
        &[
            "apps", "bus", "host", "inet", "kernel", "named", "nic", "sim", "stats", "tcp", "wire",
            "workload",
        ],
    ),
    ("report", &["named", "stats"]),
    // These crates need Linux.
    ("iolib", &["bus", "named", "wire"]),
    ("sockets", &["bus", "host", "iolib", "tcp", "wire"]),
    (
        "live",
        &[
            "apps", "bus", "host", "inet", "iolib", "named", "nic", "sockets", "tcp", "timeline",
            "wire",
        ],
    ),
    (
        "cluster",
        &[
            "apps", "bus", "host", "inet", "iolib", "live", "nic", "tcp", "testkit", "wire",
        ],
    ),
    (
        "tester",
        &["inet", "live", "microbench", "named", "tcp", "wire"],
    ),
    ("abi", &["tcp", "wire"]),
    ("packetdrill", &["abi", "tcp", "wire"]),
    ("preload", &["abi", "iolib", "sockets", "wire"]),
    // This crate uses files, file locks and threads, of any operating system.
    ("study", &["sim", "stats"]),
    ("config", &["named", "sim", "study", "workload"]),
    (
        "explorer",
        &["config", "report", "sim", "study", "workload"],
    ),
    (
        "baton",
        &[
            "bus",
            "cache",
            "config",
            "explorer",
            "host",
            "inet",
            "kernel",
            "live",
            "microbench",
            "named",
            "nic",
            "preload",
            "report",
            "sim",
            "sockets",
            "stats",
            "study",
            "tcp",
            "tester",
            "timeline",
            "wire",
            "workload",
        ],
    ),
    (
        "python",
        &["cache", "config", "host", "nic", "sim", "study", "workload"],
    ),
    (
        "fuzzing",
        &[
            "bus", "cluster", "config", "host", "inet", "iolib", "live", "nic", "sockets", "tcp",
            "testkit", "wire", "workload",
        ],
    ),
    ("sequences", &["testkit"]),
];

/// Packages that a crate must not depend on, either directly or indirectly.
const KEPT_OUT: [(&str, &[&str]); 5] = [
    ("baton-sim", &SYSTEM),
    ("baton-inet", &SYSTEM),
    ("baton-microbench", &SYSTEM),
    ("baton-report", &SYSTEM),
    // A program that uses sockets on an adapter needs neither the firmware, nor a simulated machine or kernel, nor the writer of captures.
    (
        "baton-sockets",
        &[
            "baton-apps",
            "baton-inet",
            "baton-kernel",
            "baton-live",
            "baton-nic",
            "baton-sim",
            "baton-workload",
            "pcap-file",
            "tempfile",
        ],
    ),
];

/// Packages that need an operating system, entropy or a C compiler.
const SYSTEM: [&str; 8] = [
    "cc",
    "getrandom",
    "libc",
    "nix",
    "rustix",
    "socket2",
    "tempfile",
    "windows-sys",
];

/// Returns what cargo prints.
fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .arg("--offline")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {text}");
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

/// Returns the name of a crate's folder.
fn folder(name: &str) -> &str {
    name.strip_prefix("baton-").unwrap_or(name)
}

#[test]
fn crates_depend_only_on_listed_crates() {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut actual = BTreeMap::new();
    for package in packages {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let built = dependencies.iter().filter(|d| d["kind"].is_null());
        let names = built.filter_map(|d| d["name"].as_str());
        let inner: BTreeSet<&str> = names.filter(|name| ours.contains(name)).collect();
        let name = package["name"].as_str().expect("a name");
        actual.insert(folder(name), inner.into_iter().map(folder).collect());
    }
    let listed: BTreeMap<&str, BTreeSet<&str>> = LAYERS
        .iter()
        .map(|(name, below)| (*name, below.iter().copied().collect()))
        .collect();
    assert_eq!(actual, listed);
}

#[test]
fn crates_depend_only_on_earlier_crates() {
    for (place, (name, below)) in LAYERS.iter().enumerate() {
        for lower in *below {
            assert!(
                LAYERS[..place].iter().any(|(earlier, _)| earlier == lower),
                "{name} depends on {lower}, which is not in a lower layer"
            );
        }
    }
}

#[test]
fn excluded_dependencies_are_absent() {
    for (name, kept_out) in KEPT_OUT {
        let tree = [
            "tree", "-p", name, "-e", "no-dev", "--prefix", "none", "-f", "{p}",
        ];
        let tree = cargo(&tree);
        let found: BTreeSet<&str> = tree
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|package| kept_out.contains(package))
            .collect();
        assert!(
            tree.starts_with(name) && found.is_empty(),
            "{name} depends on {found:?}"
        );
    }
}

#[test]
fn tests_with_a_main_function_run_it() {
    // Without `harness = false`, such a test program builds but runs no test.
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("metadata is JSON");
    let mut with_main = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        let manifest = package["manifest_path"].as_str().expect("a path");
        let manifest = std::fs::read_to_string(manifest).expect("the manifest can be read");
        let targets = package["targets"].as_array().expect("targets");
        for target in targets.iter().filter(|t| t["kind"][0] == "test") {
            let source = target["src_path"].as_str().expect("a path");
            let source = std::fs::read_to_string(source).expect("the test can be read");
            if source.contains("\nfn main()") {
                let name = target["name"].as_str().expect("a name");
                let entry = format!("[[test]]\nname = \"{name}\"\nharness = false\n");
                assert!(manifest.contains(&entry), "{name} runs no test");
                with_main += 1;
            }
        }
    }
    assert!(with_main > 0, "no test program has a main function");
}

#[test]
fn the_page_on_architecture_has_the_same_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).expect("the page can be read");
    let rooms: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `crates/")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(rooms, LAYERS.map(|(name, _)| name));
}

/// Stores of results and pages tell simulators apart by a digest of their sources. Timelines do not influence results.
#[test]
fn the_digest_of_the_simulator_covers_all_its_crates() {
    let build = include_str!("../../config/build.rs");
    let (_, list) = build.split_once("const SIMULATOR").expect("the list");
    let (list, _) = list.split_once("];").expect("the end of the list");
    let listed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let mut needed = BTreeSet::from(["sim"]);
    for (name, below) in LAYERS.iter().rev() {
        if needed.contains(name) {
            needed.extend(below.iter().filter(|lower| **lower != "timeline"));
        }
    }
    assert_eq!(listed, needed);
}
