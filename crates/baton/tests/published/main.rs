//! What the book publishes of the simulator: the papers' experiments as `baton` runs them, the numbers that come out, those that the book has,
//! and how far they are from the papers'.
//!
//! The tables beside this file say all of it; see `table.rs` for how. A number that moves is changed there and in docs on purpose, in a
//! commit that says why.

mod adaptive;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../workload/tests/excerpts/mod.rs"]
mod excerpts;
mod found;
mod table;

use common::Workbench;
use libtest_mimic::{Arguments, Failed, Trial};

/// The excerpt of the World Cup log that the book's numbers are from.
const WORLD_CUP: &str = "worldcup98_day6_sample200k.csv.xz";

const HANDOFF: &str = include_str!("handoff-table1.md");
const INTERFACE: &str = include_str!("handoff-interface.md");
const DATA_CACHE: &str = include_str!("dcache-bus.md");
const BATCHING: &str = include_str!("batching.md");
const ADAPTIVE: &str = include_str!("batching-adaptive.md");
const COMBINATIONS: &str = include_str!("combinations.md");
const STUDIES: &str = include_str!("batching-studies.md");
const MEMORY: &str = include_str!("memory.md");

fn main() {
    let mut trials = vec![handoff(), Trial::test("batching", batching)];
    trials.push(Trial::test("batching/adaptive", || {
        table::compare(ADAPTIVE, &adaptive::beside_none())
    }));
    trials.push(Trial::test("combinations", combinations));
    let reproduced = [("dcache-bus", DATA_CACHE), ("handoff-interface", INTERFACE)];
    trials.extend(reproduced.map(reproduction));
    trials.extend(table::sections(STUDIES).map(study));
    trials.extend(table::sections(MEMORY).map(reproduction));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Table 1 of the handoff papers.
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

/// What needs the excerpt of the World Cup log is skipped without it.
fn with_log(name: &str, run: impl FnOnce(&str) -> Result<(), Failed> + Send + 'static) -> Trial {
    let run = || run(&excerpts::path(WORLD_CUP).display().to_string());
    let missing = excerpts::missing(&[WORLD_CUP]);
    Trial::test(name, run)
        .with_ignored_flag(missing.is_some())
        .with_kind(missing.unwrap_or_default())
}

/// Handoff and full offload, on the server of the handoff papers.
fn combinations() -> Result<(), Failed> {
    let bench = Workbench::new();
    bench
        .run(&["run", "combinations", "--json", "out.json"])
        .ok();
    table::compare(COMBINATIONS, &found::combined(&bench.read("out.json")))
}

/// What a command prints of which the name says all.
fn reproduction((name, rows): (&'static str, &'static str)) -> Trial {
    Trial::test(name, move || {
        table::compare(rows, &found::reproduced(&[name]))
    })
}

fn batching() -> Result<(), Failed> {
    let found = found::reproduced(&["batching", "--seeds", "1", "--responses", "40"]);
    table::compare(BATCHING, &found)
}

/// A study by the name that the section has.
fn study((name, rows): (&'static str, &'static str)) -> Trial {
    Trial::test(format!("batching/{name}"), move || {
        let short = ["--seeds", "1", "--responses", "40"];
        let arguments = [&["batching", "--study", name][..], &short].concat();
        table::compare(rows, &found::reproduced(&arguments))
    })
}
