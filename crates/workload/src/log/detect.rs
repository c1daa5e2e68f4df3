//! Detection of a log's format by its first lines.

use super::error::{Fitting, LogError};
use super::format::Format;
use super::lines::HeadLine;
use super::parse::Parser;
use super::spec::FormatSpec;
use super::text::excerpt;
use std::path::Path;

/// Number of lines that are examined.
pub(super) const SAMPLE_LINES: usize = 100;

/// Returns the format that fits most of the lines, the first in [`Format::ALL`] in case of a tie. The format must fit half of the non-blank
/// lines, or a single one if `few` is set.
pub(super) fn detect(path: &Path, lines: &[HeadLine], few: bool) -> Result<Format, LogError> {
    let with_text: Vec<&HeadLine> = lines.iter().filter(|line| !line.is_blank()).collect();
    let Some(&first) = with_text.first() else {
        return Err(LogError::Empty {
            path: path.to_owned(),
        });
    };
    let mut best = (0, Format::Common);
    for format in Format::ALL {
        let fits = fitting(format, &with_text).filter(|fits| *fits).count();
        if fits > best.0 {
            best = (fits, format);
        }
    }
    let (fits, format) = best;
    if fits > 0 && (few || 2 * fits >= with_text.len()) {
        return Ok(format);
    }
    if fits == 0 && is_binary(first.as_raw().text) {
        return Err(LogError::Other {
            path: path.to_owned(),
            what: "a binary file",
            remedy: "expected an access log",
        });
    }
    // Report the first line that does not have this format.
    let blamed = with_text
        .iter()
        .zip(fitting(format, &with_text))
        .find_map(|(line, fits)| (!fits).then_some(*line))
        .unwrap_or(first);
    Err(LogError::UnknownFormat {
        path: path.to_owned(),
        line: blamed.as_raw().number,
        text: excerpt(blamed.as_raw().text),
        best: (fits > 0).then_some(Fitting {
            format,
            lines: fits,
            of: with_text.len(),
        }),
    })
}

/// Returns whether a line is not text in any encoding that extends ASCII.
fn is_binary(line: &[u8]) -> bool {
    let controls = line.iter().filter(|c| c.is_ascii_control() && **c != b'\t');
    let others = line.iter().filter(|c| !c.is_ascii());
    controls.count() > 0 && others.count() > line.len() / 8 || line.contains(&0)
}

/// Returns, for each of the lines, whether it is a request or a directive in this format.
fn fitting(format: Format, lines: &[&HeadLine]) -> impl Iterator<Item = bool> {
    let mut parser = FormatSpec::named(format).map(|spec| Parser::new(&spec));
    lines.iter().map(move |line| {
        parser
            .as_mut()
            .is_some_and(|parser| parser.parse(line.as_raw().text).is_ok())
    })
}
