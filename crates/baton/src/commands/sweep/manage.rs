//! `baton sweep status`, `merge` and `gc`.

use crate::failure::Failure;
use crate::output::{print, print_text, to_json};
use baton_report::{Table, grouped};
use baton_study::{
    Patience, Status, Store, Study, StudyStatus, WorkerStatus, collect_garbage, table,
};
use std::path::{Path, PathBuf};

/// Shows the progress of the studies in a folder.
///
/// # Errors
/// Fails if the folder has no results, or cannot be read.
pub fn status(folder: &Path, json: bool) -> Result<(), Failure> {
    let status = Status::of(&open(folder)?)?;
    if json {
        return print(&to_json(&status)?);
    }
    let mut table = Table::of("study", &["runs", "done", "failed", "hours of threads"]);
    for study in &status.studies {
        table.row(row(study));
    }
    let mut text = table.render();
    text += &format!(
        "\n{} runs are kept in {}\n",
        grouped(status.runs as u64),
        folder.display()
    );
    for worker in &status.workers {
        text += &describe(worker);
    }
    print_text(&text)
}

fn row(study: &StudyStatus) -> Vec<String> {
    let count = |count: usize| grouped(count as u64);
    vec![
        study.name.clone(),
        count(study.runs),
        count(study.done),
        count(study.failed),
        format!("{:.2}", study.took_s / 3600.0),
    ]
}

fn describe(worker: &WorkerStatus) -> String {
    let WorkerStatus { note, lives, runs } = worker;
    let (process, host, runs) = (note.process, &note.host, runs.len());
    match lives {
        true => format!("process {process} on {host} is working on {runs} runs\n"),
        false => format!(
            "process {process} on {host} has died; the next process takes over its {runs} unfinished runs\n"
        ),
    }
}

/// Merges results into one folder.
///
/// # Errors
/// Fails if a folder cannot be read, if the target cannot be written, or if a run has several results.
pub fn merge(from: &[PathBuf], out: &Path) -> Result<(), Failure> {
    from.iter().try_for_each(|from| Store::check(from))?;
    let store = super::open(out)?;
    let mut text = String::new();
    let mut different = Vec::new();
    for from in from {
        let merged = baton_study::merge(from, &store)?;
        let (new, same) = (grouped(merged.new as u64), grouped(merged.same as u64));
        text += &format!(
            "{}: {new} runs are new, {same} were already there\n",
            from.display()
        );
        different.extend(merged.different);
    }
    for study in Study::all(out)? {
        let StudyStatus {
            name, runs, done, ..
        } = StudyStatus::of(out, &study)?;
        text += &format!(
            "{name}: {} of {} runs done\n",
            grouped(done as u64),
            grouped(runs as u64)
        );
        if done == runs {
            table::write(&store, &study)?;
        }
    }
    print_text(&text)?;
    match different.as_slice() {
        [] => Ok(()),
        [key, ..] => Err(Failure::Failed(format!(
            "{} runs have different results in {}, which were not changed: the first is {key}; \
             equal configurations, logs and programs should give equal results",
            different.len(),
            out.display()
        ))),
    }
}

/// Removes results that are not needed.
///
/// # Errors
/// Fails if the folder has no results, or cannot be written.
pub fn collect(folder: &Path, dry_run: bool) -> Result<(), Failure> {
    let found = collect_garbage(&open(folder)?, dry_run)?;
    let verb = if dry_run {
        "would be removed"
    } else {
        "removed"
    };
    print_text(&format!(
        "{verb}: {} runs that no study uses ({}), {} unfinished runs of {} dead processes\n",
        grouped(found.runs as u64),
        baton_report::bytes(found.bytes),
        found.leases,
        found.workers
    ))
}

/// Opens a folder that has results.
fn open(folder: &Path) -> Result<Store, Failure> {
    Store::check(folder)?;
    Ok(Store::open(folder, Patience::default())?)
}
