//! Experiments that are study files, which ship with the program: what they run, what is published of it and what is printed stands there.

use super::{Context, Outcome, Reproduction, Rows};
use crate::beside;
use crate::commands::trace::compare_lifetimes;
use crate::config::{self, Point, Request, Setting};
use crate::failure::Failure;
use crate::logs;
use crate::runner::{Job, run_all};
use baton_sim::config::WorkloadConfig;
use baton_study::table::metrics;
use baton_workload::analyse::Lifetimes;
use baton_workload::{Log, Preset, SessionRule, Sessions};
use std::sync::Arc;

/// Table 1 of the handoff-policies paper.
pub const HANDOFF_TABLE1: Reproduction = Reproduction {
    name: "handoff-table1",
    about: "request rate, idle time and packet delays with 0, 256 and 1024 connections on the NIC (OSDI 2006, Table 1)",
    figure: false,
    run: |context| {
        let mut outcome = run(context, "handoff-table1", true)?;
        outcome.text += "\n";
        outcome.text += &lifetimes(context)?;
        Ok(outcome)
    },
};

/// Policies that the same paper leaves to others.
pub const HANDOFF_POLICIES: Reproduction = Reproduction {
    name: "handoff-policies",
    about: "selection by rate, benefit, an oracle; load by time worked and packets; relief: what beats FCFS? (no publication)",
    figure: true,
    run: |context| run(context, "handoff-policies", true),
};

/// Cache misses of a server that only sends.
pub const MEMORY_MISSES: Reproduction = Reproduction {
    name: "memory-misses",
    about: "L2 misses per KB sent with 6 to 16,384 connections; predictions (USENIX 2006, Table 2, uniprocessor kernel)",
    figure: false,
    run: |context| run(context, "memory-misses", false),
};

/// Cycles of TCP of a web server.
pub const MEMORY_TCP: Reproduction = Reproduction {
    name: "memory-tcp",
    about: "cycles of TCP per packet with 16 to 8,192 connections, near and far; predictions (Rice TR05-450, abstract)",
    figure: false,
    run: |context| run(context, "memory-tcp", true),
};

/// Runs the study file that ships under a name; `takes_log` says whether a log may be replayed in place of a generated one.
fn run(context: &Context<'_>, name: &str, takes_log: bool) -> Result<Outcome, Failure> {
    let given = [
        ("--data", context.data.is_some()),
        ("--log", context.log.is_some() && !takes_log),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(Failure::BadInput(format!(
            "{flag}: {name} has no such option; see baton reproduce --help"
        )));
    }
    let seed = Setting::of_flag("--seed", "run.seed", context.seed);
    let log = context.log;
    let request = Request {
        experiment: name.to_owned(),
        log: log.map(Into::into),
        settings: std::iter::once(seed)
            .chain(context.packets())
            .chain(log.map(|_| Setting::log_in_order()))
            .chain(log.into_iter().flat_map(|_| context.reading.settings()))
            .collect(),
        seeds: context.batching.seeds.map(u64::from),
        ..Request::default()
    };
    let plan = config::study(&request, context.threads)?;
    let job = |point: Point| {
        let again = request.command(point.variant.as_deref());
        Job::new(point.experiment, again.replacen("run", "sweep", 1))
    };
    let jobs: Vec<Job> = plan.points.into_iter().map(job).collect();
    let results = run_all(&jobs, context.threads, context.interrupt)?;
    let outcome = beside::Outcome {
        plan: &plan.report,
        runs: results.iter().map(metrics::of).collect(),
    };
    let figure = plan.report.figures.first();
    Ok(Outcome {
        rows: Rows::OfStudy(beside::rows(&outcome)),
        text: beside::text(&outcome),
        figure: figure.map(|figure| beside::figure::of(figure, &outcome)),
    })
}

/// How far the connection lifetimes of the log are from those that the handoff-policies paper publishes.
fn lifetimes(context: &Context<'_>) -> Result<String, Failure> {
    let (name, log) = match context.log {
        Some(path) => {
            let log = logs::read_then(path, context.reading, context.interrupt, Ok)?;
            (path.display().to_string(), log)
        }
        None => match generated_log(context)? {
            Some(log) => ("the generated log".to_owned(), Arc::new(log)),
            None => return Ok(String::new()),
        },
    };
    let sessions = Sessions::new(&log.requests, SessionRule::PAPERS);
    let lifetimes = compare_lifetimes(&Lifetimes::of(&log, &sessions));
    Ok(format!("Connection lifetimes in {name}:\n{lifetimes}"))
}

/// The log that is replayed where none is given.
fn generated_log(context: &Context<'_>) -> Result<Option<Log>, Failure> {
    let request = Request {
        experiment: HANDOFF_TABLE1.name.to_owned(),
        ..Request::default()
    };
    let runs = config::plan(&request)?.runs;
    let workload = runs.first().map(|run| &run.experiment.workload);
    let Some(WorkloadConfig::Generated {
        preset, requests, ..
    }) = workload
    else {
        return Ok(None);
    };
    let preset = Preset::from_name(preset);
    Ok(preset.and_then(|preset| preset.spec().generate(context.seed, *requests).ok()))
}
