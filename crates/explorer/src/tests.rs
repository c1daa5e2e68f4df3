//! Questions and their answers.

use super::*;
use baton_sim::NoObserver;
use baton_workload::log::give_standard_input;
use serde_json::{Value, json};

const TEXT: &str = "profile = \"defaults\"\n[workload]\nkind = \"fixed\"\nbytes = 4000\nrequests = 3\n[clients]\nconnections = 16\n\
                    [run]\nwarmup_packets = 1000\nmeasured_packets = 2000\n";

fn ask(question: &Value) -> Value {
    let said = answer(
        question.to_string().as_bytes(),
        &Logs::new(),
        &mut NoObserver,
    );
    serde_json::from_str(&said).expect("JSON")
}

#[track_caller]
fn refused(question: &Value, parts: &[&str]) {
    let said = ask(question);
    let why = said["refused"].as_str().expect("it is refused");
    for part in parts {
        assert!(why.contains(part), "{part:?} is not in: {why}");
    }
}

#[test]
fn results_are_those_of_the_experiment_with_the_settings() {
    let said = ask(&json!({ "text": TEXT, "settings": [["nic.mips", "600"], ["run.seed", "7"]] }));
    let ran = &said["ran"];
    let results: Value =
        serde_json::from_str(ran["results"].as_str().expect("text")).expect("JSON");
    let results: Results = serde_json::from_value(results["runs"][0].clone()).expect("results");
    let request = Request {
        text: Some(format!("{TEXT}seed = 7\n[nic]\nmips = 600\n")),
        experiment: FILE.to_owned(),
        ..Request::default()
    };
    let experiment = baton_config::plan_one(&request).expect("an experiment");
    let expected = run_on(&Logs::new(), &experiment, COMMIT, &[], &mut NoObserver);
    assert_eq!(results, expected.expect("results"));
    let rate = results.request_rate();
    let verdict = ran["verdict"].as_str().expect("a sentence");
    assert!(verdict.starts_with(&estimated(rate)), "{verdict}");
    // The returned file gives the same results.
    let again = ask(&json!({ "text": ran["toml"] }));
    assert_eq!(again["ran"]["results"], ran["results"]);
}

#[test]
fn invalid_questions_are_refused_with_the_reason() {
    refused(&json!({ "txt": TEXT }), &["cannot read the request", "txt"]);
    refused(&json!({ "text": "profile = " }), &["explored.toml:1"]);
    refused(
        &json!({ "text": TEXT, "settings": [["nic.mps", "600"]] }),
        &["--set nic.mps=600", "did you mean `mips`"],
    );
    refused(
        &json!({ "text": TEXT, "settings": [["nic.mips", "0"]] }),
        &["nic.mips", "found 0"],
    );
    refused(
        &json!({ "text": "profile = \"no-such\"" }),
        &["there is no profile \"no-such\""],
    );
    refused(
        &json!({ "text": format!("{TEXT}[[variants]]\nname = 'a'\n[[variants]]\nname = 'b'\n") }),
        &["2 variants"],
    );
}

#[test]
fn a_log_is_replayed_from_memory_and_named_in_the_file() {
    let line = |n: u32| {
        format!(
            "10.0.0.{} - - [01/May/1998:00:00:{:02} +0000] \"GET /{n} HTTP/1.0\" 200 {}\n",
            n % 7,
            n / 4,
            900 + n
        )
    };
    give_standard_input((0..200).map(line).collect::<String>().into_bytes());
    let said = ask(&json!({ "text": TEXT, "log": "mine.log" }));
    let ran = &said["ran"];
    let toml: toml::Table = ran["toml"].as_str().expect("text").parse().expect("TOML");
    assert_eq!(toml["workload"]["path"].as_str(), Some("mine.log"));
    let results: Value =
        serde_json::from_str(ran["results"].as_str().expect("text")).expect("JSON");
    assert_eq!(results["runs"][0]["workload"]["requests"], 200);
    assert!(
        results["runs"][0]["packets"]
            .as_u64()
            .is_some_and(|packets| packets >= 2000)
    );
}
