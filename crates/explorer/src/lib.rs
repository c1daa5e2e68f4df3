//! The simulator in a web page: [`answer`] takes an experiment as text and returns its results as text. Everything that ships with the
//! program is found without files, and a log is given as bytes.
//!
//! For WebAssembly, a separate module (`exports`) is embedded in a page and runs on a worker: `cargo rustc --release --target
//! wasm32-unknown-unknown -p baton-explorer --crate-type cdylib`. Equal questions get byte-identical answers in WebAssembly and natively.
//!
//! | to find | look in |
//! |---|---|
//! | a question, and how it is answered | [`Question`], [`answer`] |
//! | runs in the form that pages need | [`shown`] |
//! | the functions that a page calls | `src/exports.rs` |
//! | the page itself | [`baton_report::page::explorer`] |

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

/// Name of the experiment in errors, and of the file that a page offers.
pub const FILE: &str = "explored.toml";

/// A request to run an experiment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// An experiment file with one run.
    pub text: String,
    /// Keys and values that override the experiment's, in order, as `--set` takes them.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// Name of the log to replay instead of the experiment's workload. The log's content is read from standard input.
    #[serde(default)]
    pub log: Option<String>,
}

/// Answer to a question.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// The experiment was run.
    Ran(Box<Ran>),
    /// The experiment could not be run; the text gives the reason.
    Refused(String),
}

#[derive(Clone, Debug, Serialize)]
struct Ran {
    /// One sentence that sums up the result.
    verdict: String,
    /// Remarks on the run.
    notes: Vec<String>,
    /// The run in the form that pages need, without its cycles.
    run: page::Run,
    /// Shares of the host's cycles by layer, per cent.
    cycles_percent: BTreeMap<String, f64>,
    /// The experiment file that gives the same result again.
    toml: String,
    /// Output of `baton run --json` for the run, as text, since JavaScript would lose digits of large numbers.
    results: String,
    /// Version, source and commit of the simulator.
    program: &'static str,
}

/// Output of `baton run --json`, without the comparison of several runs.
#[derive(Serialize)]
struct Document<'a> {
    runs: [&'a Results; 1],
}

/// Runs the experiment of a question in JSON. Returns JSON, too: the results, or the reason why there are none.
pub fn answer(question: &[u8], logs: &Logs, observer: &mut dyn Observer) -> String {
    let question = serde_json::from_slice(question);
    let question = question.map_err(|error| {
        Failure::BadInput(format!("cannot read the request of the page: {error}"))
    });
    let answer = match question.and_then(|question| answered(&question, logs, observer)) {
        Ok(ran) => Answer::Ran(Box::new(ran)),
        Err(failure) => Answer::Refused(failure.to_string()),
    };
    serde_json::to_string(&answer).expect("an answer has only texts for keys")
}

/// Runs the experiment of a question. Errors call the log by its name, although its content is read from standard input.
fn answered(question: &Question, logs: &Logs, observer: &mut dyn Observer) -> Result<Ran, Failure> {
    ran(question, logs, observer).map_err(|failure| match (failure, &question.log) {
        (Failure::BadInput(message), Some(name)) if message.starts_with("-:") => {
            Failure::BadInput(message.replacen('-', name, 1))
        }
        (failure, _) => failure,
    })
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
    planned.measure_long_enough();
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

/// Sets the log's path in the experiment file, which may be run outside of the page.
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
    parts.extend(response.map(|ms| format!("a response takes {} ms on average", estimated(ms))));
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
