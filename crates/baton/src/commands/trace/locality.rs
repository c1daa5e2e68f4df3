//! `baton trace locality`: the content that caches of all sizes on the NIC would keep off the bus.

use crate::cli::LocalityArgs;
use crate::commands::curves::{self, Curve, Request};
use crate::failure::Failure;
use crate::logs;
use crate::output::{JsonOutput, print_text, spare};
use crate::runner::Interrupt;
use baton_cache::{AdmissionConfig, ReplacementConfig};
use baton_report as report;
use baton_workload::analyse::{Blocks, Policy, Sample};
use baton_workload::{Log, SessionRule};
use serde::Serialize;
use std::path::Path;

/// Content of `--json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    log: &'a Path,
    requests: usize,
    content_bytes: u64,
    footprint_bytes: u64,
    block_bytes: u64,
    /// How the curves are estimated, if they are.
    estimate: Option<&'a str>,
    curves: &'a [Curve],
}

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if an output cannot be written, or if the user interrupts.
pub fn execute(arguments: &LocalityArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let request = request(arguments)?;
    spare(&arguments.log, "--json", arguments.json.as_deref())?;
    spare(&arguments.log, "--figure", arguments.figure.path.as_deref())?;
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let figure = arguments.figure.pending()?;
    let log = logs::read_replayable(&arguments.log, &arguments.reading, interrupt)?;
    let (requests, content_bytes) = (log.requests.len(), log.content_bytes());
    let footprint_bytes = log.files.footprint();
    let block_bytes = request.block_bytes;
    let estimate = estimate(&log, &request);
    let (threads, flag) = (arguments.threads.get(), interrupt.clone());
    let curves = interrupt.during(move || curves::compute(&log, &request, threads, &flag))??;
    let name = arguments.log.display();
    if let Some(figure) = figure {
        let short = arguments
            .log
            .file_name()
            .unwrap_or(arguments.log.as_os_str());
        let title = format!("Content kept off the bus: {}", short.display());
        let drawing = curves::figure(title, &curves, |curve| curve.policy.name());
        figure.write(&drawing.into())?;
    }
    let document = Document {
        log: &arguments.log,
        requests,
        content_bytes,
        footprint_bytes,
        block_bytes,
        estimate: estimate.as_deref(),
        curves: &curves,
    };
    let noted = |text: &str| report::wrapped(&format!("{text}.\n"), report::width(), 0);
    let text = format!(
        "{name}, blocks of {block_bytes} bytes\n{}\n{}",
        estimate.as_deref().map(noted).unwrap_or_default(),
        curves::tables(&curves)
    );
    match json {
        Some(json) => json.write(&document, &text),
        None => print_text(&text),
    }
}

/// Returns how the curves are estimated, in a sentence, if the log has too many blocks to follow all of them.
fn estimate(log: &Log, request: &Request) -> Option<String> {
    let samples = curves::samples(log, request);
    let steps = samples.iter().map(|(sample, _)| sample.step());
    let most = steps.max().unwrap_or(1);
    (samples.first()?.0 != Sample::ALL).then(|| {
        format!(
            "Estimated, as the log has far more blocks than requests: for each size of cache, the first blocks of a response are followed, four \
             times as many as fit, and of these at least one in {most}"
        )
    })
}

fn request(arguments: &LocalityArgs) -> Result<Request, Failure> {
    let admission = admission(&arguments.admission)?;
    let all = || {
        let online = ReplacementConfig::ALL.map(|policy| Policy::Online(policy, admission));
        online
            .into_iter()
            .chain([Policy::Min, Policy::Bound])
            .collect()
    };
    let mut policies: Vec<Policy> = if arguments.policies.is_empty() {
        all()
    } else {
        let policy = |name: &String| policy(name, admission);
        arguments
            .policies
            .iter()
            .map(policy)
            .collect::<Result<_, _>>()?
    };
    let mut seen = Vec::new();
    policies.retain(|policy| {
        !seen.contains(policy) && {
            seen.push(*policy);
            true
        }
    });
    let block_bytes = size("--block-size", &arguments.block_size)?;
    Blocks::new(&[], block_bytes)
        .map_err(|error| Failure::BadInput(format!("--block-size: {error}")))?;
    let mut caches = arguments.caches.clone();
    caches.sort_unstable();
    caches.dedup();
    Ok(Request {
        policies,
        sizes: sizes(&arguments.sizes, block_bytes)?,
        caches,
        block_bytes,
        rule: SessionRule {
            persistent_s: arguments.persistent,
            pipeline_s: None,
        },
    })
}

fn policy(name: &str, admission: AdmissionConfig) -> Result<Policy, Failure> {
    let online = ReplacementConfig::from_name(name).map(|p| Policy::Online(p, admission));
    let future = [Policy::Min, Policy::Bound]
        .into_iter()
        .find(|p| p.name() == name);
    online.or(future).ok_or_else(|| {
        let names = ReplacementConfig::ALL.map(ReplacementConfig::name);
        unknown(
            "--policies",
            name,
            "policy",
            names.into_iter().chain(["min", "bound"]),
        )
    })
}

fn admission(name: &str) -> Result<AdmissionConfig, Failure> {
    let all = [
        AdmissionConfig::All,
        AdmissionConfig::SECOND_REQUEST,
        AdmissionConfig::TINY_LFU,
    ];
    let found = all.into_iter().find(|admission| admission.name() == name);
    found.ok_or_else(|| {
        let names = all.iter().map(|admission| admission.name());
        unknown("--admission", name, "admission policy", names)
    })
}

fn unknown(
    flag: &str,
    name: &str,
    what: &str,
    known: impl Iterator<Item = &'static str>,
) -> Failure {
    let known: Vec<&str> = known.collect();
    let known = known.join(", ");
    Failure::BadInput(format!(
        "{flag} {name}: no such {what}; expected one of {known}"
    ))
}

/// Returns the sizes in ascending order, each at least the size of a block.
fn sizes(given: &[String], block_bytes: u64) -> Result<Vec<u64>, Failure> {
    if given.is_empty() {
        let fits = |size: &u64| *size >= block_bytes;
        return Ok(curves::default_sizes().into_iter().filter(fits).collect());
    }
    let mut sizes = Vec::new();
    for text in given {
        let bytes = size("--sizes", text)?;
        if bytes < block_bytes {
            return Err(Failure::BadInput(format!(
                "--sizes {text}: smaller than a block; expected at least {block_bytes} bytes"
            )));
        }
        sizes.push(bytes);
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// Parses a size: `4096`, `64K`, `16M`, `1G`.
fn size(flag: &str, text: &str) -> Result<u64, Failure> {
    let (digits, unit) = match text.char_indices().last() {
        Some((end, 'k' | 'K')) => (&text[..end], 1 << 10),
        Some((end, 'm' | 'M')) => (&text[..end], 1 << 20),
        Some((end, 'g' | 'G')) => (&text[..end], 1 << 30),
        _ => (text, 1u64),
    };
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| {
            Failure::BadInput(format!(
                "{flag} {text}: not a number of bytes; expected a size such as 4096, 64K, 16M or 1G"
            ))
        })
}
