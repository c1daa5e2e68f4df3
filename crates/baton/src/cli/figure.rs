//! Options for figures.

use crate::failure::Failure;
use crate::output::PendingFigure;
use baton_report::figure::{Extent, Size};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Options for the file and the size of a figure.
#[derive(Debug, Args)]
pub struct FigureArgs {
    /// Draw the results into this file, .svg or, with the feature `print`, .pdf or .png; the data go into files next to it, as CSV and as a
    /// Vega-Lite specification
    #[arg(long = "figure", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub path: Option<PathBuf>,
    /// Size of the figure, as in "84mm x 60mm" or 1200x800 [default: 960x600]
    #[arg(long = "size", value_name = "WxH")]
    pub extent: Option<Extent>,
    /// Pixels per inch [default: 96; 300 where the size is in mm, cm, in or pt]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2400))]
    pub dpi: Option<u32>,
}

impl FigureArgs {
    /// Returns the size of the figure.
    ///
    /// # Errors
    /// Fails if a figure cannot be this large or small.
    pub fn size(&self) -> Result<Size, Failure> {
        let size = Size::new(self.extent, self.dpi);
        size.map_err(|error| {
            let extent = self
                .extent
                .map_or("960x600".to_owned(), |extent| extent.to_string());
            Failure::BadInput(format!("--size {extent}: {error}"))
        })
    }

    /// Returns the file, if a figure is asked for, after checking that it can be written.
    ///
    /// # Errors
    /// Fails if it cannot be written, or if a figure cannot be this large or small.
    pub fn pending(&self) -> Result<Option<PendingFigure>, Failure> {
        let size = self.size()?;
        let path = self.path.as_deref();
        path.map(|path| PendingFigure::new(path, size)).transpose()
    }
}
