//! Figures as files.

use super::Pending;
use crate::failure::Failure;
use baton_report::figure::{Drawn, Picture};
use std::path::Path;

/// Where `--figure` goes.
pub struct PendingFigure {
    file: Pending,
    picture: Picture,
}

impl PendingFigure {
    /// Sees that `path` can be written and has the name of a picture.
    ///
    /// # Errors
    /// It cannot, or has not.
    pub fn new(path: &Path) -> Result<Self, Failure> {
        let picture = Picture::of_path(path).ok_or_else(|| {
            Failure::BadInput(format!(
                "--figure {}: no kind of picture; expected a name that ends in .svg or .png",
                path.display()
            ))
        })?;
        Ok(Self {
            file: Pending::new("--figure", path)?,
            picture,
        })
    }

    /// Writes what `draw` draws.
    ///
    /// # Errors
    /// It cannot be drawn or written.
    pub fn write(self, draw: impl FnOnce(Picture) -> Drawn) -> Result<(), Failure> {
        let picture = draw(self.picture).map_err(|error| Failure::Failed(error.to_string()))?;
        self.file.write(&picture)
    }
}
