//! `baton calibrate`: derives the fitted constants of a machine again, only from the published numbers that they were fitted to.
//!
//! There are more numbers than constants, so the remaining errors show how well the model fits. The study for the machine's kind defines
//! which keys are fitted, and to which numbers.

use crate::beside::{self, Outcome, Row};
use crate::cli::CalibrateArgs;
use crate::commands::sweep::fit::Fitter;
use crate::config::{self, Request, Setting, StudyPlan};
use crate::failure::Failure;
use crate::output::{JsonOutput, print, spare, tell};
use crate::runner::{COMMIT, Interrupt, Sweep};
use crate::tables::steadiness;
use baton_bus::interconnect::InterconnectConfig;
use baton_report::{counted, grouped};
use baton_sim::config::{EstablishedBy, Experiment, Length, RunConfig, WorkloadConfig};
use baton_study::{Patience, Store, StudyStatus};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A study with a table `[fit]`.
struct FittedBy {
    /// Name of the study.
    study: &'static str,
    /// Published numbers in the study.
    published: &'static str,
    /// Whether a log may replace the generated one.
    takes_log: bool,
}

/// The study for servers that hand connections off.
const HANDOFF: FittedBy = FittedBy {
    study: "handoff-table1",
    published: "Table 1 of the handoff-policies paper (OSDI 2006)",
    takes_log: true,
};

/// The study for servers with an interconnect that takes time.
const UNCACHED: FittedBy = FittedBy {
    study: "dcache-bus",
    published: "its throughput without a cache (ASPLOS 2002)",
    takes_log: false,
};

/// The study for servers whose adapter has all of TCP.
const BATCHING: FittedBy = FittedBy {
    study: "batching-maximal",
    published: "response times with maximal batching (IBM Research, Table 1)",
    takes_log: false,
};

impl FittedBy {
    /// Returns the study for a machine. If there is no such machine, any study will report that.
    fn of(profile: &str) -> &'static Self {
        match config::profile(profile) {
            Ok(machine) if machine.offload.established_by != EstablishedBy::Host => &BATCHING,
            Ok(machine) if machine.interconnect != InterconnectConfig::Ideal => &UNCACHED,
            _ => &HANDOFF,
        }
    }
}

/// Content of `--json`.
#[derive(Serialize)]
struct Document {
    /// Name or path of the machine.
    profile: String,
    /// The study.
    study: &'static str,
    /// Commit of the program.
    commit: &'static str,
    /// Workload of the first run.
    workload: WorkloadConfig,
    /// Seed and length of each run.
    run: RunConfig,
    /// Results with the constants of the profile.
    in_profile: Vec<Row>,
    /// Derived constants, by key.
    constants: BTreeMap<String, f64>,
    /// Results with the derived constants.
    derived: Vec<Row>,
    rounds: usize,
    /// Whether another round would bring no improvement.
    settled: bool,
}

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if a run fails, or if the user interrupts.
pub fn execute(arguments: &CalibrateArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let inputs = arguments.log.as_deref().into_iter();
    for input in inputs.chain([Path::new(&arguments.profile)]) {
        spare(input, "--json", arguments.json.as_deref())?;
    }
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let by = FittedBy::of(&arguments.profile);
    check_log(arguments, by)?;
    let mut request = request(arguments, by);
    let folder = scratch()?;
    let bench = Bench {
        store: &Store::open(folder.path(), Patience::default())?,
        threads: arguments.threads.get(),
        interrupt,
    };
    let plan = bench.plan(&request, &arguments.profile)?;
    let say = |text: &str| match json {
        // Stdout must contain only JSON.
        Some(JsonOutput::Stdout) => {
            tell(text);
            Ok(())
        }
        _ => print(text),
    };
    let experiment = plan.points[0].experiment.clone();
    say(&introduction(arguments, by, &experiment))?;
    let mut fit = plan
        .report
        .fit
        .clone()
        .expect("the study has a table [fit]");
    fit.rounds = arguments.rounds as usize;
    let (text, in_profile) = bench.outcome(plan)?;
    say(&format!("\nWith the constants of the profile:\n{text}\n"))?;
    let fitter = Fitter {
        request: &request,
        plan: &fit,
        store: bench.store,
        threads: bench.threads,
        interrupt,
    };
    let fitted = fitter.fit(&say)?;
    request.settings.extend(fitted.settings.clone());
    let (text, derived) = bench.outcome(bench.plan(&request, &arguments.profile)?)?;
    let text = format!(
        "\nDerived in {} ({}):\n{text}\nFor the profile, which is not changed:\n\n{}",
        counted(fitted.rounds as u64, "round"),
        how_it_ended(fitted.settled),
        fitted.lines()
    );
    let Some(json) = json else {
        return print(&text);
    };
    let document = Document {
        profile: arguments.profile.clone(),
        study: by.study,
        commit: COMMIT,
        workload: experiment.workload,
        run: experiment.run,
        in_profile,
        constants: fitted.constants.into_iter().collect(),
        derived,
        rounds: fitted.rounds,
        settled: fitted.settled,
    };
    json.write(&document, &text)
}

fn check_log(arguments: &CalibrateArgs, by: &FittedBy) -> Result<(), Failure> {
    match arguments.log.as_ref().filter(|_| !by.takes_log) {
        None => Ok(()),
        Some(log) => Err(Failure::BadInput(format!(
            "--log {}: {} is calibrated on the loads of experiments/{}.toml; expected no --log",
            log.display(),
            arguments.profile,
            by.study
        ))),
    }
}

fn how_it_ended(settled: bool) -> &'static str {
    match settled {
        true => "converged: the last round reduced the distance to the numbers by less than 1 %",
        false => {
            "not converged: the last round still reduced the distance to the numbers; allow more with --rounds N"
        }
    }
}

/// The environment of runs.
struct Bench<'a> {
    store: &'a Store,
    threads: usize,
    interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// Plans the study on the machine. Errors in the profile or the log are found here, before any run.
    fn plan(&self, request: &Request, profile: &str) -> Result<StudyPlan, Failure> {
        config::study(request, self.threads).map_err(|failure| match failure.into() {
            // In this command, the profile is an argument and not a flag.
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

    /// Runs the study, and returns the results as text and as machine-readable rows.
    fn outcome(&self, plan: StudyPlan) -> Result<(String, Vec<Row>), Failure> {
        let report = plan.report.clone();
        let (study, runs) = plan.identified(self.store)?;
        let sweep = Sweep {
            store: self.store,
            runs: &runs,
            threads: self.threads,
        };
        sweep.carry_out(self.interrupt)?;
        let outcome = Outcome::read(&report, self.store, &study)?;
        let mut text = beside::published(&outcome);
        let not_steady = StudyStatus::of(self.store.root(), &study)?.not_steady;
        if not_steady > 0 {
            let rest = ", so that their numbers may not hold: measure longer (--packets)";
            text += &steadiness::share(not_steady, runs.len(), rest);
        }
        Ok((text, beside::rows(&outcome)))
    }
}

/// Creates a folder for the results of runs, which is removed when the calibration ends.
fn scratch() -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir()
        .map_err(|error| Failure::Failed(format!("cannot create a folder for results: {error}")))
}

/// Returns the part of the request that all runs share.
fn request(arguments: &CalibrateArgs, by: &FittedBy) -> Request {
    let flags = [
        ("--seed", "run.seed", Some(arguments.seed.get())),
        ("--warmup", "run.warmup_packets", arguments.warmup),
        ("--packets", "run.measured_packets", arguments.packets),
    ];
    let settings = flags
        .into_iter()
        .filter_map(|(flag, path, value)| Some(Setting::of_flag(flag, path, value?)));
    let log = arguments.log.as_deref();
    Request {
        experiment: by.study.to_owned(),
        profile: Some(arguments.profile.clone()),
        log: log.map(Into::into),
        settings: settings
            .chain(log.map(|_| Setting::log_in_order()))
            .chain(log.into_iter().flat_map(|_| arguments.reading.settings()))
            .collect(),
        ..Request::default()
    }
}

/// Describes the calibration before it begins.
fn introduction(arguments: &CalibrateArgs, by: &FittedBy, experiment: &Experiment) -> String {
    let run = &experiment.run;
    let log = match (&arguments.log, by.takes_log) {
        (Some(path), _) => format!(", with the log {}", path.display()),
        (None, true) => ", with a generated log (preset `worldcup-lifetimes`), because no --log FILE was given and the World Cup log is not \
                         part of Baton:\nthe derived constants hold for the generated log"
            .to_owned(),
        (None, false) => String::new(),
    };
    let length = |length| match length {
        Length::Packets(packets) => format!("{} packets", grouped(packets)),
        Length::Responses(responses) => format!("{} responses", grouped(responses)),
        Length::Seconds(seconds) => format!("{seconds} s"),
        Length::Passes(passes) => format!("{passes} passes over the log"),
    };
    let (measured, before) = (length(run.measured()), length(run.warmup()));
    format!(
        "Deriving the fitted constants of {} from {},\nstarting at neutral values{log}.\nEach run: {measured} measured after {before} of warm-up, seed {}.\n",
        arguments.profile, by.published, run.seed,
    )
}
