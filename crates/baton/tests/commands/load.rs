//! Finite loads: `baton load`, and the options of `baton run` that set a load.

use crate::common::Workbench;
use serde_json::Value;

/// A server that takes no time, behind a wire of 100 Mb/s, with responses of 4,000 bytes and of 1,000 bytes.
const WIRE: &str = "\
profile = \"defaults\"\n[workload]\nkind = \"fixed\"\nbytes = 4000\nrequests = 3\n[clients]\nconnections = 64\n\
[wire]\nrate_mbps = 100\n[run]\ncost_models = false\n\
[[variants]]\nname = \"large\"\n\
[[variants]]\nname = \"small\"\nset.workload.bytes = 1000\n";

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("x.toml", WIRE);
    bench
}

fn curves(bench: &Workbench) -> Vec<Value> {
    let mut json: Value = serde_json::from_str(&bench.read("load.json")).expect("JSON");
    serde_json::from_value(json["curves"].take()).expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn response_times_grow_with_the_load_until_saturation() {
    let bench = bench();
    let ran = bench.baton("load x.toml --points 10,80,150% --requests 6000 --json load.json");
    ran.ok().says(&[
        "large: capacity",
        "small: capacity",
        "knee: ",
        "* 150 %: more requests were offered than it can serve",
    ]);
    for curve in curves(&bench) {
        let capacity = number(&curve["capacity"]["mean"]);
        let [low, high, over] = &curve["measured"].as_array().expect("a list")[..] else {
            panic!("{curve}");
        };
        for (measured, share) in [(low, 0.1), (high, 0.8), (over, 1.5)] {
            assert!((number(&measured["rate"]) / capacity / share - 1.0).abs() < 1e-9);
            let offered = number(&measured["run"]["clients"]["open_loop"]["offered_rate"]);
            assert!((offered / capacity / share - 1.0).abs() < 0.1, "{offered}");
        }
        let time =
            |measured: &Value| number(&measured["run"]["long_run"]["response_ms"]["mean"]["mean"]);
        assert!(time(high) > 1.5 * time(low), "{} {}", time(low), time(high));
        assert!(over["run"]["long_run"]["response_ms"].is_null());
        assert_eq!(low["run"]["experiment"]["load"]["arrivals"], "poisson");
    }
}

#[test]
fn a_goal_is_met_up_to_some_load() {
    let bench = bench();
    let line = "load x.toml --variant large --from 20 --to 120% --requests 30000 --goal p99=4ms --json load.json";
    bench
        .baton(line)
        .ok()
        .says(&["p99 of at most 4 ms: met up to "]);
    let curve = &curves(&bench)[0];
    let rate = number(&curve["goal"]["rate"]);
    assert!(number(&curve["goal"]["least"]) <= rate && rate <= number(&curve["goal"]["most"]));
    for measured in curve["measured"].as_array().expect("a list") {
        let p99 = measured["run"]["long_run"]["response_ms"]["p99"]["mean"].as_f64();
        let meets = p99.is_some_and(|p99| p99 <= 4.0);
        let at = number(&measured["rate"]);
        // Close to the highest rate that meets the goal, single runs may be on either side of it.
        assert!(
            meets == (at <= rate) || (at / rate - 1.0).abs() < 0.1,
            "{at} {rate} {p99:?}"
        );
    }
}

#[test]
fn invalid_loads_are_refused() {
    let bench = bench();
    let refused = |flags: &str, parts: &[&str]| {
        bench.baton(&format!("load x.toml {flags}")).refused(parts);
    };
    refused("--points 5000/m", &["--points", "80%", "5000/s"]);
    refused("--from 80 --to 20", &["--from 80%", "smaller than --to"]);
    refused("--capacity 80%", &["--capacity 80%", "20000/s"]);
    refused("--goal p98=1ms", &["--goal", "p99=20ms"]);
    refused("--rate 5/s", &["--rate", "--points"]);
    refused(
        "--arrivals log",
        &["--arrivals log: load.arrivals: found log; expected even, poisson or on-off"],
    );
    assert_eq!(bench.files(), ["x.toml"]);
}

#[test]
fn a_run_takes_rates_arrivals_and_think_times() {
    let bench = bench();
    let run = |flags: &str| {
        bench.baton(&format!(
            "run x.toml --variant small --requests 2000 {flags}"
        ))
    };
    run("--rate 900/s --arrivals even")
        .ok()
        .says(&["offered", "response time since due"]);
    let thinking = run("--think exponential:20ms --json load.json").ok();
    assert!(
        !thinking.stdout.contains("since due"),
        "{}",
        thinking.stdout
    );
    // 64 clients that think for 20 ms send at most 3,200 requests per second.
    let json: Value = serde_json::from_str(&bench.read("load.json")).expect("JSON");
    let rate = number(&json["runs"][0]["clients"]["request_rate"]);
    assert!((2_200.0..3_300.0).contains(&rate), "{rate}");
    run("--rate 2x").refused(&["--rate 2x: load.rate: found 2x; expected requests a second"]);
    run("--rate fast").refused(&["--rate", "5000/s"]);
    run("--rate 9/s --arrivals sometimes").refused(&[
        "load.arrivals",
        "\"sometimes\"",
        "\"poisson\"",
    ]);
    run("--think 7").refused(&["--think", "exponential:7s"]);
}
