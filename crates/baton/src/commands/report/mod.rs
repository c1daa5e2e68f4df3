//! `baton report`: results as a page of HTML.

mod gather;
mod source;
mod verdict;

use super::sweep::this_command;
use crate::cli::ReportArgs;
use crate::failure::Failure;
use crate::output::{Pending, print_text, spare};
use crate::runner::{COMMIT, Interrupt};
use baton_report::counted;
use baton_report::page::Page;
use gather::Gathering;
use jiff::Timestamp;
use source::Source;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use verdict::Verdict;

/// Runs the command.
///
/// # Errors
/// Fails if results cannot be read, if the page cannot be written, or if the user interrupts.
pub fn execute(arguments: &ReportArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    for input in &arguments.results {
        spare(input, "--out", Some(&arguments.out))?;
    }
    spare_what_is_no_page(&arguments.out)?;
    let sources = arguments.results.iter().map(|path| Source::find(path));
    let sources: Vec<Source> = sources.collect::<Result<_, _>>()?;
    let out = Pending::new("--out", &arguments.out)?;
    let mut gathering = Gathering::default();
    let mut provenance = Vec::new();
    for source in &sources {
        // For a single source, rows need no source name.
        let name = if sources.len() > 1 {
            source.name()
        } else {
            String::new()
        };
        provenance.extend(source.gather(&name, &mut gathering, interrupt)?);
    }
    let titles = sources.iter().map(Source::title);
    let title = arguments.title.clone();
    let title = title.unwrap_or_else(|| titles.collect::<Vec<_>>().join(" and "));
    provenance.push((
        "This page".to_owned(),
        format!(
            "baton {} ({COMMIT}), {}, by: {}",
            env!("CARGO_PKG_VERSION"),
            date(Timestamp::now()),
            this_command()
        ),
    ));
    let count = gathering.len();
    let (runs, configurations) = gathering.finish(sources.iter().find_map(Source::columns));
    let Verdict {
        headline,
        findings,
        comparison,
    } = verdict::of(&configurations);
    let page = Page {
        title,
        headline,
        findings,
        comparison,
        provenance,
        runs,
    };
    out.write(page.html().as_bytes())?;
    let runs = counted(count as u64, "run");
    print_text(&format!("{}: {runs}\n", arguments.out.display()))
}

/// Refuses to overwrite a file that is not a page, such as a table of the study.
fn spare_what_is_no_page(out: &Path) -> Result<(), Failure> {
    const BEGINNING: &[u8] = b"<!DOCTYPE html>";
    let mut beginning = Vec::new();
    let is_page = match File::open(out) {
        Ok(file) if out.is_file() => {
            let read = file
                .take(BEGINNING.len() as u64)
                .read_to_end(&mut beginning);
            read.is_err() || beginning.is_empty() || beginning == BEGINNING
        }
        _ => true,
    };
    match is_page {
        true => Ok(()),
        false => Err(Failure::BadInput(format!(
            "--out {}: would overwrite a file that is not a report; expected another path",
            out.display()
        ))),
    }
}

/// Formats a time, to the minute.
pub fn date(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
