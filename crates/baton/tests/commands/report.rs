//! Pages of `baton report`: they contain all results, and depend on no other file.

use crate::common::{FIXED, Workbench};
use serde_json::{Value, json};

/// Text that would run as a script or end the page's data if the page did not escape it.
const HOSTILE: &str = "</script><b id=x>&\"'";

/// Runs a sweep of eight runs: two speeds, two variants and two seeds.
fn study(bench: &Workbench) {
    let variants = format!(
        "[[variants]]\nname = \"plain\"\n[[variants]]\nname = '''{HOSTILE}'''\nset.nic.firmware.hard_limit = 8\n"
    );
    let text = format!(
        "{FIXED}[run]\nwarmup_packets = 500\nmeasured_packets = 1000\n{variants}[sweep]\nnic.mips = [200, 800]\nseeds = 2\n"
    );
    bench.write("x.toml", &text);
    bench.baton("sweep x.toml --out results").ok();
}

/// Runs an experiment with two variants, and returns its results, which are also in `run.json`.
fn run(bench: &Workbench) -> Value {
    let variants =
        "[[variants]]\nname = \"none\"\n[[variants]]\nname = \"some\"\nset.nic.mips = 77\n";
    bench.write("y.toml", &format!("{FIXED}{variants}"));
    bench.run_short("y.toml", &["--json", "run.json"]).ok();
    bench.json("run.json")
}

/// Returns the data in a page.
fn data(html: &str) -> Value {
    let (_, data) = html.split_once("id=\"data\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

fn runs(data: &Value) -> &[Value] {
    data["runs"].as_array().expect("runs")
}

#[test]
fn a_page_does_not_overwrite_a_table() {
    let bench = Workbench::new();
    study(&bench);
    let table = bench.read("results/x.csv");
    bench
        .baton("report results --out results/x.csv")
        .refused(&["--out results/x.csv", "not a report"]);
    assert_eq!(bench.read("results/x.csv"), table);
    // An existing page may be overwritten.
    bench.baton("report results --out results/x.html").ok();
    bench.baton("report results --out results/x.html").ok();
}

#[test]
fn open_loops_are_not_ranked_by_request_rate() {
    let bench = Workbench::new();
    bench.write("y.toml", FIXED);
    bench
        .baton("load y.toml --points 20,60 --requests 2000 --json load.json")
        .ok();
    bench.baton("report load.json --out page.html").ok();
    let html = bench.read("page.html");
    for words in [
        "<h1>Response time over load: y</h1>",
        "Mean response at ",
        "offered, requests/s",
    ] {
        assert!(html.contains(words), "{words}");
    }
    assert!(!html.contains("serves most"));
    // The load is on the axis, in words, and pages know its keys.
    let data = data(&html);
    assert_eq!(data["keys"], json!(["load.rate"]));
    assert_eq!(data["keys_in_words"], json!(["Offered load, requests/s"]));
}

#[test]
fn the_verdict_under_load_compares_at_a_load_that_all_serve() {
    let bench = Workbench::new();
    bench.write("y.toml", &format!("{FIXED}[nic]\nmips = 300\n"));
    bench.write("z.toml", &format!("{FIXED}[host]\nclock_mhz = 1000\n"));
    bench
        .baton("load y.toml z.toml --points 500/s,1000/s --requests 2000 --json load.json")
        .ok();
    bench.baton("report load.json --out page.html").ok();
    let html = bench.read("page.html");
    let (_, verdict) = html.split_once("class=\"headline\">").expect("a verdict");
    let (verdict, _) = verdict.split_once("</p>").expect("its end");
    assert!(
        verdict.contains("y ") && verdict.contains(" ms, z "),
        "{verdict}"
    );
    let has_difference = verdict.contains(" %)") || verdict.contains("(no difference is certain)");
    assert!(has_difference, "{verdict}");
}

#[test]
fn the_second_of_two_files_is_compared_with_the_first() {
    let bench = Workbench::new();
    bench.write("y.toml", FIXED);
    for (mips, file) in [("200", "before.json"), ("800", "after.json")] {
        let set = format!("nic.mips={mips}");
        bench
            .run_short("y.toml", &["--set", &set, "--json", file])
            .ok();
    }
    bench
        .baton("report before.json after.json --out page.html")
        .ok();
    let html = bench.read("page.html");
    assert!(html.contains("against its counterpart in before.json"));
    // The configurations differ in a key, so the second has no counterpart and is compared with the first.
    assert!(html.contains("before.json, y") && html.contains("after.json, y"));
}

#[test]
fn a_study_becomes_a_page() {
    let bench = Workbench::new();
    study(&bench);
    bench
        .baton("report results --out page.html")
        .ok()
        .says(&["page.html: 8 runs"]);
    let html = bench.read("page.html");
    let data = data(&html);
    assert_eq!(runs(&data).len(), 8);
    assert_eq!(data["keys"], json!(["nic.firmware.hard_limit", "nic.mips"]));
    assert_eq!(data["common"]["clients.connections"], "16");
    assert!(html.contains("baton sweep x.toml --out results"));
    let run = &runs(&data)[0];
    assert_eq!(
        (&run["name"], &run["keys"][1]),
        (&json!("plain"), &json!("200"))
    );
    let shares = run["cycles_percent"].as_array().expect("shares");
    let sum: f64 = shares.iter().filter_map(Value::as_f64).sum();
    assert!((sum - 100.0).abs() < 0.1, "{sum} % of the host's cycles");
    assert!(
        !run["samples"]["queue"]
            .as_array()
            .expect("samples")
            .is_empty()
    );
    for words in [
        "plain, nic.mips = 200</th>",
        "against plain, nic.mips = 200",
        "serves most:",
        "&lt;/script&gt;&lt;b id=x&gt;",
        "8 of 8 runs done, digest ",
        "sources ",
        "baton report results --out page.html",
    ] {
        assert!(html.contains(words), "{words}");
    }
    assert!(!html.contains("<b id=x>"));
}

#[test]
fn the_page_of_a_run_has_the_numbers_of_its_table_and_can_be_compared() {
    let bench = Workbench::new();
    study(&bench);
    let document = run(&bench);
    bench
        .baton("report run.json --out page.html --title Mine")
        .ok();
    let html = bench.read("page.html");
    assert!(html.contains("<h1>Mine</h1>"));
    let page = data(&html);
    let number = page["measures"].as_array().expect("measures").iter();
    let number = number
        .clone()
        .position(|measure| measure["name"] == "responses")
        .expect("a measure");
    assert_eq!(
        runs(&page)[1]["values"][number],
        document["runs"][1]["clients"]["responses"]
    );
    assert_eq!(runs(&page)[1]["keys"], json!(["77"]));
    bench.baton("report results run.json --out both.html").ok();
    let both = data(&bench.read("both.html"));
    assert_eq!(runs(&both).len(), 10);
    let sources: Vec<&Value> = runs(&both).iter().map(|run| &run["source"]).collect();
    assert_eq!(
        (sources[0], sources[9]),
        (&json!("results/x"), &json!("run.json"))
    );
}

#[test]
fn five_hundred_runs_are_less_than_three_megabytes() {
    let bench = Workbench::new();
    let document = run(&bench);
    let mut long = document["runs"][0].clone();
    let samples = (0..400u64).map(|n| {
        json!({ "time_us": 100_000 + 2_137 * n, "open": 900 + n % 90, "connections": 850 + n % 70, "qlen": n % 200,
            "soft_limit": 1024, "responses": 40_000 + 137 * n })
    });
    long["series"] = samples.collect();
    let run = |seed: u64| {
        let mut run = long.clone();
        run["experiment"]["run"]["seed"] = json!(seed);
        run["experiment"]["nic"]["mips"] = json!(100 + seed / 5);
        run
    };
    let all = json!({ "summary": [], "runs": (0..500).map(run).collect::<Vec<_>>() });
    bench.write("many.json", &all.to_string());
    bench.baton("report many.json --out page.html").ok();
    let html = bench.read("page.html");
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    let page = data(&html);
    let kept = runs(&page)[499]["samples"]["time_us"]
        .as_array()
        .map(Vec::len);
    assert!(kept.is_some_and(|kept| kept > 80), "{kept:?}");
}

#[test]
fn files_without_results_are_refused_and_leave_no_page() {
    let bench = Workbench::new();
    bench.write("other.json", "{\"runs\": 3}");
    bench.write("empty.json", "{\"runs\": []}");
    bench.write("text.json", "nothing");
    for (line, parts) in [
        (
            "report none --out page.html",
            &["none: there is no such file", "a folder of `baton sweep`"][..],
        ),
        (
            "report other.json --out page.html",
            &[
                "other.json: has no results that this version can read",
                "baton run --json",
            ],
        ),
        (
            "report text.json --out page.html",
            &["text.json: has no results"],
        ),
        (
            "report empty.json --out page.html",
            &["empty.json: has no runs"],
        ),
        (
            "report other.json --out other.json",
            &["would overwrite an input file"],
        ),
        (
            "report . --out page.html",
            &["has no results of `baton sweep`"],
        ),
    ] {
        bench.baton(line).refused(parts);
    }
    assert_eq!(bench.files(), ["empty.json", "other.json", "text.json"]);
    run(&bench);
    bench
        .baton("report run.json --out none/page.html")
        .refused(&["--out none/page.html"]);
}
