//! Access logs in all formats, for every command that reads one; packet captures; and warnings about doubtful logs.

use crate::common::{Workbench, root};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// Returns a folder with a generated log, `demo.log`.
fn bench() -> Workbench {
    let bench = Workbench::new();
    bench
        .baton("generate demo --requests 600 --out demo.log")
        .ok();
    bench
}

/// Writes a copy of `demo.log` in which `line` has rewritten each line.
fn rewritten(bench: &Workbench, name: &str, line: impl Fn(usize, &str) -> String) {
    let lines = bench.read("demo.log");
    let lines = lines.lines().enumerate();
    let text: String = lines.map(|(i, text)| line(i, text) + "\n").collect();
    bench.write(name, &text);
}

/// Returns client, time (which is in brackets), URL, status and size from a line.
fn parts(line: &str) -> [&str; 5] {
    let words: Vec<&str> = line.split(' ').collect();
    let time = line.split(['[', ']']).nth(1).expect("a time");
    [words[0], time, words[6], words[8], words[9]]
}

#[test]
fn a_log_gives_the_same_results_in_every_format() {
    let bench = bench();
    rewritten(&bench, "vhost.log", |_, line| {
        format!("www.example.com:80 {line} \"-\" \"agent\"")
    });
    rewritten(&bench, "json.log", |_, line| {
        let [client, time, url, status, bytes] = parts(line);
        format!(
            r#"{{"who":"{client}","time_local":"{time}","request":"GET {url} HTTP/1.1","status":{status},"body_bytes_sent":"{bytes}"}}"#
        )
    });
    rewritten(&bench, "spelled.log", |_, line| {
        let [client, time, url, status, bytes] = parts(line);
        format!("{status} {bytes} <{time}> {client} GET {url}")
    });
    let analysis = |arguments: &[&str]| {
        let ran = bench.run(&[&["trace", "--json", "-"], arguments].concat());
        let json: Value = serde_json::from_str(&ran.ok().stdout).expect("JSON");
        (json["totals"].clone(), json["connections"].clone())
    };
    let original = analysis(&["demo.log"]);
    assert_eq!(analysis(&["vhost.log"]), original);
    assert_eq!(
        analysis(&["json.log", "--format", "json:client=who"]),
        original
    );
    let spelled = "%>s %b <%{%d/%b/%Y:%T %z}t> %h %m %U%q";
    assert_eq!(analysis(&["spelled.log", "--format", spelled]), original);
}

#[test]
fn every_command_that_takes_a_log_takes_its_format() {
    let bench = bench();
    rewritten(&bench, "x.log", |_, line| {
        let [client, time, url, _, bytes] = parts(line);
        format!("{client} {time}|{url}|{bytes}")
    });
    let format = ["--format", "%h %{%d/%b/%Y:%T %z}t|%U|%b"];
    bench
        .run(
            &[
                &["trace", "locality", "x.log", "--sizes", "1M"],
                &format[..],
            ]
            .concat(),
        )
        .ok();
    bench
        .run(
            &[
                &["generate", "--fit", "x.log", "--out", "fit.log"],
                &format[..],
            ]
            .concat(),
        )
        .ok();
    bench
        .run_short(
            "W-0-N-N-FCFS-400",
            &[&["--log", "x.log"], &format[..]].concat(),
        )
        .ok()
        .says(&["workload: format", "log-format"]);
    let short = ["--warmup", "500", "--packets", "500", "--log", "x.log"];
    bench
        .run(&[&["reproduce", "handoff-table1"], &short[..], &format[..]].concat())
        .ok()
        .says(&["Connection lifetimes in x.log"]);
    let few = ["--seconds", "0", "--set", "run.measured_packets=4000"];
    bench
        .run(&[&["advise", "--log", "x.log"], &few[..], &format[..]].concat())
        .ok()
        .says(&["The log x.log (log-format) has 600 requests"]);
    bench.write(
        "x.toml",
        &format!(
            "profile = \"defaults\"\n[workload]\nkind = \"log\"\npath = \"x.log\"\nformat = '{}'\n[clients]\nconnections = 16\n",
            format[1]
        ),
    );
    bench.run_short("x.toml", &[]).ok();
    // The printed configuration can be run again.
    let printed = bench.baton("run x.toml --print-config").ok().stdout;
    bench.write("again.toml", &printed);
    bench.run_short("again.toml", &[]).ok();
    bench.write(
        "y.toml",
        "profile = \"defaults\"\n[workload]\nkind = \"log\"\npath = \"x.log\"\nformat = \"comon\"\n",
    );
    bench
        .run_short("y.toml", &[])
        .refused(&["y.toml:", "\"comon\" is not a format; expected one of"]);
    bench
        .baton("trace x.log --format comon")
        .refused(&["--format", "\"comon\" is not a format"]);
}

#[test]
fn standard_input_is_read_once_for_all_runs() {
    let bench = bench();
    let log = bench.read("demo.log");
    let piped = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin
            .write_all(log.as_bytes())
            .expect("the program reads it");
        drop(stdin);
        let output = child.wait_with_output().expect("the program ends");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert!(piped(&["trace", "-"]).contains("requests               600"));
    let run = |log: &str| {
        let arguments = [
            "run",
            "W-0-N-N-FCFS-400",
            "--log",
            log,
            "--warmup",
            "500",
            "--packets",
            "500",
            "--seeds",
            "2",
        ];
        match log {
            "-" => piped(&arguments),
            _ => bench.run(&arguments).ok().stdout,
        }
    };
    assert_eq!(
        run("-").replace("-\n", "\n"),
        run("demo.log").replace("demo.log\n", "\n")
    );
}

#[test]
fn doubtful_logs_give_warnings() {
    let bench = bench();
    rewritten(&bench, "proxy.log", |i, line| match i {
        0..20 => format!("junk {i}"),
        _ => line.replacen(parts(line)[0], "10.0.0.1", 1),
    });
    let warnings = [
        "WARNING: one client, 10.0.0.1, has 100.0 % of the requests",
        "WARNING: 3.3 % of the log is left out: 20 of 600 lines skipped: 20 no time",
        "(as line 1: \"junk 0\")",
    ];
    let whole = |text: &str| text.replace("\n  ", " ");
    let traced = bench.baton("trace proxy.log").ok();
    let ran = bench
        .run_short("W-0-N-N-FCFS-400", &["--log", "proxy.log", "--seeds", "2"])
        .ok();
    let fitted = bench.baton("generate --fit proxy.log --out fit.log").ok();
    for warning in warnings {
        assert!(whole(&traced.stdout).contains(warning), "{traced:?}");
        assert_eq!(whole(&ran.stderr).matches(warning).count(), 1, "{ran:?}");
        assert!(whole(&fitted.stderr).contains(warning), "{fitted:?}");
    }
    rewritten(&bench, "forwarded.log", |i, line| {
        let line = line.replacen(parts(line)[0], "10.0.0.1", 1);
        format!("{line} \"-\" \"agent\" \"203.0.113.{}, 10.0.0.2\"", i % 200)
    });
    let traced = bench.baton("trace forwarded.log").ok();
    traced.says(&["200; for 600 requests, the client is taken from X-Forwarded-For"]);
    assert!(!traced.stdout.contains("WARNING"));
}

#[test]
fn a_log_whose_clients_are_unknown_gives_a_verdict_only_on_request() {
    let bench = bench();
    rewritten(&bench, "proxy.log", |_, line| {
        line.replacen(parts(line)[0], "10.0.0.1", 1)
    });
    let advise = "advise --log proxy.log --seconds 0 --set run.measured_packets=4000 --set run.warmup_packets=1000";
    let refusal = [
        "proxy.log: its clients cannot be identified",
        "one client, 10.0.0.1, has 100.0 % of the requests",
        "--clients unknown",
    ];
    bench.baton(advise).refused(&refusal);
    let advised = bench.baton(&format!("{advise} --clients unknown")).ok();
    advised.says(&["Verdict", "Who its clients are is unknown"]);
}

#[test]
fn lines_of_containers_are_read_and_other_text_in_front_is_refused() {
    let bench = bench();
    let original = bench.baton("trace demo.log --json -").ok().stdout;
    let totals = |text: &str| {
        let json: Value = serde_json::from_str(text).expect("JSON");
        let totals = &json["totals"];
        (
            totals["clients"].clone(),
            totals["content_bytes"].clone(),
            totals["unwrapped"].clone(),
        )
    };
    rewritten(&bench, "web.log", |_, line| format!("web_1  | {line}"));
    let (clients, bytes, _) = totals(&original);
    let wrapped = bench.baton("trace web.log --json -").ok().stdout;
    assert_eq!(totals(&wrapped), (clients, bytes, 600.into()));
    bench.baton("trace web.log").ok().says(&[
        "taken out of",
        "syslog, container or service logs, or quotes: 600",
    ]);
    rewritten(&bench, "other.log", |_, line| {
        format!("web-6d4 INFO {line}")
    });
    bench.baton("trace other.log").refused(&[
        "is in no known access log format",
        "--format '$_ $_ $remote_addr",
    ]);
}

#[test]
fn responses_that_cannot_be_replayed_are_named() {
    let bench = bench();
    rewritten(&bench, "giants.log", |_, line| {
        let (line, _) = line.rsplit_once(' ').expect("a size");
        format!("{line} 4700000000")
    });
    bench
        .run_short("W-0-N-N-FCFS-400", &["--log", "giants.log"])
        .refused(&["responses of 2 GiB or more are not replayed"]);
}

#[test]
fn a_log_that_is_mostly_skipped_is_refused_unless_that_is_allowed() {
    let bench = bench();
    rewritten(&bench, "junk.log", |i, line| match i {
        0..280 => line.to_owned(),
        _ => "junk".to_owned(),
    });
    let run = |more: &[&str]| {
        let arguments = [&["--log", "junk.log"], more].concat();
        bench.run_short("W-0-N-N-FCFS-400", &arguments)
    };
    let refusal = [
        "over half of the log",
        "320 of 600 lines",
        "--allow-skipped",
    ];
    bench.baton("trace junk.log").refused(&refusal);
    run(&[]).refused(&refusal);
    bench.baton("trace junk.log --allow-skipped").ok();
    run(&["--allow-skipped"]).ok();
    run(&["--set", "workload.allow_skipped=true"]).ok();
}

#[test]
fn a_file_that_is_not_a_log_is_named_and_not_printed() {
    let bench = bench();
    let file = |name: &str, bytes: &[u8]| fs::write(bench.path(name), bytes).expect("a file");
    file("x.zip", b"PK\x03\x04\x14\x00\x08\x00");
    file("x.bin", &(0..=255).collect::<Vec<u8>>());
    file("x.esc", b"\x1b[31mred\n");
    bench
        .baton("trace x.zip")
        .refused(&["x.zip: is a zip archive, which cannot be read; unpack it first"]);
    bench
        .baton("trace x.bin")
        .refused(&["x.bin: is a binary file"]);
    bench.baton("trace x.esc").refused(&[r"\u{1b}[31mred"]);
    bench
        .baton("trace lifetimes demo.log")
        .refused(&["demo.log: is not a packet capture; expected pcap, pcapng or ERF"]);
}

#[test]
fn a_capture_of_the_simulator_contains_its_connections() {
    let bench = Workbench::new();
    bench.write("x.toml", crate::common::FIXED);
    bench.run_short("x.toml", &["--pcap", "x.pcapng"]).ok();
    bench
        .baton("trace x.pcapng")
        .refused(&["is a packet capture", "`baton trace lifetimes` reads it"]);
    let ran = bench.baton("trace lifetimes x.pcapng --json -").ok();
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let connections = &json["connections"];
    assert!(connections["whole"].as_u64() > Some(16), "{connections}");
    assert_eq!(connections["one_way"], 0);
    // Each connection has three responses of 4000 bytes, with headers.
    let bytes = json["server_bytes"]["max"].as_u64().expect("a number");
    assert!((12_000..13_500).contains(&bytes), "{bytes}");
}

/// `samples/README.md` has the command.
#[test]
fn the_sample_log_is_the_output_of_its_command() {
    let readme = fs::read_to_string(root().join("samples/README.md")).expect("a file");
    let command = readme
        .lines()
        .find_map(|line| line.trim().strip_prefix("baton generate "))
        .expect("the command");
    let bench = Workbench::new();
    let command = format!("generate {}", command.replace("samples/", ""));
    bench.baton(&command).ok();
    let sample = fs::read(root().join("samples/access.log")).expect("a file");
    assert!(sample.len() < 250_000);
    assert!(bench.read("access.log").as_bytes() == sample, "{command}");
}

#[cfg(unix)]
mod interrupted {
    use super::*;
    use baton_testkit::process::{signal, until};

    /// A command that waits for input must react to an interrupt, even if no input ever arrives.
    #[test]
    fn commands_can_be_interrupted_while_they_read() {
        for command in [
            &["trace", "-"][..],
            &["trace", "locality", "-"],
            &["trace", "lifetimes", "-"],
            &["run", "W-0-N-N-FCFS-400", "--log", "-"],
            &["generate", "--fit", "-", "--out", "out.log"],
        ] {
            let bench = Workbench::new();
            let json = if command[0] == "generate" {
                &[][..]
            } else {
                &["--json", "out.json"]
            };
            let mut process = bench.command(&[command, json].concat());
            let child = process
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            let mut child = child.expect("the program starts");
            // The command creates its output file before it reads.
            until("an output file", || !bench.files().is_empty());
            signal(&child, "INT");
            // Keep the pipe open: `wait_with_output` would close it.
            let stdin = child.stdin.take();
            let output = child.wait_with_output().expect("the program ends");
            drop(stdin);
            assert_eq!(output.status.code(), Some(130), "{command:?}: {output:?}");
            assert_eq!(bench.files(), Vec::<String>::new(), "{command:?}");
        }
    }
}
