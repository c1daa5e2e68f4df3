//! The fitted constants of the server of the data caching paper, from what is published of it without a cache.
//!
//! | constant | from | of the traces |
//! |---|---|---|
//! | `host.scale.network_stack`, `host.scale.application` | request rate | IBM, World Cup: the processor is the bottleneck |
//! | the same | the processor has time to spare | NASA, Rice: it is not, the bus is |
//! | `nic.dma.read_setup_ns` | throughput | NASA, Rice |
//! | `host.kernel.file_cache.kib` | throughput | Berkeley: the disks are |
//!
//! No constant is fitted for one trace alone but the last, for which only one trace needs the disks. What is published
//! with a cache is not looked at.

use super::tolerance;
use crate::cli::CalibrateArgs;
use crate::commands::reproduce::dcache::{Uncached, uncached_job, uncached_rows};
use crate::commands::reproduce::{Row, table};
use crate::config::Setting;
use crate::failure::Failure;
use crate::output::{JsonOutput, print, tell};
use crate::runner::{COMMIT, Interrupt, run_all};
use baton_host::{LAYERS, Layer};
use baton_sim::results::Results;
use baton_workload::Preset;
use serde::Serialize;
use std::ops::RangeInclusive;

/// Per cent, where a scale is kept.
const SCALE_LIMITS: RangeInclusive<f64> = 10.0..=1000.0;
/// Nanoseconds, where the engine's setup is kept.
const SETUP_LIMITS: RangeInclusive<f64> = 0.0..=5000.0;
/// Nanoseconds by which two runs differ that tell what the setup costs.
const SETUP_STEP: u32 = 300;
/// Part of the processor's time that is left where the bus is the bottleneck: a plain choice, as little as makes the bus
/// the bottleneck without doubt.
const SPARE: f64 = 0.1;
/// What the file cache is chosen from, MiB: the machine has 2 GB.
const FILE_CACHES_MIB: [u32; 5] = [1280, 1408, 1536, 1600, 1664];
/// A round has settled if it moved no constant by more than this part.
const SETTLED: f64 = 0.03;

/// The fitted constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Constants {
    network_stack: u32,
    application: u32,
    read_setup_ns: u32,
    file_cache_kib: u32,
}

impl Constants {
    /// Where every calibration starts, so that its outcome owes nothing to an earlier one.
    const NEUTRAL: Self = Self {
        network_stack: 300,
        application: 300,
        read_setup_ns: 1000,
        file_cache_kib: FILE_CACHES_MIB[2] * 1024,
    };

    fn settings(&self) -> [Setting; 4] {
        [
            Setting::of_set("host.scale.network_stack", self.network_stack),
            Setting::of_set("host.scale.application", self.application),
            Setting::of_set("nic.dma.read_setup_ns", self.read_setup_ns),
            Setting::of_set("host.kernel.file_cache.kib", self.file_cache_kib),
        ]
    }

    fn to_toml(self) -> String {
        let Self {
            network_stack,
            application,
            read_setup_ns: setup,
            file_cache_kib: kib,
        } = self;
        format!(
            "[host.kernel.file_cache]\nkib = {kib}\n\n[nic.dma]\nread_setup_ns = {setup}\n\n\
             [host.scale]\nnetwork_stack = {network_stack}\napplication = {application}\n"
        )
    }

    /// Whether no constant differs from `before` by more than a little.
    fn settled_since(&self, before: &Self) -> bool {
        let near = |now: u32, before: u32| {
            f64::from(now.abs_diff(before)) <= (SETTLED * f64::from(before)).max(1.0)
        };
        near(self.network_stack, before.network_stack)
            && near(self.application, before.application)
            && near(self.read_setup_ns, before.read_setup_ns)
            && self.file_cache_kib == before.file_cache_kib
    }
}

/// What `--json` holds.
#[derive(Serialize)]
struct Document {
    profile: String,
    commit: &'static str,
    rounds: Vec<Round>,
    settled: bool,
}

/// One round.
#[derive(Serialize)]
struct Round {
    constants: Constants,
    numbers: Vec<Row>,
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
    if let Some(log) = &arguments.log {
        return Err(Failure::BadInput(format!(
            "--log {}: {} is calibrated on generated logs, made to be like the five of its paper; expected no --log",
            log.display(),
            arguments.profile
        )));
    }
    let say = |text: &str| match json {
        Some(JsonOutput::Stdout) => {
            tell(text);
            Ok(())
        }
        _ => print(text),
    };
    say(&format!(
        "Deriving the fitted constants of {} from its throughput without a cache (ASPLOS 2002), on generated logs.\n\
         A number is met within {}.\n",
        arguments.profile,
        tolerance::in_words()
    ))?;
    let bench = Bench {
        arguments,
        interrupt,
    };
    let mut constants = Constants::NEUTRAL;
    let mut rounds: Vec<Round> = Vec::new();
    let mut settled = false;
    while !settled && rounds.len() < arguments.rounds as usize {
        let before = constants;
        constants = bench.round(before)?;
        settled = constants.settled_since(&before);
        let numbers = bench.numbers(constants)?;
        say(&round_text(rounds.len() + 1, &constants, &numbers))?;
        rounds.push(Round { constants, numbers });
    }
    let outcome = outcome_text(&rounds, settled);
    let Some(json) = json else {
        return print(&outcome);
    };
    let document = Document {
        profile: arguments.profile.clone(),
        commit: COMMIT,
        rounds,
        settled,
    };
    json.write(&document, &outcome)
}

struct Bench<'a> {
    arguments: &'a CalibrateArgs,
    interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// Runs logs with constants.
    fn run(&self, wanted: &[(Preset, Constants)]) -> Result<Vec<Results>, Failure> {
        let CalibrateArgs {
            profile,
            seed,
            warmup,
            packets,
            ..
        } = self.arguments;
        let flags = [
            ("--seed", "run.seed", Some(seed.get())),
            ("--warmup", "run.warmup_packets", *warmup),
            ("--packets", "run.measured_packets", *packets),
        ];
        let jobs = wanted
            .iter()
            .map(|(preset, constants)| {
                let flags = flags
                    .into_iter()
                    .filter_map(|(flag, path, value)| Some(Setting::of_flag(flag, path, value?)));
                uncached_job(
                    profile,
                    *preset,
                    constants.settings().into_iter().chain(flags),
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        let results = run_all(&jobs, self.arguments.threads.get(), self.interrupt)?;
        match results.iter().find(|result| result.clients.responses == 0) {
            None => Ok(results),
            Some(silent) => Err(Failure::BadInput(format!(
                "{}: no response was complete within {} measured packets; expected more: --packets N",
                silent.experiment.name, silent.packets
            ))),
        }
    }

    /// Every constant once.
    fn round(&self, mut constants: Constants) -> Result<Constants, Failure> {
        let slow = Constants {
            read_setup_ns: constants.read_setup_ns + SETUP_STEP,
            ..constants
        };
        let mut wanted = vec![
            (Preset::Ibm, constants),
            (Preset::WorldCup, constants),
            (Preset::Nasa, constants),
            (Preset::Rice, constants),
            (Preset::Nasa, slow),
            (Preset::Rice, slow),
        ];
        wanted.extend(FILE_CACHES_MIB.map(|mib| {
            let sized = Constants {
                file_cache_kib: mib * 1024,
                ..constants
            };
            (Preset::Berkeley, sized)
        }));
        let results = self.run(&wanted)?;
        (constants.network_stack, constants.application) =
            scales([&results[0], &results[1]], [&results[2], &results[3]]);
        constants.read_setup_ns = setup(constants.read_setup_ns, &results[2..4], &results[4..6]);
        constants.file_cache_kib = file_cache(&results[6..]);
        Ok(constants)
    }

    fn numbers(&self, constants: Constants) -> Result<Vec<Row>, Failure> {
        let wanted = Preset::DATA_CACHING.map(|preset| (preset, constants));
        let results = self.run(&wanted)?;
        let rows = Preset::DATA_CACHING.into_iter().zip(results);
        Ok(rows
            .flat_map(|(preset, results)| uncached_rows(preset, results))
            .filter(|row| row.published.is_some())
            .collect())
    }
}

/// The scales at which the processor-bound logs come nearest to their published rates, while the bus-bound ones leave the
/// processor some time at theirs.
fn scales(processor_bound: [&Results; 2], bus_bound: [&Results; 2]) -> (u32, u32) {
    let [ibm, world_cup, nasa, rice] = [
        (Preset::Ibm, processor_bound[0], 1.0),
        (Preset::WorldCup, processor_bound[1], 1.0),
        (Preset::Nasa, bus_bound[0], 1.0 - SPARE),
        (Preset::Rice, bus_bound[1], 1.0 - SPARE),
    ]
    .map(|(preset, run, share)| Load::of(preset, run, share));
    let exact = crossing(ibm, world_cup);
    let (network, application) = [nasa, rice]
        .into_iter()
        .filter(|limit| limit.at(exact) > 1.0)
        .max_by(|one, other| one.at(exact).total_cmp(&other.at(exact)))
        .map_or(exact, |limit| nearest_on(limit, [ibm, world_cup]));
    (per_cent(network), per_cent(application))
}

fn per_cent(scale: f64) -> u32 {
    let scale = if scale.is_finite() { scale } else { 100.0 };
    let (least, most) = (*SCALE_LIMITS.start(), *SCALE_LIMITS.end());
    scale.round().clamp(least, most) as u32
}

/// How much of the processor's time a log takes at its published throughput, for each per cent of the scales: 1 is all
/// that it may take.
#[derive(Clone, Copy, Debug)]
struct Load {
    network: f64,
    application: f64,
}

impl Load {
    /// From a run of it. It may take `share` of the processor's time; what it waits for memory comes off that.
    fn of(preset: Preset, run: &Results, share: f64) -> Self {
        let bytes = run.clients.content_mbps.max(f64::MIN_POSITIVE) * run.measured_s;
        let cycles = |part: fn(Layer) -> bool| {
            let layers = LAYERS.into_iter().filter(|&layer| part(layer));
            let cycles = layers.map(|layer| {
                let name = format!("{layer:?}").to_ascii_lowercase();
                run.host.layers.get(&name).copied().unwrap_or_default()
            });
            cycles.fold((0.0, 0.0), |(execute, stall), cycles| {
                (
                    execute + cycles.execute as f64 / bytes,
                    stall + (cycles.l2 + cycles.memory) as f64 / bytes,
                )
            })
        };
        let (network, stalls) = cycles(Layer::is_network_stack);
        let (rest, other_stalls) = cycles(|layer| !layer.is_network_stack());
        let clock = f64::from(run.experiment.host.clock_mhz) * 1e6;
        let published = Uncached::of_preset(preset).content_mbps;
        let available = share * clock / published - stalls - other_stalls;
        let scale = &run.experiment.host.scale;
        Self {
            network: network / f64::from(scale.network_stack) / available,
            application: rest / f64::from(scale.application) / available,
        }
    }

    fn at(self, (network, application): (f64, f64)) -> f64 {
        self.network * network + self.application * application
    }
}

/// Where both loads are 1.
fn crossing(one: Load, other: Load) -> (f64, f64) {
    let determinant = one.network * other.application - one.application * other.network;
    (
        (other.application - one.application) / determinant,
        (one.network - other.network) / determinant,
    )
}

/// Where `limit` is 1 and the squared distances of the others from 1 are the least.
fn nearest_on(limit: Load, others: [Load; 2]) -> (f64, f64) {
    let application = |network: f64| (1.0 - limit.network * network) / limit.application;
    // Along the limit each load is a + b * network.
    let lines = others.map(|load| {
        let a = load.at((0.0, application(0.0)));
        (a, load.at((1.0, application(1.0))) - a)
    });
    let down: f64 = lines.iter().map(|(a, b)| b * (1.0 - a)).sum();
    let up: f64 = lines.iter().map(|(_, b)| b * b).sum();
    let network = down / up;
    (network, application(network))
}

/// The setup at which the bus-bound logs miss their published throughput by as little above as below. The time that a bit takes
/// is taken to grow in proportion, as runs with more of it tell.
fn setup(present_ns: u32, fast: &[Results], slow: &[Results]) -> u32 {
    let of = |preset: Preset, fast: &Results, slow: &Results| {
        let time = |run: &Results| 1.0 / run.clients.content_mbps.max(f64::MIN_POSITIVE);
        let slope = (time(slow) - time(fast)) / f64::from(SETUP_STEP);
        let wanted = 1.0 / Uncached::of_preset(preset).content_mbps;
        f64::from(present_ns) + (wanted - time(fast)) / slope
    };
    let best = (of(Preset::Nasa, &fast[0], &slow[0]) + of(Preset::Rice, &fast[1], &slow[1])) / 2.0;
    if best.is_finite() {
        best.round()
            .clamp(*SETUP_LIMITS.start(), *SETUP_LIMITS.end()) as u32
    } else {
        present_ns
    }
}

/// The file cache whose run has the throughput that is nearest to the published one.
fn file_cache(runs: &[Results]) -> u32 {
    let published = Uncached::of_preset(Preset::Berkeley).content_mbps;
    let distance = |run: &&Results| (run.clients.content_mbps / published).ln().abs();
    let nearest = runs
        .iter()
        .min_by(|one, other| distance(one).total_cmp(&distance(other)));
    nearest
        .expect("there are sizes to choose from")
        .experiment
        .host
        .kernel
        .file_cache
        .kib
}

fn round_text(number: usize, constants: &Constants, numbers: &[Row]) -> String {
    format!(
        "\nRound {number}\n{}\n{}",
        constants.to_toml(),
        table("Published and simulated:", numbers)
    )
}

fn outcome_text(rounds: &[Round], settled: bool) -> String {
    let Some(last) = rounds.last() else {
        return String::new();
    };
    let met = last
        .numbers
        .iter()
        .filter(|row| tolerance::met(row))
        .count();
    let how = if settled {
        "settled"
    } else {
        "not settled: allow more with --rounds N"
    };
    format!(
        "\n{met} of {} numbers are within tolerance after {} rounds ({how}).\n\nFor the profile, which is not changed:\n\n{}",
        last.numbers.len(),
        rounds.len(),
        last.constants.to_toml()
    )
}
