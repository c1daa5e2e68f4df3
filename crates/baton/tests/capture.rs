//! Reads captures of the simulator with a packet tool.

mod common;

use baton_testkit::needs::{self, Need};
use common::{FIXED, Workbench};
use libtest_mimic::Arguments;
use std::collections::BTreeSet;
use std::process::Command;

const ALL: &[(&str, fn())] = baton_testkit::tests![
    tshark_finds_nothing_wrong_with_a_capture,
    tshark_reassembles_requests_and_responses,
    the_capture_of_a_client_has_its_frames_only,
];

fn main() {
    needs::run(&Arguments::from_args(), Need::Program("tshark"), ALL);
}

/// Returns what tshark prints about `out.pcapng` with these arguments. It also validates checksums.
fn tshark(bench: &Workbench, arguments: &[&str]) -> String {
    let output = Command::new("tshark")
        .args(["-r", "out.pcapng"])
        .args(["-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "ip.check_checksum:TRUE"])
        .args(arguments)
        .current_dir(bench.path("."))
        .output()
        .expect("tshark starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the number of frames that match a display filter.
fn frames(bench: &Workbench, filter: &str) -> usize {
    tshark(bench, &["-Y", filter]).lines().count()
}

/// Runs an experiment in which every connection is handed off, and captures `link`.
fn captured(link: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let flags = ["--pcap", "out.pcapng", "--pcap-link", link];
    bench.run_short("x.toml", &flags).ok();
    bench
}

fn tshark_finds_nothing_wrong_with_a_capture() {
    let bench = captured("server");
    let all = frames(&bench, "frame");
    assert_eq!(all, 3000, "warm-up and measured packets, one frame each");
    assert_eq!(
        frames(
            &bench,
            "ip.checksum.status == 1 && tcp.checksum.status == 1"
        ),
        all,
        "all checksums are right"
    );
    let wrong = "_ws.malformed || tcp.analysis.flags || _ws.expert.severity == error";
    assert_eq!(frames(&bench, wrong), 0);
}

fn tshark_reassembles_requests_and_responses() {
    let bench = captured("server");
    let requests = frames(&bench, "http.request.method == GET");
    let filter = "http.response.code == 200 && http.content_length == 4000";
    let responses = frames(&bench, filter);
    assert!(responses > 300, "{responses} responses");
    assert!(
        (responses..=responses + 16).contains(&requests),
        "{requests} requests, {responses} responses: each of 16 clients waits for at most one"
    );
    let stream = tshark(&bench, &["-q", "-z", "follow,tcp,ascii,0"]);
    assert_eq!(stream.matches("GET /file/0?bytes=4000 HTTP/1.1").count(), 3);
    assert_eq!(stream.matches("HTTP/1.1 200 OK").count(), 3);
}

fn the_capture_of_a_client_has_its_frames_only() {
    let bench = captured("client:3");
    let fields = ["-T", "fields", "-e", "ip.src", "-e", "ip.dst"];
    let text = tshark(&bench, &fields);
    let pairs: BTreeSet<&str> = text.lines().collect();
    assert_eq!(
        pairs.into_iter().collect::<Vec<_>>(),
        ["10.0.0.1\t10.1.0.4", "10.1.0.4\t10.0.0.1"]
    );
}
