//! Microbenchmarks of NICs: their output, and the input that they refuse.

use crate::common::Workbench;
use serde_json::Value;

#[test]
fn the_report_is_reproduced() {
    let bench = Workbench::new();
    let printed = bench
        .baton("reproduce nic-microbench --packets 150 --json out.json --figure out.svg")
        .ok()
        .stdout;
    for word in ["Figure 11", "Best partners", "C14"] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    let rows = bench.json("out.json");
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 96 + 14, "bars and statements");
    let row = rows
        .iter()
        .find(|row| row["metric"] == "figure_6_tcp_send_mbps" && row["config"] == "Intel Server");
    let value = row.expect("a bar")["simulated"].as_f64().expect("a number");
    assert!((900.0..965.0).contains(&value), "{value}");
    assert!(bench.read("out.svg").contains("Fig. 10"));
}

/// Returns a capture of packets of one length that one host sends to others.
fn capture(packets: u8, len: u16) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.extend_from_slice(&[0; 8]);
    file.extend_from_slice(&65_535_u32.to_le_bytes());
    // The link type: raw IP.
    file.extend_from_slice(&101_u32.to_le_bytes());
    for number in 0..packets {
        for word in [1, 0, 20, u32::from(len)] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        let [high, low] = len.to_be_bytes();
        file.extend_from_slice(&[0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
        file.extend_from_slice(&[11, 0, 0, 1, 12, 0, number, 1]);
    }
    file
}

#[test]
fn applications_are_predicted() {
    let bench = Workbench::new();
    std::fs::write(bench.path("some.pcap"), capture(50, 1_000)).expect("a file");
    bench.write("access.log", include_str!("../../../../samples/access.log"));
    let own = "--trace some.pcap --log access.log";
    let printed = bench
        .baton(&format!(
            "reproduce nic-applications --packets 150 {own} --json out.json --figure out.svg"
        ))
        .ok()
        .stdout;
    for word in ["access.log", "some.pcap", "polling", "C17", "predictions"] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    assert!(
        !printed.contains("CS stand-in"),
        "only the user's trace is used: {printed}"
    );
    let rows = bench.json("out.json");
    let value = |config: &str, metric: &str| {
        let rows = rows.as_array().expect("rows");
        let row = rows
            .iter()
            .find(|row| row["config"] == config && row["metric"] == metric);
        row.map(|row| row["simulated"].as_f64().expect("a number"))
    };
    let mbps = value("ACE, access.log", "figure_1_content_mbps").expect("a value");
    assert!((100.0..949.0).contains(&mbps), "{mbps}");
    let kpps = |nic: &str| value(&format!("{nic}, some.pcap, polling"), "figure_3_kpps");
    assert!(kpps("Intel Server") > kpps("Intel Desktop"), "a wider bus");
    assert_eq!(kpps("Netgear"), None, "this NIC is not used in the router");
    let drawn = bench.read("out.svg");
    assert!(drawn.contains("web server, Mb/s") && drawn.contains("4 Netgear"));
}

#[test]
fn correlations_are_printed_with_the_number_of_nics() {
    let bench = Workbench::new();
    std::fs::write(bench.path("some.pcap"), capture(50, 100)).expect("a file");
    bench.write("access.log", include_str!("../../../../samples/access.log"));
    let printed = bench
        .baton("reproduce nic-correlation --packets 100 --trace some.pcap --log access.log --json out.json")
        .ok()
        .stdout;
    for word in ["n = 6", "n = 5", "UDP both ways, 18 bytes", "mean of the"] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    let rows = bench.json("out.json");
    let rows = rows.as_array().expect("rows");
    let of = |metric: &str| -> Vec<f64> {
        let such = rows.iter().filter(|row| row["metric"] == metric);
        such.filter_map(|row| row["simulated"].as_f64()).collect()
    };
    assert_eq!(of("n").len(), 30, "ten microbenchmarks, three workloads");
    let flat = "Fig. 6 UDP send, 1472 bytes; access.log";
    let is_flat = |row: &&Value| row["config"] == flat && row["metric"] == "pearson_r";
    assert_eq!(
        rows.iter().find(is_flat),
        None,
        "equal values have no correlation"
    );
    let coefficients = of("pearson_r");
    assert!(coefficients.len() > 10);
    assert!(coefficients.iter().all(|r| (-1.0..=1.0).contains(r)));
    assert_eq!(of("predicted_with_one_coefficient").len(), 6 + 5 + 5);
}

#[test]
fn an_impossible_nic_is_refused_with_the_place() {
    let bench = Workbench::new();
    let wrong = include_str!("../../../../profiles/nics/nic-3com.toml")
        .replace("engines = 2", "engines = 5");
    bench.write("wrong.toml", &wrong);
    bench
        .baton("bench nic wrong.toml --json out.json")
        .refused(&[
            "wrong.toml:25:11: nic.hardware.processor.engines: found 5",
            "from 1 to 2",
        ]);
    assert_eq!(bench.files(), ["wrong.toml"], "nothing is left behind");
}
