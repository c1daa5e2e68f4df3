//! Invalid input is refused with exit code 2 and a message that says where the error is and what was expected.

use crate::common::{FIXED, Workbench};

/// Runs the experiments, studies and commands in `refused.txt`, and compares the messages with those there. Experiments have the profile
/// `defaults`.
#[test]
fn what_is_invalid_is_refused_with_its_place_and_what_was_expected() {
    let bench = Workbench::new();
    let cases = include_str!("refused.txt").lines();
    let cases = cases.filter(|line| !line.is_empty() && !line.starts_with("# "));
    for case in cases {
        println!("{case}");
        let (given, message) = case
            .split_once(" => ")
            .expect("a file or command, and a message");
        let given = given.replace("\\n", "\n");
        let ran = if let Some(line) = given.strip_prefix("baton ") {
            bench.write("x.toml", FIXED);
            bench.baton(line)
        } else if let Some(sweep) = given.strip_prefix("study ") {
            let run = "[run]\nwarmup_packets = 100\nmeasured_packets = 200";
            bench.write("x.toml", &format!("{FIXED}{run}\n{sweep}\n"));
            bench.baton("sweep x.toml --out results")
        } else {
            bench.write("x.toml", &(given + "\n"));
            bench.run_short("x.toml", &["--profile", "defaults", "--json", "out.json"])
        };
        let parts: Vec<&str> = message.split(" | ").map(str::trim_end).collect();
        ran.refused(&parts);
        assert_eq!(bench.files(), ["x.toml"], "nothing is left behind");
    }
}
