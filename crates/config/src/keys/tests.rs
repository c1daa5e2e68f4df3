//! Checks the keys that are shown against the code that reads and checks them.

use super::*;
use crate::source::{Kind, Sources};
use crate::tree::Node;
use baton_sim::config::{Experiment, Invalid};
use serde::Deserialize;

/// The minimum content of a table for each value of its tag.
const TABLES: [(&str, &str, &str); 37] = [
    ("application.kind", "web", ""),
    (
        "application.kind",
        "pages",
        "piece_bytes = 1000\ninterval_us = 10",
    ),
    ("application.kind", "live", "block_bytes = 250000"),
    ("application.kind", "remote-files", ""),
    ("host.kernel.nic_cache.admission.kind", "all", ""),
    ("host.kernel.nic_cache.admission.kind", "second-request", ""),
    ("host.kernel.nic_cache.admission.kind", "tinylfu", ""),
    ("host.kernel.selection.policy", "fcfs", ""),
    ("host.kernel.selection.policy", "threshold", "enqueues = 4"),
    ("host.kernel.selection.policy", "alternate", "enqueues = 4"),
    ("host.kernel.selection.policy", "at-receive", "receives = 1"),
    ("host.kernel.selection.policy", "rate", "percent = 100"),
    ("host.kernel.selection.policy", "benefit", "enqueues = 4"),
    ("host.kernel.selection.policy", "oracle", "enqueues = 4"),
    (
        "host.kernel.selection.policy",
        "retry",
        "selection.policy = 'fcfs'",
    ),
    (
        "host.kernel.selection.policy",
        "bulk",
        "bytes = 65536\nselection.policy = 'fcfs'",
    ),
    ("host.kernel.selection.policy", "learned", ""),
    ("host.kernel.selection.policy", "never", ""),
    (
        "host.kernel.selection.policy",
        "per-port",
        "ports = [{ port = 80, selection.policy = 'fcfs' }]\ndefault.policy = 'never'",
    ),
    ("interconnect.kind", "ideal", ""),
    ("interconnect.kind", "pci", ""),
    ("interconnect.kind", "pci-x", ""),
    ("interconnect.kind", "pci-express", ""),
    ("nic.firmware.load_control.measure.kind", "queue", ""),
    (
        "nic.firmware.load_control.measure.kind",
        "busy",
        "high_percent = 95\nlow_percent = 80",
    ),
    (
        "nic.firmware.load_control.measure.kind",
        "packet-rate",
        "high_per_s = 9000\nlow_per_s = 1\nhost_weight = 1\nnic_weight = 4",
    ),
    ("workload.kind", "generated", "preset = 'demo'"),
    ("workload.kind", "log", "path = 'x.log'"),
    (
        "workload.kind",
        "generator",
        "[workload.spec]\nconnections = { requests.constant = 2, pause_s.constant = 1, per_client = 2, requests_per_s = 10 }\n\
         files.zipf = { count = 10, exponent = 1, size.constant = 100 }",
    ),
    ("workload.kind", "specweb", ""),
    ("workload.kind", "fixed", "bytes = 250000"),
    (
        "workload.kind",
        "on-demand",
        "rate_kbps = 100\nchunk_bytes = 1000\nclasses = [{ viewers = 1, titles = 1, bytes = 1000 }]",
    ),
    ("workload.kind", "remote-files", ""),
    // Tables that are absent by default.
    ("nic.hardware", "", "queues = 1"),
    ("tcp.keepalive", "", "probes = 9"),
    ("clients.tcp.keepalive", "", "probes = 9"),
    (
        "workload.throttle",
        "",
        "min_bps = 320000\nmax_bps = 400000",
    ),
];

/// Returns trees with the program's defaults and the tables that hold a key, one tree for each kind of these tables.
fn trees_for(key: &Key) -> Vec<Node> {
    let kinds = key
        .only_where
        .first()
        .map_or(1, |choice| choice.values.len());
    (0..kinds).map(|kind| tree_for(key, kind)).collect()
}

fn tree_for(key: &Key, kind: usize) -> Node {
    let defaults = toml::Value::try_from(Experiment::default()).expect("TOML");
    let mut tree = Node::from_default(&defaults);
    let mut lay = |text: &str| {
        let mut sources = Sources::new();
        let layer = Node::parse(&mut sources, Kind::File, "x.toml", text);
        tree.merge(layer.unwrap_or_else(|error| panic!("{error}")));
    };
    for choice in &key.only_where {
        let (table, tag) = choice.path.rsplit_once('.').expect("in a table");
        let value = &choice.values[kind];
        let known = TABLES
            .iter()
            .find(|(path, name, _)| *path == choice.path && name == value);
        let (.., text) = known.unwrap_or_else(|| panic!("no table for {choice:?}"));
        lay(&format!("[{table}]\n{tag} = {value:?}\n{text}\n"));
        // Clients request what the application serves.
        match value.as_str() {
            "live" => lay("[workload]\nkind = 'fixed'\nbytes = 250000"),
            "remote-files" => {
                lay("[workload]\nkind = 'remote-files'\n[application]\nkind = 'remote-files'")
            }
            _ => {}
        }
    }
    for (path, _, text) in TABLES.iter().filter(|(_, name, _)| name.is_empty()) {
        if key.path.starts_with(&format!("{path}.")) {
            lay(&format!("[{path}]\n{text}\n"));
        }
    }
    if key.path.starts_with("nics[]") {
        lay("nics = [{ count = 1 }]");
    }
    tree
}

/// Sets a key of a tree; for a key in a list, in the first table of the list.
fn set(tree: &mut Node, path: &str, value: &toml::Value) {
    let leaf = Node::from_default(value);
    match path.split_once("[].") {
        None => tree.merge(Node::at_path(path, leaf)),
        Some((list, inner)) => {
            let Some(Node {
                value: crate::tree::Value::Array(items),
                ..
            }) = tree.get_mut(list)
            else {
                panic!("{path}: no list");
            };
            set(&mut items[0], inner, value);
        }
    }
}

fn read(tree: &Node) -> Result<Experiment, Invalid> {
    let experiment = Experiment::deserialize(tree)
        .map_err(|error| Invalid::new(&error.path.join("."), "unread", &error.to_string()))?;
    experiment.validate().map(|()| experiment)
}

#[test]
fn every_key_has_a_meaning() {
    for key in all() {
        assert!(key.meaning.len() > 4, "{} has no doc comment", key.path);
        assert!(!key.meaning.contains("[`"), "{}: {}", key.path, key.meaning);
        let (Allowed::OneOf(names) | Allowed::TableOf(names)) = &key.value else {
            continue;
        };
        for named in names {
            assert!(
                !named.meaning.is_empty(),
                "{} = {} has no doc comment",
                key.path,
                named.name
            );
        }
    }
    assert!(all().len() > 400);
}

#[test]
fn no_key_is_shown_twice() {
    for (index, key) in all().iter().enumerate() {
        let same = |other: &Key| other.path == key.path && other.only_where == key.only_where;
        assert!(!all()[index + 1..].iter().any(same), "{}", key.path);
    }
}

/// All keys of the program's defaults are listed, which are the keys of `--print-config=full`.
#[test]
fn no_key_is_left_out() {
    let defaults = toml::Value::try_from(Experiment::default()).expect("TOML");
    for path in Node::from_default(&defaults).paths() {
        assert!(all().iter().any(|key| key.path == path), "{path}");
    }
}

#[test]
fn the_defaults_that_are_shown_are_the_defaults() {
    let mut checked = 0;
    for key in all().iter().filter(|key| !key.path.contains("[]")) {
        let Some(default) = &key.default else {
            continue;
        };
        let without = tree_for(key, 0);
        let mut with = without.clone();
        if key
            .only_where
            .iter()
            .any(|choice| choice.path == "workload.kind")
            && key.required
        {
            // Its table must not be empty.
            continue;
        }
        set(&mut with, &key.path, default);
        let experiment = |tree: &Node| {
            Experiment::deserialize(tree).unwrap_or_else(|error| panic!("{}: {error}", key.path))
        };
        assert_eq!(
            experiment(&with),
            experiment(&without),
            "{} = {default}",
            key.path
        );
        checked += 1;
    }
    assert!(checked > 350, "{checked}");
}

/// The configuration's own checks, which do not know the ranges that are shown, refuse values beyond a range; they accept the values at its
/// ends, or refuse them only because of another key.
#[test]
fn the_ranges_that_are_shown_are_those_that_are_checked() {
    let mut wrong = Vec::new();
    for key in all().iter().filter(|key| !key.path.contains(".spec.")) {
        let Allowed::Number(range) = &key.value else {
            continue;
        };
        for tree in trees_for(key) {
            read(&tree).unwrap_or_else(|error| panic!("{}: {error}", key.path));
            let step = if range.whole { 1.0 } else { 1e-9 };
            let ends = [range.least.or(range.more_than), range.most];
            let near = |end: f64| [end - step, end, end + step];
            let numbers = ends.into_iter().flatten().flat_map(near);
            // Numbers that TOML does not have cannot be written.
            let numbers = numbers.filter(|number| number.abs() < i64::MAX as f64);
            wrong.extend(numbers.filter_map(|number| disagreement(key, range, &tree, number)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn disagreement(key: &Key, range: &Range, tree: &Node, number: f64) -> Option<String> {
    let value = match range.whole {
        true => toml::Value::Integer(number as i64),
        false => toml::Value::Float(number),
    };
    let mut tree = tree.clone();
    set(&mut tree, &key.path, &value);
    let path = &key.path;
    match (range.contains(number), read(&tree)) {
        (true, Err(error)) if !names_another_key(&error, path) => {
            Some(format!("{path} = {number} is in {range}, but: {error}"))
        }
        (false, Ok(_)) => Some(format!("{path} = {number} is not in {range}, but accepted")),
        _ => None,
    }
}

/// Returns whether a key is refused because of the value of another key.
fn names_another_key(error: &Invalid, path: &str) -> bool {
    let own = path.rsplit('.').next().unwrap_or(path);
    let name = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
    let mut names = all().iter().map(|key| name(&key.path));
    names.any(|name| name != own && name.len() >= 3 && error.expected.contains(name))
        || error.path != path.replace("[]", ".0")
}

#[test]
fn numbers_in_all_places_are_checked() {
    let refused = |text: &str| {
        let mut sources = Sources::new();
        let tree = Node::parse(&mut sources, Kind::File, "x.toml", text).expect("TOML");
        out_of_range(&tree).map(|mismatch| mismatch.to_string())
    };
    for (text, message) in [
        (
            "nic.mips = 0",
            "nic.mips: found 0; expected a whole number from 1 to 1000000",
        ),
        (
            "nic.mips = 'abc'",
            "nic.mips: found \"abc\"; expected a whole number from 1 to 1000000",
        ),
        (
            "nics = [{ mips = -1 }]",
            "nics.0.mips: found -1; expected a whole number from 1 to 1000000",
        ),
        (
            "nics = 65",
            "nics: found 65; expected a whole number from 1 to 64",
        ),
        (
            "wire.loss = 2",
            "wire.loss: found 2; expected a number from 0 to 1",
        ),
    ] {
        assert_eq!(refused(text).as_deref(), Some(message));
    }
    assert_eq!(
        refused("nics = [{}]\nwire.loss = 1\nworkload.requests = 0"),
        None
    );
}

#[test]
fn keys_of_kinds_that_were_not_chosen_are_refused() {
    let refused = |text: &str| {
        let mut sources = Sources::new();
        let tree = Node::parse(&mut sources, Kind::File, "x.toml", text).expect("TOML");
        of_another_kind(&tree).map(|mismatch| mismatch.to_string())
    };
    for (text, message) in [
        (
            "host.kernel.selection = { policy = 'fcfs', enqueues = 4 }",
            "host.kernel.selection.enqueues: is allowed only with policy = \"alternate\" or \"benefit\" or \"oracle\" or \"threshold\"; found policy = \"fcfs\"",
        ),
        (
            "interconnect = { kind = 'ideal', width_bits = 64 }",
            "interconnect.width_bits: is allowed only with kind = \"pci\" or \"pci-x\"; found kind = \"ideal\"",
        ),
        (
            "interconnect = { kind = 'pci', credits.posted_data = 64 }",
            "interconnect.credits: is allowed only with kind = \"pci-express\"; found kind = \"pci\"",
        ),
        (
            "host.kernel.selection = { policy = 'fcfs', replacement = 'lru' }",
            "unknown key `replacement` in [host.kernel.selection]; expected one of bytes, default, enqueues, percent, policy, ports, receives, selection",
        ),
    ] {
        assert_eq!(refused(text).as_deref(), Some(message));
    }
    assert_eq!(
        refused("interconnect = { kind = 'pci', width_bits = 64 }"),
        None
    );
    assert_eq!(
        refused("interconnect = { kind = 'isa', width_bits = 64 }"),
        None,
        "the code that reads the table reports the kind"
    );
    assert_eq!(
        refused("workload = { kind = 'generator', spec.files.zipf.count = 1 }"),
        None
    );
}
