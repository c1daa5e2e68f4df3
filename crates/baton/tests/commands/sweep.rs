//! Studies: each run is simulated exactly once, even if processes are interrupted or killed.

use crate::common::{FIXED, Ran, Workbench};
use std::process::{Child, Stdio};

/// Writes a study with this table `[sweep]`, in short runs.
fn study(bench: &Workbench, name: &str, sweep: &str) {
    let text = format!("{FIXED}[run]\nwarmup_packets = 100\nmeasured_packets = 200\n{sweep}");
    bench.write(name, &text);
}

/// A study of 20 runs.
const TWENTY: &str = "[sweep]\nnic.mips = { from = 100, to = 1000, step = 100 }\nseeds = 2\n";

/// Asserts that an invalid study is refused with a message that contains these parts, and that nothing is written.
fn refused(sweep: &str, parts: &[&str]) {
    let bench = Workbench::new();
    study(&bench, "x.toml", sweep);
    bench.baton("sweep x.toml --out results").refused(parts);
    assert_eq!(bench.files(), ["x.toml"], "nothing is left behind");
}

/// Returns the lines of a table below its header.
fn rows(bench: &Workbench, table: &str) -> Vec<String> {
    bench
        .read(table)
        .lines()
        .skip(1)
        .map(str::to_owned)
        .collect()
}

fn start(bench: &Workbench, line: &str) -> Child {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = bench.command(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn ended(child: Child) -> Ran {
    Ran::of(child.wait_with_output().expect("it ends"))
}

/// Returns the number of stored results.
fn kept(bench: &Workbench) -> usize {
    let folders = std::fs::read_dir(bench.path("results/runs"))
        .into_iter()
        .flatten();
    let files = folders.filter_map(|folder| std::fs::read_dir(folder.ok()?.path()).ok());
    files.flatten().count()
}

#[test]
fn invalid_studies_are_refused_with_the_place() {
    let line = "x.toml:12:";
    for (sweep, parts) in [
        (
            "[sweep]\nnic.misp = [1, 2]\n",
            &[line, "unknown key `misp` in [nic]", "did you mean `mips`?"][..],
        ),
        (
            "[sweep]\nnic.mips = 600\n",
            &[
                line,
                "nic.mips: expected a list of values",
                "outside of [sweep]",
            ],
        ),
        ("[sweep]\nnic.mips = []\n", &[line, "at least one value"]),
        (
            "[sweep]\nnic.mips = [600, \"fast\"]\n",
            &["x.toml:12:18:", "found \"fast\"", "expected a whole number"],
        ),
        (
            "[sweep]\nnic.mips = { from = 0, to = 9, factor = 2 }\n",
            &[line, "expected two numbers above 0"],
        ),
        (
            "[sweep]\nnic.mips = { from = 1, to = 9 }\n",
            &[line, "one of `count`, `step` or `factor`"],
        ),
        (
            "[sweep]\nnic.mips = { from = 1, to = 9, count = 2, scale = \"odd\" }\n",
            &[line, "\"linear\" or \"log\""],
        ),
        (
            "[sweep]\nseeds = 0\n",
            &[line, "sweep.seeds", "a whole number from 1"],
        ),
        (
            "[sweep]\nname = [\"a\", \"b\"]\n",
            &[line, "name: cannot be swept"],
        ),
        (
            "[[sweep.zip]]\nnic.mips = [1, 2]\nhost.clock_mhz = [1]\n",
            &[
                "x.toml:13:",
                "host.clock_mhz: has 1 values; expected 2, as many as nic.mips",
            ],
        ),
        (
            "[sweep]\nnic.mips = [1]\n[[sweep.zip]]\nnic.mips = [1]\nhost.clock_mhz = [1]\n",
            &["x.toml:14:", "nic.mips is already swept, x.toml:12:"],
        ),
        (
            "[sweep]\nnic.mips = [1, 2]\n[[sweep.except]]\nnic.mips = { over = 1 }\n",
            &["x.toml:14:", "unknown key `nic.mips.over`"],
        ),
        (
            "[sweep]\nnic.mips = [1, 2]\n[[sweep.except]]\nnic.mips = { below = 9 }\n",
            &["leaves out all 2 points"],
        ),
        (
            "[sweep]\nnic.mips = [1, 2]\n[figure]\nx = \"nic.mibs\"\n",
            &[
                "x.toml:14:",
                "figure.x: expected a key that is swept: nic.mips",
            ],
        ),
        (
            "[sweep]\nnic.mips = [1, 2]\n[figure]\nx = \"nic.mips\"\ny = \"request_rates_per_s\"\n",
            &["x.toml:15:", "did you mean `request_rate_per_s`?"],
        ),
    ] {
        refused(sweep, parts);
    }
    let bench = Workbench::new();
    study(&bench, "x.toml", TWENTY);
    bench
        .baton("run x.toml")
        .refused(&["x.toml:11:", "`baton sweep x.toml --out DIR`"]);
    bench
        .baton("sweep x.toml --out results --set nic.mips=5")
        .refused(&["--set nic.mips=5", "is already swept, x.toml:12:"]);
    bench
        .baton("sweep x.toml --out results --shard 3/2")
        .refused(&["--shard", "K from 1 to N"]);
    bench
        .baton("sweep status results")
        .refused(&["results: there is no such folder"]);
    bench
        .baton("sweep x.toml --out .")
        .refused(&["has no results of `baton sweep`"]);
    assert_eq!(bench.files(), ["x.toml"], "nothing is left behind");
}

#[test]
fn points_are_combined_zipped_and_left_out() {
    let bench = Workbench::new();
    let sweep = "[sweep]\nclients.connections = { from = 4, to = 64, factor = 4 }\nseeds = 2\n\
                 [[sweep.zip]]\nnic.mips = [200, 400]\nhost.clock_mhz = [1000, 2000]\n\
                 [[sweep.except]]\nclients.connections = { above = 4 }\nnic.mips = 400\n\
                 [[sweep.except]]\nclients.connections = [16, 17]\nrun.measured_packets = { not = 5 }\n";
    study(&bench, "x.toml", sweep);
    let plan = bench.baton("sweep x.toml --plan").ok().stdout;
    let head: Vec<&str> = plan.lines().next().expect("a header").split(',').collect();
    let of = |line: &str, name: &str| {
        let place = head.iter().position(|column| *column == name).expect(name);
        line.split(',').nth(place).expect("a cell").to_owned()
    };
    let names = [
        "config.clients.connections",
        "config.nic.mips",
        "config.host.clock_mhz",
        "seed",
    ];
    let points: Vec<String> = plan
        .lines()
        .skip(1)
        .map(|line| names.map(|name| of(line, name)).join(" "))
        .collect();
    let expected = [
        "4 200 1000 1",
        "4 200 1000 2",
        "4 400 2000 1",
        "4 400 2000 2",
        "64 200 1000 1",
        "64 200 1000 2",
    ];
    assert_eq!(points, expected);
}

#[test]
fn no_run_is_done_twice() {
    let bench = Workbench::new();
    study(&bench, "x.toml", TWENTY);
    bench
        .baton("sweep x.toml --out results")
        .ok()
        .says(&["20 of 20 runs done, 20 of them now", "results/x.csv"]);
    let table = bench.read("results/x.csv");
    assert_eq!(rows(&bench, "results/x.csv").len(), 20);
    assert!(rows(&bench, "results/x.parts.csv").len() > 20 * 20);
    let written = || {
        std::fs::metadata(bench.path("results/x.csv"))
            .and_then(|file| file.modified())
            .expect("a file")
    };
    let before = written();
    bench
        .baton("sweep x.toml --out results")
        .ok()
        .says(&["20 of 20 runs done, 0 of them now"]);
    assert_eq!(written(), before, "current tables are not written again");
    // Another study, in another order. Four of its six runs are stored already.
    study(
        &bench,
        "y.toml",
        "[sweep]\nnic.mips = [2000, 1000, 900]\nseeds = 2\n",
    );
    bench
        .baton("sweep y.toml --out results")
        .ok()
        .says(&["6 of 6 runs done, 2 of them now"]);
    bench
        .baton("sweep y.toml --out results --set host.clock_mhz=777")
        .ok()
        .says(&["6 of them now"]);
    bench
        .baton("sweep status results")
        .ok()
        .says(&["28 runs are kept"]);
    // The last study replaced the former study `y`. Of the runs of the former, only the two that no other study has are removed.
    bench
        .baton("sweep gc results")
        .ok()
        .says(&["removed: 2 runs"]);
    bench
        .baton("sweep x.toml --out results")
        .ok()
        .says(&["0 of them now"]);
    assert_eq!(bench.read("results/x.csv"), table);
}

#[test]
fn a_log_is_identified_by_its_content() {
    let bench = Workbench::new();
    let line = |name: &str| {
        format!("10.0.0.1 - - [01/Jan/2000:00:00:00 +0000] \"GET /{name} HTTP/1.0\" 200 4000\n")
    };
    let text = "profile = \"defaults\"\nclients.connections = 4\n[workload]\nkind = \"log\"\npath = \"a.log\"\n\
                [run]\nwarmup_packets = 100\nmeasured_packets = 200\n[sweep]\nnic.mips = [200, 400]\n";
    bench.write("x.toml", text);
    bench.write("a.log", &line("a").repeat(20));
    bench
        .baton("sweep x.toml --out results")
        .ok()
        .says(&["2 of them now"]);
    bench.write("b.log", &bench.read("a.log"));
    bench.write("x.toml", &text.replace("a.log", "b.log"));
    bench
        .baton("sweep x.toml --out results")
        .ok()
        .says(&["0 of them now"]);
    bench.write("b.log", &line("b").repeat(20));
    bench
        .baton("sweep x.toml --out results")
        .ok()
        .says(&["2 of them now"]);
    bench.write("x.toml", &text.replace("a.log", "-"));
    bench
        .baton("sweep x.toml --out results")
        .refused(&["expected a file"]);
}

#[test]
fn two_processes_share_a_folder() {
    let bench = Workbench::new();
    study(&bench, "x.toml", TWENTY);
    let both = [0, 1].map(|_| start(&bench, "sweep x.toml --out results --threads 1"));
    let done = both.map(|child| {
        let said = ended(child).ok().stdout;
        let now = said
            .split("done, ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        now.and_then(|now| now.parse::<usize>().ok())
            .expect("a number of runs")
    });
    assert_eq!((done[0] + done[1], kept(&bench)), (20, 20), "{done:?}");
    assert_eq!(rows(&bench, "results/x.csv").len(), 20);
}

#[test]
fn shards_are_merged() {
    let bench = Workbench::new();
    study(&bench, "x.toml", TWENTY);
    bench.baton("sweep x.toml --out results").ok();
    bench
        .baton("sweep x.toml --out a --shard 1/2")
        .ok()
        .says(&["10 of 20 runs done", "when all runs are done"]);
    bench.baton("sweep x.toml --out b --shard 2/2").ok();
    bench
        .baton("sweep merge a b --out c")
        .ok()
        .says(&["b: 10 runs are new", "x: 20 of 20 runs done"]);
    for table in ["x.csv", "x.parts.csv", "x.series.csv"] {
        assert_eq!(
            bench.read(&format!("c/{table}")),
            bench.read(&format!("results/{table}"))
        );
    }
    bench
        .baton("sweep merge c --out results")
        .ok()
        .says(&["0 runs are new, 20 were already there"]);
}

#[test]
fn a_difference_in_one_variant_is_found() {
    let bench = Workbench::new();
    let sweep = "[[variants]]\nname = \"slow\"\n[[variants]]\nname = \"free\"\nset.run.cost_models = false\n\
                 [sweep]\nclients.connections = [4, 8, 16]\nseeds = 2\n";
    study(&bench, "x.toml", sweep);
    bench.baton("sweep x.toml --out a --set nic.mips=20").ok();
    bench.baton("sweep x.toml --out b --set nic.mips=40").ok();
    let ran = bench.baton("compare a b --json out.json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let json: serde_json::Value = serde_json::from_str(&bench.read("out.json")).expect("JSON");
    let metrics = json["metrics"].as_array().expect("a list");
    let differs = |variant: &str| {
        let of = |metric: &&serde_json::Value| {
            metric["variant"] == variant && metric["name"] == "request_rate_per_s"
        };
        metrics.iter().find(of).expect("the rate")["differs"] == true
    };
    assert!(differs("slow") && !differs("free"), "{}", ran.stdout);
}

#[test]
fn metrics_that_differ_are_distinguished_from_others() {
    let bench = Workbench::new();
    let sweep = "[sweep]\nclients.connections = [4, 8, 16]\nseeds = 2\n";
    study(&bench, "x.toml", sweep);
    bench.baton("sweep x.toml --out a").ok();
    bench.baton("sweep x.toml --out b").ok();
    bench.baton("compare a b").ok().says(&[
        "6 pairs of runs",
        "metrics without a significant difference",
    ]);
    bench
        .baton("sweep x.toml --out c --set host.clock_mhz=100")
        .ok();
    let ran = bench.baton("compare a c/x.csv --json out.json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.says(&["host.clock_mhz", "not set", "100", "request_rate_per_s"]);
    assert!(ran.stderr.contains("metrics differ"), "{ran:?}");
    let json: serde_json::Value = serde_json::from_str(&bench.read("out.json")).expect("JSON");
    let metrics = json["metrics"].as_array().expect("a list");
    let rate = metrics
        .iter()
        .find(|metric| metric["name"] == "request_rate_per_s")
        .expect("the rate");
    assert!(
        rate["difference_percent"]["mean"]
            .as_f64()
            .expect("a number")
            < -20.0,
        "{rate}"
    );
    assert!(rate["p_value"].as_f64().expect("a number") < 0.05, "{rate}");
    assert_eq!(json["configuration"][0]["path"], "host.clock_mhz");
    // One folder has two studies, one of which has no run in common with the other folder.
    study(&bench, "y.toml", &sweep.replace("[4, 8, 16]", "[5]"));
    bench.baton("sweep y.toml --out b").ok();
    bench
        .baton("compare a b")
        .refused(&["has several studies: x, y", "FOLDER/STUDY"]);
    bench
        .baton("compare a b/z")
        .refused(&["no such study; there are x, y"]);
    bench.baton("compare a b/y").refused(&["no runs in common"]);
    bench
        .baton("compare nosuch a")
        .refused(&["nosuch: has no results of `baton sweep`"]);
}

#[cfg(unix)]
mod ends {
    use super::*;
    use baton_testkit::process::{signal, until};

    /// A study of 96 runs.
    const HUNDRED: &str = "[sweep]\nnic.mips = { from = 100, to = 2000, step = 20 }\n";

    #[test]
    fn ctrl_c_keeps_the_runs_that_are_done() {
        let bench = Workbench::new();
        study(&bench, "x.toml", HUNDRED);
        let child = start(&bench, "sweep x.toml --out results --threads 1");
        until("some results", || kept(&bench) > 3);
        signal(&child, "INT");
        let ran = ended(child);
        let done = kept(&bench);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(
            ran.stderr.contains(&format!(
                "interrupted; {done} of 96 runs are kept in results"
            )),
            "{ran:?}"
        );
        for left in ["leases", "parts", "workers"] {
            let left = std::fs::read_dir(bench.path("results").join(left)).expect("a folder");
            assert_eq!(left.count(), 0);
        }
        bench
            .baton("sweep x.toml --out results")
            .ok()
            .says(&[&format!("96 of 96 runs done, {} of them now", 96 - done)]);
    }

    #[test]
    fn no_run_is_lost_or_done_twice_when_a_process_is_killed() {
        let bench = Workbench::new();
        study(&bench, "x.toml", HUNDRED);
        let mut before = 0;
        for more in [1, 10, 20] {
            let mut child = start(&bench, "sweep x.toml --out results");
            until("more results", || kept(&bench) >= before + more);
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
            assert!(kept(&bench) >= before + more, "stored results are not lost");
            before = kept(&bench);
        }
        bench.baton("sweep status results").ok().says(&["died"]);
        let rest = format!("96 of 96 runs done, {} of them now", 96 - before);
        bench
            .baton("sweep x.toml --out results")
            .ok()
            .says(&[&rest]);
        bench.baton("sweep x.toml --out undisturbed").ok();
        let parquet = cfg!(feature = "parquet").then_some("x.parquet");
        for table in ["x.csv", "x.parts.csv", "x.series.csv"]
            .into_iter()
            .chain(parquet)
        {
            let read =
                |folder: &str| std::fs::read(bench.path(folder).join(table)).expect("a table");
            assert!(read("results") == read("undisturbed"), "{table}");
        }
        bench
            .baton("sweep gc results")
            .ok()
            .says(&["removed: 0 runs"]);
        for left in ["leases", "parts", "workers"] {
            let left = std::fs::read_dir(bench.path("results").join(left)).expect("a folder");
            assert_eq!(left.count(), 0);
        }
    }
}

#[test]
fn a_figure_has_the_requested_size_and_a_file_with_its_data() {
    let bench = Workbench::new();
    let figure = "[figure]\nx = \"nic.mips\"\ny = [\"request_rate_per_s\", \"response_mean_ms\"]\n";
    study(&bench, "x.toml", &format!("{TWENTY}{figure}"));
    let drawn = |line: &str| {
        bench.run(
            &[
                &["sweep", "x.toml", "--out", "results"],
                line.split('|').collect::<Vec<_>>().as_slice(),
            ]
            .concat(),
        )
    };
    drawn("--quiet").ok().says(&[
        "results/x.svg",
        "results/x.figure.csv",
        "results/x.figure.vl.json",
    ]);
    let svg = bench.read("results/x.svg");
    for words in [
        "request rate, 1/s",
        "response mean, ms",
        "nic.mips, MIPS",
        "\n400\n",
        "\n1,000\n",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    let (paper, first) = match cfg!(feature = "print") {
        true => ("paper.pdf", "%PDF-"),
        false => {
            drawn("--figure|paper.pdf").refused(&["--figure paper.pdf", "`print`", ".svg"]);
            ("paper.svg", "<svg")
        }
    };
    let line = format!("--figure|{paper}|--size|84mm x 60mm");
    drawn(&line).ok().says(&[paper]);
    let page = std::fs::read(bench.path(paper)).expect("a page");
    assert!(page.starts_with(first.as_bytes()));
    // Two metrics of ten points, each the mean of two seeds.
    let data = bench.read("paper.figure.csv");
    assert_eq!(data.lines().count(), 1 + 20, "{data}");
    assert_eq!(
        data,
        bench.read("results/x.figure.csv"),
        "it does not depend on the size"
    );
    let specification: serde_json::Value =
        serde_json::from_str(&bench.read("paper.figure.vl.json")).expect("JSON");
    assert_eq!(specification["vconcat"].as_array().map(Vec::len), Some(2));
    drawn("--figure|x.svg|--size|1mm x 1mm").refused(&["--size 1mm x 1mm", "25.4 mm"]);
    drawn("--figure|x.svg|--size|wide").refused(&["84mm x 60mm"]);
    study(&bench, "x.toml", TWENTY);
    drawn("--figure|x.svg").refused(&["--figure x.svg", "no table [figure]"]);
    assert!(
        !bench
            .files()
            .iter()
            .any(|name| name == "x.svg" || name.contains("x.figure"))
    );
}
