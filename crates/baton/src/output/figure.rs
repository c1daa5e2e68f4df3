//! Figures as files, with their data in files next to them.

use super::{Pending, to_json};
use crate::failure::Failure;
use baton_report::figure::{CAN_DRAW, Figure, Size};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Format of a picture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Svg,
    Pdf,
    Png,
}

impl Format {
    /// Returns the format that the ending of `path` names.
    fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(Self::Svg),
            "pdf" => Some(Self::Pdf),
            "png" => Some(Self::Png),
            _ => None,
        }
    }
}

/// Destination of a figure: a picture and, next to it, its data as `.figure.csv` and as a Vega-Lite specification, `.figure.vl.json`.
pub struct PendingFigure {
    paths: [PathBuf; 3],
    picture: Pending,
    format: Format,
    size: Size,
    csv: Pending,
    specification: Pending,
}

impl PendingFigure {
    /// Checks that `path` can be written and has the name of a picture, and that the program can draw.
    ///
    /// # Errors
    /// Fails if one of these is not the case.
    pub fn new(path: &Path, size: Size) -> Result<Self, Failure> {
        if !CAN_DRAW {
            return Err(Failure::BadInput(format!(
                "--figure {}: this program was built without the feature `figures`",
                path.display()
            )));
        }
        let format = Format::of_path(path).ok_or_else(|| {
            Failure::BadInput(format!(
                "--figure {}: unknown format; expected a name that ends in .svg, .pdf or .png",
                path.display()
            ))
        })?;
        if format != Format::Svg && !cfg!(feature = "print") {
            return Err(Failure::BadInput(format!(
                "--figure {}: this program was built without the feature `print`; expected a name that ends in .svg, or a program from \
                 `cargo build --release --features print`",
                path.display()
            )));
        }
        let paths = [
            path.to_owned(),
            beside(path, "csv"),
            beside(path, "vl.json"),
        ];
        Ok(Self {
            picture: Pending::new("--figure", &paths[0])?,
            csv: Pending::new("--figure", &paths[1])?,
            specification: Pending::new("--figure", &paths[2])?,
            paths,
            format,
            size,
        })
    }

    /// Draws the figure and writes it with its data. Returns the paths.
    ///
    /// # Errors
    /// Fails if the figure cannot be drawn or written.
    pub fn write(self, figure: &Figure) -> Result<[PathBuf; 3], Failure> {
        let svg = figure.svg(self.size);
        let svg = svg.map_err(|error| Failure::Failed(error.to_string()))?;
        let picture = match self.format {
            Format::Svg => svg.into_bytes(),
            #[cfg(feature = "print")]
            Format::Pdf => super::picture::pdf(&svg, self.size)?,
            #[cfg(feature = "print")]
            Format::Png => super::picture::png(&svg, self.size)?,
            #[cfg(not(feature = "print"))]
            Format::Pdf | Format::Png => Vec::new(),
        };
        self.csv.write(figure.csv().as_bytes())?;
        let specification = to_json(&figure.vega_lite())?;
        self.specification.write(specification.as_bytes())?;
        self.picture.write(&picture)?;
        Ok(self.paths)
    }
}

/// Returns the path of a data file, such as `load.figure.csv` for `load.svg`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.file_stem().unwrap_or_default().to_owned();
    name.push(".figure.");
    name.push(ending);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_of_a_path_selects_the_format() {
        let kind = |name: &str| Format::of_path(Path::new(name));
        assert_eq!(kind("a/b.SVG"), Some(Format::Svg));
        assert_eq!(kind("b.pdf"), Some(Format::Pdf));
        assert_eq!(kind("b.png"), Some(Format::Png));
        assert_eq!((kind("b.jpg"), kind("svg")), (None, None));
        assert_eq!(
            beside(Path::new("a/b.svg"), "csv"),
            Path::new("a/b.figure.csv")
        );
    }
}
