//! `baton calibrate`: derives the fitted constants of a machine again from the published numbers that they were fitted
//! to, and from nothing else.
//!
//! There are more numbers than constants: what is left over shows how well the model fits. The server of the handoff papers is fitted by
//! its study file ([`study`]), that of the data caching paper, and any machine with an interconnect that takes time, in [`uncached`], and that of
//! the batching paper in [`batching`].

mod batching;
mod study;
mod tolerance;
mod uncached;

use crate::cli::CalibrateArgs;
use crate::config;
use crate::failure::Failure;
use crate::output::{JsonOutput, spare};
use crate::runner::Interrupt;
use baton_bus::interconnect::InterconnectConfig;
use baton_sim::config::Experiment;
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
    match config::profile(&arguments.profile) {
        Ok(machine) if takes_time(&machine) => uncached::execute(arguments, json, interrupt),
        _ => study::execute(arguments, json, interrupt),
    }
}

/// All files that may be read.
fn inputs(arguments: &CalibrateArgs) -> impl Iterator<Item = &Path> {
    let profile = Path::new(&arguments.profile);
    arguments.log.as_deref().into_iter().chain([profile])
}
