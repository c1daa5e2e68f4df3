//! How users find names, keys and profiles, and how they print experiments that can be run again.

use crate::common::{FIXED, Workbench};
use serde_json::Value;

fn names(bench: &Workbench, group: &str) -> Vec<String> {
    let listed = bench.run(&["list", group, "--json"]).ok().stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let entries = listed[group].as_array().expect("a list");
    let name = |entry: &Value| entry["name"].as_str().map(str::to_owned);
    entries.iter().filter_map(name).collect()
}

/// Every built-in experiment gives the same bits, whether it is run by name or from its printed configuration. None sets a key without effect.
#[test]
fn the_printed_experiment_gives_the_same_bits_again() {
    let bench = Workbench::new();
    let experiments = names(&bench, "experiments");
    assert!(experiments.iter().any(|name| name == "handoff-table1"));
    for name in &experiments {
        let printed = bench.run(&["run", name, "--print-config=full"]);
        if printed.stderr.contains("this makes a study of many runs") {
            let plan = bench.run(&["sweep", name, "--plan"]).ok().stdout;
            assert!(
                plan.lines().count() > 2,
                "{name}: a header and runs: {plan}"
            );
            continue;
        }
        let printed = printed.ok().stdout;
        let mut few = vec!["--requests", "20", "--warmup", "20"];
        if printed.contains("kind = \"generated\"") {
            few.extend(["--set", "workload.requests=1000"]);
        }
        // Endless responses would never complete, and 20 long ones on many connections would take too long.
        let long = ["bytes = 2000000000", "\nbytes = 1048576"];
        if long.iter().any(|bytes| printed.contains(bytes)) {
            few.extend(["--set", "workload.bytes=1000"]);
        }
        let run = |experiment: &str, more: &[&str]| {
            let arguments = [&["run", experiment], &few[..], more].concat();
            bench.run(&arguments).ok()
        };
        let ran = run(name, &["--json", "out.json"]);
        assert!(!ran.stderr.contains("warning"), "{name}: {}", ran.stderr);
        let results = bench.read("out.json");
        bench.write("short.toml", &run(name, &["--print-config"]).stdout);
        bench
            .run(&["run", "short.toml", "--json", "again.json"])
            .ok();
        assert!(bench.read("again.json") == results, "{name}");
        // The full configuration has every key that a run depends on, so printing it again changes nothing.
        let full = run(name, &["--print-config=full"]).stdout;
        bench.write("full.toml", &full);
        let again = bench.run(&["run", "full.toml", "--print-config=full"]);
        assert_eq!(again.ok().stdout, full, "{name}");
        let short = bench.run(&["run", "short.toml", "--print-config=full"]);
        assert_eq!(short.ok().stdout, full, "{name}");
    }
}

#[test]
fn everything_that_has_a_name_is_listed() {
    let bench = Workbench::new();
    let all = bench.baton("list").ok();
    all.says(&[
        "Experiments (What `baton run` runs by name):",
        "handoff-table1",
        "batching",
        "worldcup-lifetimes",
        "host.kernel.selection.policy",
        "w-tinylfu",
        "combined",
        "dcache-locality",
    ]);
    assert!(names(&bench, "profiles").contains(&"dcache-2002".to_owned()));
    bench.baton("list policy").refused(&["policies"]);
}

#[test]
fn keys_are_shown_with_meaning_range_default_and_source() {
    let bench = Workbench::new();
    bench.baton("keys nic.dma.read_setup_ns").ok().says(&[
        "From the end of a read of packet data to the next",
        "0 to 1000000 ns; default 0",
        "without effect unless interconnect.kind other than \"ideal\"",
        "dcache-2002 = 2477: *fitted*",
    ]);
    let keys = bench.baton("keys host.kernel --json").ok().stdout;
    let keys: Value = serde_json::from_str(&keys).expect("JSON");
    let find = |path: &str| {
        let mut keys = keys.as_array().expect("a list").iter();
        keys.find(|key| key["path"] == path)
            .expect("the key")
            .clone()
    };
    let block = find("host.kernel.nic_cache.block_bytes");
    assert_eq!(block["unit"], "bytes");
    assert_eq!(block["default"], 4096);
    assert_eq!(block["value"]["number"]["least"], 512.0);
    assert_eq!(block["value"]["number"]["power_of_two"], true);
    assert_eq!(block["needs"][0], "nic.firmware.cache.kib above 0");
    bench
        .baton("keys hard_limit")
        .refused(&["no key begins with this", "nic.firmware.hard_limit"]);
}

#[test]
fn keys_without_effect_are_reported() {
    let bench = Workbench::new();
    let few = ["--set", "workload.requests=1000"];
    let run = |more: &[&str]| {
        let ran = bench.run_short("W-1024-P-N-FCFS-400", &[&few[..], more].concat());
        ran.ok().stderr
    };
    let cache = ["--set", "nic.firmware.cache.kib=4096"];
    let said = run(&cache);
    let expected = "warning: --set nic.firmware.cache.kib=4096: nic.firmware.cache.kib has no effect, because it needs \
                    host.kernel.nic_cache.enabled = true";
    assert!(said.contains(expected), "{said}");
    let enabled = ["--set", "host.kernel.nic_cache.enabled=true"];
    let said = run(&[cache, enabled].concat());
    assert!(!said.contains("warning"), "{said}");
    // There is no warning if the key has an effect in at least one of the runs.
    bench.write(
        "x.toml",
        &format!(
            "{FIXED}[wire]\nreorder_delay_us = 7\n[[variants]]\nname = \"a\"\n\
             [[variants]]\nname = \"b\"\nset = {{ wire.reorder = 0.1 }}\n"
        ),
    );
    assert_eq!(bench.run_short("x.toml", &[]).ok().stderr, "");
    let said = bench.run_short("x.toml", &["--variant", "a"]).ok().stderr;
    assert!(said.contains("warning: x.toml:"), "{said}");
}

#[test]
fn quiet_runs_print_no_notes() {
    let bench = Workbench::new();
    let few = ["--set", "workload.requests=1000"];
    let told = bench.run_short("W-0-N-N-FCFS-400", &few).ok().stderr;
    assert!(told.contains("note: "), "{told}");
    let quiet = [&few[..], &["--quiet"]].concat();
    assert_eq!(bench.run_short("W-0-N-N-FCFS-400", &quiet).ok().stderr, "");
}

#[test]
fn an_experiment_names_its_profile() {
    let bench = Workbench::new();
    let run_text = |text: &str| {
        bench.write("x.toml", text);
        bench.baton("run x.toml")
    };
    run_text("").refused(&[
        "x.toml:1:1:",
        "`profile` is missing",
        "handoff-2006",
        "baton list profiles",
    ]);
    run_text("[nic]\nmips = 5\n").refused(&["`profile` is missing"]);
    run_text("proflie = \"handoff-2006\"\n").refused(&["x.toml:1:1:", "did you mean `profile`?"]);
    run_text("profile = \"handoff-2060\"\n")
        .refused(&["x.toml:1:11:", "did you mean `handoff-2006`?"]);
    run_text("profile = \"defaults\"\n[[variant]]\n")
        .refused(&["x.toml:2:3:", "did you mean `variants`?"]);
    bench
        .baton("run /dev/null")
        .refused(&["`profile` is missing"]);
}

#[test]
fn errors_about_unknown_experiments_suggest_the_nearest_name() {
    let bench = Workbench::new();
    bench.baton("run handoff-table").refused(&[
        "did you mean `handoff-table1`?",
        "baton list experiments",
        "W-1024-P-N-FCFS-400",
    ]);
    bench
        .baton("reproduce dcache-trafic")
        .refused(&["did you mean `dcache-traffic`?"]);
}

#[test]
fn missing_figures_are_refused_before_the_run() {
    let bench = Workbench::new();
    bench
        .baton("reproduce handoff-table1 --packets 100000000000 --figure t1.svg")
        .refused(&["--figure: handoff-table1 has no figure", "dcache-locality"]);
    bench
        .baton("reproduce batching --study all --figure t1.svg")
        .refused(&["--figure", "--out FOLDER"]);
    assert!(bench.files().is_empty());
}

/// Lets a real bash complete words, as it does when a user presses the Tab key.
#[test]
#[cfg(target_os = "linux")]
fn bash_completes_names_and_keys() {
    let bench = Workbench::new();
    bench.write(
        "complete.bash",
        &bench.baton("completions bash").ok().stdout,
    );
    bench.write("local.toml", "");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_baton"));
    let folder = program.parent().expect("a folder").display();
    let complete = |words: &[&str]| {
        let last = words.len() - 1;
        let list: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "PATH={folder}:$PATH; . ./complete.bash; COMP_WORDS=({}); COMP_CWORD={last}; COMP_TYPE=9\n\
             _clap_complete_baton baton '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            list.join(" "),
            words[last],
            words[last - 1],
        );
        let mut bash = std::process::Command::new("bash");
        let output = bash
            .args(["-c", &script])
            .current_dir(bench.path("."))
            .output();
        let output = output.expect("bash");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["baton", "run", "handoff-t"]), ["handoff-table1"]);
    assert_eq!(complete(&["baton", "run", "loc"]), ["local.toml"]);
    assert_eq!(
        complete(&["baton", "run", "x", "--set", "nic.mi"]),
        ["nic.mips="]
    );
    assert_eq!(
        complete(&["baton", "run", "x", "--profile", "dcache-m"]),
        ["dcache-modern"]
    );
    assert_eq!(
        complete(&["baton", "keys", "nic.firmware.load_control.h"]),
        ["nic.firmware.load_control.high_water_packets"]
    );
    assert_eq!(complete(&["baton", "list", "prof"]), ["profiles"]);
    assert_eq!(
        complete(&["baton", "reproduce", "dcache-lo"]),
        ["dcache-locality"]
    );
}
