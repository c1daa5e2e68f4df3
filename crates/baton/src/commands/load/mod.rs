//! `baton load`: response times over load, the knee, and the load that meets a goal.

mod curve;
mod figure;
mod goal;
mod laboratory;
mod metric;
mod point;
mod table;

pub use goal::Goal;
pub use point::Point;

use crate::cli::LoadArgs;
use crate::config::{self, Planned, Request, Setting};
use crate::failure::Failure;
use crate::output::{JsonOutput, print_text, spare, tell};
use crate::runner::Interrupt;
use curve::Curve;
use laboratory::{Laboratory, Subject};
use schemars::JsonSchema;
use serde::Serialize;

/// Content of `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document<'a> {
    /// Curves, one for each configuration, in the order of the command line and of experiment files.
    curves: &'a [Curve],
}

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if a run fails, or if the user interrupts.
pub fn execute(arguments: &LoadArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let points = point::chosen(arguments)?;
    let subjects = subjects(arguments)?;
    for input in subjects.iter().filter_map(Subject::log) {
        spare(input, "--json", arguments.json.as_deref())?;
        spare(input, "--figure", arguments.figure.path.as_deref())?;
    }
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let figure = arguments.figure.pending()?;
    let laboratory = Laboratory {
        threads: arguments.threads.get(),
        interrupt,
    };
    let mut curves = curve::measure(&laboratory, &subjects, &points, arguments.capacity)?;
    if let Some(goal) = arguments.goal {
        goal::search(&laboratory, &subjects, &mut curves, goal)?;
    }
    curves.iter_mut().for_each(Curve::find_knee);
    let text = table::describe(&curves);
    if let Some(figure) = figure {
        figure.write(&figure::of(&curves).into())?;
    }
    match json {
        Some(json) => json.write(&Document { curves: &curves }, &text),
        None => print_text(&text),
    }
}

/// Returns all configurations.
fn subjects(arguments: &LoadArgs) -> Result<Vec<Subject>, Failure> {
    let changes = &arguments.changes;
    if changes.arrivals.rate.is_some() {
        let why = "`baton load` sets the rates itself; expected --points instead, as in --points 5000/s,10000/s";
        return Err(Failure::BadInput(format!("--rate: {why}")));
    }
    let mut subjects = Vec::new();
    for experiment in &arguments.experiments {
        let mut request = Request {
            experiment: experiment.clone(),
            text: None,
            profile: changes.profile.clone(),
            log: changes.log.clone(),
            settings: changes.settings(),
            variants: arguments.variant.clone(),
            ..Request::default()
        };
        // The user's arrivals are valid only with a rate: each run later replaces this one.
        let rate = Setting::of_flag("--rate", "load.rate", "1/s");
        request.settings.insert(0, rate);
        let mut plan = config::plan(&request)?;
        plan.name_changes();
        for note in &plan.notes {
            tell(&format!("note: {note}\n"));
        }
        request.settings.remove(0);
        let subject = |run: Planned| Subject::new(run, &request);
        subjects.extend(plan.runs.into_iter().map(subject));
    }
    Ok(subjects)
}
