//! `baton run`: runs an experiment, and writes tables and JSON.

mod kept_off;
mod two_starts;

use crate::cli::{PrintConfig, RunArgs};
use crate::config::{self, Plan, Planned, Request};
use crate::failure::Failure;
use crate::output::{JsonOutput, Pending, note, print, print_text, spare, tell};
use crate::runner::{Interrupt, Job};
use crate::summary::{self, Summary};
use crate::tables;
use baton_sim::config::WorkloadConfig;
use baton_sim::results::Results;
use baton_sim::{Capture, Link, Timeline};
use kept_off::KeptOff;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// Content of `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document<'a> {
    /// Summaries, one for each variant, in the order of the experiment file.
    summary: &'a [Summary],
    /// All runs with all seeds, in the order of variants and then of seeds.
    runs: &'a [Results],
    /// For all runs that replay a log and have data caches on their NICs: the reasons why content stays off the bus.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    kept_off_bus: &'a [KeptOff],
}

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if a run fails, or if the user interrupts.
pub fn execute(arguments: &RunArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let changes = &arguments.changes;
    let request = Request {
        experiment: arguments.experiment.clone(),
        text: None,
        profile: changes.profile.clone(),
        log: changes.log.clone(),
        settings: changes.settings(),
        variants: arguments.variant.clone(),
        ..Request::default()
    };
    let mut plan = config::plan(&request)?;
    plan.name_changes();
    plan.runs.iter_mut().for_each(Planned::measure_long_enough);
    if let Some(how) = arguments.print_config {
        return print(&config::to_text(&plan, how == PrintConfig::Full)?);
    }
    for input in inputs(arguments, &plan) {
        spare(input, "--json", arguments.json.as_deref())?;
        spare(input, "--pcap", arguments.pcap.as_deref())?;
        spare(input, "--timeline", arguments.timeline.file.as_deref())?;
    }
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let capture = prepare_capture(arguments, &plan)?;
    let timeline = arguments.timeline.file.as_deref();
    let timeline = timeline.map(|path| of_one_run("--timeline", path, arguments, &plan));
    let timeline = timeline.transpose()?.map(|(file, _)| file);
    refuse_one_file(arguments, [capture.as_ref(), timeline.as_ref()])?;
    plan.notes.iter().for_each(|text| note(text));
    for warning in plan.without_effect() {
        tell(&format!("warning: {warning}\n"));
    }
    let seeds = arguments.seeds as usize;
    let jobs: Vec<Job> = plan
        .runs
        .iter()
        .flat_map(|run| (0..seeds as u64).map(move |seed| (run, seed)))
        .map(|(run, seed)| {
            job(
                run,
                seed,
                &request,
                arguments,
                [capture.as_ref(), timeline.as_ref()],
            )
        })
        .collect();
    let ran = two_starts::run_from_both(&jobs, arguments.threads.get(), interrupt)?;
    let Some(results) = ran.iter().cloned().collect::<Option<Vec<_>>>() else {
        return Err(show_finished(&ran, seeds)?);
    };
    let groups: Vec<&[Results]> = results.chunks(seeds).collect();
    let summaries = summary::of(&groups);
    let kept_off = kept_off::of(&results, arguments.threads.get(), interrupt)?;
    let text =
        tables::describe(&groups, &summaries, arguments.details) + &kept_off::table(&kept_off);
    for file in [capture, timeline].into_iter().flatten() {
        file.commit()?;
    }
    match json {
        Some(json) => json.write(
            &Document {
                summary: &summaries,
                runs: &results,
                kept_off_bus: &kept_off,
            },
            &text,
        )?,
        None => print_text(&text)?,
    }
    tables::measured_nothing(&results).map_or(Ok(()), |why| Err(Failure::Failed(why)))
}

/// After an interrupt, prints the configurations whose runs are done, and returns the failure that the command ends with.
///
/// # Errors
/// Fails if nothing can be printed.
fn show_finished(ran: &[Option<Results>], seeds: usize) -> Result<Failure, Failure> {
    let all = ran.chunks(seeds);
    let done = all.filter_map(|group| group.iter().cloned().collect::<Option<Vec<_>>>());
    let done: Vec<Vec<Results>> = done.collect();
    if done.is_empty() {
        return Ok(Failure::Interrupted);
    }
    let groups: Vec<&[Results]> = done.iter().map(Vec::as_slice).collect();
    print_text(&tables::describe(&groups, &summary::of(&groups), false))?;
    Ok(Failure::Paused(format!(
        "{} of {} configurations were done, as printed; no file was written",
        groups.len(),
        ran.len() / seeds
    )))
}

/// Returns all files that the runs read.
fn inputs<'a>(arguments: &'a RunArgs, plan: &'a Plan) -> impl Iterator<Item = &'a Path> {
    let profile = arguments.changes.profile.as_deref().map(Path::new);
    let logs = plan
        .runs
        .iter()
        .filter_map(|run| match &run.experiment.workload {
            WorkloadConfig::Log { path, .. } => Some(path.as_path()),
            _ => None,
        });
    [Path::new(&arguments.experiment)]
        .into_iter()
        .chain(profile)
        .chain(logs)
}

/// Returns the file for `--pcap`, if the option was given and a capture is possible.
fn prepare_capture(arguments: &RunArgs, plan: &Plan) -> Result<Option<Pending>, Failure> {
    let Some(path) = &arguments.pcap else {
        return Ok(None);
    };
    let (pending, run) = of_one_run("--pcap", path, arguments, plan)?;
    let clients = run.experiment.clients.connections;
    if let Link::Client(number) = arguments.pcap_link
        && number >= clients
    {
        return Err(Failure::BadInput(format!(
            "--pcap-link client:{number}: there are {clients} clients; expected client:0 to client:{}",
            clients - 1
        )));
    }
    Ok(Some(pending))
}

/// Returns the file for output that describes a single run, and this run.
fn of_one_run<'a>(
    flag: &'static str,
    path: &Path,
    arguments: &RunArgs,
    plan: &'a Plan,
) -> Result<(Pending, &'a Planned), Failure> {
    if arguments.seeds > 1 {
        return Err(Failure::BadInput(format!(
            "{flag}: there are several seeds; expected a single run"
        )));
    }
    let [run] = plan.runs.as_slice() else {
        return Err(Failure::BadInput(format!(
            "{flag}: {} has {} variants; expected a single run: choose one with --variant NAME",
            arguments.experiment,
            plan.runs.len()
        )));
    };
    Ok((Pending::new(flag, path)?, run))
}

/// Refuses to write two outputs into one file.
fn refuse_one_file(arguments: &RunArgs, files: [Option<&Pending>; 2]) -> Result<(), Failure> {
    let [capture, timeline] = files.map(|file| file.map(Pending::target));
    let json = arguments.json.as_deref();
    for (flags, one, other) in [
        ("--json and --pcap", json, capture),
        ("--json and --timeline", json, timeline),
        ("--pcap and --timeline", capture, timeline),
    ] {
        if let (Some(one), Some(other)) = (one, other)
            && same_file(one, other)
        {
            return Err(Failure::BadInput(format!(
                "{flags} name the same file; expected two files"
            )));
        }
    }
    Ok(())
}

fn same_file(path: &Path, target: &Path) -> bool {
    path == target || std::path::absolute(path).ok() == std::path::absolute(target).ok()
}

/// Returns the run with the experiment's own seed plus `later`.
fn job(
    run: &Planned,
    later: u64,
    request: &Request,
    arguments: &RunArgs,
    [capture, timeline]: [Option<&Pending>; 2],
) -> Job {
    let captures = capture.map(|file| Capture {
        link: arguments.pcap_link,
        path: file.path().to_owned(),
    });
    let timeline = timeline.map(|file| Timeline {
        sampling: arguments.timeline.sampling(),
        path: file.path().to_owned(),
    });
    let mut experiment = run.experiment.clone();
    experiment.run.seed = experiment.run.seed.wrapping_add(later);
    Job {
        captures: captures.into_iter().collect(),
        timeline,
        ..Job::new(experiment, request.command_of(run))
    }
}
