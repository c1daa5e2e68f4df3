//! The simulator in a page: [`answer`] takes an experiment as text and gives its results as text. Everything that ships is found
//! without files, and a log is given as bytes.
//!
//! For WebAssembly it is a module of its own (`exports`), which a page has inside and runs on a worker:
//! `cargo rustc --release --target wasm32-unknown-unknown -p baton-explorer --crate-type cdylib`. Equal questions have equal answers there
//! and here, byte for byte.

#[cfg(target_family = "wasm")]
pub mod exports;
pub mod shown;

use baton_config::{COMMIT, Failure, PROGRAM, Plan, Planned, Request, Setting, attempt, to_text};
use baton_report::{estimated, page};
use baton_sim::config::WorkloadConfig;
use baton_sim::results::{Limit, Results};
use baton_sim::{Fact, Observer, WARNINGS, run_on};
use baton_workload::log::Logs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What errors call the experiment, and the file that a page offers.
pub const FILE: &str = "explored.toml";

/// What is to be run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// An experiment file with one run.
    pub text: String,
    /// Keys and values over it, in order, as `--set` takes them.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The name of the log that is replayed in place of the experiment's workload. Its content is what standard input has.
    #[serde(default)]
    pub log: Option<String>,
}

/// What came out.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// The experiment was run.
    Ran(Box<Ran>),
    /// It cannot be, and why.
    Refused(String),
}

#[derive(Clone, Debug, Serialize)]
struct Ran {
    /// A sentence.
    verdict: String,
    /// What to know about it.
    notes: Vec<String>,
    /// The run as pages have it, but for its cycles.
    run: page::Run,
    /// Shares of the host's cycles by layer, per cent.
    cycles_percent: BTreeMap<String, f64>,
    /// The experiment file that gives the same again.
    toml: String,
    /// What `baton run --json` writes of the run, as text: a page would lose digits of large numbers.
    results: String,
    /// Version, sources and commit of the simulator.
    program: &'static str,
}

/// What `baton run --json` writes, without what compares several runs.
#[derive(Serialize)]
struct Document<'a> {
    runs: [&'a Results; 1],
}

/// Runs what a question in JSON asks for. The answer is JSON, too: what came out, or why nothing did.
pub fn answer(question: &[u8], logs: &Logs, observer: &mut dyn Observer) -> String {
    let question = serde_json::from_slice(question);
    let question = question.map_err(|error| Failure::BadInput(format!("the question: {error}")));
    let ran = question.and_then(|question| ran(&question, logs, observer));
    let answer = match ran {
        Ok(ran) => Answer::Ran(Box::new(ran)),
        Err(failure) => Answer::Refused(failure.to_string()),
    };
    serde_json::to_string(&answer).expect("an answer has only texts for keys")
}

fn ran(question: &Question, logs: &Logs, observer: &mut dyn Observer) -> Result<Ran, Failure> {
    let settings = question.settings.iter();
    let request = Request {
        experiment: FILE.to_owned(),
        text: Some(question.text.clone()),
        log: question.log.as_ref().map(|_| "-".into()),
        settings: settings
            .map(|(key, value)| Setting::of_set(key, value))
            .collect(),
        ..Request::default()
    };
    let mut plan = baton_config::plan(&request)?;
    let [planned] = plan.runs.as_mut_slice() else {
        let variants = plan.runs.len();
        let message = format!("{FILE}: has {variants} variants; expected one run");
        return Err(Failure::BadInput(message));
    };
    planned.measure_logs_long_enough();
    let experiment = planned.experiment.clone();
    let run = || run_on(logs, &experiment, COMMIT, &[], observer);
    let results = attempt(&experiment, "the same page", run)?;
    if let Some(name) = &question.log {
        name_log(planned, name);
    }
    let document = Document { runs: [&results] };
    let document = serde_json::to_string(&document);
    Ok(Ran {
        verdict: verdict(&results),
        notes: notes(&plan, &results),
        run: page::Run {
            samples: shown::samples(&shown::thinned(&results.series, shown::MOST_SAMPLES)),
            ..shown::of("", &experiment.name, &results)
        },
        cycles_percent: shown::cycles_percent(&results),
        toml: to_text(&plan, false)?,
        results: document.map_err(|error| Failure::Failed(error.to_string()))?,
        program: PROGRAM,
    })
}

/// Where the log is when the file is run elsewhere.
fn name_log(planned: &mut Planned, name: &str) {
    let replays_log = matches!(planned.experiment.workload, WorkloadConfig::Log { .. });
    let workload = planned.short.get_mut("workload");
    if let Some(workload) = workload.and_then(|workload| workload.as_table_mut())
        && replays_log
    {
        workload.insert("path".to_owned(), name.into());
    }
}

fn verdict(results: &Results) -> String {
    let mut parts = vec![format!("{} requests/s", estimated(results.request_rate()))];
    let response = results.mean_response_ms();
    parts.extend(response.map(|ms| format!("a response takes {} ms in the mean", estimated(ms))));
    parts.push(Limit::told(&Limit::all_of(results)));
    parts.join("; ") + "."
}

fn notes(plan: &Plan, results: &Results) -> Vec<String> {
    let mut notes = plan.notes.clone();
    notes.extend(plan.without_effect());
    if let Some(Fact::Words(warnings)) = results.workload.get(WARNINGS) {
        notes.extend(warnings.lines().map(str::to_owned));
    }
    notes
}

#[cfg(test)]
mod tests;
