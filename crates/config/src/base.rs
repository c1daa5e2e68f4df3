//! Reads an experiment file or a shorthand, and splits it into its parts.

use super::report::Sections;
use super::shipped::{self, EXPERIMENTS, Shipped};
use super::shorthand::{NotShorthand, Shorthand, WorkloadLetter};
use super::source::{Diagnostic, Kind, Sources};
use super::tree::{Entry, Node, Value};
use super::variants::Variant;
use super::{Request, machine, parts, suggest, variants};
use crate::failure::{Failure, reason};
use std::fs;
use std::path::Path;

/// The parts of an experiment file or shorthand.
pub struct Base {
    /// Name or path of the profile.
    pub profile_name: String,
    /// The program's defaults, overridden by the profile.
    pub machine: Node,
    /// The document itself.
    pub document: Node,
    /// The variants, at least one.
    pub variants: Vec<Variant>,
    /// The table `[sweep]`, if the document has it.
    pub sweep: Option<Entry>,
    /// The sections about results.
    pub report: Sections,
}

/// Reads the requested experiment and its machine.
///
/// # Errors
/// Fails if the experiment or the machine cannot be used.
pub fn load(
    sources: &mut Sources,
    request: &Request,
    notes: &mut Vec<String>,
) -> Result<Base, Failure> {
    let bad = |diagnostic: Diagnostic| Failure::BadInput(diagnostic.to_string());
    let path = Path::new(&request.experiment);
    let is_text = request.text.is_some();
    let shipped = shipped::find(EXPERIMENTS, &request.experiment).filter(|_| !is_text);
    let is_file = !is_text && shipped.is_none() && path.exists() && !path.is_dir();
    let mut document = if let Some(text) = &request.text {
        Node::parse(sources, Kind::File, &request.experiment, text).map_err(bad)?
    } else if let Some(Shipped { name, text }) = shipped {
        let title = format!("experiments/{name}.toml (built in)");
        Node::parse(sources, Kind::File, &title, text).map_err(bad)?
    } else if is_file {
        read_document(sources, path)?
    } else {
        read_shorthand(sources, request, notes)?
    };
    let folder = match path.parent() {
        Some(folder) if is_file => folder,
        _ => Path::new(""),
    };
    let profile = document.take("profile");
    let sweep = document.take("sweep");
    let report = Sections::take(&mut document);
    let variants = variants::take(sources, &mut document).map_err(bad)?;
    let variants = variants::choose(variants, request)?;
    if is_text || is_file || shipped.is_some() {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = Node {
            origin: document.origin.clone(),
            value: Value::String(stem),
        };
        if document.get("name").is_none() {
            document.merge(Node::at_path("name", name));
        }
        resolve_log(&mut document, folder);
    }
    parts::expand_name(&mut document);
    parts::resolve(&mut document, folder);
    let (profile_name, machine) = machine::load(sources, request, profile, &document, folder)?;
    let variants = variants
        .into_iter()
        .map(|mut variant| {
            resolve_log(&mut variant.layer, folder);
            parts::expand_name(&mut variant.layer);
            parts::resolve(&mut variant.layer, folder);
            variant
        })
        .collect();
    Ok(Base {
        profile_name,
        machine,
        document,
        variants,
        sweep,
        report,
    })
}

fn read_document(sources: &mut Sources, path: &Path) -> Result<Node, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::BadInput(format!(
            "{name}: {}; expected an experiment file (TOML)",
            reason(&error)
        ))
    })?;
    Node::parse(sources, Kind::File, &name, &text)
        .map_err(|diagnostic| Failure::BadInput(diagnostic.to_string()))
}

fn read_shorthand(
    sources: &mut Sources,
    request: &Request,
    notes: &mut Vec<String>,
) -> Result<Node, Failure> {
    let name = &request.experiment;
    let path_like =
        name.contains(['/', '\\']) || name.ends_with(".toml") || Path::new(name).is_dir();
    if path_like {
        let what = if Path::new(name).is_dir() {
            "is a directory"
        } else {
            "no such file"
        };
        return Err(Failure::BadInput(format!(
            "{name}: {what}; expected an experiment file (TOML)"
        )));
    }
    let shorthand: Shorthand = name.parse().map_err(|error| {
        Failure::BadInput(match error {
            // Was the name meant as a shorthand?
            NotShorthand::Part { .. } => error.to_string(),
            NotShorthand::Parts { .. } if WorkloadLetter::begins(name) => error.to_string(),
            NotShorthand::Parts { .. } => unknown(name),
        })
    })?;
    if request.log.is_some() && !shorthand.workload.is_log() {
        return Err(Failure::BadInput(format!(
            "--log: {name} replays no log, because {} stands for SPECweb99-like load; expected a shorthand that starts \
             with W or I, or an experiment file",
            shorthand.workload
        )));
    }
    let mut text = shorthand.to_toml();
    if request.log.is_none() && shorthand.workload.is_log() {
        notes.push(stand_in_note(shorthand));
        text = text.replacen(
            &format!("\"{shorthand}\""),
            &format!("\"{shorthand} {STAND_IN}\""),
            1,
        );
    }
    Node::parse(sources, Kind::Shorthand, name, &text)
        .map_err(|diagnostic| Failure::BadInput(diagnostic.to_string()))
}

/// Returns the message that nothing is called `name`.
fn unknown(name: &str) -> String {
    let meant = suggest::name(name, EXPERIMENTS.iter().map(|shipped| shipped.name));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
    format!(
        "{name}: there is no experiment, file or shorthand of this name{meant}\n\
         Expected a file (TOML), a name that `baton list experiments` shows, or \
         WORKLOAD-CONNECTIONS-PRIORITY-LOADCONTROL-SELECTION-MIPS, as in W-1024-P-N-FCFS-400"
    )
}

/// Marks the name of a run in which a generated log replaces the real one.
pub const STAND_IN: &str = "(generated log)";

fn stand_in_note(shorthand: Shorthand) -> String {
    let (letter, log, preset) = match shorthand.workload {
        WorkloadLetter::Ibm => ("I", "the IBM log, which is not public", "ibm"),
        _ => (
            "W",
            "the World Cup log, which is not part of Baton",
            "worldcup-lifetimes",
        ),
    };
    format!(
        "{letter} stands for {log}, and no --log FILE was given: running on a generated log (preset `{preset}`) \
         instead. Runs on it are marked {STAND_IN}."
    )
}

/// Resolves a log's path, which is relative to the file that names it.
fn resolve_log(layer: &mut Node, folder: &Path) {
    if let Some(Node {
        value: Value::String(path),
        ..
    }) = layer.get_mut("workload.path")
    {
        *path = folder.join(&*path).display().to_string();
    }
}
