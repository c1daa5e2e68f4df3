//! `baton explore`: writes a page in which the simulator runs.

pub mod controls;
mod module;

use crate::cli::ExploreArgs;
use crate::commands::report::date;
use crate::config::shipped::{self, PROFILES};
use crate::config::{self, Plan, Planned, Request, Setting};
use crate::failure::Failure;
use crate::output::{Pending, note, print_text, reason, spare};
use crate::runner::COMMIT;
use baton_config::SOURCES;
use baton_explorer::shown;
use baton_report::bytes;
use baton_report::page::explorer::Explorer;
use baton_sim::config::WorkloadConfig;
use baton_study::table::metrics;
use baton_workload::log::content;
use jiff::Timestamp;
use std::path::Path;

/// Default number of packets before the measurement, and of measured packets: the page responds within a second or two.
const PACKETS: u64 = 100_000;
/// Maximum size of a log that a page contains, decompressed.
const MOST_LOG_BYTES: u64 = 256 << 20;

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if there is no module, or if the page cannot be written.
pub fn execute(arguments: &ExploreArgs) -> Result<(), Failure> {
    let (name, changes) = (&arguments.experiment, &arguments.changes);
    let mut request = Request {
        experiment: name.clone(),
        profile: changes.profile.clone(),
        log: changes.log.clone(),
        settings: changes.settings(),
        variants: arguments.variant.iter().cloned().collect(),
        ..Request::default()
    };
    let mut run = one(&request)?;
    if !run.says_how_long() {
        let short = ["run.warmup_packets", "run.measured_packets"];
        let short = short.map(|path| Setting::of_set(path, PACKETS));
        request.settings.splice(0..0, short);
        run = one(&request)?;
    }
    spare(Path::new(name), "--out", Some(&arguments.out))?;
    let out = Pending::new("--out", &arguments.out)?;
    let module = module::find()?;
    let log = match &run.experiment.workload {
        WorkloadConfig::Log { path, .. } => Some(embedded_log(path)?),
        _ => None,
    };
    if let Some((name, _)) = &log {
        note(&format!("the page contains the log {name}"));
    }
    let explorer = Explorer {
        title: arguments
            .title
            .clone()
            .unwrap_or_else(|| format!("Explore {name}")),
        groups: controls::of(&run.experiment)?,
        text: text(run)?,
        log,
        measures: metrics::ALL.iter().map(shown::measure).collect(),
        module: module::packed(&module)?,
        provenance: provenance(),
    };
    let page = explorer.html();
    out.write(page.as_bytes())?;
    print_text(&format!(
        "{}: {}\n",
        arguments.out.display(),
        bytes(page.len() as u64)
    ))
}

/// Returns the name of a log, and its content for the page.
fn embedded_log(path: &Path) -> Result<(String, String), Failure> {
    let bad = |why: String| Failure::BadInput(format!("{}: {why}", path.display()));
    let content = content(path, MOST_LOG_BYTES);
    let content = content.map_err(|error| bad(format!("cannot read: {}", reason(&error))))?;
    let content = content.ok_or_else(|| {
        bad(format!(
            "is larger than {}; expected a smaller log, which a page can contain",
            bytes(MOST_LOG_BYTES)
        ))
    })?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok((
        name.to_string_lossy().into_owned(),
        module::packed(&content)?,
    ))
}

fn one(request: &Request) -> Result<Planned, Failure> {
    let mut runs = config::plan(request)?.runs;
    if runs.len() == 1 {
        return Ok(runs.remove(0));
    }
    let names: Vec<&str> = runs.iter().map(|run| &*run.experiment.name).collect();
    Err(Failure::BadInput(format!(
        "{}: has {} variants; expected a single one: choose it with --variant NAME, from {}",
        request.experiment,
        runs.len(),
        names.join(", ")
    )))
}

/// Returns the experiment file that the page starts with, which refers to nothing that exists only on this machine.
fn text(mut run: Planned) -> Result<String, Failure> {
    let profile = run.short.get("profile").and_then(|name| name.as_str());
    let is_shipped = profile.is_some_and(|name| shipped::find(PROFILES, name).is_some());
    // The name would remain when the user changes the experiment.
    run.short.remove("name");
    run.experiment.name = baton_explorer::FILE.trim_end_matches(".toml").to_owned();
    let plan = Plan {
        runs: vec![run],
        notes: Vec::new(),
    };
    Ok(config::to_text(&plan, !is_shipped)?)
}

fn provenance() -> Vec<(String, String)> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let program = format!(
        "baton {} (commit {COMMIT}), sources {SOURCES}",
        env!("CARGO_PKG_VERSION")
    );
    let page = format!(
        "{}, by: baton {}",
        date(Timestamp::now()),
        command.join(" ")
    );
    vec![
        ("Simulator".to_owned(), program),
        ("This page".to_owned(), page),
    ]
}
