//! Microbenchmarks of NICs: what they print, and what they refuse.

use crate::common::Workbench;
use serde_json::Value;

fn json(bench: &Workbench, name: &str) -> Value {
    serde_json::from_str(&bench.read(name)).expect("JSON")
}

#[test]
fn one_nic_is_measured() {
    let bench = Workbench::new();
    let tests = "--test udp-send-1472 --test udp-receive-1472 --rfc2544 --json out.json";
    let printed = bench
        .baton(&format!("bench nic nic-3com {tests}"))
        .ok()
        .stdout;
    for word in [
        "udp-receive-1472",
        "DMA start",
        "receive FIFO",
        "back-to-back",
    ] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    let found = json(&bench, "out.json");
    assert_eq!(found["nic"]["name"], "3Com");
    let [send, receive] = [0, 1].map(|test| {
        found["tests"][test]["search"]["best"]
            .as_f64()
            .expect("a number")
    });
    assert!(send > 950.0 && receive < 860.0, "{send} and {receive}");
    let trials = found["tests"][1]["search"]["trials"]
        .as_array()
        .expect("trials");
    assert!(trials.len() > 2, "all trials are there");
    assert!(
        found["tests"][1]["rfc2544"]["back_to_back"]
            .as_u64()
            .expect("frames")
            > 10
    );
}

#[test]
fn the_report_is_reproduced() {
    let bench = Workbench::new();
    let printed = bench
        .baton("reproduce nic-microbench --packets 400 --json out.json --figure out.svg")
        .ok()
        .stdout;
    for word in ["Figure 11", "Best partners", "C14"] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    let rows = json(&bench, "out.json");
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 96 + 14, "bars and statements");
    let row = rows
        .iter()
        .find(|row| row["metric"] == "figure_6_tcp_send_mbps" && row["config"] == "Intel Server");
    let value = row.expect("a bar")["simulated"].as_f64().expect("a number");
    assert!((900.0..965.0).contains(&value), "{value}");
    assert!(bench.read("out.svg").contains("Fig. 10"));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let bench = Workbench::new();
    bench
        .baton("bench nic nic-4com")
        .refused(&["NIC nic-4com", "nic-3com", "ideal"]);
    bench
        .baton("bench nic nic-3com --partner x.toml")
        .refused(&["--partner x.toml"]);
    bench
        .baton("bench nic nic-3com --host pentium")
        .refused(&["--host pentium", "athlon-2000"]);
    bench
        .baton("bench nic nic-3com --test udp")
        .refused(&["udp-send-18"]);
    let wrong = include_str!("../../../../profiles/nics/nic-3com.toml")
        .replace("engines = 2", "engines = 5");
    bench.write("wrong.toml", &wrong);
    bench
        .baton("bench nic wrong.toml --json out.json")
        .refused(&["wrong.toml", "processor.engines = 5", "1 or 2"]);
    bench
        .baton("reproduce nic-microbench --log x.log")
        .refused(&["--log", "nic-microbench"]);
    bench
        .baton("reproduce nic-microbench --study all")
        .refused(&["--study"]);
    assert_eq!(bench.files(), ["wrong.toml"], "nothing is left behind");
}

/// Names of interfaces and of profiles are told apart by the partner. None of this needs root, or any interface but loopback.
#[cfg(live)]
#[test]
fn interfaces_and_profiles_are_told_apart() {
    let bench = Workbench::new();
    let refused = |line: &str, parts: &[&str]| bench.baton(line).refused(parts);
    refused("bench nic lo", &["lo is an interface", "--partner"]);
    refused(
        "bench nic nic-3com --partner lo",
        &["there is no interface nic-3com"],
    );
    refused(
        "bench nic lo --partner nic-3com",
        &["--partner nic-3com: a profile cannot be the partner of the interface lo"],
    );
    refused(
        "bench nic lo --partner baton-none",
        &["--partner baton-none: no such profile, file or interface"],
    );
    refused(
        "bench nic nic-3com --csv out.csv",
        &["--csv is for interfaces", "nic-3com is simulated"],
    );
    refused(
        "bench nic lo --partner lo --rate 1000 --test tcp-send",
        &["--rate: tcp-send varies the number of connections"],
    );
    refused(
        "bench nic lo --partner lo",
        &["lo cannot be its own partner"],
    );
    refused(
        "bench nic nic-3com --gateway 03:00:00:00:00:01",
        &["--gateway", "Ethernet address of one interface"],
    );
    bench.write("lo", "a file");
    refused(
        "bench nic lo --partner 02:00:00:00:00:01",
        &["both an interface lo and a profile lo"],
    );
    refused(
        "bench nic nic-3com --partner lo",
        &["both an interface lo and a profile lo"],
    );
    assert_eq!(bench.files(), ["lo"], "nothing is left behind");
}
