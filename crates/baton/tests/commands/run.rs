//! `baton run` and other commands: what they print and write, and what an interrupt leaves behind.

use crate::common::{FIXED, Ran, Workbench};
#[cfg(unix)]
use crate::interrupts::{started, wait_until_signals_are_taken};
use baton_testkit::process::signal;
use serde_json::Value;

const VARIANTS: &str = "\
profile = \"defaults\"\n[workload]\nkind = \"fixed\"\nbytes = 4000\nrequests = 3\n[clients]\nconnections = 16\n\
[[variants]]\nname = \"none\"\nset = { \"nic.firmware.hard_limit\" = 0 }\n\
[[variants]]\nname = \"some\"\nset = { nic.firmware.hard_limit = 8 }\n\
[[variants]]\nname = \"all\"\nset.nic.firmware = { hard_limit = 64, scheduler = \"fcfs\" }\n";

fn json(bench: &Workbench, name: &str) -> Value {
    serde_json::from_str(&bench.read(name)).expect("JSON")
}

#[test]
fn a_run_prints_tables_and_writes_all_results() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let ran = bench
        .run_short(
            "x.toml",
            &["--seed", "7", "--set", "nic.mips=600", "--json", "out.json"],
        )
        .ok();
    ran.says(&[
        "requests/s",
        "host cycles",
        "segments sent again",
        "NIC task",
        "Handoffs:",
        "protocol headers",
        "open connections",
        "Soft_Limit",
    ]);
    assert_eq!(
        ran.stderr, "",
        "no progress bar, because stderr is no terminal"
    );
    let run = &json(&bench, "out.json")["runs"][0];
    assert_eq!(run["experiment"]["name"], "x");
    assert_eq!(run["experiment"]["run"]["seed"], 7);
    assert_eq!(run["experiment"]["nic"]["mips"], 600);
    assert!(run["packets"].as_u64() >= Some(2000), "{run}");
    assert!(run["clients"]["request_rate"].as_f64() > Some(0.0), "{run}");
    assert!(
        run["commit"]
            .as_str()
            .is_some_and(|commit| !commit.is_empty())
    );
    assert_eq!(bench.files(), ["out.json", "x.toml"]);
}

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
fn a_run_without_handoff_shows_no_load_control() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let none = ["--set", "nic.firmware.hard_limit=0"];
    let ran = bench.run_short("x.toml", &none).ok();
    ran.says(&["open connections"]);
    assert!(!ran.stdout.contains("Soft_Limit"), "{}", ran.stdout);
}

#[test]
fn load_control_keeps_a_nic_that_could_hold_all_connections_out_of_overload() {
    let bench = Workbench::new();
    let run = |experiment: &str| {
        let few = ["--warmup", "100000", "--packets", "50000"];
        let arguments = [&["run", experiment, "--json", "out.json"], &few[..]].concat();
        bench.run(&arguments).ok();
        json(&bench, "out.json")["runs"][0].clone()
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
fn results_are_the_same_bits_on_any_number_of_threads() {
    let bench = Workbench::new();
    bench.write("x.toml", VARIANTS);
    bench
        .run_short("x.toml", &["--threads", "1", "--json", "one.json"])
        .ok();
    bench
        .run_short("x.toml", &["--threads", "1", "--json", "again.json"])
        .ok();
    bench
        .run_short("x.toml", &["--threads", "2", "--json", "two.json"])
        .ok();
    let one = bench.read("one.json");
    assert_eq!(one, bench.read("again.json"));
    assert_eq!(one, bench.read("two.json"));
    bench
        .run_short(
            "x.toml",
            &["--threads", "2", "--seed", "2", "--json", "other.json"],
        )
        .ok();
    assert_ne!(one, bench.read("other.json"), "the seed is in the results");
}

#[test]
fn variants_are_run_in_the_order_of_the_file_or_of_the_command_line() {
    let bench = Workbench::new();
    bench.write("x.toml", VARIANTS);
    let ran = bench.run_short("x.toml", &["--json", "all.json"]).ok();
    ran.says(&["2,000 packets measured, after 1,000 packets of warm-up"]);
    let all = json(&bench, "all.json");
    let names: Vec<&str> = all["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["experiment"]["name"].as_str())
        .collect();
    assert_eq!(names, ["none", "some", "all"]);
    let connections =
        |run: usize| all["runs"][run]["experiment"]["nic"]["firmware"]["hard_limit"].as_u64();
    assert_eq!(
        [connections(0), connections(1), connections(2)],
        [Some(0), Some(8), Some(64)]
    );
    bench
        .run_short("x.toml", &["--variant", "some", "--json", "some.json"])
        .ok();
    assert_eq!(json(&bench, "some.json")["runs"][0], all["runs"][1]);
    assert_eq!(
        json(&bench, "some.json")["runs"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn a_shorthand_equals_its_toml() {
    let bench = Workbench::new();
    let toml = bench
        .baton("run W-64-P-L-T4-600 --print-config")
        .ok()
        .stdout;
    bench.write("same.toml", &toml);
    let full = |experiment| {
        bench
            .run(&["run", experiment, "--print-config=full"])
            .ok()
            .stdout
    };
    assert_eq!(full("W-64-P-L-T4-600"), full("same.toml"));
    let experiment: toml::Table = full("same.toml").parse().expect("TOML");
    assert_eq!(experiment["nic"]["mips"].as_integer(), Some(600));
    assert_eq!(
        experiment["nic"]["firmware"]["hard_limit"].as_integer(),
        Some(64)
    );
    assert_eq!(
        experiment["nic"]["firmware"]["scheduler"].as_str(),
        Some("host-first")
    );
    assert_eq!(
        experiment["nic"]["firmware"]["load_control"]["enabled"].as_bool(),
        Some(true)
    );
    assert_eq!(
        experiment["host"]["kernel"]["selection"]["enqueues"].as_integer(),
        Some(4)
    );
    assert_eq!(experiment["host"]["clock_mhz"].as_integer(), Some(2000));
    assert_eq!(
        experiment["tcp"]["sack"].as_bool(),
        Some(false),
        "the values of the profile are included"
    );
}

#[test]
fn a_note_says_that_the_world_cup_log_is_missing() {
    let bench = Workbench::new();
    let few = [
        "--set",
        "workload.requests=2000",
        "--set",
        "clients.connections=16",
        "--json",
        "out.json",
    ];
    let ran = bench.run_short("W-0-N-N-FCFS-400", &few).ok();
    assert!(ran.stderr.contains("--log FILE"), "{}", ran.stderr);
    ran.says(&["W-0-N-N-FCFS-400 (generated log)"]);
    bench
        .baton("generate demo --requests 2000 --out demo.log")
        .ok();
    let ran = bench
        .run_short(
            "W-0-N-N-FCFS-400",
            &["--log", "demo.log", "--set", "clients.connections=16"],
        )
        .ok();
    assert_eq!(ran.stderr, "");
    assert!(!ran.stdout.contains("generated"), "{}", ran.stdout);
}

#[test]
fn json_on_stdout_leaves_tables_to_stderr() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let ran = bench.run_short("x.toml", &["--json", "-"]).ok();
    let document: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(document["runs"].is_array());
    assert!(ran.stderr.contains("requests/s"));
}

#[test]
fn every_configuration_of_the_shorthand_can_be_run() {
    let bench = Workbench::new();
    for workload in ["W", "I", "D", "S"] {
        for rest in ["0-N-N-FCFS-400", "256-P-N-T4-600", "4096-P-L-FCFS-800"] {
            bench
                .run(&["run", &format!("{workload}-{rest}"), "--print-config=full"])
                .ok();
        }
    }
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

#[test]
fn a_trace_counts_skipped_lines_and_shows_the_first() {
    let bench = Workbench::new();
    let line = "host - - [30/Apr/1998:22:00:04 +0000] \"GET /a HTTP/1.0\" 200 512\n";
    bench.write(
        "x.log",
        &format!("{line}{line}nonsense\n{line}host - - [when] \"GET /a HTTP/1.0\" 200 512\n{line}"),
    );
    let ran = bench.baton("trace x.log --json out.json").ok();
    ran.says(&[
        "lines skipped because",
        "too few fields",
        "nonsense",
        "no time, or an invalid one",
        "connections",
    ]);
    let analysis = json(&bench, "out.json");
    assert_eq!(analysis["totals"]["requests"], 4);
    assert_eq!(analysis["log"], "x.log");
    let skipped = &analysis["skipped"];
    assert_eq!(skipped["lines"], 6);
    assert_eq!(skipped["reasons"]["missing-fields"]["first_line"], 3);
    assert_eq!(skipped["reasons"]["time"]["first_line"], 5);
}

#[test]
fn responses_too_long_for_the_simulator_are_left_out_with_a_warning() {
    let bench = Workbench::new();
    let line = |bytes: u64| {
        format!("host - - [30/Apr/1998:22:00:04 +0000] \"GET /{bytes} HTTP/1.0\" 200 {bytes}\n")
    };
    bench.write("x.log", &(line(512) + &line(3_000_000_000) + &line(700)));
    let few = ["--log", "x.log", "--set", "clients.connections=16"];
    let ran = bench.run_short("W-8-P-N-FCFS-400", &few).ok();
    ran.says(&["responses of 2 GiB or more left out 1"]);
}

#[test]
fn a_generated_log_can_be_read_and_fitted() {
    let bench = Workbench::new();
    bench
        .baton("generate demo --requests 3000 --seed 3 --out demo.log")
        .ok();
    let ran = bench.baton("trace demo.log").ok();
    ran.says(&["3,000", "No line was skipped"]);
    let ran = bench.baton("generate --fit demo.log --out like.log").ok();
    ran.says(&["original", "error"]);
    bench
        .baton("generate demo --requests 3000 --seed 3 --out again.log")
        .ok();
    assert_eq!(bench.read("demo.log"), bench.read("again.log"));
}

#[test]
fn a_capture_is_pcapng() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    for link in ["server", "client:3"] {
        bench
            .run_short("x.toml", &["--pcap", "out.pcapng", "--pcap-link", link])
            .ok();
        let bytes = std::fs::read(bench.path("out.pcapng")).expect("a capture");
        assert!(
            bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]),
            "the section header block of pcapng"
        );
    }
    assert_eq!(bench.files(), ["out.pcapng", "x.toml"]);
}

#[test]
fn manual_pages_are_printed() {
    let bench = Workbench::new();
    assert!(bench.baton("man").ok().stdout.contains(".TH"));
    assert!(bench.baton("man run").ok().stdout.contains("print"));
    #[cfg(live)]
    {
        let nested = bench.baton("man live adapter").ok().stdout;
        assert!(nested.contains("drain"), "{nested}");
    }
    bench
        .baton("man run fly")
        .refused(&["man fly", "run has no subcommands"]);
    let help = bench.baton("run --help").ok().stdout;
    assert!(help.contains("Example"), "{help}");
}

#[test]
fn reproductions_are_listed() {
    let bench = Workbench::new();
    assert!(
        bench
            .baton("reproduce")
            .ok()
            .stdout
            .contains("handoff-table1")
    );
}

/// A NIC that is too slow for the connections that it gets, so that it takes seconds to settle.
const SLOW_NIC: [&str; 9] = [
    "nic-mips",
    "--variant",
    "200 MIPS",
    "--warmup",
    "100000",
    "--packets",
    "200000",
    "--log",
    "access.log",
];

#[test]
fn a_run_that_ends_before_the_machine_has_settled_is_marked() {
    let bench = Workbench::new();
    bench.write("access.log", include_str!("../../../../samples/access.log"));
    let run = |more: &[&str]| {
        let arguments = [&["run"], &SLOW_NIC[..], more].concat();
        bench.run(&arguments).ok()
    };
    let marked = "200 MIPS *";
    let why = "connections, queues or losses at the NIC were still changing";
    run(&[]).says(&[marked, "* 200 MIPS", why]);
    let fast = run(&["--set", "nic.mips=1600"]);
    assert!(
        !fast.stdout.contains("were still changing"),
        "{}",
        fast.stdout
    );
}

/// 93 of 100 intervals of short runs contain the value of a run 50 times as long, or their runs are marked.
#[test]
#[ignore = "simulates 84 million packets: five minutes of a processor"]
fn intervals_of_short_runs_contain_the_value_of_long_ones() {
    let bench = Workbench::new();
    bench.write("access.log", include_str!("../../../../samples/access.log"));
    let run = |length: [&str; 4], seeds: &str, json_file: &str| {
        let what = [
            "run",
            "nic-mips",
            "--log",
            "access.log",
            "--seeds",
            seeds,
            "--json",
            json_file,
        ];
        bench.run(&[&what[..], &length].concat()).ok();
        let document = json(&bench, json_file);
        document["runs"].as_array().expect("runs").clone()
    };
    let of = |run: &Value| -> (String, f64, f64) {
        let rate = &run["long_run"]["request_rate"];
        let name = run["experiment"]["name"].as_str().unwrap_or_default();
        let number = |name: &str| rate[name].as_f64().unwrap_or(f64::NAN);
        (name.to_owned(), number("mean"), number("half_width"))
    };
    let long = run(
        ["--warmup", "1000000", "--packets", "10000000"],
        "1",
        "long.json",
    );
    let short = run(
        ["--warmup", "100000", "--packets", "200000"],
        "20",
        "short.json",
    );
    let is_right = |run: &&Value| {
        let (name, mean, half) = of(run);
        let truth = long.iter().map(of).find(|(other, ..)| *other == name);
        let truth = truth.expect("the same variants").1;
        let is_marked = run["long_run"]["not_steady"] != Value::Array(Vec::new());
        is_marked || (mean - truth).abs() <= half
    };
    let right = short.iter().filter(is_right).count();
    assert!(
        100 * right >= 93 * short.len(),
        "{right} of {}",
        short.len()
    );
}
