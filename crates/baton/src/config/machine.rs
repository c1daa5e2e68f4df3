//! The machine of an experiment: a profile over the program's defaults.

use super::Request;
use super::source::{Diagnostic, Kind, Origin, Sources};
use super::tree::{Entry, Node};
use crate::failure::Failure;
use baton_sim::config::Experiment;
use std::fs;
use std::path::{Path, PathBuf};

/// Profiles by name, as in `profiles/*.toml`.
pub(super) const PROFILES: [(&str, &str); 5] = [
    (
        "handoff-2006",
        include_str!("../../../../profiles/handoff-2006.toml"),
    ),
    (
        "dcache-2002",
        include_str!("../../../../profiles/dcache-2002.toml"),
    ),
    (
        "dcache-modern",
        include_str!("../../../../profiles/dcache-modern.toml"),
    ),
    (
        "batching",
        include_str!("../../../../profiles/batching.toml"),
    ),
    (
        "offload-pcie",
        include_str!("../../../../profiles/offload-pcie.toml"),
    ),
];

const NOT_A_NAME: &str = "profile: expected the name or path of a profile in quotes";

/// The text of the profile of this name.
fn text(name: &str) -> Option<&'static str> {
    PROFILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// All names, for messages.
fn names() -> String {
    PROFILES.map(|(name, _)| name).join(", ")
}

/// The profile from the flag, else the document's; over the defaults. Also returns its name.
///
/// # Errors
/// It cannot be used.
pub fn load(
    sources: &mut Sources,
    request: &Request,
    profile: Option<Entry>,
    folder: &Path,
) -> Result<(Option<String>, Node), Failure> {
    let defaults = toml::Value::try_from(Experiment::default())
        .map_err(|error| Failure::Failed(format!("the built-in defaults are no TOML: {error}")))?;
    let mut machine = Node::from_default(&defaults);
    let (name, origin, folder) = match (&request.profile, profile) {
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
        (None, None) => return Ok((None, machine)),
    };
    for layer in load_layers(sources, (&name, &origin), folder)? {
        machine.merge(layer);
    }
    Ok((Some(name), machine))
}

/// Profiles that a profile is laid over, one over the other, at most.
const MOST_LAYERS: usize = 8;

/// A profile, and before it what it is laid over, as its own `profile` says.
fn load_layers(
    sources: &mut Sources,
    (name, origin): (&str, &Origin),
    folder: &Path,
) -> Result<Vec<Node>, Failure> {
    let mut layers = Vec::new();
    let (mut name, mut origin, mut folder) = (name.to_owned(), origin.clone(), folder.to_owned());
    loop {
        let mut layer = load_profile(sources, &name, &folder).map_err(|problem| match problem {
            ProfileProblem::Content(diagnostic) => Failure::BadInput(diagnostic.to_string()),
            ProfileProblem::Missing(message) => {
                Failure::BadInput(sources.diagnose(&origin, message).to_string())
            }
        })?;
        let below = layer.take("profile");
        layers.push(layer);
        let Some(below) = below else {
            layers.reverse();
            return Ok(layers);
        };
        folder = match text(&name) {
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
            return Err(bad("profile: too many profiles, each laid over the next"));
        }
        name = next.to_owned();
    }
}

enum ProfileProblem {
    /// It cannot be read.
    Missing(String),
    /// It is no TOML.
    Content(Diagnostic),
}

fn load_profile(sources: &mut Sources, name: &str, folder: &Path) -> Result<Node, ProfileProblem> {
    if let Some(text) = text(name) {
        let title = format!("profiles/{name}.toml (built in)");
        return Node::parse(sources, Kind::Profile, &title, text).map_err(ProfileProblem::Content);
    }
    let path = folder.join(name);
    let text = fs::read_to_string(&path).map_err(|error| {
        ProfileProblem::Missing(format!(
            "there is no profile {name:?} ({}: {error}); expected one of {}, or the path of a profile file",
            path.display(),
            names()
        ))
    })?;
    Node::parse(sources, Kind::Profile, &path.display().to_string(), &text)
        .map_err(ProfileProblem::Content)
}
