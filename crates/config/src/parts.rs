//! Profiles by name or path: machines, and their parts, NICs and hosts.

use super::shipped::{self, HOSTS, NICS, PROFILES, Shipped};
use super::source::{Diagnostic, Kind, Origin, Sources};
use super::tree::{Node, Value};
use super::{Setting, experiment_of, suggest};
use crate::failure::{Failure, reason};
use baton_sim::config::{Experiment, HostConfig, NicHardware};
use std::borrow::Cow;
use std::fs;
use std::path::Path;

/// Profiles of one kind.
#[derive(Debug)]
pub(super) struct Profiles {
    /// What a profile describes, in errors.
    what: &'static str,
    /// Folder of the shipped profiles, and the name of their list in `baton list`.
    folder: &'static str,
    list: &'static str,
    all: &'static [Shipped],
}

/// Machines.
pub(super) const MACHINES: Profiles = Profiles {
    what: "profile",
    folder: "profiles",
    list: "profiles",
    all: PROFILES,
};

const OF_NICS: Profiles = Profiles {
    what: "NIC",
    folder: "profiles/nics",
    list: "nics",
    all: NICS,
};

const OF_HOSTS: Profiles = Profiles {
    what: "host",
    folder: "profiles/hosts",
    list: "hosts",
    all: HOSTS,
};

/// Why a profile cannot be loaded.
pub(super) enum Problem {
    /// The profile cannot be read.
    Missing(String),
    /// The profile is not valid TOML.
    Content(Diagnostic),
}

impl Problem {
    /// Returns the error of a profile whose name stands at `origin` in the user's input.
    pub(super) fn at(self, sources: &Sources, origin: &Origin) -> Diagnostic {
        match self {
            Self::Content(diagnostic) => diagnostic,
            Self::Missing(message) => sources.diagnose(origin, message),
        }
    }
}

impl Profiles {
    /// Returns the text of the shipped profile `name`.
    pub(super) fn text(&self, name: &str) -> Option<&'static str> {
        shipped::find(self.all, name).map(|profile| profile.text)
    }

    /// Returns all names of shipped profiles, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|profile| profile.name).collect();
        names.join(", ")
    }

    /// Reads a profile: by its name, or by its path relative to `folder`.
    pub(super) fn load(
        &self,
        sources: &mut Sources,
        name: &str,
        folder: &Path,
    ) -> Result<Node, Problem> {
        if let Some(text) = self.text(name) {
            let title = format!("{}/{name}.toml (built in)", self.folder);
            return Node::parse(sources, Kind::Profile, &title, text).map_err(Problem::Content);
        }
        let path = folder.join(name);
        let meant = suggest::name(name, self.all.iter().map(|profile| profile.name));
        let text = fs::read_to_string(&path).map_err(|error| {
            Problem::Missing(format!(
                "there is no {} {name:?} ({}: {}){}; expected one of {} (see `baton list {}`), or the path of a profile file",
                self.what,
                path.display(),
                reason(&error),
                meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?")),
                self.names(),
                self.list,
            ))
        })?;
        Node::parse(sources, Kind::Profile, &path.display().to_string(), &text)
            .map_err(Problem::Content)
    }
}

/// The key with the name of a NIC's profile.
const NAMED: &str = "nic.hardware.profile";

/// Replaces a NIC that is given only by name by a table with this name, so that other layers can change single values of the NIC.
pub(super) fn expand_name(document: &mut Node) {
    let each = |table: &mut Node| {
        if let Some(hardware) = table.get_mut("hardware")
            && hardware.string().is_some()
        {
            *hardware = Node::at_path("profile", hardware.clone());
        }
    };
    document.get_mut("nic").into_iter().for_each(each);
    kinds(document).iter_mut().for_each(each);
}

/// Makes the paths of NICs' profiles, which are relative to `folder`, relative to the current folder.
pub(super) fn resolve(document: &mut Node, folder: &Path) {
    let each = |name: Option<&mut Node>| {
        if let Some(Value::String(name)) = name.map(|name| &mut name.value)
            && OF_NICS.text(name).is_none()
        {
            *name = folder.join(&*name).display().to_string();
        }
    };
    each(document.get_mut(NAMED));
    for kind in kinds(document) {
        each(kind.get_mut("hardware.profile"));
    }
}

fn kinds(document: &mut Node) -> &mut [Node] {
    match document.get_mut("nics").map(|nics| &mut nics.value) {
        Some(Value::Array(kinds)) => kinds,
        _ => &mut [],
    }
}

/// Adds the values of the NICs' profiles that the tree names. The tree's own values for these NICs override them.
pub(super) fn complete(sources: &mut Cow<'_, Sources>, tree: &mut Node) -> Result<(), Diagnostic> {
    expand_name(tree);
    for kind in kinds(tree) {
        kind.get_mut("hardware")
            .map_or(Ok(()), |hardware| fill(sources, hardware))?;
    }
    tree.get_mut("nic.hardware")
        .map_or(Ok(()), |hardware| fill(sources, hardware))
}

fn fill(sources: &mut Cow<'_, Sources>, hardware: &mut Node) -> Result<(), Diagnostic> {
    let named = hardware.get("profile");
    let Some((name, origin)) =
        named.and_then(|node| Some((node.string()?.to_owned(), node.origin.clone())))
    else {
        return Ok(());
    };
    let loaded = OF_NICS.load(sources.to_mut(), &name, Path::new(""));
    let mut whole = loaded.map_err(|problem| problem.at(sources, &origin))?;
    whole.merge(hardware.clone());
    *hardware = whole;
    Ok(())
}

/// A NIC, and the host that it is in, for microbenchmarks.
#[derive(Clone, Debug, Default)]
pub struct Tested<'a> {
    /// What gives the NIC, for errors, and the name or path of its profile.
    pub nic: (&'a str, &'a str),
    /// What gives the host, for errors, and the name or path of its profile; `None`: the host that the NIC's profile names.
    pub host: Option<(&'a str, &'a str)>,
    /// Single values, in order.
    pub settings: &'a [Setting],
}

/// Returns an experiment with a NIC's hardware (`nic.hardware`) and its host (`host`).
///
/// # Errors
/// Fails if the user's input cannot be used.
pub fn tested(tested: &Tested<'_>) -> Result<Experiment, Failure> {
    of_tested(tested).map_err(|diagnostic| Failure::BadInput(diagnostic.to_string()))
}

fn of_tested(tested: &Tested<'_>) -> Result<Experiment, Diagnostic> {
    let mut sources = Sources::new();
    let mut named = |(what, name): (&str, &str)| {
        let source = sources.add(Kind::Flag, format!("{what} {name}"), name);
        Node {
            origin: Sources::at(source, 0..name.len()),
            value: Value::String(name.to_owned()),
        }
    };
    let mut own = Node::at_path(NAMED, named(tested.nic));
    let host = tested.host.map(named);
    for setting in tested.settings {
        own.merge(setting.to_node(&mut sources));
    }
    let mut sources = Cow::Owned(sources);
    complete(&mut sources, &mut own)?;
    let host = host.or_else(|| own.get("nic.hardware.host").cloned());
    let defaults = toml::Value::try_from(Experiment::default()).expect("the defaults are TOML");
    let mut tree = Node::from_default(&defaults);
    let default = Node::from_default(&NicHardware::default().host.into());
    let host = host.unwrap_or(default);
    let name = host.string().unwrap_or_default().to_owned();
    let loaded = OF_HOSTS.load(sources.to_mut(), &name, Path::new(""));
    let loaded = loaded.map_err(|problem| problem.at(&sources, &host.origin))?;
    tree.merge(Node::at_path("host", loaded));
    tree.lay_over(own);
    experiment_of(&sources, &tree)
}

/// Returns a NIC: `nic` is what gives it, for errors, and the name or path of its profile.
///
/// # Errors
/// There is no such NIC, or its profile cannot be used.
pub fn nic(nic: (&str, &str)) -> Result<NicHardware, Failure> {
    let found = tested(&Tested {
        nic,
        host: None,
        settings: &[],
    })?;
    Ok(*found.nic.hardware.unwrap_or_default())
}

/// Returns a NIC that ships with the program.
///
/// # Panics
/// There is no such NIC.
pub fn shipped_nic(name: &str) -> NicHardware {
    nic(("NIC", name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a host that ships with the program.
///
/// # Panics
/// There is no such host.
pub fn shipped_host(name: &str) -> HostConfig {
    let found = tested(&Tested {
        nic: ("NIC", IDEAL),
        host: Some(("host", name)),
        settings: &[],
    });
    found.unwrap_or_else(|error| panic!("{error}")).host
}

/// Returns the names of the NICs that ship with the program, separated by commas.
pub fn nic_names() -> String {
    OF_NICS.names()
}

/// The NIC that only the wire limits.
const IDEAL: &str = "ideal";

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(nic: &str, settings: &[&str]) -> String {
        let settings: Vec<Setting> = settings
            .iter()
            .map(|text| text.parse().expect("a setting"))
            .collect();
        let found = tested(&Tested {
            nic: ("NIC", nic),
            host: None,
            settings: &settings,
        });
        found.expect_err("there is no such machine").to_string()
    }

    #[test]
    fn shipped_parts_are_valid() {
        for profile in NICS {
            let nic = nic(("NIC", profile.name)).unwrap_or_else(|error| panic!("{error}"));
            assert!(!shipped_host(&nic.host).name.is_empty());
        }
        for profile in HOSTS {
            let host = shipped_host(profile.name);
            assert!(!host.name.is_empty(), "{}", profile.name);
        }
        let ideal = nic(("NIC", IDEAL)).expect("a NIC");
        let profile = String::new();
        assert_eq!(NicHardware { profile, ..ideal }, NicHardware::default());
    }

    #[test]
    fn values_of_a_profile_can_be_changed() {
        let settings = ["nic.hardware.descriptors.send=128", "host.clock_mhz=100"];
        let settings = settings.map(|text| text.parse().expect("a setting"));
        let found = tested(&Tested {
            nic: ("NIC", "nic-e810"),
            host: None,
            settings: &settings,
        });
        let found = found.expect("a machine");
        let hardware = found.nic.hardware.expect("the NIC");
        assert_eq!(
            (hardware.descriptors.send, hardware.descriptors.batch),
            (128, 32)
        );
        assert_eq!((found.host.clock_mhz, found.host.cores), (100, 16));
    }

    #[test]
    fn invalid_values_are_refused_where_they_are_written() {
        let send = "nic.hardware.descriptors.send";
        assert_eq!(
            refused("nic-ace", &[&format!("{send}=1")]),
            format!("--set {send}=1: {send}: found 1; expected a whole number from 2 to 65536")
        );
        let low = "nic.hardware.pause.low_percent";
        assert_eq!(
            refused("nic-ace", &[&format!("{low}=99")]),
            format!("--set {low}=99: {low}: found 99; expected less than pause.high_percent")
        );
        let unknown = refused("nic-ace", &["nic.hardware.processor.engins=2"]);
        assert!(unknown.contains("did you mean"), "{unknown}");
        let missing = refused("nic-e801", &[]);
        assert!(missing.contains("did you mean `nic-e810`?"), "{missing}");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mine.toml");
        fs::write(&file, "name = 'mine'\n[memory]\nreceive_bytes = 1500\n").expect("a file");
        let of_file = refused(&file.display().to_string(), &[]);
        assert!(of_file.contains("mine.toml:3:17: nic.hardware.memory.receive_bytes: found 1500; expected a whole number from 2048"), "{of_file}");
    }
}
