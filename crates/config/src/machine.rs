//! The machine of an experiment: the program's defaults, overridden by a profile.

use super::parts::{self, MACHINES};
use super::source::{Diagnostic, Kind, Origin, Sources};
use super::tree::{Entry, Node};
use super::{Request, suggest};
use crate::failure::Failure;
use baton_sim::config::Experiment;
use std::path::{Path, PathBuf};

const NOT_A_NAME: &str = "profile: expected the name or path of a profile in quotes";

/// Returns the error for a document that names no profile.
fn missing(sources: &Sources, document: &Node) -> Diagnostic {
    let message = format!(
        "`profile` is missing, the machine to run on; expected profile = \"NAME\" with one of {} (see `baton list profiles`), or the \
         path of a profile file",
        MACHINES.names()
    );
    // An unknown key may be a misspelt `profile`.
    let keys = document.table().into_iter().flatten();
    let misspelt = keys.map(|(key, entry)| (suggest::distance(key, "profile"), entry));
    match misspelt
        .filter(|(distance, _)| *distance <= 2)
        .min_by_key(|(distance, _)| *distance)
    {
        Some((_, entry)) => sources.diagnose(
            &entry.key,
            format!("unknown key; did you mean `profile`? {message}"),
        ),
        None => sources.diagnose(&document.origin, message),
    }
}

/// Loads the profile that the flag names or, without the flag, `profile`, which was taken from `document`. Overrides the defaults with it.
/// Also returns the name of the profile, relative to the current folder.
///
/// # Errors
/// Fails if there is no such profile, or if it cannot be used.
pub fn load(
    sources: &mut Sources,
    request: &Request,
    profile: Option<Entry>,
    document: &Node,
    folder: &Path,
) -> Result<(String, Node), Failure> {
    let defaults = toml::Value::try_from(Experiment::default()).map_err(|error| {
        Failure::Failed(format!("the built-in defaults are not valid TOML: {error}"))
    })?;
    let mut machine = Node::from_default(&defaults);
    let (mut name, origin, folder) = match (&request.profile, profile) {
        (Some(name), _) => {
            let flag = sources.add(Kind::Flag, format!("--profile {name}"), name.as_str());
            (
                name.clone(),
                Sources::at(flag, 0..name.len()),
                Path::new(""),
            )
        }
        (None, Some(entry)) => {
            let origin = entry.node.origin.clone();
            let Some(name) = entry.node.string() else {
                return Err(Failure::BadInput(
                    sources.diagnose(&origin, NOT_A_NAME).to_string(),
                ));
            };
            (name.to_owned(), origin, folder)
        }
        (None, None) => {
            let missing = missing(sources, document);
            return Err(Failure::BadInput(missing.to_string()));
        }
    };
    for layer in load_layers(sources, (&name, &origin), folder)? {
        machine.lay_over(layer);
    }
    if MACHINES.text(&name).is_none() {
        name = folder.join(name).display().to_string();
    }
    Ok((name, machine))
}

/// Maximum number of profiles that override each other.
const MOST_LAYERS: usize = 8;

/// Loads a profile and the chain of profiles that it overrides, which each name the next as `profile`. Returns the lowest layer first.
fn load_layers(
    sources: &mut Sources,
    (name, origin): (&str, &Origin),
    folder: &Path,
) -> Result<Vec<Node>, Failure> {
    let mut layers = Vec::new();
    let (mut name, mut origin, mut folder) = (name.to_owned(), origin.clone(), folder.to_owned());
    loop {
        let loaded = MACHINES.load(sources, &name, &folder);
        let mut layer = loaded
            .map_err(|problem| Failure::BadInput(problem.at(sources, &origin).to_string()))?;
        parts::expand_name(&mut layer);
        if MACHINES.text(&name).is_none() {
            parts::resolve(&mut layer, folder.join(&name).parent().unwrap_or(&folder));
        }
        let below = layer.take("profile");
        layers.push(layer);
        let Some(below) = below else {
            layers.reverse();
            return Ok(layers);
        };
        folder = match MACHINES.text(&name) {
            Some(_) => PathBuf::new(),
            None => folder
                .join(&name)
                .parent()
                .map(Path::to_owned)
                .unwrap_or_default(),
        };
        origin = below.node.origin.clone();
        let bad = |message: &str| Failure::BadInput(sources.diagnose(&origin, message).to_string());
        let Some(next) = below.node.string() else {
            return Err(bad(NOT_A_NAME));
        };
        if layers.len() == MOST_LAYERS {
            return Err(bad(&format!(
                "profile: too many profiles that refer to each other; expected at most {MOST_LAYERS}"
            )));
        }
        name = next.to_owned();
    }
}
