//! Runs without a cache, for whoever fits the machine to what is published of it.

use super::runs::{EXPERIMENT, Run};
use super::{Source, bus, table1};
use crate::commands::reproduce::Row;
use crate::config::{self, Request, Setting};
use crate::failure::Failure;
use crate::runner::Job;
use baton_sim::results::Results;
use baton_workload::Preset;

/// A run of a generated log on the server of a profile, without a cache on its NICs, with more settings.
///
/// # Errors
/// The profile or a setting cannot be used.
pub fn uncached_job(
    profile: &str,
    preset: Preset,
    settings: impl Iterator<Item = Setting>,
) -> Result<Job, Failure> {
    let own = [
        Setting::of_set("workload.preset", preset.name()),
        Setting::of_set("workload.requests", preset.requests()),
        Setting::of_set("nic.firmware.cache.kib", 0),
    ];
    let request = Request {
        experiment: EXPERIMENT.to_owned(),
        profile: Some(profile.to_owned()),
        settings: own.into_iter().chain(settings).collect(),
        ..Request::default()
    };
    let mut experiment = config::plan_one(&request)?;
    preset.name().clone_into(&mut experiment.name);
    Ok(Job::new(experiment, request.command(None)))
}

/// What a run without a cache gives, beside what is published.
pub fn uncached_rows(preset: Preset, results: Results) -> Vec<Row> {
    let run = Run {
        source: Source::Generated(preset),
        mib: 0,
        results,
    };
    let mut rows = table1::rows_of(&run, &run);
    rows.extend(bus::rows_of(&run));
    rows
}
