//! `baton report`: results as a page of HTML.

mod gather;
mod source;
mod verdict;

use super::sweep::this_command;
use crate::cli::ReportArgs;
use crate::failure::Failure;
use crate::output::{Pending, print_text, spare};
use crate::runner::{COMMIT, Interrupt};
use baton_report::grouped;
use baton_report::page::Page;
use gather::Gathering;
use jiff::Timestamp;
use source::Source;

/// Runs the command.
///
/// # Errors
/// Results cannot be read, the page cannot be written, an interrupt.
pub fn execute(arguments: &ReportArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    for input in &arguments.results {
        spare(input, "--out", Some(&arguments.out))?;
    }
    let sources = arguments.results.iter().map(|path| Source::find(path));
    let sources: Vec<Source> = sources.collect::<Result<_, _>>()?;
    let out = Pending::new("--out", &arguments.out)?;
    let mut gathering = Gathering::default();
    let mut provenance = Vec::new();
    for source in &sources {
        // One source needs no name in each row.
        let name = if sources.len() > 1 {
            source.name()
        } else {
            String::new()
        };
        provenance.extend(source.gather(&name, &mut gathering, interrupt)?);
    }
    let titles = sources.iter().map(Source::name);
    let title = arguments.title.clone();
    let title = title.unwrap_or_else(|| titles.collect::<Vec<_>>().join(" beside "));
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
    let (headline, findings) = verdict::of(&configurations);
    let page = Page {
        title,
        headline,
        findings,
        provenance,
        runs,
    };
    out.write(page.html().as_bytes())?;
    let runs = grouped(count as u64);
    print_text(&format!("{}: {runs} runs\n", arguments.out.display()))
}

/// To the minute.
pub fn date(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
