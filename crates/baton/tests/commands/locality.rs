//! `baton trace locality`: its curves as table, JSON and figure, and the input that it refuses.

use crate::common::Workbench;
use serde_json::Value;

/// Returns a folder with a generated log, `demo.log`.
fn bench() -> Workbench {
    let bench = Workbench::new();
    bench
        .baton("generate demo --requests 3000 --out demo.log")
        .ok();
    bench
}

/// Runs a server whose NICs have caches of 1 MiB, and returns how much content stays off the bus, as computed from the log and as measured.
fn kept_off_in_run(bench: &Workbench, more: &str) -> Value {
    let cached = "run dcache-2002 --log demo.log --set nic.firmware.cache.kib=1024 --set host.kernel.nic_cache.enabled=true --json run.json";
    bench
        .baton(&format!("{cached} {more}"))
        .ok()
        .says(&["log once", "whole blocks", "kept off"]);
    let json: Value = serde_json::from_str(&bench.read("run.json")).expect("JSON");
    json["kept_off_bus"][0].clone()
}

#[test]
fn a_run_shows_its_difference_from_the_locality_curves() {
    let bench = bench();
    let kept = kept_off_in_run(&bench, "--warmup 60000 --passes 2");
    let percent = |name: &str| kept[name].as_f64().expect(name);
    let curves = "trace locality demo.log --policies lru --sizes 1M --caches 2 --json out.json";
    bench.baton(curves).ok();
    let json: Value = serde_json::from_str(&bench.read("out.json")).expect("JSON");
    let share = json["curves"][0]["points"][0]["share"].as_f64();
    let of_curve = 100.0 * share.expect("a share");
    let log = percent("log_percent");
    assert!((log - of_curve).abs() < 1e-9, "{log} {of_curve}");
    let replayed = percent("replayed_percent");
    assert!((replayed - log).abs() < 5.0, "{kept}");
    let whole = percent("whole_blocks_percent");
    assert!(whole <= replayed + 1e-9, "{kept}");
    let kept_off = percent("kept_off_percent");
    assert!((kept_off - whole).abs() < 5.0, "{kept}");
}

#[test]
fn a_run_without_a_log_or_a_cache_shows_no_locality() {
    let bench = bench();
    let ran = bench
        .baton("run W-0-N-N-FCFS-400 --log demo.log --packets 3000 --warmup 1000")
        .ok();
    assert!(!ran.stdout.contains("log once"), "{}", ran.stdout);
    let ran = bench
        .baton("run live-stream --packets 3000 --warmup 1000 --json x.json")
        .ok();
    assert!(!ran.stdout.contains("log once"), "{}", ran.stdout);
    assert!(!bench.read("x.json").contains("kept_off_bus\": ["));
}

#[test]
fn every_policy_has_a_curve_for_one_cache_and_two() {
    let bench = bench();
    let ran = bench
        .baton("trace locality demo.log --json out.json --figure out.svg")
        .ok();
    ran.says(&[
        "one cache keeps",
        "2 caches of that size",
        "w-tinylfu",
        "bound",
        "64 KiB",
        "1 GiB",
    ]);
    assert!(bench.read("out.svg").starts_with("<svg"));
    let json: Value = serde_json::from_str(&bench.read("out.json")).expect("JSON");
    let curves = json["curves"].as_array().expect("curves");
    assert_eq!(curves.len(), 18);
    let share = |policy: &str, caches: u8, point: usize| {
        let curve = curves
            .iter()
            .find(|c| c["policy"] == policy && c["caches"] == caches)
            .expect(policy);
        let point = &curve["points"][point];
        point["share"].as_f64().expect("a share")
    };
    for caches in [1, 2] {
        for point in 0..15 {
            let bound = share("bound", caches, point);
            for policy in [
                "lru",
                "lfu",
                "fifo",
                "sieve",
                "s3-fifo",
                "w-tinylfu",
                "gdsf",
                "min",
            ] {
                assert!(share(policy, caches, point) <= bound, "{policy}");
            }
        }
        // All blocks fit, so every reference except the first to a block is a hit.
        assert_eq!(share("fifo", caches, 14), share("bound", caches, 14));
    }
}

#[test]
fn curves_of_very_large_responses_are_estimated_and_said_to_be() {
    let bench = Workbench::new();
    let line = |i: u32| {
        let (client, file) = (i % 20, i % 5);
        format!(
            "192.0.2.{client} - - [12/Mar/2024:10:00:{:02} +0000] \"GET /{file}.iso HTTP/1.1\" 200 4700000000\n",
            i % 60
        )
    };
    bench.write("isos.log", &(0..100).map(line).collect::<String>());
    let ran = bench.baton("trace locality isos.log --json out.json").ok();
    ran.says(&["Estimated, as the log has far more blocks than requests"]);
    let json: Value = serde_json::from_str(&bench.read("out.json")).expect("JSON");
    assert!(json["estimate"].is_string());
    // The optimum keeps one of the 23.5 GB; least recently used blocks are gone when they are asked for again.
    let share = |policy: &str| {
        let curves = json["curves"].as_array().expect("curves");
        let curve = curves
            .iter()
            .find(|c| c["policy"] == policy && c["caches"] == 1);
        curve.expect(policy)["points"][14]["share"]
            .as_f64()
            .expect("a share")
    };
    assert_eq!(share("lru"), 0.0);
    assert!((0.02..0.1).contains(&share("min")), "{}", share("min"));
}

#[test]
fn policies_sizes_and_admission_are_chosen() {
    let bench = bench();
    let arguments = [
        "trace",
        "locality",
        "demo.log",
        "--policies",
        "lru,sieve,lru",
        "--sizes",
        "1m,128K",
        "--caches",
        "2",
        "--admission",
        "second-request",
        "--block-size",
        "8K",
        "--json",
        "-",
    ];
    let json: Value = serde_json::from_str(&bench.run(&arguments).ok().stdout).expect("JSON");
    assert_eq!(json["block_bytes"], 8192);
    let curves = json["curves"].as_array().expect("curves");
    let names: Vec<&str> = curves.iter().filter_map(|c| c["policy"].as_str()).collect();
    assert_eq!(names, ["lru+second-request", "sieve+second-request"]);
    assert_eq!(curves[0]["points"][0]["cache_bytes"], 128 << 10);
    assert_eq!(curves[0]["points"].as_array().map(Vec::len), Some(2));
}

#[test]
fn results_do_not_depend_on_threads() {
    let bench = bench();
    let with = |threads| {
        let arguments = [
            "trace",
            "locality",
            "demo.log",
            "--json",
            "-",
            "--threads",
            threads,
        ];
        bench.run(&arguments).ok().stdout
    };
    assert_eq!(with("1"), with("7"));
}

#[test]
#[cfg_attr(not(feature = "print"), ignore = "needs the feature `print`")]
fn a_bitmap_is_drawn_too() {
    let bench = bench();
    bench
        .baton("trace locality demo.log --policies lru --figure out.png")
        .ok();
    let picture = std::fs::read(bench.path("out.png")).expect("a picture");
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn impossible_measurements_are_refused() {
    let bench = bench();
    let refused = |more: &[&str], parts: &[&str]| {
        let arguments: Vec<&str> = ["trace", "locality", "demo.log"]
            .iter()
            .chain(more)
            .copied()
            .collect();
        bench.run(&arguments).refused(parts);
    };
    refused(
        &["--block-size", "5000"],
        &["--block-size", "5000", "power of two"],
    );
    refused(&["--block-size", "256"], &["--block-size", "256", "512"]);
    refused(&["--block-size", "4Q"], &["--block-size 4Q", "4096, 64K"]);
    refused(
        &["--policies", "lru,clock"],
        &["--policies clock", "s3-fifo", "bound"],
    );
    refused(
        &["--admission", "none"],
        &["--admission none", "second-request"],
    );
    refused(&["--sizes", "1K"], &["--sizes 1K", "at least 4096"]);
    refused(&["--sizes", "99999999999G"], &["--sizes 99999999999G"]);
    refused(&["--caches", "0"], &["--caches"]);
    refused(
        &["--figure", "out.jpg"],
        &["--figure out.jpg", ".svg, .pdf or .png"],
    );
    refused(&["--figure", "demo.log"], &["--figure"]);
    assert_eq!(bench.files(), ["demo.log"], "nothing is left behind");
}

#[test]
fn a_log_without_sizes_is_refused() {
    let bench = Workbench::new();
    let line = "1+1: Tue Aug 22 00:00:05 1995 (/a): Sent text: GET /a HTTP/1.0\n";
    bench.write("sdsc.log", line);
    bench
        .baton("trace locality sdsc.log")
        .refused(&["sdsc.log", "no response sizes"]);
    bench.baton("trace sdsc.log").ok();
    bench
        .baton("trace locality none.log")
        .refused(&["none.log"]);
    bench.baton("trace").refused(&["<LOG>"]);
}

#[test]
fn a_preset_shows_how_well_it_fits_the_published_numbers() {
    let bench = Workbench::new();
    let arguments = [
        "generate",
        "rice",
        "--requests",
        "20000",
        "--out",
        "rice.log",
    ];
    let ran = bench.run(&arguments).ok();
    ran.says(&[
        "fit to what is published",
        "mean response",
        "two caches of 16 MB",
    ]);
}
