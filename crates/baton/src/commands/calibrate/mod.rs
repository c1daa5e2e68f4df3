//! `baton calibrate`: derives the fitted constants of a machine again from the published numbers that they were fitted
//! to, and from nothing else.
//!
//! A handful of constants, each from the numbers that it moves most:
//!
//! | constant | from | of the row |
//! |---|---|---|
//! | `host.scale.network_stack`, `host.scale.application` | request rate, network-stack share | no offload |
//! | `nic.scale.host` | NIC idle time | no offload |
//! | `nic.scale.offload` | NIC idle time; request rate | 256 connections; 1024, FCFS |
//! | `host.scale.bypass` | host idle time; request rate | 1024, FCFS; 1024, host first |
//! | `nic.firmware.arrival_queue_packets` | delays of host packets | 1024, FCFS |
//! | `nic.firmware.transmit_burst_segments` | delays of host packets | 1024, host first |
//!
//! There are more numbers than constants: what is left over shows how well the model fits. The server of the data caching
//! paper, and any machine with an interconnect that takes time, is fitted in [`uncached`]; that of the batching paper in [`batching`].

mod batching;
mod constants;
mod published;
mod record;
mod round;
mod steps;
mod text;
mod tolerance;
mod uncached;

use crate::cli::CalibrateArgs;
use crate::config::{self, Request, Setting};
use crate::failure::Failure;
use crate::output::{JsonOutput, print, spare, tell};
use crate::runner::{COMMIT, Interrupt};
use baton_bus::interconnect::InterconnectConfig;
use baton_sim::config::Experiment;
use constants::Constants;
use published::PUBLISHED;
use record::{Document, Outcome, RoundRecord};
use round::{Bench, Round};
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// Bad input, a failed run, an interrupt.
pub fn execute(arguments: &CalibrateArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    for input in inputs(arguments) {
        spare(input, "--json", arguments.json.as_deref())?;
    }
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    if arguments.profile == batching::PROFILE {
        return batching::execute(arguments, json, interrupt);
    }
    let takes_time = |experiment: &Experiment| experiment.interconnect != InterconnectConfig::Ideal;
    if config::plan_one(&machine_of(arguments)).is_ok_and(|experiment| takes_time(&experiment)) {
        return uncached::execute(arguments, json, interrupt);
    }
    let bench = Bench {
        request: request(arguments),
        threads: arguments.threads.get(),
        interrupt,
    };
    let experiment = with_profile_s_constants(&bench.request, &arguments.profile)?;
    let say = |text: &str| match json {
        // What is on stdout is to be JSON alone.
        Some(JsonOutput::Stdout) => {
            tell(text);
            Ok(())
        }
        _ => print(text),
    };
    say(&text::introduction(arguments, &experiment))?;
    let in_profile = Constants::of(&experiment);
    let numbers_of_profile = bench.numbers(in_profile)?;
    say(&text::with_profile_s_constants(&numbers_of_profile))?;
    let (rounds, settled) = approach(&bench, arguments.rounds, |rounds| {
        say(&text::round(rounds, arguments.rounds))
    })?;
    let outcome = text::outcome(&rounds, &in_profile, settled);
    let Some(json) = json else {
        return print(&outcome);
    };
    let document = Document {
        profile: arguments.profile.clone(),
        commit: COMMIT,
        workload: experiment.workload,
        run: experiment.run,
        in_profile: Outcome::new(&in_profile, &numbers_of_profile),
        rounds: rounds.iter().map(RoundRecord::from).collect(),
        settled,
    };
    json.write(&document, &outcome)
}

/// Rounds from neutral constants on, until one brings nothing new or there are `most`; and whether it was the former.
fn approach(
    bench: &Bench<'_>,
    most: u32,
    after_round: impl Fn(&[Round]) -> Result<(), Failure>,
) -> Result<(Vec<Round>, bool), Failure> {
    let mut rounds: Vec<Round> = Vec::new();
    let mut settled = false;
    while !settled && rounds.len() < most as usize {
        let start = rounds
            .last()
            .map_or(Constants::NEUTRAL, |round| round.constants);
        let round = bench.round(start)?;
        settled = rounds.last().is_some_and(|last| round.settled_since(last));
        rounds.push(round);
        after_round(&rounds)?;
    }
    Ok((rounds, settled))
}

/// All files that may be read.
fn inputs(arguments: &CalibrateArgs) -> impl Iterator<Item = &Path> {
    let profile = Path::new(&arguments.profile);
    arguments.log.as_deref().into_iter().chain([profile])
}

/// Any experiment on the machine, to look at that.
fn machine_of(arguments: &CalibrateArgs) -> Request {
    request_with(arguments, None)
}

/// What all runs share.
fn request(arguments: &CalibrateArgs) -> Request {
    request_with(arguments, arguments.log.as_deref())
}

fn request_with(arguments: &CalibrateArgs, log: Option<&Path>) -> Request {
    let flags = [
        ("--seed", "run.seed", Some(arguments.seed.get())),
        ("--warmup", "run.warmup_packets", arguments.warmup),
        ("--packets", "run.measured_packets", arguments.packets),
    ];
    let settings = flags
        .into_iter()
        .filter_map(|(flag, path, value)| Some(Setting::of_flag(flag, path, value?)));
    Request {
        experiment: PUBLISHED[0].config.to_owned(),
        profile: Some(arguments.profile.clone()),
        log: log.map(Into::into),
        settings: settings
            .chain(log.map(|_| Setting::log_in_order()))
            .chain(log.into_iter().flat_map(|_| arguments.reading.settings()))
            .collect(),
        ..Request::default()
    }
}

/// The first row as the profile has it. What is wrong with profile or log is found here, before anything runs.
fn with_profile_s_constants(request: &Request, profile: &str) -> Result<Experiment, Failure> {
    config::plan_one(request).map_err(|failure| match failure.into() {
        // The profile is an argument here, not a flag.
        Failure::BadInput(message) => {
            let told = message.strip_prefix("--profile ");
            Failure::BadInput(match told {
                Some(told) if told.starts_with(profile) => format!("calibrate {told}"),
                _ => message,
            })
        }
        other => other,
    })
}
