//! The fitted constants of the machine of the batching paper, from its response times with maximal batching and one connection.
//!
//! | constant | from |
//! |---|---|
//! | `offload.host.interface.batching.tick_us`, `offload.adapter.interface.batching.tick_us` | that the nine ratios differ least |
//! | `offload.link.latency_ns` | for each pair of ticks, that the ratios are right in the mean |
//!
//! Ticks are tried, not searched: a timer of a process runs for whole ticks of its kernel. Crossings are counts, which no constant changes.

use crate::cli::CalibrateArgs;
use crate::commands::reproduce::batching::calibration::{machine, rows};
use crate::commands::reproduce::batching::machine::offload;
use crate::commands::reproduce::{Row, table};
use crate::failure::Failure;
use crate::output::{JsonOutput, print_text};
use crate::runner::{COMMIT, Interrupt, for_all};
use baton_sim::config::Experiment;
use serde::Serialize;

/// The name of the machine.
pub const PROFILE: &str = "batching";

/// Ticks that are tried on either side, microseconds: of a kernel with HZ = 1000, and of one with HZ = 100 or 200 whose timers are late.
const TICKS_US: [u32; 5] = [1_000, 5_000, 10_000, 15_000, 20_000];
/// Between what a crossing is sought, nanoseconds.
const CROSSINGS_NS: (u32, u32) = (10_000, 2_000_000);
/// Halvings of that, on a logarithmic scale: to less than 1 %.
const HALVINGS: u32 = 10;

/// The fitted constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Constants {
    latency_ns: u32,
    host_tick_us: u32,
    adapter_tick_us: u32,
}

/// Constants, and what they give.
#[derive(Clone, Debug, Serialize)]
struct Fit {
    constants: Constants,
    /// Root mean square of the errors' logarithms.
    error: f64,
    numbers: Vec<Row>,
}

/// What `--json` holds.
#[derive(Serialize)]
struct Document<'a> {
    profile: &'static str,
    commit: &'static str,
    in_profile: &'a Fit,
    derived: &'a Fit,
    /// For each pair of ticks the best crossing.
    tried: &'a [Fit],
}

/// Runs the command.
///
/// # Errors
/// Bad input, a failed run, an interrupt.
pub fn execute(
    arguments: &CalibrateArgs,
    json: Option<JsonOutput>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    refuse_what_it_has_not(arguments)?;
    let mut machine = machine()?;
    machine.run.seed = arguments.seed.get();
    let in_profile = Fit::new(&machine, Constants::of(&machine))?;
    let pairs: Vec<(u32, u32)> = TICKS_US
        .into_iter()
        .flat_map(|host| TICKS_US.map(|adapter| (host, adapter)))
        .collect();
    let threads = arguments.threads.get();
    let fit = |&(host, adapter): &(u32, u32)| fit_crossing(&machine, host, adapter);
    let tried = for_all(&pairs, "pairs of ticks", threads, interrupt, fit)?;
    let tried = tried.into_iter().collect::<Result<Vec<_>, _>>()?;
    let derived = tried
        .iter()
        .min_by(|a, b| a.error.total_cmp(&b.error))
        .expect("pairs were tried");
    let text = text(&in_profile, derived, &tried);
    match json {
        None => print_text(&text),
        Some(json) => {
            let document = Document {
                profile: PROFILE,
                commit: COMMIT,
                in_profile: &in_profile,
                derived,
                tried: &tried,
            };
            json.write(&document, &text)
        }
    }
}

fn refuse_what_it_has_not(arguments: &CalibrateArgs) -> Result<(), Failure> {
    let given = [
        ("--log", arguments.log.is_some()),
        ("--warmup", arguments.warmup.is_some()),
        ("--packets", arguments.packets.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::BadInput(format!(
            "{flag}: calibrate {PROFILE} has no such option; its load is the one file of the paper"
        ))),
    }
}

impl Constants {
    fn of(machine: &Experiment) -> Self {
        let offload = &machine.offload;
        Self {
            latency_ns: offload.link.latency_ns,
            host_tick_us: offload.host.interface.batching.tick_us,
            adapter_tick_us: offload.adapter.interface.batching.tick_us,
        }
    }

    fn apply(self, machine: &mut Experiment) {
        let offload = offload(machine);
        offload.link.latency_ns = self.latency_ns;
        offload.host.interface.batching.tick_us = self.host_tick_us;
        offload.adapter.interface.batching.tick_us = self.adapter_tick_us;
    }

    fn to_toml(self) -> String {
        let Self {
            latency_ns,
            host_tick_us,
            adapter_tick_us,
        } = self;
        format!(
            "[offload.link]\nlatency_ns = {latency_ns}\n\n[offload.adapter.interface.batching]\ntick_us = {adapter_tick_us}\n\n\
             [offload.host.interface.batching]\ntick_us = {host_tick_us}\n"
        )
    }
}

impl Fit {
    fn new(machine: &Experiment, constants: Constants) -> Result<Self, Failure> {
        let mut machine = machine.clone();
        constants.apply(&mut machine);
        let numbers = rows(&machine)?;
        let squares = errors(&numbers).map(|error| error * error);
        Ok(Self {
            constants,
            error: (squares.sum::<f64>() / numbers.len() as f64).sqrt(),
            numbers,
        })
    }

    /// Whether the simulated ratios are greater in the mean than the published ones.
    fn is_above(&self) -> bool {
        errors(&self.numbers).sum::<f64>() > 0.0
    }
}

/// Logarithms of simulated over published numbers.
fn errors(rows: &[Row]) -> impl Iterator<Item = f64> {
    let error = |row: &Row| Some((row.simulated / row.published?).ln());
    rows.iter().filter_map(error)
}

/// The crossing with which the ratios are right in the mean: the longer crossings take, the less timers count.
fn fit_crossing(
    machine: &Experiment,
    host_tick_us: u32,
    adapter_tick_us: u32,
) -> Result<Fit, Failure> {
    let with = |latency_ns: u32| {
        let constants = Constants {
            latency_ns,
            host_tick_us,
            adapter_tick_us,
        };
        Fit::new(machine, constants)
    };
    let (mut short, mut long) = CROSSINGS_NS;
    for _ in 1..HALVINGS {
        let middle = middle(short, long);
        if with(middle)?.is_above() {
            short = middle;
        } else {
            long = middle;
        }
    }
    with(middle(short, long))
}

/// The geometric mean, rounded to a microsecond.
fn middle(short_ns: u32, long_ns: u32) -> u32 {
    let middle = (f64::from(short_ns) * f64::from(long_ns)).sqrt();
    (middle / 1e3).round() as u32 * 1_000
}

fn text(in_profile: &Fit, derived: &Fit, tried: &[Fit]) -> String {
    let mut order: Vec<&Fit> = tried.iter().collect();
    order.sort_by(|a, b| a.error.total_cmp(&b.error));
    let others: String = order.iter().skip(1).take(3).map(|fit| line(fit)).collect();
    format!(
        "{}\nWith the constants of the profile:\n{}Derived:\n{}The next best ticks:\n{others}\n{}",
        table(
            "Response time with maximal batching, one connection, over the baseline's, with the derived constants:",
            &derived.numbers
        ),
        line(in_profile),
        line(derived),
        derived.constants.to_toml()
    )
}

fn line(fit: &Fit) -> String {
    let Constants {
        latency_ns,
        host_tick_us,
        adapter_tick_us,
    } = fit.constants;
    format!(
        "  crossing {} us, ticks of the host {} ms, of the adapter {} ms: off by {:.1} % (root mean square)\n",
        latency_ns / 1_000,
        host_tick_us / 1_000,
        adapter_tick_us / 1_000,
        100.0 * fit.error
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_s_constants_are_derived_again() {
        let machine = machine().expect("the profile is sound");
        let profile = Constants::of(&machine);
        let fit = fit_crossing(&machine, profile.host_tick_us, profile.adapter_tick_us);
        let fit = fit.expect("runs that go well");
        let ratio = f64::from(fit.constants.latency_ns) / f64::from(profile.latency_ns);
        assert!((0.9..1.1).contains(&ratio), "{:?}", fit.constants);
        assert!(fit.error < 0.1, "{}", fit.error);
    }
}
