//! The settings that the paper leaves open (batching 2.3, 4 and 5), each with a figure.

mod adaptive;
mod bulk_accept;
mod connections;
mod cork;
mod cumulative;
mod immediate;
mod sweep;
mod transfer;

use super::lab::Lab;
use crate::commands::reproduce::{Outcome, Row};
use crate::failure::Failure;
use crate::output::PendingFigure;
use baton_report::figure::{Panels, Size};
use std::fs;
use std::path::Path;

/// A study.
struct Study {
    /// What the user types.
    name: &'static str,
    run: fn(&Lab<'_>) -> Result<Findings, Failure>,
}

/// What came of a study.
struct Findings {
    rows: Vec<Row>,
    text: String,
    figure: Panels,
}

const ALL: [Study; 7] = [
    Study {
        name: "cork",
        run: cork::run,
    },
    Study {
        name: "transfer",
        run: transfer::run,
    },
    Study {
        name: "immediate",
        run: immediate::run,
    },
    Study {
        name: "bulk-accept",
        run: bulk_accept::run,
    },
    Study {
        name: "cumulative",
        run: cumulative::run,
    },
    Study {
        name: "connections",
        run: connections::run,
    },
    Study {
        name: "adaptive",
        run: adaptive::run,
    },
];

/// What the user may type, `all` included.
pub const NAMES: [&str; 8] = [
    "cork",
    "transfer",
    "immediate",
    "bulk-accept",
    "cumulative",
    "connections",
    "adaptive",
    "all",
];

/// Runs the studies of these names.
///
/// # Errors
/// A run that fails, a figure that cannot be written, an interrupt.
pub(super) fn run(lab: &Lab<'_>, names: &[String]) -> Result<Outcome, Failure> {
    let wanted = |study: &&Study| names.iter().any(|name| name == study.name || name == "all");
    let studies: Vec<&Study> = ALL.iter().filter(wanted).collect();
    let out = lab.context().batching.out.as_deref();
    // See that everything can be written before anything long begins.
    let mut pictures = Vec::new();
    if let Some(folder) = out {
        create(folder)?;
        for study in &studies {
            let path = folder.join(format!("batching-{}.svg", study.name));
            pictures.push(PendingFigure::new(&path, Size::default())?);
        }
    }
    let mut pictures = pictures.into_iter();
    let (mut rows, mut text, mut figures) = (Vec::new(), String::new(), Vec::new());
    for study in &studies {
        let findings = (study.run)(lab)?;
        rows.extend(findings.rows);
        if !text.is_empty() {
            text.push('\n');
        }
        text += &findings.text;
        if let Some(picture) = pictures.next() {
            picture.write(&findings.figure.clone().into())?;
        }
        figures.push(findings.figure);
    }
    let figure = figures.pop().filter(|_| figures.is_empty());
    Ok(Outcome {
        rows: rows.into(),
        text,
        figure: figure.map(Into::into),
    })
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        let folder = folder.display();
        Failure::BadInput(format!("--out {folder}: {error}; expected a folder"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_known() {
        let names: Vec<&str> = ALL.iter().map(|study| study.name).collect();
        assert_eq!(names, NAMES[..ALL.len()]);
        assert_eq!(NAMES[ALL.len()..], ["all"]);
    }
}
