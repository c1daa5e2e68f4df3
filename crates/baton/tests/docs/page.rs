//! Parses a page of Markdown: its commands, the output that it shows, the files that it asks readers to write, and its links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// First words of a block that is not run; they state the reason.
const REASONS: [&str; 3] = ["# As root", "# Takes ", "# Needs "];

/// A command that contains one of these writes a file.
const WRITES: [&str; 5] = [">", "--figure", "--json", "--out", "--pcap"];

/// A page of the README or the book.
pub struct Page {
    pub path: PathBuf,
    /// The path within the repository.
    pub name: String,
    pub blocks: Vec<Block>,
    text: String,
}

/// The line above a table of numbers that commands have printed.
const PRINTED: &str = "<!-- printed -->";

/// A part of a page that the test runs, writes or compares.
#[derive(Clone)]
pub enum Block {
    /// A block `sh`: commands for a shell.
    Commands(String),
    /// A block `toml` that begins with the name of a file, as in `# mine.toml`: the content of that file.
    File { name: String, text: String },
    /// A block `text`: the output of the commands above must contain it.
    Printed(String),
    /// Rows of a table: for each row, a line in the output of the commands above must have the same numbers in the same order.
    Rows(Vec<String>),
}

impl Page {
    pub fn read(root: &Path, path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).expect("a page");
        let name = path.strip_prefix(root).expect("a path in the repository");
        Self {
            name: name.display().to_string(),
            blocks: blocks(&text),
            text,
            path,
        }
    }

    /// Returns the files to which the page links, without anchors.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        let targets = self.text.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        let files = targets.filter_map(|target| target.split('#').next());
        files.filter(|file| !file.is_empty() && !file.contains("://"))
    }

    /// Describes the links to files that do not exist.
    pub fn dead_links(&self) -> Vec<String> {
        let folder = self.path.parent().expect("a folder");
        let dead = self.links().filter(|file| !folder.join(file).exists());
        dead.map(|file| format!("{}: {file} does not exist", self.name))
            .collect()
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == PRINTED {
            let table = std::iter::from_fn(|| lines.next_if(|line| line.starts_with('|')));
            let rows: Vec<String> = table.skip(2).map(str::to_owned).collect();
            assert!(!rows.is_empty(), "no table below {PRINTED}");
            blocks.push(Block::Rows(rows));
        }
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let inside = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let text: String = inside
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        let named = text
            .lines()
            .next()
            .and_then(|first| first.strip_prefix("# "));
        match language {
            "sh" => blocks.push(Block::Commands(text)),
            "text" => blocks.push(Block::Printed(text)),
            "toml" => blocks.extend(named.filter(|name| name.ends_with(".toml")).map(|name| {
                let name = name.to_owned();
                Block::File {
                    name,
                    text: text.clone(),
                }
            })),
            _ => {}
        }
    }
    blocks
}

impl Block {
    /// Returns why the test does not run the block, or `None` if it runs it.
    pub fn reason(&self) -> Option<&str> {
        let Self::Commands(text) = self else {
            return None;
        };
        let first = text.lines().next()?;
        let told = REASONS.iter().any(|reason| first.starts_with(reason));
        let builds = !self.has_commands() && text.lines().any(is_build);
        match told {
            true => Some(first.trim_start_matches("# ").trim_end_matches(':')),
            false if builds => Some("a build or the tests themselves"),
            false => None,
        }
    }

    /// Returns the block without commands that earlier blocks have, unless they write a file.
    pub fn without(&self, seen: &mut BTreeSet<String>) -> Self {
        let Self::Commands(text) = self else {
            return self.clone();
        };
        let mut is_new = |line: &&str| {
            let command = line.split("  #").next().unwrap_or_default().trim_end();
            let command = command.replace("cargo run --release --", "baton");
            let writes = WRITES.iter().any(|how| command.contains(how));
            seen.insert(command) || writes
        };
        let lines = text.lines().filter(|line| is_new(line));
        Self::Commands(lines.map(|line| format!("{line}\n")).collect())
    }

    pub fn first_command(&self) -> &str {
        let Self::Commands(text) = self else {
            return "";
        };
        let mut commands = text.lines().filter(|line| !line.starts_with('#'));
        commands.next().unwrap_or_default()
    }

    /// Returns whether the block contains a command that the test runs.
    pub fn has_commands(&self) -> bool {
        match self {
            Self::Commands(_) => !self.script().is_empty(),
            _ => false,
        }
    }

    /// Returns the text that the block expects in the output of the commands above and that is missing there.
    pub fn unprinted(&self, printed: &str) -> Option<&str> {
        match self {
            Self::Printed(text) => (!printed.contains(text)).then_some(text),
            Self::Rows(rows) => {
                let mut rows = rows.iter().map(String::as_str);
                rows.find(|row| !is_printed(row, printed))
            }
            Self::Commands(_) | Self::File { .. } => None,
        }
    }

    /// Returns the commands for a shell in whose path `baton` is, without those that build.
    pub fn script(&self) -> String {
        let Self::Commands(text) = self else {
            return String::new();
        };
        let text = text.replace("cargo run --release --", "baton");
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !is_build(line));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

/// Returns whether a line of `printed` has all numbers of the row, except those in its first cell, in the same order.
fn is_printed(row: &str, printed: &str) -> bool {
    let (_, cells) = row[1..].split_once('|').unwrap_or_default();
    printed.lines().any(|line| {
        let mut on_line = numbers(line);
        numbers(cells).all(|number| on_line.any(|other| other == number))
    })
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != ',' && c != '.');
    words.filter(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// Returns whether a command builds or tests the project.
fn is_build(line: &str) -> bool {
    [
        "cargo build",
        "cargo test",
        "cargo install",
        "./check",
        "./e2e",
        "mdbook",
        "git ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}
