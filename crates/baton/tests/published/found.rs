//! Reads configurations with metrics from the JSON that `baton` writes.

use crate::common::Workbench;
use serde_json::Value;

/// The value of a metric for a configuration.
pub struct Found {
    pub config: String,
    pub metric: String,
    pub value: f64,
}

/// Runs `baton reproduce` with these arguments, and returns its simulated numbers.
pub fn reproduced(arguments: &[&str]) -> Vec<Found> {
    let bench = Workbench::new();
    let arguments = [&["reproduce"], arguments, &["--json", "out.json"]].concat();
    bench.run(&arguments).ok();
    let document = parse(&bench.read("out.json"));
    let rows = document.as_array().expect("rows");
    let found = |row: &Value| Found {
        config: text(&row["config"]),
        metric: match row["against"].as_str() {
            None => text(&row["metric"]),
            Some(_) => format!("{}, growth", text(&row["metric"])),
        },
        value: number(&row["simulated"]),
    };
    rows.iter().map(found).collect()
}

/// Returns the estimated rates of requests of the runs of `baton run`.
pub fn estimated_rates(json: &str) -> Vec<Found> {
    let document = parse(json);
    let runs = document["runs"].as_array().expect("runs");
    let of_run = |run: &Value| Found {
        config: text(&run["experiment"]["name"]),
        metric: "requests_per_s".to_owned(),
        value: number(&run["long_run"]["request_rate"]["mean"]),
    };
    runs.iter().map(of_run).collect()
}

/// Returns the results of `baton run combinations`.
pub fn combined(json: &str) -> Vec<Found> {
    let document = parse(json);
    let runs = document["runs"].as_array().expect("runs");
    let of_run = |run: &Value| {
        let config = text(&run["experiment"]["name"]);
        let (bus, clients) = (&run["bus"], &run["clients"]);
        let crossings = |way: &str| number(&bus[way]["crossings"]);
        let busy = |side: &str| 100.0 - number(&run[side]["idle_percent"]);
        let all = crossings("to_nic") + crossings("to_host");
        let values = [
            ("requests_per_s", number(&clients["request_rate"])),
            (
                "crossings_per_response",
                all / number(&clients["responses"]),
            ),
            ("host_busy_percent", busy("host")),
            ("nic_busy_percent", busy("nic")),
            (
                "content_kb_a_response",
                1e-3 * number(&bus["to_nic"]["bytes"]["content"]) / number(&clients["responses"]),
            ),
        ];
        let found = move |(metric, value): (&str, f64)| Found {
            config: config.clone(),
            metric: metric.to_owned(),
            value,
        };
        // Only runs with connections on the host have a send delay, and only runs with a cache have hits.
        let delay = run["nic"]["send_delay_us"]["p50"].as_f64();
        let delay = delay.map(|delay| ("send_delay_median_us", delay));
        let cache = run["nics"][0]["cache"].as_object();
        let hits = cache.map(|cache| {
            let hits = number(&cache["hits"]) / number(&cache["lookups"]);
            ("cache_hit_percent", 100.0 * hits)
        });
        values.into_iter().chain(delay).chain(hits).map(found)
    };
    runs.iter().flat_map(of_run).collect()
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}
