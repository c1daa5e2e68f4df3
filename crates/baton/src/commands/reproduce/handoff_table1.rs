//! Table 1 of the handoff-policies paper: what a heavily loaded NIC does to a web server.
//!
//! World Cup log, 2048 concurrent connections, first come, first served selection, NIC of 400 MIPS.

use super::{Context, Outcome, Reproduction, Row, Shown, table};
use crate::commands::trace::compare_lifetimes;
use crate::config::{self, Request, Setting};
use crate::failure::Failure;
use crate::logs;
use crate::runner::{Job, run_all};
use baton_report::Scale;
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::results::Results;
use baton_workload::analyse::Lifetimes;
use baton_workload::{Log, Preset, SessionRule, Sessions};

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "handoff-table1",
    about: "request rate, idle time and packet delays with 0, 256 and 1024 connections on the NIC (OSDI 2006, Table 1)",
    figure: false,
    run,
};

/// A row of the table.
pub(in crate::commands) struct Published {
    pub(in crate::commands) config: &'static str,
    pub(in crate::commands) request_rate: f64,
    pub(in crate::commands) host_idle_percent: f64,
    pub(in crate::commands) nic_idle_percent: f64,
    pub(in crate::commands) send_delay_us: f64,
    pub(in crate::commands) receive_delay_us: f64,
    /// Section 5 of the paper gives this for the first row only.
    pub(in crate::commands) network_stack_percent: Option<f64>,
    /// Mean response time, from the same section: of the first and the third row.
    pub(in crate::commands) response_ms: Option<f64>,
}

/// The table.
pub(in crate::commands) const PUBLISHED: [Published; 4] = [
    Published {
        config: "W-0-N-N-FCFS-400",
        request_rate: 23_031.0,
        host_idle_percent: 0.0,
        nic_idle_percent: 62.0,
        send_delay_us: 2.0,
        receive_delay_us: 2.0,
        network_stack_percent: Some(57.0),
        response_ms: Some(61.0),
    },
    Published {
        config: "W-256-N-N-FCFS-400",
        request_rate: 23_935.0,
        host_idle_percent: 0.0,
        nic_idle_percent: 49.0,
        send_delay_us: 3.0,
        receive_delay_us: 3.0,
        network_stack_percent: None,
        response_ms: None,
    },
    Published {
        config: "W-1024-N-N-FCFS-400",
        request_rate: 16_121.0,
        host_idle_percent: 62.0,
        nic_idle_percent: 3.0,
        send_delay_us: 679.0,
        receive_delay_us: 301.0,
        network_stack_percent: None,
        response_ms: Some(99.0),
    },
    Published {
        config: "W-1024-P-N-FCFS-400",
        request_rate: 26_663.0,
        host_idle_percent: 0.0,
        nic_idle_percent: 5.0,
        send_delay_us: 10.0,
        receive_delay_us: 6.0,
        network_stack_percent: None,
        response_ms: None,
    },
];

/// Marks runs on the generated log.
const GENERATED: &str = "(generated lifetimes)";

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut jobs = Vec::new();
    if context.log.is_some() {
        jobs.extend(jobs_of(context, true)?);
    }
    jobs.extend(jobs_of(context, false)?);
    let results = run_all(&jobs, context.threads, context.interrupt)?;
    let rows: Vec<Row> = results
        .iter()
        .zip(PUBLISHED.iter().cycle())
        .flat_map(|(result, published)| rows_of(result, published))
        .collect();
    let title = "Handoff policies (OSDI 2006), Table 1, published and simulated:";
    let text = format!("{}\n{}", table(title, &rows), lifetimes(context, &jobs)?);
    Ok(Outcome {
        rows,
        text,
        figure: None,
    })
}

/// The four rows on the log that was given, or on the generated one.
fn jobs_of(context: &Context<'_>, on_log: bool) -> Result<Vec<Job>, Failure> {
    let job = |published: &Published| {
        let log = context.log.filter(|_| on_log);
        let request = Request {
            experiment: published.config.to_owned(),
            log: log.map(Into::into),
            settings: std::iter::once(Setting::of_flag("--seed", "run.seed", context.seed))
                .chain(context.packets())
                .chain(log.map(|_| Setting::log_in_order()))
                .chain(log.into_iter().flat_map(|_| context.reading.settings()))
                .collect(),
            ..Request::default()
        };
        let mut experiment = config::plan_one(&request)?;
        experiment.name = published.config.to_owned();
        if !on_log {
            experiment.name = format!("{} {GENERATED}", published.config);
        }
        Ok(Job::new(experiment, request.command(None)))
    };
    PUBLISHED.iter().map(job).collect()
}

/// The numbers of one row, published beside simulated.
pub(in crate::commands) fn rows_of(result: &Results, published: &Published) -> [Row; 7] {
    let row = |metric, name, scale, published, simulated| Row {
        config: result.experiment.name.clone(),
        metric,
        published,
        simulated,
        shown: Shown { name, scale },
    };
    let Results {
        clients, host, nic, ..
    } = result;
    let Published {
        host_idle_percent,
        nic_idle_percent,
        network_stack_percent,
        ..
    } = *published;
    let rate = Some(published.request_rate);
    let (send, receive) = (
        Some(published.send_delay_us),
        Some(published.receive_delay_us),
    );
    [
        row(
            "request_rate",
            "requests/s",
            Scale::Relative,
            rate,
            clients.request_rate,
        ),
        row(
            "host_idle_percent",
            "host idle, %",
            Scale::Points,
            Some(host_idle_percent),
            host.idle_percent,
        ),
        row(
            "nic_idle_percent",
            "NIC idle, %",
            Scale::Points,
            Some(nic_idle_percent),
            nic.idle_percent,
        ),
        row(
            "send_delay_median_us",
            "host packet sent, median us on the NIC",
            Scale::Factor,
            send,
            nic.send_delay_us.p50.unwrap_or(f64::NAN),
        ),
        row(
            "receive_delay_median_us",
            "host packet received, median us on the NIC",
            Scale::Factor,
            receive,
            nic.receive_delay_us.p50.unwrap_or(f64::NAN),
        ),
        row(
            "network_stack_percent",
            "network stack, % of host cycles",
            Scale::Points,
            network_stack_percent,
            host.network_stack_percent,
        ),
        row(
            "response_mean_ms",
            "mean response time, ms",
            Scale::Relative,
            published.response_ms,
            clients.response_ms.mean.unwrap_or(f64::NAN),
        ),
    ]
}

/// How far the connection lifetimes of the logs are from the published ones.
fn lifetimes(context: &Context<'_>, jobs: &[Job]) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(path) = context.log {
        let log = logs::read_then(path, context.reading, context.interrupt, Ok)?;
        text.push_str(&format!(
            "Connection lifetimes in {}:\n{}",
            path.display(),
            lifetimes_of(&log)
        ));
    } else {
        text.push_str("No --log FILE was given: the World Cup log is not part of Baton. ");
    }
    if let Some(log) = jobs.last().and_then(|job| generated_log(&job.experiment)) {
        text.push_str(&format!(
            "Connection lifetimes in the generated log:\n{}",
            lifetimes_of(&log)
        ));
    }
    Ok(text)
}

/// The log that a run replays, if it is a generated one.
fn generated_log(experiment: &Experiment) -> Option<Log> {
    let WorkloadConfig::Generated {
        preset, requests, ..
    } = &experiment.workload
    else {
        return None;
    };
    Preset::from_name(preset)?
        .spec()
        .generate(experiment.run.seed, *requests)
        .ok()
}

fn lifetimes_of(log: &Log) -> String {
    compare_lifetimes(&Lifetimes::of(
        log,
        &Sessions::new(&log.requests, SessionRule::PAPERS),
    ))
}
