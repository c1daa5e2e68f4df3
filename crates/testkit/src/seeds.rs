//! Choice of the seeds of random tests, and replay of failures.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Returns `count` seeds, or as many as `BATON_SEEDS` specifies, or only `BATON_SEED`.
fn seeds(count: u64) -> Range<u64> {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse().expect("seeds are numbers"))
    };
    match number("BATON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BATON_SEEDS").unwrap_or(count),
    }
}

/// Runs a test for `count` seeds, or for as many as the environment variable `BATON_SEEDS` specifies, or only for `BATON_SEED`. Returns the
/// results of the runs.
///
/// # Panics
/// As soon as a run panics, after printing how to replay it.
pub fn for_each_seed<T>(count: u64, mut run: impl FnMut(u64) -> T) -> Vec<T> {
    let run = |seed| {
        catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|panic| {
            eprintln!("replay with: BATON_SEED={seed} {}", this_test());
            resume_unwind(panic)
        })
    };
    seeds(count).map(run).collect()
}

/// Returns the command that runs the current test.
fn this_test() -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_default();
    // Cargo appends a hash.
    let target = program.file_stem().unwrap_or_default().to_string_lossy();
    let target = target.rsplit_once('-').map_or("", |(target, _)| target);
    let target = match target == package.replace('-', "_") {
        true => String::from("--lib"),
        false => format!("--test {target}"),
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    format!("cargo test -p {package} {target} {test}")
}
