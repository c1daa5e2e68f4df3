//! Printed experiments that can be run again, completions and schemas. `dialogues/found.dialogue` has names, keys and profiles.

use crate::common::Workbench;
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

/// Returns the paths of all keys of `value` that its schema does not describe.
fn undescribed(value: &Value, schema: &Value, all: &Value, path: &str) -> Vec<String> {
    let reference = schema["$ref"].as_str().map(|path| &path[1..]);
    let schema = reference.map_or(schema, |path| all.pointer(path).expect("a definition"));
    let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    if let Some(choices) = choices {
        let of_choices = choices
            .iter()
            .map(|choice| undescribed(value, choice, all, path));
        return of_choices.min_by_key(Vec::len).unwrap_or_default();
    }
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(key, value)| {
                let path = format!("{path}.{key}");
                let known = schema["properties"]
                    .get(key)
                    .or(schema.get("additionalProperties"));
                match known {
                    Some(known) => undescribed(value, known, all, &path),
                    None => vec![path],
                }
            })
            .collect(),
        Value::Array(array) => array
            .iter()
            .flat_map(|value| undescribed(value, &schema["items"], all, path))
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_schema_describes_all_that_is_written() {
    let bench = Workbench::new();
    bench.write("x.toml", crate::common::FIXED);
    bench.run_short("x.toml", &["--json", "run.json"]).ok();
    bench
        .baton("load x.toml --points 2000/s --requests 500 --json load.json")
        .ok();
    for command in ["run", "load"] {
        let schema = bench.run(&["list", "--schema", command]).ok().stdout;
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        assert_eq!(schema["$id"], format!("baton-{command}-v1"));
        let written: Value =
            serde_json::from_str(&bench.read(&format!("{command}.json"))).expect("JSON");
        assert_eq!(
            undescribed(&written, &schema, &schema, command),
            Vec::<String>::new()
        );
        // Nested keys also have descriptions.
        let rate = &schema["$defs"]["LongRun"]["properties"]["request_rate"]["description"];
        assert_eq!(rate, "Complete responses per second of simulated time.");
    }
}
