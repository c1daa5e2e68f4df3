//! The figures of a study as files.

use crate::beside::{self, Outcome};
use crate::cli::FigureArgs;
use crate::config::FigurePlan;
use crate::failure::Failure;
use crate::output::PendingFigure;
use baton_report::figure::{CAN_DRAW, Size};
use baton_study::{Store, Study};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Figures that are to be drawn when all runs are done.
pub struct Drawings {
    /// Each with where the user wants it; none where it goes beside the tables.
    figures: Vec<(FigurePlan, Option<PendingFigure>)>,
    size: Size,
}

impl Drawings {
    /// Of a study that may have none, seen to be writable where the user wants them.
    ///
    /// # Errors
    /// The user wants one of a study that has none, or it cannot be written.
    pub fn new(arguments: &FigureArgs, figures: &[FigurePlan]) -> Result<Self, Failure> {
        if let (Some(path), []) = (&arguments.path, figures) {
            return Err(Failure::BadInput(format!(
                "--figure {}: the study has no table [figure]; expected one, which says what to draw",
                path.display()
            )));
        }
        let size = arguments.size()?;
        let pending = |(number, figure): (usize, &FigurePlan)| {
            let path = (arguments.path.iter()).map(|path| path_of(path, figures, number));
            let picture = path.map(|path| PendingFigure::new(&path, size)).next();
            Ok((figure.clone(), picture.transpose()?))
        };
        let figures = figures.iter().enumerate().map(pending);
        Ok(Self {
            figures: figures.collect::<Result<_, Failure>>()?,
            size,
        })
    }

    /// Draws them, and returns their files.
    ///
    /// # Errors
    /// One cannot be drawn, or not be written.
    pub fn draw(
        self,
        store: &Store,
        study: &Study,
        outcome: &Outcome<'_>,
    ) -> Result<Vec<PathBuf>, Failure> {
        let plans: Vec<FigurePlan> = self.figures.iter().map(|(plan, _)| plan.clone()).collect();
        let beside_tables = store.root().join(format!("{}.svg", study.name));
        let mut files = Vec::new();
        for (number, (plan, picture)) in self.figures.into_iter().enumerate() {
            let picture = match picture {
                Some(picture) => picture,
                None if CAN_DRAW => {
                    PendingFigure::new(&path_of(&beside_tables, &plans, number), self.size)?
                }
                None => continue,
            };
            files.extend(picture.write(&beside::figure::of(&plan, outcome))?);
        }
        Ok(files)
    }
}

/// Where one figure of several goes: before the ending stands its name, or its number.
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
