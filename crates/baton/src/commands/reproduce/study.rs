//! Experiments that are study files, which ship with the program. These files define the runs, the published numbers and the output.

use super::{AnyRow, Context, Outcome, Reproduction, excerpts};
use crate::beside;
use crate::commands::trace::compare_lifetimes;
use crate::config::{self, Point, Request, Setting};
use crate::failure::Failure;
use crate::logs;
use crate::runner::{Job, run_all};
use crate::tables;
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
        let mut outcome = run(context, "handoff-table1", Logs::ForLoad)?;
        outcome.text += "\n";
        outcome.text += &lifetimes(context)?;
        Ok(outcome)
    },
};

/// Policies that the handoff-policies paper leaves open.
pub const HANDOFF_POLICIES: Reproduction = Reproduction {
    name: "handoff-policies",
    about: "what beats FCFS? selection by rate, benefit or an oracle; load control by working time or packets; relief (no publication)",
    figure: true,
    run: |context| run(context, "handoff-policies", Logs::ForLoad),
};

/// Cycles that handoff saves the host.
pub const HANDOFF_INTERFACE: Reproduction = Reproduction {
    name: "handoff-interface",
    about: "the host's cycles per packet with no connection on the NIC and with all; predictions (EuroSys 2006, abstract)",
    figure: true,
    run: |context| run(context, "handoff-interface", Logs::Never),
};

/// Cache misses of a server that only sends.
pub const MEMORY_MISSES: Reproduction = Reproduction {
    name: "memory-misses",
    about: "L2 misses per KB sent with 6 to 16,384 connections; predictions (USENIX 2006, Table 2, uniprocessor kernel)",
    figure: false,
    run: |context| run(context, "memory-misses", Logs::Never),
};

/// Cycles of TCP in a web server.
pub const MEMORY_TCP: Reproduction = Reproduction {
    name: "memory-tcp",
    about: "cycles of TCP per packet with 16 to 8,192 connections, near and far; predictions (Rice TR05-450, abstract)",
    figure: false,
    run: |context| run(context, "memory-tcp", Logs::ForLoad),
};

/// Figure 4 of the data-caching paper.
pub const DCACHE_BUS: Reproduction = Reproduction {
    name: "dcache-bus",
    about: "utilisation of the PCI bus by category, without a cache (ASPLOS 2002, Figure 4)",
    figure: true,
    run: |context| run(context, "dcache-bus", Logs::Beside),
};

/// Figure 7 of the data-caching paper, from the runs of its Table 1.
pub const DCACHE_TRAFFIC: Reproduction = Reproduction {
    name: "dcache-traffic",
    about: "traffic on the PCI bus with caches of 0, 4, 8 and 16 MB on each NIC (ASPLOS 2002, Figure 7)",
    figure: true,
    run: |context| run(context, "dcache-table1", Logs::Beside),
};

/// Table 1 of the data-caching paper.
pub const DCACHE_TABLE1: Reproduction = Reproduction {
    name: "dcache-table1",
    about: "reduction of bus traffic, throughput and request rate with caches of 0, 4, 8 and 16 MB (ASPLOS 2002, Table 1)",
    figure: true,
    run: |context| run(context, "dcache-table1", Logs::Beside),
};

/// Machines on which caches still pay.
pub const DCACHE_MODERN: Reproduction = Reproduction {
    name: "dcache-modern",
    about: "where caches on NICs still pay: 2 x 100 GbE, PCI Express, a log like that of a delivery network (no publication)",
    figure: true,
    run: |context| run(context, "dcache-modern", Logs::Never),
};

/// Use of a log that the user gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Logs {
    /// No log is accepted.
    Never,
    /// The log replaces a generated one.
    ForLoad,
    /// The log is run in addition to the study's own logs, as excerpts are.
    Beside,
}

/// Runs the shipped study file `name`.
fn run(context: &Context<'_>, name: &str, logs: Logs) -> Result<Outcome, Failure> {
    let given = [
        ("--data", context.data.is_some() && logs != Logs::Beside),
        ("--log", context.log.is_some() && logs == Logs::Never),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(Failure::BadInput(format!(
            "{flag}: {name} has no such option; see baton reproduce --help"
        )));
    }
    let log = context.log;
    let in_order = log.filter(|_| logs == Logs::ForLoad);
    let settings = [Setting::of_flag("--seed", "run.seed", context.seed)];
    let request = Request {
        experiment: name.to_owned(),
        log: log.map(Into::into),
        logs: context.data.map_or(Ok(Vec::new()), excerpts::given_in)?,
        settings: (settings.into_iter())
            .chain(context.packets())
            .chain(in_order.map(|_| Setting::log_in_order()))
            .chain(log.into_iter().flat_map(|_| context.reading.settings()))
            .collect(),
        seeds: context.batching.seeds.map(u64::from),
        ..Request::default()
    };
    let mut outcome = run_study(context, &request)?;
    if logs == Logs::Beside {
        outcome.text += excerpts::note(context);
    }
    Ok(outcome)
}

/// Runs a study, and returns its report.
///
/// # Errors
/// Fails if the study is not valid, if a run fails, or if the user interrupts.
pub(super) fn run_study(context: &Context<'_>, request: &Request) -> Result<Outcome, Failure> {
    let plan = config::study(request, context.threads)?;
    let job = |point: Point| {
        let variant = point.variant.as_deref();
        let log = request.logs.iter().find(|log| Some(&*log.name) == variant);
        let again = match log {
            None => request.command(variant),
            Some(log) => format!("{} --log {}", request.command(None), log.path.display()),
        };
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
        rows: (beside::rows(&outcome).into_iter())
            .map(AnyRow::OfStudy)
            .collect(),
        text: beside::text(&outcome) + &tables::count(&results),
        figure: figure.map(|figure| beside::figure::of(figure, &outcome)),
    })
}

/// Compares the connection lifetimes of the log with those that the handoff-policies paper publishes.
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

/// Returns the log that is replayed if none is given.
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
