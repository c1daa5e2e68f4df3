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
    let json = bench.json("run.json");
    json["kept_off_bus"][0].clone()
}

#[test]
fn a_run_shows_its_difference_from_the_locality_curves() {
    let bench = bench();
    let kept = kept_off_in_run(&bench, "--warmup 60000 --passes 2");
    let percent = |name: &str| kept[name].as_f64().expect(name);
    let curves = "trace locality demo.log --policies lru --sizes 1M --caches 2 --json out.json";
    bench.baton(curves).ok();
    let json = bench.json("out.json");
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
    let json = bench.json("out.json");
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
    let json = bench.json("out.json");
    assert!(json["estimate"].is_string());
    // The optimum keeps 1 GB of the 23.5 GB in the cache; LRU has evicted each block before it is requested again.
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
#[cfg_attr(not(feature = "print"), ignore = "needs the feature `print`")]
fn a_bitmap_is_drawn_too() {
    let bench = bench();
    bench
        .baton("trace locality demo.log --policies lru --figure out.png")
        .ok();
    let picture = std::fs::read(bench.path("out.png")).expect("a picture");
    assert!(picture.starts_with(b"\x89PNG"));
}
