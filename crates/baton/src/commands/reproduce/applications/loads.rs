//! Logs and traces: the user's, public excerpts, or stand-ins.

use super::super::{Context, excerpts};
use crate::cli::LogArgs;
use crate::failure::Failure;
use crate::logs;
use baton_microbench::applications::{RouterTraffic, StandInLog};
use baton_microbench::report::WebLoad;
use baton_workload::packets::{PacketTrace, StandIn};
use baton_workload::{Log, Replay, SessionRule};
use std::path::Path;

/// Packets of a generated trace.
const PACKETS: u32 = 32_768;

/// Returns the logs that the web server's clients replay: the user's log, or for each log of the report a public excerpt, if there is one,
/// or a stand-in.
pub(super) fn logs(context: &Context<'_>) -> Result<Vec<WebLoad>, Failure> {
    if let Some(path) = context.log {
        let log = logs::read_replayable(path, context.reading, context.interrupt)?;
        return Ok(vec![load(file_name(path), &log)?]);
    }
    let excerpts = context.data.map(excerpts::excerpts_in).transpose()?;
    let of_site = |site: StandInLog| {
        let trace = match site {
            StandInLog::Cs => None,
            StandInLog::WorldCup => Some("worldcup"),
            StandInLog::Nasa => Some("nasa"),
        };
        let mut found = excerpts.iter().flatten();
        match found.find(|(name, _)| Some(*name) == trace) {
            Some((_, path)) => {
                let log = logs::read_replayable(path, &LogArgs::default(), context.interrupt)?;
                load(format!("{} excerpt", site.site()), &log)
            }
            None => load(site.name(), &site.generate(context.seed)),
        }
    };
    StandInLog::ALL.into_iter().map(of_site).collect()
}

/// Prepares a log under the rules of the data-caching paper, whose replayer the report's clients use.
fn load(name: String, log: &Log) -> Result<WebLoad, Failure> {
    let replay = Replay::new(log, SessionRule::PIPELINED);
    let replay = replay.map_err(|error| Failure::BadInput(format!("{name}: {error}")))?;
    Ok(WebLoad { name, replay })
}

/// Returns the traces that the router's clients replay: the user's capture, or the stand-ins.
pub(super) fn traces(context: &Context<'_>) -> Result<Vec<RouterTraffic>, Failure> {
    let Some(path) = context.trace else {
        let generate = |one: StandIn| RouterTraffic::of(&one.generate(context.seed, PACKETS));
        return Ok(StandIn::ALL.into_iter().map(generate).collect());
    };
    let trace = PacketTrace::read(path);
    let trace = trace.map_err(|error| Failure::BadInput(format!("--trace {error}")))?;
    let left_out = trace.left_out;
    if left_out.total() > 0 {
        logs::warn([format!(
            "--trace {}: of {} packets, {} are not replayed: {} are not IPv4, {} are longer than 1500 bytes, {} have addresses that no router forwards",
            path.display(),
            trace.packets.len() as u64 + left_out.total(),
            left_out.total(),
            left_out.not_ipv4,
            left_out.too_long,
            left_out.not_forwarded,
        )]);
    }
    Ok(vec![RouterTraffic::of(&trace)])
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
