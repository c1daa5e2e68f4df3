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
const RATES: &str = include_str!("rates.md");
const STUDIES: &str = include_str!("batching-studies.md");
const MEMORY: &str = include_str!("memory.md");

fn main() {
    let mut trials = vec![handoff(), Trial::test("batching", batching)];
    trials.push(Trial::test("batching/adaptive", || {
        table::compare(ADAPTIVE, &adaptive::beside_none())
    }));
    trials.push(Trial::test("combinations", combinations));
    trials.extend(table::sections(RATES).map(rates));
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

/// Returns the test of an experiment's rates of requests, whose name is the heading of the section: of the variants in its table.
fn rates((experiment, rows): (&'static str, &'static str)) -> Trial {
    Trial::test(experiment, move || {
        let found = table::configurations(rows).flat_map(|variant| {
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
    })
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
