//! Figures as files.

use super::Pending;
use crate::failure::Failure;
use baton_report::figure::{CAN_DRAW, Drawn, Picture};
use std::path::Path;

/// Where `--figure` goes.
pub struct PendingFigure {
    file: Pending,
    picture: Picture,
}

impl PendingFigure {
    /// Sees that `path` can be written and has the name of a picture, and that there is something to draw it with.
    ///
    /// # Errors
    /// It cannot, or has not, or there is not.
    pub fn new(path: &Path) -> Result<Self, Failure> {
        if !CAN_DRAW {
            return Err(Failure::BadInput(format!(
                "--figure {}: this program was built without the feature `figures`",
                path.display()
            )));
        }
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
