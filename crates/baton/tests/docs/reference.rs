//! Pages that are generated from the program's output. `BATON_RECORD=1` writes them again.

use crate::common::{Workbench, root};
use libtest_mimic::{Failed, Trial};
use std::fmt::Write as _;
use std::fs;

/// Returns a test for each page.
pub fn trials() -> Vec<Trial> {
    let trial = |name: &'static str, page: fn() -> String| {
        Trial::test(format!("reference/{name}"), move || {
            is_current(name, &page())
        })
    };
    vec![
        trial("commands.md", commands),
        trial("names.md", names),
        trial("keys.md", keys),
    ]
}

fn is_current(name: &str, text: &str) -> Result<(), Failed> {
    let path = root().join("docs/src/reference").join(name);
    if std::env::var_os("BATON_RECORD").is_some() {
        fs::write(&path, text)?;
    }
    match fs::read_to_string(&path)? == text {
        true => Ok(()),
        false => Err(format!(
            "{} differs from the program's output; BATON_RECORD=1 cargo test -p baton --test docs writes it",
            path.display()
        )
        .into()),
    }
}

/// Returns the page with the output of `baton list` for each group, whose names begin the lines of `baton list`.
fn names() -> String {
    let bench = Workbench::new();
    let all = bench.run(&["list"]).ok().stdout;
    let groups = all
        .lines()
        .filter_map(|line| line.split_once(" (baton list "));
    let printed = groups.map(|(_, rest)| {
        let group = rest.split(' ').next().unwrap_or_default();
        bench.run(&["list", group]).ok().stdout
    });
    let printed: Vec<String> = printed.collect();
    format!(
        "# Names\n\nExperiments, profiles and all else that has a name, as `baton list` prints them.\n\n```text\n{}\n```\n",
        printed.join("\n").trim_end()
    )
}

/// Returns the page with the output of `baton keys`, with a heading for each table of an experiment.
fn keys() -> String {
    let printed = Workbench::new().run(&["keys"]).ok().stdout;
    let mut text = "# Keys of an experiment\n\nWhat may be set in an experiment or by `--set KEY=VALUE`, as `baton keys` prints it.\n".to_owned();
    let mut table = "";
    for key in printed.trim_end().split("\n\n") {
        let begins = key.split(['.', '\n']).next().unwrap_or_default();
        if begins != table && !begins.starts_with(' ') {
            table = begins;
            let _ = write!(text, "\n## {table}\n");
        }
        let _ = write!(text, "\n```text\n{key}\n```\n");
    }
    text
}

/// Returns the page with the output of `--help` for every command.
fn commands() -> String {
    let mut text = "# Commands\n\nWhat `--help` says of each command. `baton man COMMAND` prints the same as a manual page.\n".to_owned();
    describe(&[], &mut text);
    text
}

/// Appends the help of a command, given by its words, and of its subcommands.
fn describe(words: &[&str], text: &mut String) {
    let bench = Workbench::new();
    let help = bench.run(&[words, &["--help"]].concat()).ok().stdout;
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let name = [&["baton"], words].concat().join(" ");
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n"));
    let listed = lines.iter().skip_while(|line| **line != "Commands:");
    let listed = listed.skip(1).take_while(|line| !line.is_empty());
    // Names are indented by two spaces, and continued descriptions by more.
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for inner in names.filter(|name| !["", "help"].contains(name)) {
        describe(&[words, &[inner]].concat(), text);
    }
}
