//! The numbers of the simulator that the book publishes: runs the experiments of the papers, and compares the results with the numbers in the book
//! and in the papers.
//!
//! The tables in this folder have all expected numbers; `table.rs` explains them. If a number changes on purpose, change it in the table and in the
//! book, in a commit that says why.

mod adaptive;
#[path = "../common/mod.rs"]
mod common;
mod found;
mod table;

use baton_testkit::excerpts;
use common::Workbench;
use libtest_mimic::{Arguments, Failed, Trial};

/// The excerpt of the World Cup log with which the numbers in the book were measured.
const WORLD_CUP: &str = "worldcup98_day6_sample200k.csv.xz";

const HANDOFF: &str = include_str!("handoff-table1.md");
const INTERFACE: &str = include_str!("handoff-interface.md");
const DATA_CACHE: &str = include_str!("dcache-bus.md");
const BATCHING: &str = include_str!("batching.md");
const ADAPTIVE: &str = include_str!("batching-adaptive.md");
const COMBINATIONS: &str = include_str!("combinations.md");
const ENGINES: &str = include_str!("engines.md");
const SLOW_BUS: &str = include_str!("slow-bus.md");
const WRITES: &str = include_str!("writes.md");
const CHECKSUMS: &str = include_str!("checksums.md");
const STUDIES: &str = include_str!("batching-studies.md");
const MEMORY: &str = include_str!("memory.md");

fn main() {
    let mut trials = vec![handoff(), Trial::test("batching", batching)];
    trials.push(Trial::test("batching/adaptive", || {
        table::compare(ADAPTIVE, &adaptive::beside_none())
    }));
    trials.push(Trial::test("combinations", combinations));
    trials.push(Trial::test("engines", engines));
    trials.push(Trial::test("checksums", checksums));
    trials.push(Trial::test("writes", writes));
    trials.push(Trial::test("slow bus", slow_bus));
    let reproduced = [("dcache-bus", DATA_CACHE), ("handoff-interface", INTERFACE)];
    trials.extend(reproduced.map(reproduction));
    trials.extend(table::sections(STUDIES).map(study));
    trials.extend(table::sections(MEMORY).map(reproduction));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Returns the test of Table 1 of the handoff papers.
fn handoff() -> Trial {
    with_log("handoff-table1", |log| {
        let mut found = found::reproduced(&["handoff-table1", "--log", log]);
        let generated = found::reproduced(&["handoff-table1"]);
        found.extend(generated.into_iter().map(|of| found::Found {
            config: format!("{} (generated lifetimes)", of.config),
            ..of
        }));
        table::compare(HANDOFF, &found)
    })
}

/// Returns a test that needs the excerpt of the World Cup log, and is ignored without it.
fn with_log(name: &str, run: impl FnOnce(&str) -> Result<(), Failed> + Send + 'static) -> Trial {
    let run = || run(&excerpts::path(WORLD_CUP).display().to_string());
    let missing = excerpts::missing(&[WORLD_CUP]);
    Trial::test(name, run)
        .with_ignored_flag(missing.is_some())
        .with_kind(missing.unwrap_or_default())
}

/// Compares handoff and full offload on the server of the handoff papers.
fn combinations() -> Result<(), Failed> {
    let bench = Workbench::new();
    bench
        .run(&["run", "combinations", "--json", "out.json"])
        .ok();
    table::compare(COMBINATIONS, &found::combined(&bench.read("out.json")))
}

/// Compares adapters with one and with several engines.
fn engines() -> Result<(), Failed> {
    let variants = [
        "1 engine",
        "2 engines",
        "4 engines",
        "64 engines, fast host",
    ];
    rates("engines", &variants, ENGINES)
}

/// Compares servers whose NIC computes checksums or does not, without and with a data cache.
fn checksums() -> Result<(), Failed> {
    let variants = [
        "no cache",
        "cache of 8 MB",
        "no cache, no checksums",
        "cache of 8 MB, no checksums",
    ];
    rates("dcache-checksums", &variants, CHECKSUMS)
}

/// Compares load control where clients read, write, or do both.
fn writes() -> Result<(), Failed> {
    let variants = [
        "reads, no load control",
        "reads, passive relief",
        "reads and writes, active relief",
        "writes, no load control",
        "writes, active relief",
    ];
    rates("load-control-writes", &variants, WRITES)
}

/// Compares an adapter on PCI-X with one on PCI Express.
fn slow_bus() -> Result<(), Failed> {
    let variants = [
        "PCI-X, no batching",
        "PCI-X, 16 descriptors",
        "PCI-X, adaptive",
        "PCI Express, no batching",
        "PCI Express, 16 descriptors",
        "PCI Express, adaptive",
    ];
    rates("batching-slow-bus", &variants, SLOW_BUS)
}

/// Compares the rates of requests of an experiment's variants.
fn rates(experiment: &str, variants: &[&str], rows: &str) -> Result<(), Failed> {
    let found = variants.iter().flat_map(|variant| {
        let bench = Workbench::new();
        let arguments = [
            "run",
            experiment,
            "--variant",
            variant,
            "--json",
            "out.json",
        ];
        bench.run(&arguments).ok();
        found::estimated_rates(&bench.read("out.json"))
    });
    table::compare(rows, &found.collect::<Vec<_>>())
}

/// Returns the test of a reproduction that needs no arguments besides its name.
fn reproduction((name, rows): (&'static str, &'static str)) -> Trial {
    Trial::test(name, move || {
        table::compare(rows, &found::reproduced(&[name]))
    })
}

fn batching() -> Result<(), Failed> {
    let found = found::reproduced(&["batching", "--seeds", "1", "--responses", "40"]);
    table::compare(BATCHING, &found)
}

/// Returns the test of a batching study, whose name is the heading of the section.
fn study((name, rows): (&'static str, &'static str)) -> Trial {
    Trial::test(format!("batching/{name}"), move || {
        let short = ["--seeds", "1", "--responses", "40"];
        let arguments = [&["batching", "--study", name][..], &short].concat();
        table::compare(rows, &found::reproduced(&arguments))
    })
}
