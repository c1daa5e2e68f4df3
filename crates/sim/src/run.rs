//! Runs an experiment and returns its results.

use crate::config::{Experiment, Invalid, WorkloadConfig};
use crate::machine::names::snake_case;
use crate::machine::{Capture, Machine, MachineBuilder, Observer, RunError};
use crate::results::Results;
use baton_apps::symbolic;
use baton_workload::load::{Arrivals, Pace, Paced, Rate};
use baton_workload::log::{Logs, ReadOptions, Request, SkipReason, Skipped};
use baton_workload::{
    Fixed, GeneratorSpec, LoadSpec, Log, LogError, OnDemand, Order, Preset, RemoteFiles, Replay,
    SessionRule, SpecWeb, SpecWebSpec, Workload,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Facts about a workload.
pub type Facts = BTreeMap<String, Fact>;

/// One fact about a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    /// A number or an amount.
    Number(u64),
    /// Counts by reason.
    Counts(BTreeMap<String, u64>),
    /// Text.
    Words(String),
}

impl From<usize> for Fact {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<String> for Fact {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

/// Name of the fact that holds warnings about the log that readers of the results must know, one per line.
pub const WARNINGS: &str = "warnings";

/// Sources of connection scripts that can move between threads: one per replayer, or one for all.
pub type Load = Vec<Box<dyn Workload + Send>>;

/// Runs `experiment` and measures it. `commit` is recorded in the results; `captures` are written during the run.
///
/// # Errors
/// The experiment or its workload is invalid, a capture cannot be written, an end-to-end check failed, or `observer` cancelled the run.
pub fn run(
    experiment: &Experiment,
    commit: &str,
    captures: &[Capture],
    observer: &mut dyn Observer,
) -> Result<Results, RunError> {
    run_on(&Logs::new(), experiment, commit, captures, observer)
}

/// Runs an experiment like [`run`], with a cache of logs that is shared with other runs.
///
/// # Errors
/// The same as for [`run`].
pub fn run_on<'a>(
    logs: &Logs,
    experiment: &'a Experiment,
    commit: &str,
    captures: &'a [Capture],
    observer: &mut dyn Observer,
) -> Result<Results, RunError> {
    run_with(logs, experiment, commit, observer, |machine| {
        machine.captures(captures)
    })
}

/// Runs an experiment like [`run_on`], on a machine that `with` may modify, for example to set its own policies.
///
/// # Errors
/// The same as for [`run`].
pub fn run_with<'a>(
    logs: &Logs,
    experiment: &'a Experiment,
    commit: &str,
    observer: &mut dyn Observer,
    with: impl FnOnce(MachineBuilder<'a>) -> MachineBuilder<'a>,
) -> Result<Results, RunError> {
    experiment.validate()?;
    let (load, facts) = load_workload(experiment, logs, &|| observer.cancelled())?;
    let machine = with(Machine::builder(experiment).load(load));
    let mut results = machine.build()?.run(commit, observer)?;
    results.workload = facts;
    Ok(results)
}

/// Returns the workload that an experiment describes, split among its replayers, and facts about it. While a log is read, `cancelled` is
/// called from time to time to check whether the workload is still wanted.
///
/// # Errors
/// A log cannot be read or replayed, the generator is unknown, or loading was cancelled.
pub fn load_workload(
    experiment: &Experiment,
    logs: &Logs,
    cancelled: &dyn Fn() -> bool,
) -> Result<(Load, Facts), RunError> {
    let (load, log_rate, facts) = source(experiment, logs, cancelled)?;
    if experiment.load == LoadSpec::default() {
        return Ok((load, facts));
    }
    if experiment.load.needs_times() && experiment.workload.is_log() && log_rate.is_none() {
        let why = "all requests of the log were made at the same time; expected a log with times, or `load.arrivals`";
        return Err(RunError::Workload(why.to_owned()));
    }
    check_connections_come(experiment, &load, log_rate)?;
    let shares = load.len();
    let paced = |(number, share): (u64, Box<dyn Workload + Send>)| {
        let pace = Pace {
            log_requests_per_s: log_rate,
            shares,
            seed: experiment.run.seed ^ ARRIVALS_SALT ^ number << 48,
        };
        Box::new(Paced::new(share, &experiment.load, pace)) as _
    };
    Ok(((0..).zip(load).map(paced).collect(), facts))
}

/// Refuses a rate at which a run may end before its first connection is due. A rate counts requests, and the requests of a connection
/// follow each other, so long connections arrive rarely.
fn check_connections_come(
    experiment: &Experiment,
    load: &Load,
    log_rate: Option<f64>,
) -> Result<(), RunError> {
    let spec = &experiment.load;
    let arrivals = spec.arrivals(experiment.workload.is_log());
    let (Some(rate), true) = (spec.rate, arrivals != Some(Arrivals::Log)) else {
        return Ok(());
    };
    let requests_per_s = match rate {
        Rate::Times(times) => times * log_rate.unwrap_or_default(),
        Rate::PerSecond(rate) => rate,
    };
    let requests = load[0].requests_per_connection();
    let limit_s = experiment.run.limit_s as f64;
    if requests_per_s / requests * limit_s >= 1.0 {
        return Ok(());
    }
    let expected = format!(
        "at least {:.3}/s, because a connection has {requests} requests and the run ends after {limit_s} s (run.limit_s)",
        requests / limit_s
    );
    Err(Invalid::new("load.rate", rate, &expected).into())
}

/// Distinguishes the seed of arrivals from other seeds.
const ARRIVALS_SALT: u64 = 0xa441_7a15;

/// A load (with the waits of the log if they are needed, otherwise without waits), the log's requests per second, and facts.
type Source = (Load, Option<f64>, Facts);

fn source(
    experiment: &Experiment,
    logs: &Logs,
    cancelled: &dyn Fn() -> bool,
) -> Result<Source, RunError> {
    let seed = experiment.run.seed;
    if let Some(replayed) = replayed_log(experiment, logs, cancelled)? {
        let ReplayedLog { log, rule, .. } = &replayed;
        let drawn = match &experiment.workload {
            WorkloadConfig::Log { order, .. } => (*order == Order::Drawn).then_some(seed),
            _ => None,
        };
        let replayers = experiment.clients.replayers;
        let (load, rate) = replay(log, *rule, replayers, drawn, experiment.load.needs_times())?;
        return Ok((load, rate, facts(&experiment.workload, &replayed)));
    }
    let (load, facts): (Box<dyn Workload + Send>, Facts) = match &experiment.workload {
        WorkloadConfig::Specweb(spec) => (Box::new(SpecWeb::new(*spec, seed)), specweb_facts(spec)),
        WorkloadConfig::OnDemand(spec) => {
            (Box::new(OnDemand::new(spec.clone(), seed)), Facts::new())
        }
        WorkloadConfig::RemoteFiles(spec) => {
            (Box::new(RemoteFiles::new(*spec, seed)), Facts::new())
        }
        WorkloadConfig::Fixed(spec) => (Box::new(Fixed::new(*spec)), Facts::new()),
        WorkloadConfig::Log { .. }
        | WorkloadConfig::Generated { .. }
        | WorkloadConfig::Generator { .. } => {
            unreachable!("a workload that replays a log is handled elsewhere")
        }
    };
    Ok((vec![load], None, facts))
}

/// A log in the form in which a run replays it.
#[derive(Debug)]
pub struct ReplayedLog {
    /// The log without responses of 2 GiB or more, which the simulator's HTTP cannot express.
    pub log: Arc<Log>,
    /// Rule that decides which requests share a connection.
    pub rule: SessionRule,
    /// Number of requests that were left out.
    left_out: usize,
}

/// Returns the log that an experiment replays, read or generated, or `None` if the experiment replays no log. While a log is read,
/// `cancelled` is called from time to time to check whether the log is still wanted.
///
/// # Errors
/// The same as for [`load_workload`].
pub fn replayed_log(
    experiment: &Experiment,
    logs: &Logs,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<ReplayedLog>, RunError> {
    let generated = |spec: &GeneratorSpec, requests, rule| {
        let log = generate(spec, experiment.run.seed, requests)?;
        Ok(Some(ReplayedLog {
            log: Arc::new(log),
            rule,
            left_out: 0,
        }))
    };
    match &experiment.workload {
        WorkloadConfig::Log {
            path,
            format,
            allow_skipped,
            persistent_s,
            pipeline_s,
            ..
        } => {
            let options = ReadOptions {
                format: format.clone(),
                allow_skipped: *allow_skipped,
                cancelled: Some(cancelled),
            };
            let log = logs.read_with(path, &options).map_err(unread)?;
            let (log, left_out) = without_giants(log)?;
            let rule = rule(*persistent_s, *pipeline_s);
            Ok(Some(ReplayedLog {
                log,
                rule,
                left_out,
            }))
        }
        WorkloadConfig::Generated {
            preset,
            requests,
            persistent_s,
            pipeline_s,
        } => generated(
            &named(preset)?.spec(),
            *requests,
            rule(*persistent_s, *pipeline_s),
        ),
        WorkloadConfig::Generator {
            spec,
            requests,
            persistent_s,
            pipeline_s,
        } => generated(spec, *requests, rule(*persistent_s, *pipeline_s)),
        WorkloadConfig::Specweb(_)
        | WorkloadConfig::OnDemand(_)
        | WorkloadConfig::RemoteFiles(_)
        | WorkloadConfig::Fixed(_) => Ok(None),
    }
}

fn unread(error: LogError) -> RunError {
    match error {
        LogError::Cancelled { .. } => RunError::Cancelled,
        error => RunError::Workload(error.to_string()),
    }
}

fn rule(persistent_s: u32, pipeline_s: Option<u32>) -> SessionRule {
    SessionRule {
        persistent_s,
        pipeline_s,
    }
}

/// Returns the preset with this name.
fn named(preset: &str) -> Result<Preset, RunError> {
    Preset::from_name(preset).ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        RunError::Workload(format!(
            "workload.preset: there is no generator {preset:?}; expected one of {names}"
        ))
    })
}

/// Returns the log without requests that the simulator's HTTP cannot express, and the number of these requests.
fn without_giants(log: Arc<Log>) -> Result<(Arc<Log>, usize), RunError> {
    if log.files.len() > symbolic::FILES as usize {
        return Err(RunError::Workload(format!(
            "the log has {} distinct URLs; expected at most {}",
            log.files.len(),
            symbolic::FILES
        )));
    }
    let is_giant = |request: &Request| request.bytes >= symbolic::CONTENT_LIMIT;
    let giants = log.requests.iter().filter(|request| is_giant(request));
    let giants = giants.count();
    if giants == 0 {
        return Ok((log, 0));
    }
    let mut others = Arc::unwrap_or_clone(log);
    others.requests.retain(|request| !is_giant(request));
    Ok((Arc::new(others), giants))
}

fn specweb_facts(spec: &SpecWebSpec) -> Facts {
    let throttle = spec.throttle.map_or("none".to_owned(), |throttle| {
        format!("at most {} kb/s per client", throttle.max_bps / 1000)
    });
    BTreeMap::from([
        (
            "dynamic".to_owned(),
            format!("{} % of requests", spec.dynamic_percent).into(),
        ),
        (
            "load".to_owned(),
            format!("like SPECweb99, for {} clients", spec.clients).into(),
        ),
        ("throttle".to_owned(), throttle.into()),
    ])
}

fn generate(spec: &GeneratorSpec, seed: u64, requests: u32) -> Result<Log, RunError> {
    spec.generate(seed, requests)
        .map_err(|error| RunError::Workload(error.to_string()))
}

/// Splits the log among the replayers, in an order drawn from the seed `drawn` if there is one, and returns the log's requests per second
/// if its times are needed.
fn replay(
    log: &Log,
    rule: SessionRule,
    replayers: u32,
    drawn: Option<u64>,
    timed: bool,
) -> Result<(Load, Option<f64>), RunError> {
    let replay = match timed {
        true => Replay::timed(log, rule),
        false => Replay::new(log, rule),
    };
    let replay = replay.map_err(|error| RunError::Workload(error.to_string()))?;
    let rate = replay.requests_per_s();
    let parts = (0..).zip(replay.split(replayers as usize));
    let parts = parts.map(|(number, part)| match drawn {
        Some(seed) => part.drawn(seed ^ number << 48),
        None => part,
    });
    Ok((parts.map(|part| Box::new(part) as _).collect(), rate))
}

fn facts(workload: &WorkloadConfig, replayed: &ReplayedLog) -> Facts {
    let log = &*replayed.log;
    let mut facts = Facts::new();
    let mut fact = |name: &str, fact: Fact| facts.insert(name.to_owned(), fact);
    fact("requests", log.requests.len().into());
    fact("content_bytes", Fact::Number(log.content_bytes()));
    match workload {
        WorkloadConfig::Generated { preset, .. } => {
            fact("generator", preset.clone().into());
        }
        WorkloadConfig::Log { path, .. } => {
            fact("format", log.format.to_string().into());
            if log.forwarded > 0 {
                let of = format!("{} from X-Forwarded-For", log.forwarded);
                fact("clients_of_requests", of.into());
            }
            let warnings = log.warnings();
            if !warnings.is_empty() {
                fact(WARNINGS, warnings.join("\n").into());
            }
            fact("log", path.display().to_string().into());
            fact("skipped", skipped(&log.skipped));
            let left_out = replayed.left_out.into();
            fact("responses_of_2_gib_or_more_left_out", left_out);
        }
        _ => {}
    }
    facts
}

/// Returns the number of skipped lines of the log, by reason.
fn skipped(skipped: &Skipped) -> Fact {
    let count = |reason| (snake_case(reason), skipped.count(reason));
    Fact::Counts(SkipReason::ALL.into_iter().map(count).collect())
}
