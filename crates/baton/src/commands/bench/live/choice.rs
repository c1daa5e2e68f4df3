//! Decides whether a name means a profile or an interface.

use crate::cli::{BenchNicArgs, Mac, PortName};
use crate::config::parts;
use crate::config::shipped::{NICS, find};
use crate::failure::Failure;
use baton_live::port::interface_exists;
use baton_live::within;
use std::path::Path;

/// The object under test.
#[derive(Debug)]
pub(in crate::commands::bench) enum Choice {
    /// A simulated NIC.
    Simulated,
    /// An interface, with this partner.
    Interface(Partner),
}

/// The partner of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands::bench) enum Partner {
    /// Another interface of this machine.
    Interface(String),
    /// A reflector at this Ethernet address.
    Reflector([u8; 6]),
}

/// Possible meanings of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meaning {
    profile: bool,
    interface: bool,
}

/// Chooses an interface if the partner is an interface or a reflector. Otherwise chooses a simulated NIC, if the partner is a profile or is
/// not given. Refuses ambiguous names.
pub(in crate::commands::bench) fn choose(arguments: &BenchNicArgs) -> Result<Choice, Failure> {
    let live = &arguments.live;
    let meaning = |name: &str, namespace: Option<&str>, port: PortName| {
        let exists = within(namespace, || interface_exists(name)).map_err(Failure::from)?;
        Ok::<_, Failure>(Meaning {
            profile: is_profile(name),
            interface: exists || port == PortName::Tap,
        })
    };
    let nic = meaning(&arguments.nic, live.netns.as_deref(), live.port)?;
    let Some(name) = arguments.partner.as_deref() else {
        return without_partner(arguments, nic);
    };
    if let Ok(Mac(mac)) = name.parse() {
        return of_interface(arguments, nic, Partner::Reflector(mac));
    }
    let mut partner = meaning(name, live.partner_netns.as_deref(), live.partner_port)?;
    // The kernel's end of a TAP device is created together with the other end.
    partner.interface |= live.port == PortName::Tap && *name == arguments.nic;
    match partner {
        Meaning {
            profile: true,
            interface: true,
        } => Err(ambiguous("--partner", name)),
        Meaning {
            interface: true, ..
        } => of_interface(arguments, nic, Partner::Interface(name.to_owned())),
        Meaning { profile: true, .. } if nic.profile => simulated(arguments),
        Meaning { profile: true, .. } => Err(Failure::BadInput(format!(
            "--partner {name}: a profile cannot be the partner of the interface {}; expected another interface, or the Ethernet address of a \
             reflector",
            arguments.nic
        ))),
        Meaning { .. } => Err(Failure::BadInput(format!(
            "--partner {name}: no such profile, file or interface{}; expected one of {}, a TOML file, an interface, or the Ethernet address of \
             a reflector",
            place(live.partner_netns.as_deref()),
            parts::nic_names()
        ))),
    }
}

fn without_partner(arguments: &BenchNicArgs, nic: Meaning) -> Result<Choice, Failure> {
    if nic.interface && !nic.profile {
        return Err(Failure::BadInput(format!(
            "{} is an interface and needs a partner; expected --partner with another interface, or the Ethernet address of a reflector",
            arguments.nic
        )));
    }
    simulated(arguments)
}

/// Refuses options that do not apply to a simulated NIC.
fn simulated(arguments: &BenchNicArgs) -> Result<Choice, Failure> {
    match arguments.live.given() {
        Some(option) => Err(Failure::BadInput(format!(
            "{option} works only with interfaces, and {} is simulated; expected an interface, with another one or a reflector as --partner",
            arguments.nic
        ))),
        None => Ok(Choice::Simulated),
    }
}

fn of_interface(
    arguments: &BenchNicArgs,
    nic: Meaning,
    partner: Partner,
) -> Result<Choice, Failure> {
    let name = &arguments.nic;
    match nic {
        Meaning {
            interface: true,
            profile: true,
        } => Err(ambiguous("NIC", name)),
        Meaning {
            interface: true, ..
        } => Ok(Choice::Interface(partner)),
        Meaning { .. } => Err(Failure::BadInput(format!(
            "there is no interface {name}{}; expected an interface, because its partner is one (`ip link` lists them)",
            place(arguments.live.netns.as_deref())
        ))),
    }
}

fn ambiguous(what: &str, name: &str) -> Failure {
    Failure::BadInput(format!(
        "{what} {name}: there is both an interface {name} and a profile {name}; rename one of them, or write the path of a profile as ./{name}"
    ))
}

fn place(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |name| format!(" in the namespace {name}"))
}

/// Returns whether a name is that of a shipped profile or of a file.
fn is_profile(name: &str) -> bool {
    find(NICS, name).is_some() || Path::new(name).is_file()
}
