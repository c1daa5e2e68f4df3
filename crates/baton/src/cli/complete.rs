//! Words that a shell offers as completions.

use crate::commands::list;
use crate::config::keys::{self, Allowed};
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use std::ffi::OsStr;

use super::Group;

fn names(group: Group) -> Vec<CompletionCandidate> {
    let entries = list::entries(group).into_iter();
    let candidate =
        |entry: list::Entry| CompletionCandidate::new(entry.name).help(Some(entry.about.into()));
    entries.map(candidate).collect()
}

/// Returns the names that begin with `current`, and files.
fn names_and_files(group: Group, current: &OsStr) -> Vec<CompletionCandidate> {
    let current_text = current.to_string_lossy();
    let mut all = names(group);
    all.retain(|name| {
        name.get_value()
            .to_string_lossy()
            .starts_with(&*current_text)
    });
    all.extend(PathCompleter::file().complete(current));
    all
}

/// Returns completions for the argument of `baton run`.
pub fn experiments(current: &OsStr) -> Vec<CompletionCandidate> {
    names_and_files(Group::Experiments, current)
}

/// Returns completions for `--profile`.
pub fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    names_and_files(Group::Profiles, current)
}

/// Returns completions for the argument of `baton generate`.
pub fn presets() -> Vec<CompletionCandidate> {
    names(Group::Presets)
}

/// Returns completions for the argument of `baton reproduce`.
pub fn reproductions() -> Vec<CompletionCandidate> {
    names(Group::Reproductions)
}

/// Returns completions for the argument of `baton keys`: keys and tables.
pub fn keys() -> Vec<CompletionCandidate> {
    let mut paths: Vec<&str> = Vec::new();
    for key in keys::all() {
        let tables = key.path.match_indices('.').map(|(end, _)| &key.path[..end]);
        paths.extend(tables.chain([key.path.as_str()]));
    }
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns completions for `--set`: keys up to the equals sign, and after it the names that the value may have.
pub fn settings(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let settable = keys::all().iter().filter(|key| {
        // The tables of a list have no path that `--set` accepts.
        !key.path.contains("[]") && !matches!(key.value, Allowed::Table | Allowed::TableOf(_))
    });
    let candidates = settable.flat_map(|key| {
        let with = |value: &str| {
            let help = Some(key.meaning.clone().into());
            CompletionCandidate::new(format!("{}={value}", key.path)).help(help)
        };
        let behind = current
            .strip_prefix(&*key.path)
            .is_some_and(|rest| rest.starts_with('='));
        match &key.value {
            Allowed::OneOf(names) if behind => {
                names.iter().map(|named| with(&named.name)).collect()
            }
            Allowed::Boolean if behind => vec![with("true"), with("false")],
            _ => vec![with("")],
        }
    });
    candidates
        .filter(|candidate| {
            candidate
                .get_value()
                .to_string_lossy()
                .starts_with(&*current)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(candidates: Vec<CompletionCandidate>) -> Vec<String> {
        let text =
            |candidate: CompletionCandidate| candidate.get_value().to_string_lossy().into_owned();
        candidates.into_iter().map(text).collect()
    }

    #[test]
    fn settings_are_completed_on_both_sides_of_the_equals_sign() {
        let set = |text: &str| offered(settings(OsStr::new(text)));
        assert_eq!(set("nic.mi"), ["nic.mips="]);
        assert_eq!(
            set("nic.firmware.scheduler=h"),
            ["nic.firmware.scheduler=host-first"]
        );
        assert_eq!(set("run.check=f"), ["run.check=false"]);
        assert!(set("tcp.").len() > 40);
        assert!(set("nothing").is_empty());
    }

    #[test]
    fn names_come_before_files() {
        assert_eq!(
            offered(experiments(OsStr::new("handoff-t"))),
            ["handoff-table1"]
        );
        assert_eq!(offered(profiles(OsStr::new("dcache-m"))), ["dcache-modern"]);
        assert!(offered(keys()).contains(&"nic.firmware".to_owned()));
    }
}
