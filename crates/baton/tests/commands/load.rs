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
    let mut json = bench.json("load.json");
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
