//! Tables fit into terminals of any width, and into 100 columns without a terminal.

use crate::common::{Ran, SHORT, Workbench, root};

/// Widths of terminals, with the number of columns that output may take; `None` is output without a terminal.
const WIDTHS: [(Option<&str>, usize); 4] = [
    (Some("60"), 60),
    (Some("80"), 80),
    (Some("200"), 200),
    (None, 100),
];

/// Runs `baton ARGUMENTS` in each width, and asserts that its output fits.
fn fits(bench: &Workbench, arguments: &[&str]) -> Vec<Ran> {
    let in_width = |(columns, most): (Option<&str>, usize)| {
        let mut command = bench.command(arguments);
        if let Some(columns) = columns {
            command.env("COLUMNS", columns);
        }
        let ran = Ran::of(command.output().expect("the program starts")).ok();
        assert_fits(&ran, most);
        ran
    };
    WIDTHS.into_iter().map(in_width).collect()
}

/// Asserts that the output fits into `most` columns. Only a line of a single word may be longer.
#[track_caller]
pub fn assert_fits(ran: &Ran, most: usize) {
    for line in ran.stdout.lines() {
        let length = line.chars().count();
        assert!(
            length <= most || !line.trim().contains(' '),
            "{length} columns of {most}: {line:?} in:\n{}",
            ran.stdout
        );
    }
}

/// Returns an experiment with `number` variants, with handoff, a bus and a cache.
fn variants(number: usize) -> String {
    let mut text =
        "profile = \"dcache-2002\"\n[workload]\nkind = \"fixed\"\nbytes = 4000\nrequests = 3\n\
                    [clients]\nconnections = 16\nreplayers = 1\n"
            .to_owned();
    for variant in 0..number {
        text += &format!(
            "[[variants]]\nname = \"variant {variant} of a longer name\"\nset.nic.firmware = {{ cache.kib = {}, hard_limit = 8 }}\n",
            64 * (variant % 2)
        );
    }
    text
}

#[test]
fn tables_of_runs_fit_the_width() {
    let bench = Workbench::new();
    for number in [1, 4, 12] {
        bench.write("x.toml", &variants(number));
        let arguments = [&["run", "x.toml"], &SHORT[..]].concat();
        for ran in fits(&bench, &arguments) {
            ran.says(&["requests/s", "host cycles", "on bus"]);
        }
        let details = [&arguments[..], &["--details"]].concat();
        fits(&bench, &details);
    }
}

#[test]
fn columns_that_do_not_fit_are_named() {
    let bench = Workbench::new();
    bench.write("x.toml", &variants(4));
    let arguments = [&["run", "x.toml"], &SHORT[..]].concat();
    let ran = fits(&bench, &arguments);
    ran[0].says(&["not shown in 60 columns:", "--details", "--json"]);
    let wide = &ran[2].stdout;
    assert!(!wide.contains("not shown"), "{wide}");
}

#[test]
fn a_run_shows_the_columns_of_its_topic() {
    let bench = Workbench::new();
    let shown = |experiment: &str| {
        let path = root().join("experiments").join(experiment);
        let arguments = [
            "run",
            path.to_str().expect("UTF-8"),
            "--packets",
            "3000",
            "--warmup",
            "1000",
        ];
        let mut command = bench.command(&arguments);
        let ran = Ran::of(command.env("COLUMNS", "300").output().expect("it starts")).ok();
        ran.stdout
    };
    let live = shown("live-stream.toml");
    assert!(
        live.contains("on bus") && live.contains("for each byte of content delivered"),
        "{live}"
    );
    assert!(!live.contains("crossings:"), "{live}");
    let batching = shown("batching.toml");
    assert!(
        batching.contains("crossings: DMA operations for each response"),
        "{batching}"
    );
    assert!(
        !batching.contains("on bus") && !batching.contains("receive:"),
        "{batching}"
    );
    let handoff = shown("load-control.toml");
    assert!(handoff.contains("offloaded: share of packets"), "{handoff}");
}

#[test]
fn a_run_that_measured_nothing_says_so() {
    let bench = Workbench::new();
    let ran = bench.baton("run W-0-N-N-FCFS-400 --set wire.loss=1.0 --json x.json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("measured nothing") && ran.stderr.contains("wire.loss"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("mean -, median -"), "{}", ran.stdout);
    let json: serde_json::Value = serde_json::from_str(&bench.read("x.json")).expect("JSON");
    let run = &json["runs"][0];
    assert!(run["clients"]["response_ms"]["mean"].is_null(), "{run}");
    assert_eq!(run["workload"]["requests"], 200_000);
}

#[test]
fn lists_fit_the_width() {
    let bench = Workbench::new();
    fits(&bench, &["list"]);
    fits(&bench, &["keys"]);
    for command in ["run", "load", "advise", "live"] {
        fits(&bench, &[command, "--help"]);
    }
}

#[test]
fn traces_fit_the_width() {
    let bench = Workbench::new();
    let log = "generate worldcup-lifetimes --requests 2000 --out x.log";
    bench.baton(log).ok();
    fits(&bench, &["trace", "x.log"]);
    fits(&bench, &["trace", "locality", "x.log"]);
}

#[test]
fn published_tables_fit_the_width() {
    let bench = Workbench::new();
    let short = ["--warmup", "2000", "--packets", "3000"];
    for name in ["handoff-table1", "dcache-bus", "dcache-modern"] {
        fits(&bench, &[&["reproduce", name], &short[..]].concat());
    }
}
