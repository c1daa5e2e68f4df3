//! Sources of runs.

use super::date;
use super::gather::Gathering;
use crate::failure::Failure;
use crate::output::reason;
use crate::runner::Interrupt;
use baton_report::grouped;
use baton_sim::results::Results;
use baton_study::{Digest, Store, Study, read_run};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A source of runs that a user may report.
pub enum Source {
    /// A study in a folder of `baton sweep`.
    Study { root: PathBuf, study: Study },
    /// A file of `baton run --json` or `baton load --json`.
    File {
        path: PathBuf,
        text: Vec<u8>,
        runs: Vec<Results>,
    },
}

/// The parts of a results file that a page needs.
#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    Runs { runs: Vec<Results> },
    Curves { curves: Vec<Curve> },
}

#[derive(Deserialize)]
struct Curve {
    measured: Vec<Measured>,
}

#[derive(Deserialize)]
struct Measured {
    run: Results,
}

/// Maximum number of configurations that are named in the title of a page.
const MOST_NAMES: usize = 3;

/// Lines for the page, each with a name and a value.
type Facts = Vec<(String, String)>;

impl Source {
    /// Reads a file, or finds the runs in a folder.
    ///
    /// # Errors
    /// Fails if the path is neither, or cannot be read.
    pub fn find(path: &Path) -> Result<Self, Failure> {
        let bad = |why: &str| {
            let path = path.display();
            Failure::BadInput(format!(
                "{path}: {why}; expected a file of `baton run --json` or `baton load --json`, or a folder of `baton sweep`"
            ))
        };
        if !path.is_file() || path.extension().is_none_or(|ending| ending != "json") {
            // FOLDER/STUDY is not the path of a file.
            let is_study =
                path.exists() || path.parent().is_some_and(|root| Store::check(root).is_ok());
            if !is_study {
                return Err(bad("there is no such file or folder"));
            }
            let (root, study) = Study::find(path)?;
            return Ok(Self::Study { root, study });
        }
        let text = fs::read(path).map_err(|error| bad(&reason(&error)))?;
        let document: Result<Document, _> = serde_json::from_slice(&text);
        let runs = match document.map_err(|_| bad("has no results that this version can read"))? {
            Document::Runs { runs } => runs,
            Document::Curves { curves } => {
                let measured = curves.into_iter().flat_map(|curve| curve.measured);
                measured.map(|measured| measured.run).collect()
            }
        };
        match runs.is_empty() {
            true => Err(bad("has no runs")),
            false => Ok(Self::File {
                path: path.to_owned(),
                text,
                runs,
            }),
        }
    }

    /// Returns the name of the source.
    pub fn name(&self) -> String {
        match self {
            Self::Study { root, study } => root.join(&study.name).display().to_string(),
            Self::File { path, .. } => path.display().to_string(),
        }
    }

    /// Returns what the source is about, in words.
    pub fn title(&self) -> String {
        let runs = match self {
            Self::Study { study, .. } => return study.name.clone(),
            Self::File { runs, .. } => runs,
        };
        let mut names: Vec<&str> = Vec::new();
        for run in runs {
            if !names.contains(&run.experiment.name.as_str()) {
                names.push(&run.experiment.name);
            }
        }
        let is_load = runs.iter().any(|run| run.clients.open_loop.is_some());
        let about = match names.as_slice() {
            names if names.len() <= MOST_NAMES => names.join(", "),
            names => {
                let others = names.len() - MOST_NAMES + 1;
                format!("{} and {others} others", names[..MOST_NAMES - 1].join(", "))
            }
        };
        match is_load && runs.len() > names.len() {
            true => format!("Response time over load: {about}"),
            false => about,
        }
    }

    /// Returns the keys that the user chose to vary, if they are known.
    pub fn columns(&self) -> Option<Vec<String>> {
        match self {
            Self::Study { study, .. } => Some(
                study
                    .columns
                    .iter()
                    .map(|column| column.path.clone())
                    .collect(),
            ),
            Self::File { .. } => None,
        }
    }

    /// Adds the runs of this source, with `name` as the source's name. Returns facts about their origin.
    ///
    /// # Errors
    /// Fails if results cannot be read, or if the user interrupts.
    pub fn gather(
        &self,
        name: &str,
        gathering: &mut Gathering,
        interrupt: &Interrupt,
    ) -> Result<Facts, Failure> {
        match self {
            Self::Study { root, study } => of_study(root, study, name, gathering, interrupt),
            Self::File { path, text, runs } => {
                for results in runs {
                    gathering.add(name, &results.experiment.name, results);
                }
                let commits: BTreeSet<&str> = runs.iter().map(|run| run.commit.as_str()).collect();
                let written = fs::metadata(path).and_then(|file| file.modified()).ok();
                let digest = Digest::new().part(text).key();
                let mut facts = vec![
                    (
                        "Results".to_owned(),
                        format!("{}, {} runs, digest {digest}", path.display(), runs.len()),
                    ),
                    (
                        "Program".to_owned(),
                        format!(
                            "commit {}",
                            commits.into_iter().collect::<Vec<_>>().join(", ")
                        ),
                    ),
                ];
                facts.extend(written.map(|written| ("Written".to_owned(), time(written))));
                Ok(facts)
            }
        }
    }
}

fn of_study(
    root: &Path,
    study: &Study,
    name: &str,
    gathering: &mut Gathering,
    interrupt: &Interrupt,
) -> Result<Facts, Failure> {
    let mut programs = BTreeSet::new();
    let mut written: Option<(SystemTime, SystemTime)> = None;
    let (mut done, mut took_s) = (0u64, 0.0);
    for run in &study.runs {
        if interrupt.requested() {
            return Err(Failure::Interrupted);
        }
        let Some(stored) = read_run(root, run.key)? else {
            continue;
        };
        let variant = run.variant.as_deref().unwrap_or(&study.name);
        match &stored.results {
            Some(results) => gathering.add(name, variant, results),
            None => gathering.add_failed(name, variant, run.seed, stored.head.error.as_deref()),
        }
        done += 1;
        took_s += stored.head.took_s;
        programs.insert(stored.head.program);
        if let Some(time) = stored.written {
            let (first, last) = written.unwrap_or((time, time));
            written = Some((first.min(time), last.max(time)));
        }
    }
    if done == 0 {
        return Err(Failure::BadInput(format!(
            "{}: none of its runs has been done; expected at least one (baton sweep status {} shows the progress)",
            root.join(&study.name).display(),
            root.display()
        )));
    }
    let of = grouped(study.runs.len() as u64);
    let mut facts = vec![
        (
            "Study".to_owned(),
            format!(
                "{}, {} of {of} runs done, digest {}",
                root.join(&study.name).display(),
                grouped(done),
                study.digest()
            ),
        ),
        (
            "Programs".to_owned(),
            programs
                .into_iter()
                .map(|program| described(&program))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    ];
    facts.extend((study.command.clone()).map(|command| ("Command".to_owned(), command)));
    facts.extend(written.map(|(first, last)| {
        let dates = format!(
            "{} to {}, {:.2} hours of threads",
            time(first),
            time(last),
            took_s / 3600.0
        );
        ("Runs done".to_owned(), dates)
    }));
    Ok(facts)
}

/// Describes the program of a stored run: version, digest of sources, commit.
fn described(program: &str) -> String {
    match program.split(' ').collect::<Vec<_>>().as_slice() {
        [version, sources, commit] => {
            format!("baton {version}, sources {sources}, commit {commit}")
        }
        _ => program.to_owned(),
    }
}

fn time(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| "at an unknown time".to_owned(), date)
}
