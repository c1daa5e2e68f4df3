//! Captures as packet tools see them. Without tshark there is nothing to ask, and the tests that need it pass.

mod common;

use common::{FIXED, Workbench};
use std::collections::BTreeSet;
use std::process::Command;

/// What tshark prints with these arguments about `out.pcapng`, checksums validated; `None` without tshark.
fn tshark(bench: &Workbench, arguments: &[&str]) -> Option<String> {
    let output = Command::new("tshark")
        .args(["-r", "out.pcapng"])
        .args(["-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "ip.check_checksum:TRUE"])
        .args(arguments)
        .current_dir(bench.path("."))
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// How many frames a display filter selects.
fn frames(bench: &Workbench, filter: &str) -> Option<usize> {
    tshark(bench, &["-Y", filter]).map(|text| text.lines().count())
}

/// A run with a handoff of every connection, captured on `link`.
fn captured(link: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let flags = ["--pcap", "out.pcapng", "--pcap-link", link];
    bench.run_short("x.toml", &flags).ok();
    bench
}

#[test]
fn tshark_finds_nothing_wrong_with_a_capture() {
    let bench = captured("server");
    let Some(all) = frames(&bench, "frame") else {
        return;
    };
    assert_eq!(all, 3000, "warm-up and measured packets, one frame each");
    assert_eq!(
        frames(
            &bench,
            "ip.checksum.status == 1 && tcp.checksum.status == 1"
        ),
        Some(all),
        "all checksums are right"
    );
    let wrong = "_ws.malformed || tcp.analysis.flags || _ws.expert.severity == error";
    assert_eq!(frames(&bench, wrong), Some(0));
}

#[test]
fn tshark_reassembles_requests_and_responses() {
    let bench = captured("server");
    let Some(requests) = frames(&bench, "http.request.method == GET") else {
        return;
    };
    let filter = "http.response.code == 200 && http.content_length == 4000";
    let responses = frames(&bench, filter).expect("tshark was there before");
    assert!(responses > 300, "{responses} responses");
    assert!(
        (responses..=responses + 16).contains(&requests),
        "{requests} requests, {responses} responses: at most one is under way for each of 16 clients"
    );
    let stream = tshark(&bench, &["-q", "-z", "follow,tcp,ascii,0"]).expect("tshark");
    assert_eq!(stream.matches("GET /file/0?bytes=4000 HTTP/1.1").count(), 3);
    assert_eq!(stream.matches("HTTP/1.1 200 OK").count(), 3);
}

#[test]
fn the_capture_of_a_client_has_its_frames_only() {
    let bench = captured("client:3");
    let fields = ["-T", "fields", "-e", "ip.src", "-e", "ip.dst"];
    let Some(text) = tshark(&bench, &fields) else {
        return;
    };
    let pairs: BTreeSet<&str> = text.lines().collect();
    assert_eq!(
        pairs.into_iter().collect::<Vec<_>>(),
        ["10.0.0.1\t10.1.0.4", "10.1.0.4\t10.0.0.1"]
    );
}
