//! `baton generate`: writes a synthetic access log.

use crate::cli::GenerateArgs;
use crate::commands::trace;
use crate::failure::Failure;
use crate::logs;
use crate::output::{Pending, print, spare};
use crate::runner::{Interrupt, Spinner};
use baton_report::{self as report, Column, Scale, Table};
use baton_workload::fit::{FitError, FitRow, Unit};
use baton_workload::log::{Layout, write_log};
use baton_workload::{Analysis, Fit, Log, Preset, SessionRule};
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if an output cannot be written, or if the user interrupts.
pub fn execute(arguments: &GenerateArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(model) = &arguments.fit {
        spare(model, "--out", Some(&arguments.out))?;
    }
    let out = Pending::new("--out", &arguments.out)?;
    let (log, text) = match (&arguments.fit, &arguments.preset) {
        (Some(model), _) => fitted(arguments, model, interrupt)?,
        (None, preset) => of_preset(arguments, preset.as_deref().unwrap_or_default())?,
    };
    interrupt.check()?;
    let layout = if arguments.combined {
        Layout::Combined
    } else {
        Layout::Common
    };
    let requests = report::grouped(log.requests.len() as u64);
    out.write_with(|file| write_log(&log, layout, file))?;
    print(&format!(
        "{text}\nWrote {requests} requests to {}.\n",
        arguments.out.display()
    ))
}

/// Generates a log similar to the one at `model`, and describes the differences.
fn fitted(
    arguments: &GenerateArgs,
    model: &Path,
    interrupt: &Interrupt,
) -> Result<(Log, String), Failure> {
    let original = logs::read(model, &arguments.reading, interrupt)?;
    let _spinner = Spinner::new("fitting the generator");
    let bad = |reason: String| Failure::BadInput(format!("--fit {}: {reason}", model.display()));
    let rule = SessionRule::PAPERS;
    let fit = Fit::of(&original, rule).map_err(|error| bad(error.to_string()))?;
    let requests = match arguments.requests {
        Some(requests) => requests,
        None => u32::try_from(original.requests.len())
            .map_err(|_| bad("has 2^32 requests or more; expected fewer".to_owned()))?,
    };
    let impossible = |error| {
        Failure::Failed(format!(
            "the generator fitted to {} is not valid: {error}",
            model.display()
        ))
    };
    let log = fit
        .spec
        .generate(arguments.seed.get(), requests)
        .map_err(impossible)?;
    let error = FitError::between(&original, &log, rule);
    Ok((log, fit_table("fit", "original", &error)))
}

/// Generates a log of a preset, and describes it.
fn of_preset(arguments: &GenerateArgs, name: &str) -> Result<(Log, String), Failure> {
    let _spinner = Spinner::new("generating");
    let preset = Preset::from_name(name).ok_or_else(|| {
        let known = Preset::ALL.map(Preset::name).join(", ");
        Failure::BadInput(format!(
            "generate {name}: no such preset; expected one of {known}, or --fit LOG"
        ))
    })?;
    let requests = arguments.requests.unwrap_or_else(|| preset.requests());
    let impossible = |error| Failure::Failed(format!("the preset {name} is not valid: {error}"));
    let log = preset
        .spec()
        .generate(arguments.seed.get(), requests)
        .map_err(impossible)?;
    let mut text = trace::describe(&arguments.out, &Analysis::of(&log, SessionRule::PAPERS));
    if let Some(published) = preset.published() {
        let error = FitError::against(&published, &log)
            .map_err(|error| Failure::Failed(format!("the preset {name}: {error}")))?;
        text.push('\n');
        text.push_str(&fit_table("fit to what is published", "published", &error));
    }
    Ok((log, text))
}

/// Renders the numbers of both logs with the error of the fit. `original` is the name of the log that the generated one is compared with.
fn fit_table(head: &str, original: &str, error: &FitError) -> String {
    let mut table = Table::new(vec![
        Column::words(head),
        Column::numbers(original),
        Column::numbers("generated"),
        Column::numbers("error"),
    ]);
    for row in &error.rows {
        table.row(fit_cells(row));
    }
    table.render()
}

fn fit_cells(row: &FitRow) -> Vec<String> {
    let FitRow {
        metric,
        unit,
        original,
        generated,
    } = row;
    let (value, scale, factor): (fn(f64) -> String, Scale, f64) = match unit {
        Unit::Share => (report::percent, Scale::Points, 100.0),
        Unit::Bytes | Unit::Count => (report::significant, Scale::Relative, 1.0),
    };
    let (original, generated) = (factor * original, factor * generated);
    vec![
        metric.clone(),
        value(original),
        value(generated),
        scale.error(original, generated),
    ]
}
