//! The page of `baton explore` in a browser: its simulator gives the same results as this program, and the page shows them.

#[path = "common/browser.rs"]
mod browser;
mod common;

use baton_config::COMMIT;
use baton_sim::NoObserver;
use baton_sim::results::Results;
use baton_testkit::needs::{self, Need};
use baton_workload::log::{Logs, give_standard_input};
use browser::Browser;
use common::{FIXED, Workbench, root};
use libtest_mimic::Arguments;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const ALL: &[(&str, fn())] = baton_testkit::tests![
    the_module_gives_the_same_bytes_as_this_program,
    a_slider_gives_what_baton_run_gives,
    own_logs_are_replayed_plain_and_compressed,
    no_handoff_is_beside_and_the_address_keeps_what_is_set,
    a_page_with_a_log_starts_with_it,
    bad_input_is_told_and_runs_are_cancelled,
];
/// Tests that also need axe-core.
const ACCESSIBLE: &[(&str, fn())] = baton_testkit::tests![axe_finds_nothing];
/// The environment variable with the path of axe-core.
const AXE: &str = "BATON_AXE";

fn main() {
    let arguments = Arguments::from_args();
    let axe = std::env::var_os(AXE).is_some_and(|path| Path::new(&path).exists());
    let needs = [
        Need::Program("chromium"),
        Need::Other(
            "baton_explorer.wasm, built from these sources",
            has_module(),
        ),
        Need::Other("axe-core at the path in BATON_AXE", axe),
    ];
    needs::run_all(&arguments, &[(&needs[..2], ALL), (&needs, ACCESSIBLE)]);
}

fn has_module() -> bool {
    Workbench::new().baton("explore --out page.html").code == Some(0)
}

/// Keys for a short run, because a module that is not optimised is slow.
const SHORT: &str = "[run]\nwarmup_packets = 1000\nmeasured_packets = 2000\n";

/// Opens the page of an experiment, and waits until the page has run it.
fn page(bench: &Workbench, experiment: &str) -> Browser {
    bench.write("x.toml", experiment);
    bench.baton("explore x.toml --out page.html").ok();
    let mut browser = Browser::open(&bench.path("page.html"), &bench.path("."));
    browser.wait_until(
        "document.readyState === 'complete' && typeof state === 'object' && Boolean(state.present)",
    );
    browser
}

fn the_module_gives_the_same_bytes_as_this_program() {
    let bench = Workbench::new();
    let mut browser = page(&bench, &format!("{FIXED}{SHORT}"));
    let log = fs::read(root().join("samples/access.log")).expect("a sample");
    give_standard_input(log.clone());
    let generated = |profile: &str, preset: &str, more: &str| {
        format!(
            "profile = {profile:?}\n[workload]\nkind = \"generated\"\npreset = {preset:?}\nrequests = 3000\n[clients]\nconnections = 64\n{SHORT}{more}"
        )
    };
    let handoff = "[host.kernel.selection]\npolicy = \"threshold\"\nenqueues = 2\n[nic.firmware]\nhard_limit = 32\nscheduler = \"host-first\"\n\
                   [nic.firmware.load_control]\nenabled = true\n";
    let questions = [
        json!({ "text": generated("handoff-2006", "worldcup-lifetimes", handoff) }),
        json!({ "text": generated("dcache-2002", "nasa", "[nic.firmware.cache]\nkib = 4096\n") }),
        json!({ "text": generated("dcache-modern", "cdn", "[nic.firmware.cache]\nkib = 16384\n") }),
        json!({ "text": format!("{FIXED}{SHORT}"), "settings": [["nic.mips", "0"]] }),
        json!({ "text": format!("profile = \"batching\"\n[workload]\nkind = \"fixed\"\nbytes = 1000\n{SHORT}") }),
        json!({ "text": format!("profile = \"handoff-2006\"\n[workload]\nkind = \"specweb\"\nclients = 64\n[clients]\nconnections = 64\n{SHORT}"),
                "settings": [["load.rate", "9000/s"], ["load.arrivals", "poisson"]] }),
        json!({ "text": format!("profile = \"offload-pcie\"\n{SHORT}"), "log": "access.log" }),
    ];
    let log = serde_json::to_string(&String::from_utf8(log).expect("text")).expect("JSON");
    browser.evaluate(&format!(
        "globalThis.asked = new Worker(workerUrl); asked.postMessage({{ module: state.module, log: new TextEncoder().encode({log}) }}); 0"
    ));
    let mut refused = 0;
    for question in questions {
        let question = question.to_string();
        let native = baton_explorer::answer(question.as_bytes(), &Logs::new(), &mut NoObserver);
        let quoted = Value::String(question.clone());
        let ask = format!(
            "new Promise((give, refuse) => {{ asked.onmessage = ({{ data }}) => data.answer !== undefined ? give(data.answer) : data.broken !== undefined && refuse(data.broken);\
             asked.postMessage({{ question: {quoted} }}); }})"
        );
        let answer = browser.evaluate(&ask);
        let answer = answer.as_str().expect("an answer");
        // The module may have been built at another commit with the same sources.
        let said: Value = serde_json::from_str(answer).expect("JSON");
        let program = said["ran"]["program"]
            .as_str()
            .and_then(|program| program.rsplit(' ').next());
        let answer = answer.replace(program.unwrap_or(COMMIT), COMMIT);
        assert!(
            answer == native,
            "{question}: another answer\n{answer}\n{native}"
        );
        refused += usize::from(said.get("refused").is_some());
    }
    assert_eq!(refused, 1, "one experiment is invalid");
}

fn a_slider_gives_what_baton_run_gives() {
    let bench = Workbench::new();
    let mut browser = page(&bench, &format!("{FIXED}{SHORT}[nic]\nmips = 400\n"));
    browser.evaluate("document.querySelector('[data-key=\"nic.mips\"] [type=range]').focus()");
    browser.press("ArrowRight", 39);
    browser.wait_until("state.previous !== null && !state.running");
    let text = |id: &str| format!("document.getElementById({id:?}).textContent");
    let toml = browser.evaluate(&text("toml"));
    let toml = toml.as_str().expect("text");
    assert!(toml.contains("mips = 500"), "{toml}");
    bench.write("explored.toml", toml);
    bench.baton("run explored.toml --json explored.json").ok();
    let expected: Value = serde_json::from_str(&bench.read("explored.json")).expect("JSON");
    let results = browser.evaluate("state.present.results");
    let results: Value = serde_json::from_str(results.as_str().expect("text")).expect("JSON");
    // The module may have been built at another commit with the same sources.
    assert_eq!(without_commit(&results), without_commit(&expected));
    bench.write("saved.json", &results.to_string());
    bench.baton("report saved.json --out report.html").ok();
    // The request rate on the page.
    let run = serde_json::from_value::<Results>(expected["runs"][0].clone());
    let rate = run.expect("results").request_rate().mean;
    let shown =
        browser.evaluate("document.querySelector('#numbers td').textContent.replaceAll(',', '')");
    // The rate is followed by its interval.
    let shown = shown.as_str().and_then(|text| text.split(' ').next());
    let shown: f64 = shown.and_then(|text| text.parse().ok()).expect("a number");
    assert!((shown - rate).abs() <= rate * 5e-4, "{shown}, not {rate}");
    browser.evaluate("document.getElementById('against').value = 'previous'; showAll()");
    let notes = browser.evaluate(&text("notes"));
    assert!(
        notes
            .as_str()
            .is_some_and(|notes| notes.contains("nic.mips = 500, not 400")),
        "{notes}"
    );
    let drawn = browser.evaluate("[document.querySelectorAll('canvas').length, document.querySelectorAll('.bar').length].join()");
    assert_eq!(drawn, "3,2");
}

fn without_commit(document: &Value) -> Value {
    let mut run = document["runs"][0].clone();
    run["commit"].take();
    run
}

fn own_logs_are_replayed_plain_and_compressed() {
    let bench = Workbench::new();
    let mut browser = page(&bench, &format!("{FIXED}{SHORT}"));
    let plain = root().join("samples/access.log");
    let plain = fs::canonicalize(plain).expect("a sample");
    let mut encoder = flate2::read::GzEncoder::new(
        fs::File::open(&plain).expect("a sample"),
        flate2::Compression::fast(),
    );
    let compressed = bench.path("access.log.gz");
    std::io::copy(
        &mut encoder,
        &mut fs::File::create(&compressed).expect("a file"),
    )
    .expect("space on the disk");
    let mut results = Vec::new();
    for path in [plain, compressed] {
        browser.evaluate("state.present = null");
        choose_log(&mut browser, &path);
        browser.wait_until("state.present !== null");
        results.push(browser.evaluate("state.present.results"));
    }
    assert_eq!(results[0], results[1]);
    let toml = browser.evaluate("state.present.toml");
    assert!(
        toml.as_str()
            .is_some_and(|toml| toml.contains("path = \"access.log.gz\"")),
        "{toml}"
    );
    bench.write("explored.toml", toml.as_str().expect("text"));
    bench.baton("run explored.toml --json explored.json").ok();
    let expected: Value = serde_json::from_str(&bench.read("explored.json")).expect("JSON");
    let results: Value = serde_json::from_str(results[0].as_str().expect("text")).expect("JSON");
    assert_eq!(
        results["runs"][0]["clients"],
        expected["runs"][0]["clients"]
    );
}

fn no_handoff_is_beside_and_the_address_keeps_what_is_set() {
    let bench = Workbench::new();
    let handoff = "[host.kernel.selection]\npolicy = \"fcfs\"\n[nic.firmware]\nhard_limit = 1000\n";
    let mut browser = page(&bench, &format!("{FIXED}{SHORT}{handoff}"));
    browser.wait_until("state.base !== null && !state.running");
    let heads = "[...document.querySelectorAll('#numbers table:first-of-type thead th')].slice(0, 4).map(th => th.textContent).join()";
    assert_eq!(
        browser.evaluate(heads),
        "measure,this run,no handoff,difference"
    );
    let set = [
        "--set",
        "host.kernel.selection.policy=never",
        "--json",
        "never.json",
    ];
    bench.run(&[&["run", "x.toml"], &set[..]].concat()).ok();
    let never: Value = serde_json::from_str(&bench.read("never.json")).expect("JSON");
    let base = browser.evaluate("state.base.results");
    let base: Value = serde_json::from_str(base.as_str().expect("text")).expect("JSON");
    assert_eq!(base["runs"][0]["clients"], never["runs"][0]["clients"]);
    browser.evaluate("controlOf('nic.mips').input.value = '500'; document.getElementById('more').value = 'wire.rate_mbps = 900'; run()");
    browser.wait_until("!state.running");
    let address = browser.evaluate("location.hash");
    assert_eq!(address, "#nic.mips=500&wire.rate_mbps=900");
    drop(browser);
    let address = format!("page.html{}", address.as_str().expect("text"));
    let mut browser = Browser::open(&bench.path(&address), &bench.path("again"));
    browser.wait_until("typeof state === 'object' && Boolean(state.present)");
    let asked = browser.evaluate("JSON.stringify(state.asked)");
    assert_eq!(asked, r#"[["nic.mips","500"],["wire.rate_mbps","900"]]"#);
    browser.evaluate("document.getElementById('more').value = 'nonsense'; run()");
    browser.wait_until(
        "document.getElementById('state').textContent === 'nonsense: expected KEY = VALUE'",
    );
}

fn a_page_with_a_log_starts_with_it() {
    let bench = Workbench::new();
    bench.write("x.toml", &format!("{FIXED}{SHORT}"));
    let log = fs::read_to_string(root().join("samples/access.log")).expect("a sample");
    bench.write("access.log", &log);
    let ran = bench
        .baton("explore x.toml --log access.log --out page.html")
        .ok();
    assert!(
        ran.stderr.contains("the page contains the log access.log"),
        "{ran:?}"
    );
    // The page needs no other file.
    fs::remove_file(bench.path("access.log")).expect("it is there");
    let mut browser = Browser::open(&bench.path("page.html"), &bench.path("."));
    browser.wait_until("typeof state === 'object' && Boolean(state.present)");
    let results = browser.evaluate("state.present.results");
    let results: Value = serde_json::from_str(results.as_str().expect("text")).expect("JSON");
    bench.write("access.log", &log);
    bench
        .baton("run x.toml --log access.log --json run.json")
        .ok();
    let expected: Value = serde_json::from_str(&bench.read("run.json")).expect("JSON");
    assert_eq!(
        results["runs"][0]["clients"],
        expected["runs"][0]["clients"]
    );
}

/// Chooses a log file on the page, which the page then replays.
fn choose_log(browser: &mut Browser, path: &Path) {
    let input = browser.call(
        "Runtime.evaluate",
        json!({ "expression": "document.getElementById('log')" }),
    );
    let object = &input["result"]["objectId"];
    browser.call(
        "DOM.setFileInputFiles",
        json!({ "files": [path], "objectId": object }),
    );
}

fn bad_input_is_told_and_runs_are_cancelled() {
    let bench = Workbench::new();
    let mut browser = page(&bench, &format!("{FIXED}{SHORT}"));
    let says = |browser: &mut Browser, text: &str| {
        browser.wait_until(&format!(
            "document.getElementById('state').textContent.includes({text:?})"
        ));
    };
    browser.evaluate("document.getElementById('more').value = 'nic.mps = 3'; run()");
    says(&mut browser, "did you mean `mips`?");
    browser.evaluate("document.getElementById('more').value = ''; controlOf('nic.mips').input.value = '0'; run()");
    says(&mut browser, "nic.mips:");
    browser.evaluate("document.getElementById('form').reset(); controlOf('run.measured_packets').input.value = '2000000000'; run()");
    says(&mut browser, "Running.");
    browser.evaluate("document.getElementById('cancel').click()");
    says(&mut browser, "Cancelled.");
    assert_eq!(
        browser.evaluate("state.worker === null && !state.running"),
        true
    );
    // The module is built without the library that reads Zstandard.
    let unreadable = bench.path("access.log.zst");
    fs::write(&unreadable, [0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0]).expect("a file");
    browser.evaluate("document.getElementById('form').reset()");
    choose_log(&mut browser, &unreadable);
    says(
        &mut browser,
        "compressed with Zstandard, and this program was built without the feature `compressed-logs`",
    );
}

fn axe_finds_nothing() {
    let bench = Workbench::new();
    let mut browser = page(&bench, &format!("{FIXED}{SHORT}"));
    let path = std::env::var_os(AXE).expect("the variable is set");
    let axe = fs::read_to_string(path).expect("a script");
    browser.evaluate("document.getElementById('pin').click()");
    browser.evaluate(&format!("{axe}; 0"));
    for scheme in ["light", "dark"] {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        browser.call("Emulation.setEmulatedMedia", media);
        let found = browser.evaluate("axe.run().then(({ violations, passes }) => [passes.length > 20, ...violations.map(({ id, help }) => `${id}: ${help}`)])");
        assert_eq!(found, json!([true]), "{scheme}");
    }
}
