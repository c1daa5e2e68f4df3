//! A page of `baton report` in a browser, which runs its scripts.

#[path = "common/browser.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod browser;
mod common;

use baton_testkit::needs::{self, Need};
use browser::Browser;
use common::{FIXED, Workbench};
use libtest_mimic::Arguments;
use serde_json::json;
use std::process::Command;

const ALL: &[(&str, fn())] = baton_testkit::tests![
    scripts_write_the_table_and_draw_all_figures,
    rows_are_filtered_and_sorted,
    a_filter_that_is_wrong_is_reported,
    response_times_are_drawn_over_the_load,
    a_phone_scrolls_in_one_direction,
    a_picture_of_it_is_not_empty,
];

fn main() {
    needs::run(&Arguments::from_args(), Need::Program("chromium"), ALL);
}

const HOSTILE: &str = "</script><b id=hostile>&\"'";

/// Makes a page about eight runs, with `script` at its end.
fn page(script: &str) -> Workbench {
    let bench = Workbench::new();
    let variants =
        format!("[[variants]]\nname = \"plain\"\n[[variants]]\nname = '''{HOSTILE}'''\n");
    let text = format!(
        "{FIXED}[run]\nwarmup_packets = 500\nmeasured_packets = 1000\n{variants}[sweep]\nnic.mips = [200, 800]\nseeds = 2\n"
    );
    bench.write("x.toml", &text);
    bench.baton("sweep x.toml --out results").ok();
    bench.baton("report results --out page.html").ok();
    let html = bench
        .read("page.html")
        .replace("</body>", &format!("<script>{script}</script></body>"));
    bench.write("page.html", &html);
    bench
}

/// Opens the page in a browser, and returns what the browser prints.
fn browser(bench: &Workbench, arguments: &[&str]) -> String {
    let profile = format!("--user-data-dir={}", bench.path("profile").display());
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            &profile,
            "--window-size=1200,4000",
            "--virtual-time-budget=8000",
        ])
        .args(arguments)
        .arg(bench.path("page.html"))
        .env("HOME", bench.path("."))
        .output()
        .expect("the browser starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the title of the page, in which `script` leaves its findings.
fn title(dom: &str) -> &str {
    let (_, rest) = dom.split_once("<title>").expect("a title");
    rest.split_once("</title>").expect("its end").0
}

fn scripts_write_the_table_and_draw_all_figures() {
    let bench = page(
        "document.title = [document.querySelectorAll('#table tbody tr').length, document.querySelectorAll('canvas').length,\
         document.querySelectorAll('.bar').length, document.querySelectorAll('#hostile').length,\
         [...document.querySelectorAll('section')].filter(section => section.hidden).length].join();",
    );
    let dom = browser(&bench, &["--dump-dom"]);
    // Eight rows; one chart over the key and three over time; a bar for each configuration; no element from a hostile name; no hidden section.
    assert_eq!(title(&dom), "8,4,4,0,0");
    assert!(dom.contains("8 of 8 runs"));
}

fn rows_are_filtered_and_sorted() {
    let bench = page(
        "filter.value = 'plain nic.mips>=800'; filter.dispatchEvent(new Event('input'));\
         setTimeout(() => { for (const _ of [1, 2]) document.querySelector('[data-column=seed]').click();\
         const rows = [...document.querySelectorAll('#table tbody tr')].map(row => row.children[1].textContent);\
         document.title = rows.join() + ' ' + document.querySelector('[aria-sort]').getAttribute('aria-sort') + ' ' +\
         document.activeElement.dataset.column + ' ' + document.getElementById('count').textContent; }, 500);",
    );
    let dom = browser(&bench, &["--dump-dom"]);
    assert_eq!(title(&dom), "2,1 descending seed 2 of 8 runs");
}

fn a_filter_that_is_wrong_is_reported() {
    let bench = page(
        "const said = []; const tell = wanted => { filter.value = wanted; filter.dispatchEvent(new Event('input'));\
         return new Promise(done => setTimeout(() => { said.push(document.getElementById('filter-error').textContent + '|' +\
         document.getElementById('count').textContent); done(); }, 300)); };\
         tell('nosuch>3').then(() => tell('mips >= x')).then(() => tell('mips >= 800')).then(() => { document.title = said.join(' / '); });",
    );
    let dom = browser(&bench, &["--dump-dom"]);
    let expected = "nosuch: no column has this name. All runs are shown.|8 of 8 runs / \
                    mips&gt;=x: expected a number after &gt;=. All runs are shown.|8 of 8 runs / |4 of 8 runs";
    assert_eq!(title(&dom), expected);
}

fn response_times_are_drawn_over_the_load() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let load = "load x.toml --points 2000/s,4000/s,6000/s --requests 2000 --json load.json";
    bench.baton(load).ok();
    bench.baton("report load.json --out page.html").ok();
    let drawn = "document.title = [document.querySelector('#over-keys h2').textContent, charts[0].x.join(), charts[0].series.length,\
                 charts[0].series[0].values.every(value => value > 0), charts[0].series[0].low.every(value => value > 0)].join(' | ')";
    let html = bench.read("page.html");
    bench.write(
        "page.html",
        &html.replace("</body>", &format!("<script>{drawn}</script></body>")),
    );
    let dom = browser(&bench, &["--dump-dom"]);
    let expected = "Response mean over offered load | 2000,4000,6000 | 1 | true | true";
    assert_eq!(title(&dom), expected);
}

fn a_phone_scrolls_in_one_direction() {
    let bench = page("");
    let mut browser = Browser::open(&bench.path("page.html"), &bench.path("."));
    browser.wait_until("document.readyState === 'complete'");
    for width in [390, 1400] {
        let screen =
            json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.call("Emulation.setDeviceMetricsOverride", screen);
        // Nothing is wider than the screen or has no width, as soon as the charts have been drawn again.
        browser.wait_until(
            "[...document.querySelectorAll('select, .bar, canvas')].every(it => it.getBoundingClientRect().width >= 20) &&\
             document.documentElement.scrollWidth === document.documentElement.clientWidth",
        );
    }
}

fn a_picture_of_it_is_not_empty() {
    let bench = page("");
    let picture = bench.path("page.png");
    browser(&bench, &[&format!("--screenshot={}", picture.display())]);
    let bytes = std::fs::read(picture).expect("a picture");
    assert!(
        bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000,
        "{} bytes",
        bytes.len()
    );
}
