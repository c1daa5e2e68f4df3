//! The experiments of the data-caching paper: what they print, and what they refuse.

mod common;

use common::Workbench;
use serde_json::Value;

/// The rows of `--json`.
fn rows(bench: &Workbench, name: &str) -> Vec<Value> {
    let json: Value = serde_json::from_str(&bench.read(name)).expect("JSON");
    json.as_array().expect("rows").clone()
}

#[test]
fn folders_and_figures_that_cannot_be_used_are_refused() {
    let bench = Workbench::new();
    let arguments = ["reproduce", "dcache-locality", "--data", "."];
    bench
        .run(&arguments)
        .refused(&["--data .", "worldcup98_day6_sample200k.csv.xz"]);
    let arguments = ["reproduce", "dcache-locality", "--figure", "out.gif"];
    bench
        .run(&arguments)
        .refused(&["--figure out.gif", ".svg or .png"]);
    bench.write(
        "sdsc.log",
        "1+1: Tue Aug 22 00:00:05 1995 (/a): Sent text: GET /a HTTP/1.0\n",
    );
    let arguments = ["reproduce", "dcache-locality", "--log", "sdsc.log"];
    bench
        .run(&arguments)
        .refused(&["sdsc.log", "no response sizes"]);
    let arguments = ["reproduce", "dcache-figure9"];
    bench
        .run(&arguments)
        .refused(&["dcache-figure9", "dcache-locality"]);
    assert_eq!(bench.files(), ["sdsc.log"], "nothing is left behind");
}
