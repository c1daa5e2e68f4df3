//! What `baton calibrate batching` fits to: response times with maximal batching of one connection, Table 1.

use super::lab::{Point, machine_of_paper, run_one};
use super::machine::set_load;
use super::published;
use super::settings::{FILES, Setting, Settings, Sides};
use crate::commands::reproduce::{Row, Shown};
use crate::failure::Failure;
use baton_report::Scale;
use baton_sim::config::Experiment;

/// Replies in each run, enough for a mean: with one connection they differ by little more than how long processes take to wake up.
const REPLIES: u64 = 30;

/// The machine of the paper, as its profile has it.
///
/// # Errors
/// The profile is not sound.
pub(in crate::commands) fn machine() -> Result<Experiment, Failure> {
    let mut machine = machine_of_paper()?;
    machine.run.warmup_responses = Some(5);
    machine.run.measured_responses = Some(REPLIES);
    Ok(machine)
}

/// Published and simulated response times over the baseline's, of all files with maximal batching on host, adapter and both.
///
/// # Errors
/// A run that fails.
pub(in crate::commands) fn rows(machine: &Experiment) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (file, (bytes, size)) in FILES.into_iter().enumerate() {
        let response_ms = |settings: Settings| {
            let mut experiment = machine.clone();
            settings.apply(&mut experiment);
            set_load(&mut experiment, bytes, 1);
            let name = format!("{size}, {}", settings.describe());
            run_one(&Point { name, experiment })
                .map(|results| results.clients.first_byte_ms.mean.unwrap_or(f64::NAN))
        };
        let baseline = response_ms(Settings::BASELINE)?;
        for sides in Sides::ALL {
            let maximal = Settings::of(sides, Setting::maximal(1e3 * baseline));
            rows.push(Row {
                config: format!("{size}, {}, maximal", sides.name()),
                metric: "response_time_ratio",
                published: Some(published::maximal(sides, file)[0]),
                simulated: response_ms(maximal)? / baseline,
                shown: Shown {
                    name: "response time",
                    scale: Scale::Factor,
                },
            });
        }
    }
    Ok(rows)
}
