//! The experiments of the data-caching paper: their output, and the input that they refuse.

use crate::common::Workbench;
use serde_json::Value;

/// Returns the rows that `--json` has written.
fn rows(bench: &Workbench, name: &str) -> Vec<Value> {
    let json = bench.json(name);
    json.as_array().expect("rows").clone()
}

/// Flags that make experiments on the simulated server short.
const SHORT: [&str; 4] = ["--warmup", "2000", "--packets", "6000"];

fn reproduce(bench: &Workbench, name: &str, more: &[&str]) -> crate::common::Ran {
    let arguments: Vec<&str> = ["reproduce", name, "--json", "out.json"]
        .iter()
        .chain(&SHORT)
        .chain(more)
        .copied()
        .collect();
    bench.run(&arguments)
}

/// Returns the simulated value of a metric for a configuration.
fn value(rows: &[Value], config: &str, metric: &str) -> f64 {
    let row = rows
        .iter()
        .find(|r| r["config"] == config && r["metric"] == metric);
    let row = row.unwrap_or_else(|| panic!("no {metric} of {config}"));
    row["simulated"].as_f64().expect("a number")
}

#[test]
fn bus_use_is_shown_by_category_next_to_the_published_numbers() {
    let bench = Workbench::new();
    let ran = reproduce(&bench, "dcache-bus", &["--figure", "bus.svg"]).ok();
    ran.says(&["nasa (generated)", "generated logs only"]);
    let rows = rows(&bench, "out.json");
    let drawn = bench.read("bus.figure.csv");
    for log in ["berkeley", "ibm", "nasa", "rice", "worldcup"] {
        let config = format!("{log} (generated)");
        let parts = drawn.lines().filter(|line| line.starts_with(&config));
        let heights = parts.map(|line| line.split(',').nth(2).expect("a height"));
        let sum: f64 = heights
            .map(|height| height.parse::<f64>().expect("a number"))
            .sum();
        let all = value(&rows, &config, "bus_utilisation_percent");
        assert!((sum - all).abs() < 1e-6, "{config}: {sum}, {all}");
    }
    assert!(bench.read("bus.svg").contains("bus overhead"));
}

#[test]
fn traffic_with_caches_is_relative_to_none() {
    let bench = Workbench::new();
    reproduce(&bench, "dcache-traffic", &["--figure", "traffic.svg"]).ok();
    let drawn = bench.read("traffic.figure.csv");
    let bars: Vec<&str> = drawn.lines().skip(1).collect();
    assert_eq!(bars.len(), 5 * 4 * 5, "logs, caches, parts");
    for bar in bars.chunks(5).step_by(4) {
        let heights = bar
            .iter()
            .map(|line| line.rsplit(',').nth(1).expect("a height"));
        let sum: f64 = heights
            .map(|height| height.parse::<f64>().expect("a number"))
            .sum();
        assert!((sum - 100.0).abs() < 1e-9, "{bar:?}");
    }
    let rows = rows(&bench, "out.json");
    let content = |cache: &str| {
        let config = format!("ibm (generated), {cache}");
        value(&rows, &config, "bus_content_ns_per_kb")
    };
    assert!(content("16 MB a NIC") < content("no cache"));
}

#[test]
fn table_1_compares_only_numbers_published_without_a_cache() {
    let bench = Workbench::new();
    let log = bench.path("own.log").display().to_string();
    bench
        .run(&["generate", "demo", "--requests", "5000", "--out", &log])
        .ok();
    let ran = reproduce(&bench, "dcache-table1", &["--log", &log]).ok();
    ran.says(&["own.log"]);
    let rows = rows(&bench, "out.json");
    assert!(
        rows.iter()
            .any(|row| row["config"] == "own.log, 8 MB a NIC")
    );
    for row in rows {
        let config = row["config"].as_str().expect("a name");
        let metric = row["metric"].as_str().expect("a metric");
        let comparable = config.ends_with("(generated), no cache")
            && ["counted_content_mbps", "counted_request_rate_per_s"].contains(&metric);
        assert_eq!(row["published"].is_number(), comparable, "{row}");
    }
}

#[test]
fn the_modern_machine_takes_no_log() {
    let bench = Workbench::new();
    reproduce(&bench, "dcache-modern", &["--log", "x.log"])
        .refused(&["--log", "dcache-modern has no such option"]);
    let ran = reproduce(&bench, "dcache-modern", &[]).ok();
    ran.says(&[
        "PCIe 4 x16 a port, no",
        "PCIe 3 x16 for both, 1 GB",
        "predictions",
        "counterpart",
    ]);
    for row in rows(&bench, "out.json") {
        let config = row["config"].as_str().expect("a name");
        if let Some(other) = row["against"].as_str() {
            let link = |name: &str| name.split(", ").next().map(str::to_owned);
            assert_eq!(link(config), link(other), "on the same link: {row}");
            assert!(other.ends_with("no cache"), "{row}");
        }
    }
}
