//! `baton run` and other commands: what they print and write, and what an interrupt leaves behind.

use crate::common::{FIXED, Ran, Workbench};
#[cfg(unix)]
use crate::interrupts::{started, wait_until_signals_are_taken};
use baton_testkit::process::signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_timeline_changes_no_result_and_describes_its_content() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    bench.run_short("x.toml", &["--json", "without"]).ok();
    let more = ["--timeline-connections", "all", "--timeline-size", "1M"];
    let files = ["--timeline", "out.pftrace", "--json", "with"];
    let ran = bench
        .run_short("x.toml", &[&files[..], &more].concat())
        .ok();
    assert!(
        ran.stderr.starts_with("note: timeline: 0."),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("(every:1)"), "{}", ran.stderr);
    assert_eq!(bench.read("with"), bench.read("without"));
    let written = std::fs::metadata(bench.path("out.pftrace"))
        .expect("a file")
        .len();
    assert!((100_000..=1 << 20).contains(&written), "{written}");
    assert_eq!(bench.files(), ["out.pftrace", "with", "without", "x.toml"]);
}

#[test]
fn load_control_keeps_a_nic_that_could_hold_all_connections_out_of_overload() {
    let bench = Workbench::new();
    let run = |experiment: &str| {
        let few = ["--warmup", "100000", "--packets", "50000"];
        let arguments = [&["run", experiment, "--json", "out.json"], &few[..]].concat();
        bench.run(&arguments).ok();
        bench.json("out.json")["runs"][0].clone()
    };
    let lowest = |run: &Value| {
        let samples = run["series"].as_array().expect("a series");
        let limits = samples.iter().map(|s| s["soft_limit"].as_u64());
        limits.min().flatten()
    };
    let (without, with) = (run("W-4096-P-N-FCFS-400"), run("W-4096-P-L-FCFS-400"));
    assert_eq!(lowest(&without), Some(4096));
    assert!(lowest(&with) < Some(2048), "{:?}", lowest(&with));
    let rate = |run: &Value| run["clients"]["request_rate"].as_f64().expect("a rate");
    assert!(
        rate(&with) > 1.3 * rate(&without),
        "{} with, {} without",
        rate(&with),
        rate(&without)
    );
}

#[test]
#[cfg(unix)]
fn an_interrupt_leaves_no_output() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let endless = [
        "run",
        "x.toml",
        "--packets",
        "100000000000",
        "--json",
        "out.json",
        "--set",
        "run.limit_s=1000000",
    ];
    let child = started(&bench, &endless);
    signal(&child, "INT");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(
        ran.stderr.contains("interrupted; nothing was written"),
        "{ran:?}"
    );
    assert_eq!(bench.files(), ["x.toml"]);
}

#[test]
#[cfg(unix)]
fn finished_runs_are_printed_at_once_and_after_an_interrupt() {
    let bench = Workbench::new();
    let lengths = "[[variants]]\nname = \"short\"\nset.run = { warmup_packets = 1000, measured_packets = 2000 }\n\
                   [[variants]]\nname = \"endless\"\nset.run = { measured_packets = 100000000000, limit_s = 1000000 }\n";
    bench.write("x.toml", &format!("{FIXED}{lengths}"));
    let mut command = bench.command(&["run", "x.toml", "--threads", "1", "--json", "out.json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the program starts");
    let mut row = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    stderr.read_line(&mut row).expect("a line");
    assert!(
        row.starts_with("done: short: ") && row.contains("requests/s"),
        "{row}"
    );
    signal(&child, "INT");
    stderr.read_to_string(&mut row).expect("text");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    ran.says(&["short", "requests/s"]);
    assert!(!ran.stdout.contains("endless"), "{}", ran.stdout);
    assert!(
        row.contains("interrupted; 1 of 2 configurations were done"),
        "{row}"
    );
    assert_eq!(bench.files(), ["x.toml"]);
}

/// Three attempts, because another process may have the processor for a while.
#[test]
#[cfg(unix)]
fn tasks_that_take_long_do_not_delay_the_end() {
    let bench = Workbench::new();
    let took = || {
        let child = started(
            &bench,
            &["bench", "nic", "nic-connectx-7", "--json", "out.json"],
        );
        std::thread::sleep(Duration::from_millis(500));
        let begun = Instant::now();
        signal(&child, "INT");
        let ran = Ran::of(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(
            ran.stderr.contains("interrupted; nothing was written"),
            "{ran:?}"
        );
        assert!(bench.files().is_empty(), "{:?}", bench.files());
        begun.elapsed()
    };
    let least = (0..3).map(|_| took()).min();
    assert!(least < Some(Duration::from_millis(1_500)), "{least:?}");
}

#[test]
#[cfg(unix)]
fn a_second_interrupt_leaves_no_output_either() {
    let bench = Workbench::new();
    let generating = ["generate", "demo", "--requests", "100000000", "--out", "x"];
    let child = started(&bench, &generating);
    for _ in 0..2 {
        signal(&child, "INT");
        wait_until_signals_are_taken(&child);
    }
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}

#[test]
#[cfg(target_os = "linux")]
fn json_is_written_even_if_the_tables_cannot_be_printed() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let arguments = ["run", "x.toml", "--packets", "1000", "--json", "-"];
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = bench.command(&arguments);
    let output = command.stderr(full.expect("Linux has it")).output();
    let ran = Ran::of(output.expect("the program starts")).ok();
    serde_json::from_str::<Value>(&ran.stdout).expect("JSON");
}

/// Below, at and above what the NIC can serve, 93 of 100 intervals of short runs contain the value of a run 50 times as long, or their runs are
/// marked.
#[test]
#[ignore = "simulates 300 million packets: eight minutes of two processors"]
fn intervals_of_short_runs_contain_the_value_of_long_ones() {
    const LOADS: [Option<&str>; 5] = [
        None,
        Some("24000/s"),
        Some("30000/s"),
        Some("36000/s"),
        Some("45000/s"),
    ];
    let bench = Workbench::new();
    bench.write("access.log", include_str!("../../../../samples/access.log"));
    let run = |load: Option<&str>, length: &str| -> Vec<Value> {
        let mips = "--variant=200 MIPS --variant=400 MIPS --variant=600 MIPS --variant=800 MIPS --variant=1600 MIPS";
        let mips = mips
            .split(" --")
            .map(|it| format!("--{}", it.trim_start_matches("--")));
        let words = [
            "run",
            "nic-mips",
            "--log",
            "access.log",
            "--json",
            "runs.json",
        ];
        let rate = load.into_iter().flat_map(|rate| ["--rate", rate]);
        let words = words
            .into_iter()
            .chain(rate)
            .chain(length.split(' '))
            .map(str::to_owned);
        let words: Vec<_> = words.chain(mips).collect();
        bench
            .run(&words.iter().map(String::as_str).collect::<Vec<_>>())
            .ok();
        bench.json("runs.json")["runs"]
            .as_array()
            .expect("runs")
            .clone()
    };
    let (mut right, mut all, mut wrong) = (0, 0, String::new());
    for load in LOADS {
        let long = run(load, "--warmup 1000000 --packets 10000000");
        for short in run(load, "--warmup 100000 --packets 200000 --seeds 4") {
            let name = &short["experiment"]["name"];
            let long = long.iter().find(|long| long["experiment"]["name"] == *name);
            let long = &long.expect("the same variants")["long_run"];
            let estimates = &short["long_run"];
            let is_marked = estimates["not_steady"] != Value::Array(Vec::new());
            for place in ["/request_rate", "/response_ms/mean"] {
                let number = |of: &Value, what| of.pointer(&format!("{place}/{what}"))?.as_f64();
                let Some(truth) = number(long, "mean") else {
                    continue;
                };
                let known = number(estimates, "mean").zip(number(estimates, "half_width"));
                let is_right = known.is_some_and(|(mean, half)| (mean - truth).abs() <= half);
                all += 1;
                right += usize::from(is_right || is_marked);
                if !(is_right || is_marked) {
                    wrong += &format!("{name} {load:?} {place}: {known:?}, not {truth}\n");
                }
            }
        }
    }
    println!("{right} of {all}");
    assert!(100 * right >= 93 * all, "{right} of {all}:\n{wrong}");
}
