//! `baton calibrate` with few packets: whether it runs and prints all parts of its output, not which constants it finds.

use crate::common::{Ran, Workbench};
#[cfg(unix)]
use crate::interrupts::started;
use baton_testkit::process::signal;

/// Flags that make a calibration short.
const FEW: [&str; 6] = ["--rounds", "1", "--warmup", "2000", "--packets", "6000"];

fn calibrate(bench: &Workbench, more: &[&str]) -> Ran {
    let arguments: Vec<&str> = ["calibrate"]
        .iter()
        .chain(&FEW)
        .chain(more)
        .copied()
        .collect();
    bench.run(&arguments)
}

/// Returns a folder with a small log.
fn with_log() -> Workbench {
    let bench = Workbench::new();
    let generate = [
        "generate",
        "worldcup-lifetimes",
        "--requests",
        "20000",
        "--out",
        "access.log",
    ];
    bench.run(&generate).ok();
    bench
}

#[test]
fn a_calibration_prints_rounds_residuals_and_lines_that_can_be_run() {
    let bench = with_log();
    let ran = calibrate(&bench, &["--log", "access.log", "--json", "out.json"]).ok();
    ran.says(&[
        "with the log access.log",
        "6,000 packets measured after 2,000 packets of warm-up, seed 1",
        "With the constants of the profile",
        "Round 1:",
        "W-1024-P-N-FCFS-400",
        "published",
        "points",
        "runs were not steady, so that their numbers may not hold",
        "Derived in 1 round (",
        "Within tolerance: given",
        "[host.scale]\n",
        "\nnetwork_stack = ",
        "[nic.scale]\nhost = ",
        "transmit_burst_segments = ",
    ]);
    let document = bench.json("out.json");
    assert_eq!(document["profile"], "handoff-2006");
    let constants = document["constants"].as_object();
    assert_eq!(constants.map(serde_json::Map::len), Some(6), "{document}");
    for outcome in [&document["in_profile"], &document["derived"]] {
        let rows = outcome.as_array().expect("rows");
        let published = rows.iter().filter(|row| row["published"].is_number());
        assert_eq!(published.count(), 23, "{outcome}");
    }
    assert_eq!(bench.files(), ["access.log", "out.json"]);
    let lines = ran.stdout.find("[host.scale]\n");
    let lines = &ran.stdout[lines.expect("lines for the profile")..];
    bench.write("derived.toml", lines);
    let again = "run W-0-N-N-FCFS-400 --profile derived.toml --print-config=full";
    bench.baton(again).ok();
}

#[test]
#[cfg(unix)]
fn an_interrupt_leaves_no_output() {
    let bench = with_log();
    let endless = ["calibrate", "--log", "access.log", "--json", "out.json"];
    let child = started(&bench, &endless);
    signal(&child, "INT");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(bench.files(), ["access.log"]);
}
