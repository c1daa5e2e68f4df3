//! Checks that the text of `baton advise` agrees with its own numbers, which the JSON of the same run has, for generated and for public logs.

mod claims;
#[path = "../common/mod.rs"]
mod common;

use baton_testkit::excerpts;
use common::Workbench;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;

/// Names of public logs, in the folder of excerpts.
const PUBLIC: [&str; 4] = [
    "nasa_http_19950701_first9999.tsv.xz",
    "nasa_http_19950801_first9999.tsv.xz",
    "epa_http_19950830_00h-12h.log.xz",
    "worldcup98_day6_sample200k.csv.xz",
];

/// Returns a log whose response sizes have a Pareto tail of index 1.2.
fn large() -> String {
    let line = |n: u32| {
        let share = f64::from(n * 37 % 1000 + 1) / 1000.0;
        let bytes = 2e4 * share.powf(-1.0 / 1.2);
        let (client, minute, second) = (n / 2 % 250, n / 60 % 60, n % 60);
        format!(
            "10.0.0.{client} - - [01/May/1998:00:{minute:02}:{second:02} +0000] \"GET /{} HTTP/1.0\" 200 {bytes:.0}\n",
            n * 37 % 1000
        )
    };
    (0..2000).map(line).collect()
}

fn main() {
    let mut trials = vec![
        Trial::test("generated, small responses", || {
            let bench = Workbench::new();
            bench
                .baton("generate demo --requests 5000 --out small.log")
                .ok();
            is_true(&bench, "small.log", &[])
        }),
        Trial::test("generated, large responses on a slow link", || {
            let bench = Workbench::new();
            bench.write("large.log", &large());
            is_true(&bench, "large.log", &["--set", "wire.rate_mbps=1000"])
        }),
    ];
    trials.extend(PUBLIC.map(public));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Returns the test of a public log, which is ignored if the log is not available.
fn public(name: &'static str) -> Trial {
    let missing = excerpts::missing(&[name]);
    let run = || {
        let log = excerpts::path(name);
        is_true(&Workbench::new(), &log.display().to_string(), &[])
    };
    Trial::test(name, run)
        .with_ignored_flag(missing.is_some())
        .with_kind(missing.unwrap_or_default())
}

/// Runs `baton advise` with short simulations, and compares its text with its JSON.
fn is_true(bench: &Workbench, log: &str, set: &[&str]) -> Result<(), Failed> {
    let short = "run.measured_packets=15000";
    let arguments = [
        "advise",
        "--log",
        log,
        "--json",
        "verdict.json",
        "--seconds",
        "600",
        "--set",
        "run.warmup_packets=15000",
        "--set",
        short,
        "--set",
        "run.most_lengths=2",
        "--set",
        "clients.connections=64",
    ];
    let ran = bench.run(&[&arguments[..], set].concat());
    let text = ran.ok().stdout;
    let verdict = serde_json::from_str(&bench.read("verdict.json"))?;
    assert!(
        Path::new(log)
            .file_name()
            .is_some_and(|name| text.contains(&*name.to_string_lossy()))
    );
    claims::check(&text, &verdict)
}
