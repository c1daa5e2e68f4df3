//! Studies of the settings that the paper leaves open (batching 2.3, 4 and 5), each with a figure. All are study files, except the
//! comparison of adaptive batching with the best fixed settings.

mod adaptive;

use super::lab::Lab;
use crate::commands::reproduce::{Outcome, study};
use crate::config::{Request, Setting};
use crate::failure::Failure;
use crate::output::PendingFigure;
use baton_report::figure::Size;
use std::fs;
use std::path::Path;

/// The study that is implemented in code.
const ADAPTIVE: &str = "adaptive";

/// Accepted names, including `all`.
pub const NAMES: [&str; 9] = [
    "cork",
    "transfer",
    "immediate",
    "bulk-accept",
    "cumulative",
    "connections",
    "five",
    ADAPTIVE,
    "all",
];

/// Runs the studies of these names.
///
/// # Errors
/// Fails if a run fails, if a figure cannot be written, or if the user interrupts.
pub(super) fn run(lab: &Lab<'_>, names: &[String]) -> Result<Outcome, Failure> {
    let asked = |study: &&str| names.iter().any(|name| name == study || name == "all");
    let studies = NAMES.into_iter().filter(|name| *name != "all");
    let studies: Vec<&str> = studies.filter(asked).collect();
    let out = lab.context().batching.out.as_deref();
    // Check that everything can be written, before any long work.
    let mut pictures = Vec::new();
    if let Some(folder) = out {
        create(folder)?;
        for name in &studies {
            let path = folder.join(format!("batching-{name}.svg"));
            pictures.push(PendingFigure::new(&path, Size::default())?);
        }
    }
    let mut pictures = pictures.into_iter();
    let mut all = Outcome::default();
    for name in &studies {
        let outcome = match *name {
            ADAPTIVE => adaptive::run(lab)?,
            name => of_file(lab, name)?,
        };
        all.rows.extend(outcome.rows);
        if !all.text.is_empty() {
            all.text.push('\n');
        }
        all.text += &outcome.text;
        all.figure = outcome.figure;
        if let (Some(picture), Some(figure)) = (pictures.next(), &all.figure) {
            picture.write(figure)?;
        }
    }
    all.figure = all.figure.filter(|_| studies.len() == 1);
    Ok(all)
}

/// Runs a study file on the requested machine.
fn of_file(lab: &Lab<'_>, name: &str) -> Result<Outcome, Failure> {
    let (context, only) = (lab.context(), lab.context().batching);
    let responses = only.responses;
    let responses = responses.map(|n| Setting::of_flag("--responses", "run.measured_responses", n));
    let request = Request {
        experiment: format!("batching-{name}"),
        profile: only.profile.clone(),
        settings: std::iter::once(Setting::of_flag("--seed", "run.seed", context.seed))
            .chain(responses)
            .collect(),
        seeds: only.seeds.map(u64::from),
        ..Request::default()
    };
    study::run_study(context, &request)
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        let folder = folder.display();
        Failure::BadInput(format!("--out {folder}: {error}; expected a folder"))
    })
}
