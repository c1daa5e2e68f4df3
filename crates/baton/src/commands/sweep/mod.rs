//! `baton sweep`: runs a study, and writes a folder of results and tables.

mod figure;
pub(super) mod fit;
mod manage;
mod plan;

use crate::beside::{self, Outcome};
use crate::cli::{SweepArgs, SweepCommand};
use crate::config::{self, ReportPlan, Request};
use crate::failure::Failure;
use crate::output::{note, print, print_text, tell};
use crate::runner::{Interrupt, Sweep};
use baton_report::grouped;
use baton_sim::config::Experiment;
use baton_study::{Key, Patience, Store, Study, StudyStatus, table};
use figure::Drawings;
use fit::Fitter;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if a run fails, or if the user interrupts.
pub fn execute(arguments: &SweepArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    match &arguments.command {
        Some(SweepCommand::Status { folder, json }) => manage::status(folder, *json),
        Some(SweepCommand::Merge { from, out }) => manage::merge(from, out),
        Some(SweepCommand::Gc { folder, dry_run }) => manage::collect(folder, *dry_run),
        None => sweep(arguments, interrupt),
    }
}

fn sweep(arguments: &SweepArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let threads = arguments.threads.get();
    let study = arguments.study.clone().unwrap_or_default();
    let changes = &arguments.changes;
    let mut request = Request {
        experiment: study.clone(),
        profile: changes.profile.clone(),
        log: changes.log.clone(),
        settings: changes.settings(),
        variants: arguments.variant.clone(),
        measured: arguments.measured.clone(),
        ..Request::default()
    };
    let mut plan = config::study(&request, threads)?;
    if arguments.plan {
        return print(&plan::text(&plan)?);
    }
    plan.refuse_standard_input()?;
    plan.notes.iter().for_each(|text| note(text));
    for warning in &plan.without_effect {
        tell(&format!("warning: {warning}\n"));
    }
    let to_fit = match (arguments.fit, &plan.report.fit) {
        (false, _) => None,
        (true, Some(fit)) => Some(fit.clone()),
        (true, None) => {
            let message = format!(
                "--fit: {study} has no table [fit], which says what to fit; expected a study with one"
            );
            return Err(Failure::BadInput(message));
        }
    };
    let out = arguments.out.as_deref().unwrap_or(Path::new("."));
    let store = open(out)?;
    if let Some(fit) = &to_fit {
        let fitter = Fitter {
            request: &request,
            plan: fit,
            store: &store,
            threads,
            interrupt,
        };
        let fitted = fitter.fit(&|text| print(text));
        let fitted = fitted.map_err(|failure| paused(failure, "finished", out))?;
        print(&format!("\nFitted:\n{}\n", fitted.lines()))?;
        request.settings.extend(fitted.settings);
        plan = config::study(&request, threads)?;
    }
    let report = plan.report.clone();
    let drawings = Drawings::new(&arguments.figure, &report, store.root())?;
    let (mut study, runs) = plan.identified(&store)?;
    study.command = Some(this_command());
    study.save(&store)?;
    let mine = |(number, run): (usize, (Key, Experiment))| {
        let is_mine = arguments.shard.is_none_or(|shard| shard.has(number));
        (is_mine && !store.has(run.0)).then_some(run)
    };
    let missing: Vec<(Key, Experiment)> = runs.into_iter().enumerate().filter_map(mine).collect();
    let sweep = Sweep {
        store: &store,
        runs: &missing,
        threads,
    };
    let done = sweep.carry_out(interrupt);
    let kept = study.runs.iter().filter(|run| store.has(run.key)).count();
    let kept = format!(
        "{} of {}",
        grouped(kept as u64),
        grouped(study.runs.len() as u64)
    );
    let new = grouped(done.map_err(|failure| paused(failure, &kept, out))? as u64);
    let text = format!("{}: {kept} runs done, {new} of them now\n", study.name);
    finish(&store, &study, &report, drawings, text)
}

/// Returns the command line of this process.
pub(super) fn this_command() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    config::command_line(std::iter::once("baton".to_owned()).chain(words))
}

/// Turns an interrupt into a failure whose message says which results are kept.
fn paused(failure: Failure, kept: &str, out: &Path) -> Failure {
    match failure {
        Failure::Interrupted => Failure::Paused(format!(
            "{kept} runs are kept in {}; the same command does the rest",
            out.display()
        )),
        failure => failure,
    }
}

/// Opens the store of results.
fn open(out: &Path) -> Result<Store, Failure> {
    let opened = Store::open(out, Patience::default());
    opened.map_err(|error| match Failure::from(error) {
        Failure::Failed(why) => Failure::BadInput(format!(
            "--out {why}; expected a folder that can be written"
        )),
        failure => failure,
    })
}

/// Writes tables and figures when all results exist, and prints the names of the files after `text`.
fn finish(
    store: &Store,
    study: &Study,
    report: &ReportPlan,
    drawings: Drawings,
    mut text: String,
) -> Result<(), Failure> {
    let status = StudyStatus::of(store.root(), study)?;
    if status.not_steady > 0 {
        text += &format!(
            "* {} of these runs were not steady; the column `not_steady` says why\n",
            grouped(status.not_steady as u64)
        );
    }
    let failed = if study.runs.iter().all(|run| store.has(run.key)) {
        let table::Written {
            mut files, failed, ..
        } = table::write(store, study)?;
        if !report.is_silent() {
            let outcome = Outcome::read(report, store, study)?;
            if !report.numbers.is_empty() {
                let table = beside::csv(&outcome)?;
                let name = format!("{}.published.csv", study.name);
                files.push(store.write_beside(&name, table.as_bytes())?);
            }
            files.extend(drawings.draw(&outcome)?);
            text = format!("{}{text}", beside::text(&outcome));
        }
        let files = files.iter().map(|path| format!("  {}\n", path.display()));
        text.extend(files);
        failed
    } else {
        text += "tables are written when all runs are done\n";
        status.failed
    };
    print_text(&text)?;
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Failed(format!(
            "{failed} runs failed an internal check of the simulator; the column `error` says which, and {} has their experiment files",
            store.root().join("failed").display()
        ))),
    }
}
