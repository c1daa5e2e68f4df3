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

/// A name, and a function of a number.
type Named<T> = (&'static str, fn(u32) -> T);

/// Sizes of the nth response, bytes.
const SIZES: [Named<u64>; 6] = [
    ("of 1 KB", |_| 1000),
    ("of 64 KB", |_| 64_000),
    ("with a Pareto tail of index 1.2", |n| {
        let share = f64::from(n * 37 % 1000 + 1) / 1000.0;
        (2e4 * share.powf(-1.0 / 1.2)) as u64
    }),
    ("with a Pareto tail of index 1.05", |n| {
        let share = f64::from(n * 37 % 1000 + 1) / 1000.0;
        (500.0 * share.powf(-1.0 / 1.05)) as u64
    }),
    ("of 300 B or, rarely, 1 MB", |n| {
        if n % 200 == 7 { 1_000_000 } else { 300 }
    }),
    ("of 4 KB or without content", |n| u64::from(n % 2) * 4000),
];

/// Seconds at which the nth request comes.
const TIMES: [Named<u32>; 4] = [
    ("steadily", |n| n / 2),
    ("in bursts", |n| n / 400 * 600 + n % 400 / 200),
    ("rarely", |n| n * 20),
    ("at once", |_| 0),
];

/// A log to generate.
struct Shape {
    requests: u32,
    clients: u32,
    objects: u32,
    sizes: usize,
    times: usize,
}

impl Shape {
    /// Returns the nth of many shapes, which differ in all their parts.
    fn nth(n: usize) -> Self {
        Self {
            requests: [600, 1500, 3000][n % 3],
            clients: [10, 40, 250][n / 2 % 3],
            objects: [1, 30, 1000][n / 3 % 3],
            sizes: n % SIZES.len(),
            times: n / 2 % TIMES.len(),
        }
    }

    fn name(&self) -> String {
        let (sizes, times) = (SIZES[self.sizes].0, TIMES[self.times].0);
        format!(
            "{} requests of {} clients for {} objects, {sizes}, {times}",
            self.requests, self.clients, self.objects
        )
    }

    fn log(&self) -> String {
        let line = |n: u32| {
            let (client, object) = (n / 2 % self.clients, n * 37 % self.objects);
            let at = TIMES[self.times].1(n);
            let (day, hour, minute, second) =
                (1 + at / 86_400, at / 3600 % 24, at / 60 % 60, at % 60);
            // An object keeps its size, unless there is only one.
            let bytes = SIZES[self.sizes].1(if self.objects == 1 { n } else { object });
            format!(
                "10.0.{}.{} - - [{day:02}/May/1998:{hour:02}:{minute:02}:{second:02} +0000] \"GET /{object} HTTP/1.0\" 200 {bytes}\n",
                client / 200,
                client % 200 + 1
            )
        };
        (0..self.requests).map(line).collect()
    }
}

/// Number of generated logs with a verdict.
const SHAPES: usize = 26;

/// Logs for which `baton advise` refuses a verdict: their shape, a size in place of 1,000 bytes, and part of the message.
const REFUSED: [(Shape, &[u64], &str); 4] = [
    (
        Shape {
            requests: 5,
            clients: 3,
            objects: 2,
            sizes: 0,
            times: 0,
        },
        &[],
        "5 requests from 3 clients are too few",
    ),
    (
        Shape {
            requests: 2000,
            clients: 3,
            objects: 30,
            sizes: 0,
            times: 0,
        },
        &[],
        "from 3 clients are too few",
    ),
    (
        Shape {
            requests: 2000,
            clients: 1,
            objects: 30,
            sizes: 0,
            times: 0,
        },
        &[],
        "one client, 10.0.0.1, has 100.0 % of the requests",
    ),
    (
        Shape {
            requests: 600,
            clients: 40,
            objects: 30,
            sizes: 0,
            times: 0,
        },
        &[700_000_000],
        "a log without the responses above",
    ),
];

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
            bench.write(
                "large.log",
                &Shape {
                    requests: 2000,
                    clients: 250,
                    objects: 1000,
                    sizes: 2,
                    times: 0,
                }
                .log(),
            );
            is_true(&bench, "large.log", &["--set", "wire.rate_mbps=1000"])
        }),
    ];
    trials.extend(PUBLIC.map(public));
    trials.extend((0..SHAPES).map(|n| {
        let shape = Shape::nth(n);
        Trial::test(shape.name(), move || {
            let bench = Workbench::new();
            bench.write("shape.log", &shape.log());
            is_true(
                &bench,
                "shape.log",
                &["--set", "run.measured_packets=10000"],
            )
        })
    }));
    trials.extend(REFUSED.map(|(shape, sizes, why)| {
        Trial::test(format!("refused: {why}"), move || {
            let bench = Workbench::new();
            let log = match sizes {
                [] => shape.log(),
                [bytes, ..] => shape.log().replace(" 1000\n", &format!(" {bytes}\n")),
            };
            bench.write("shape.log", &log);
            bench.run(&["advise", "--log", "shape.log"]).refused(&[why]);
            Ok(())
        })
    }));
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
