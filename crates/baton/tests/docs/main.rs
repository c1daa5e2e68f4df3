//! Tests of the README and the book: each command runs as it is written and prints the output shown, generated pages are current, and the targets of
//! links exist.
//!
//! Each page is run from top to bottom in a new folder with copies of `experiments`, `profiles` and `samples`. A block that a test cannot run starts
//! with `# As root: ...`, `# Takes ...` or `# Needs ...`, and is reported as ignored.

#[path = "../common/mod.rs"]
mod common;
mod measured;
mod page;
mod reference;

use common::root;
use libtest_mimic::{Arguments, Failed, Trial};
use page::{Block, Page};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let pages = all_pages();
    let mut seen = BTreeSet::new();
    let trials_of = |page| trials_of(page, &mut seen);
    let mut trials: Vec<Trial> = pages.iter().flat_map(trials_of).collect();
    trials.push(Trial::test("links", || links(&all_pages())));
    trials.push(Trial::test("contents", || contents(&all_pages())));
    trials.extend(reference::trials());
    trials.extend(measured::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Returns the README and all pages of the book.
fn all_pages() -> Vec<Page> {
    let mut paths = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs/src")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("the book's folder");
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "md") => {
                    paths.push(path);
                }
                false => {}
            }
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| Page::read(root(), path))
        .collect()
}

/// Returns a test that runs the page except for commands of earlier pages, and an ignored test for each block that only a reader can run.
fn trials_of(page: &Page, seen: &mut BTreeSet<String>) -> Vec<Trial> {
    let mut ignored = Vec::new();
    let mut runs = Vec::new();
    for block in &page.blocks {
        match block.reason() {
            Some(reason) => {
                let name = format!("{}: {}", page.name, block.first_command());
                let trial = Trial::test(name, || Ok(())).with_ignored_flag(true);
                ignored.push(trial.with_kind(reason));
            }
            None => runs.push(block.without(seen)),
        }
    }
    let mut trials = ignored;
    if runs.iter().any(Block::has_commands) {
        trials.push(Trial::test(page.name.clone(), move || run(&runs)));
    }
    trials
}

/// Runs the blocks in order, as a reader would.
fn run(blocks: &[Block]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    for name in ["experiments", "profiles", "samples", "docs/src"] {
        copy(&root().join(name), &folder.path().join(name));
    }
    let program = Path::new(env!("CARGO_BIN_EXE_baton"));
    let bin = program.parent().expect("a folder").display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let mut printed = String::new();
    for block in blocks {
        if let Some(expected) = block.unprinted(&printed) {
            return Err(format!("expected\n{expected}\nprinted\n{printed}").into());
        }
        match block {
            Block::File { name, text } => fs::write(folder.path().join(name), text)?,
            Block::Commands(_) if block.has_commands() => {
                let script = block.script();
                let ran = Command::new("sh")
                    .args(["-e", "-c", &script])
                    .env("PATH", &path)
                    .current_dir(folder.path())
                    .output()?;
                if !ran.status.success() {
                    let stderr = String::from_utf8_lossy(&ran.stderr);
                    return Err(format!("{}: {script}\n{stderr}", ran.status).into());
                }
                let lines = String::from_utf8_lossy(&ran.stdout);
                let lines = lines.lines().map(|line| format!("{}\n", line.trim_end()));
                printed = lines.collect();
            }
            _ => {}
        }
    }
    is_unchanged(&folder.path().join("docs/src"))
}

/// Checks that the commands have drawn the figures of the book exactly as they are in the repository.
fn is_unchanged(folder: &Path) -> Result<(), Failed> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().expect("a file's name");
        if fs::read(&path)? != fs::read(root().join("docs/src").join(name))? {
            return Err(format!(
                "docs/src/{} differs from the figure that was drawn",
                name.display()
            )
            .into());
        }
    }
    Ok(())
}

/// Copies the files in a folder, but no folders in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let name = path.file_name().expect("a file's name");
            fs::copy(&path, to.join(name)).expect("a copy");
        }
    }
}

/// Checks that all files exist to which pages link.
fn links(pages: &[Page]) -> Result<(), Failed> {
    let missing: Vec<String> = pages.iter().flat_map(Page::dead_links).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(missing.join("\n").into()),
    }
}

/// Checks that `SUMMARY.md` lists exactly the pages of the book.
fn contents(pages: &[Page]) -> Result<(), Failed> {
    let folder = root().join("docs/src");
    let is_page = |path: &PathBuf| path.starts_with(&folder) && !path.ends_with("SUMMARY.md");
    let there: BTreeSet<PathBuf> = pages
        .iter()
        .map(|page| page.path.clone())
        .filter(is_page)
        .collect();
    let summary = pages.iter().find(|page| page.path.ends_with("SUMMARY.md"));
    let listed = summary
        .ok_or("no SUMMARY.md")?
        .links()
        .map(|link| folder.join(link));
    match listed.collect::<BTreeSet<_>>() == there {
        true => Ok(()),
        false => Err("SUMMARY.md does not list exactly the pages of the book".into()),
    }
}
