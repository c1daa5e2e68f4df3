//! Access logs from standard input, files that are no logs, the sample log, and interrupts. `dialogues/logs.dialogue` has more.

use crate::common::{Workbench, root};
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
