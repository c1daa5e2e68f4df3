//! The figures of a study as files.

use crate::beside::{self, Outcome};
use crate::cli::FigureArgs;
use crate::config::{FigurePlan, ReportPlan};
use crate::failure::Failure;
use crate::output::PendingFigure;
use baton_report::figure::{CAN_DRAW, Size};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Figures to draw when all runs are done.
pub struct Drawings {
    figures: Vec<Drawing>,
    size: Size,
}

struct Drawing {
    plan: FigurePlan,
    path: PathBuf,
    /// The open file, if the user specified a path; figures in the folder of the tables are opened later.
    picture: Option<PendingFigure>,
}

impl Drawings {
    /// Prepares the figures of a study, which may have none. Checks that the user's path can be written; without a path, figures go to
    /// `folder`.
    ///
    /// # Errors
    /// Fails if the user requests a figure of a study without figures, or if it cannot be written.
    pub fn new(
        arguments: &FigureArgs,
        report: &ReportPlan,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let (wanted, figures) = (&arguments.path, &report.figures);
        if let (Some(path), true) = (wanted, figures.is_empty()) {
            return Err(Failure::BadInput(format!(
                "--figure {}: the study has no table [figure], which says what to draw; expected a study with one",
                path.display()
            )));
        }
        let size = arguments.size()?;
        let beside_tables = folder.join(format!("{}.svg", report.name));
        let drawing = |(number, plan): (usize, &FigurePlan)| {
            let path = path_of(wanted.as_ref().unwrap_or(&beside_tables), figures, number);
            let picture = wanted.as_ref().map(|_| PendingFigure::new(&path, size));
            Ok(Drawing {
                plan: plan.clone(),
                picture: picture.transpose()?,
                path,
            })
        };
        let drawings: Result<_, Failure> = figures.iter().enumerate().map(drawing).collect();
        Ok(Self {
            figures: drawings?,
            size,
        })
    }

    /// Draws the figures, and returns their files.
    ///
    /// # Errors
    /// Fails if a figure cannot be drawn or written.
    pub fn draw(self, outcome: &Outcome<'_>) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        for drawing in self.figures {
            let picture = match drawing.picture {
                Some(picture) => picture,
                None if CAN_DRAW => PendingFigure::new(&drawing.path, self.size)?,
                None => continue,
            };
            files.extend(picture.write(&beside::figure::of(&drawing.plan, outcome))?);
        }
        Ok(files)
    }
}

/// Returns the path of one of several figures, with its name or number before the ending.
fn path_of(path: &Path, figures: &[FigurePlan], number: usize) -> PathBuf {
    let which = match (&figures[number].name, figures.len()) {
        (Some(name), _) => name.clone(),
        (None, 1) => return path.to_owned(),
        (None, _) => (number + 1).to_string(),
    };
    let mut name: OsString = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{which}"));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}
