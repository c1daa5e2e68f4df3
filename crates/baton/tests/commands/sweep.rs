//! Studies: each run is simulated exactly once, even if processes are interrupted or killed. `dialogues/sweep.dialogue`
//! has more.

use crate::common::{FIXED, Ran, Workbench};
use std::process::{Child, Stdio};

/// Writes a study with this table `[sweep]`, in short runs.
fn study(bench: &Workbench, name: &str, sweep: &str) {
    let text = format!("{FIXED}[run]\nwarmup_packets = 100\nmeasured_packets = 200\n{sweep}");
    bench.write(name, &text);
}

/// A study of 20 runs.
const TWENTY: &str = "[sweep]\nnic.mips = { from = 100, to = 1000, step = 100 }\nseeds = 2\n";

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
fn current_tables_are_not_written_again() {
    let bench = Workbench::new();
    study(&bench, "x.toml", TWENTY);
    let written = || {
        bench.baton("sweep x.toml --out results").ok();
        let file = std::fs::metadata(bench.path("results/x.csv"));
        file.and_then(|file| file.modified()).expect("a file")
    };
    assert_eq!(written(), written());
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
fn a_page_for_print_needs_the_feature() {
    let bench = Workbench::new();
    let figure = "[figure]\nx = \"nic.mips\"\ny = [\"request_rate_per_s\"]\n";
    study(&bench, "x.toml", &format!("{TWENTY}{figure}"));
    let ran = bench.baton("sweep x.toml --out results --figure paper.pdf");
    if cfg!(feature = "print") {
        ran.ok();
        let page = std::fs::read(bench.path("paper.pdf")).expect("a page");
        assert!(page.starts_with(b"%PDF-"));
    } else {
        ran.refused(&["--figure paper.pdf", "`print`", ".svg"]);
    }
}
