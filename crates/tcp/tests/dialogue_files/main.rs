//! Plays the packet dialogues in `tests/dialogues/**/*.dialogue`, one test for each file. `CONTRIBUTING.md` describes
//! the lines.

mod beyond;
mod odd_segments;
mod play;
mod self_test;
mod slow_start;

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

/// A fault in a dialogue, with its line.
#[derive(Debug)]
pub(crate) struct Fault {
    line: usize,
    message: String,
}

impl Fault {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

/// Plays one dialogue. It fails if segments or events remain at the end.
pub(crate) fn run(text: &str) -> Result<(), Fault> {
    let (player, last) = play::Player::play(text)?;
    player.end().map_err(|message| Fault::new(last, message))
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder of dialogues can be read");
    for entry in entries {
        let path = entry.expect("its entries can be read").path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "dialogue")
        {
            found.push(path);
        }
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues");
    let mut paths = Vec::new();
    files_below(&folder, &mut paths);
    paths.sort();
    assert!(
        !paths.is_empty(),
        "there are dialogues in {}",
        folder.display()
    );
    let mut trials: Vec<Trial> = paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&folder).expect("it is below the folder");
            let name = name.with_extension("").display().to_string();
            Trial::test(name, move || run_file(&path))
        })
        .collect();
    trials.extend(self_test::trials());
    trials.extend(named("beyond", beyond::ALL));
    trials.extend(odd_segments::trials());
    trials.extend(named("slow_start", slow_start::ALL));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Returns the tests, each named after its file and its function.
fn named(file: &str, tests: &[(&str, fn())]) -> impl Iterator<Item = Trial> {
    tests.iter().map(move |&(name, test)| {
        Trial::test(format!("{file}/{name}"), move || {
            test();
            Ok(())
        })
    })
}

fn run_file(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    run(&text).map_err(|fault| {
        let source = text.lines().nth(fault.line.saturating_sub(1)).unwrap_or("");
        let Fault { line, message } = fault;
        format!("{}:{line}: {source}\n{message}", path.display()).into()
    })
}
