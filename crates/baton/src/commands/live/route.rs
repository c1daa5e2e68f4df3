//! `baton live route`: an IP router between interfaces.

use crate::cli::{FastPathName, PortKind, RouteArgs};
use crate::failure::Failure;
use crate::output::tell;
use crate::runner::Interrupt;
use baton_inet::{InterfaceConfig, Route, Router};
use baton_live::port::{Counted, PortConfig};
use baton_live::xdp::{FastPath, FastPathConfig, FastPathKind};
use baton_live::{Attachment, Clock, Forwarding, Link, LinkSpec, within};

/// Runs the command.
///
/// # Errors
/// Fails on bad input, or if an interface fails.
pub fn execute(arguments: &RouteArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut routes: Vec<Vec<Route>> = vec![Vec::new(); arguments.iface.len()];
    for given in &arguments.route {
        routes[interface_of(arguments, &given.0)?].push(given.0);
    }
    // Before the ports: AF_XDP sockets get what it leaves.
    let (fast_path, about) = fast_path(arguments)?;
    let mut notes = Vec::from_iter(about);
    let (mut configs, mut ports, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (interface, routes)) in arguments.iface.iter().zip(routes).enumerate() {
        let spec = LinkSpec {
            attachment: Attachment::Interface(interface.name.clone()),
            namespace: arguments.netns.clone(),
            host_addresses: Vec::new(),
            port: port_config(arguments, fast_path.as_ref()),
            engine_addresses: interface.addresses.clone(),
        };
        let steering = fast_path.as_ref().and_then(|one| one.steering(at));
        let mut link = Link::up_behind(&spec, steering)?;
        notes.append(&mut link.notes);
        let info = link.info().clone();
        configs.push(InterfaceConfig {
            mtu: info.mtu,
            routes,
            verify_checksums: !arguments.no_verify,
            ..InterfaceConfig::new(info.mac, interface.addresses.clone())
        });
        let (port, made) = link.into_parts();
        ports.push(Counted::new(port));
        kept.push(made);
    }
    let router =
        Router::new(configs).map_err(|error| Failure::BadInput(format!("--iface: {error}")))?;
    for note in notes {
        tell(&format!("note: {note}\n"));
    }
    let forwarding = Forwarding::new(router, ports, Clock::start());
    let mut forwarding = forwarding.with_fast_path(fast_path);
    tell("routing; interrupt to end\n");
    forwarding.run(|| interrupt.requested())?;
    let mut report = String::new();
    let mut line = |name: &str, value: u64| {
        if value > 0 {
            report.push_str(&format!("{name} {value}\n"));
        }
    };
    forwarding.counters(&mut line);
    tell(&report);
    Ok(())
}

/// The fast path, if there is to be one and can be, and what the user should know of it.
fn fast_path(arguments: &RouteArgs) -> Result<(Option<FastPath>, Option<String>), Failure> {
    if arguments.fast_path == FastPathName::None {
        return Ok((None, None));
    }
    let names: Vec<&str> = arguments.iface.iter().map(|one| &*one.name).collect();
    let kind = match (arguments.fast_path, arguments.frames.port_kind) {
        (FastPathName::Tc, PortKind::AfXdp) => {
            let message = "--fast-path tc leaves nothing to AF_XDP sockets, which take all frames before; expected xdp or none";
            return Err(Failure::BadInput(message.to_owned()));
        }
        (FastPathName::Tc, _) => Some(FastPathKind::TrafficControl),
        (FastPathName::Xdp, _) | (_, PortKind::AfXdp) => Some(FastPathKind::Xdp),
        _ => None,
    };
    let config = FastPathConfig {
        kind,
        mode: arguments.frames.af_xdp().mode,
        verify_checksums: !arguments.no_verify,
        ..FastPathConfig::default()
    };
    let attach = || FastPath::attach(&names, config);
    let attached = within(arguments.netns.as_deref(), attach);
    match attached.and_then(|attached| Ok(attached?)) {
        Ok(fast_path) => {
            let mode = fast_path.mode();
            let mode = mode.map_or_else(String::new, |mode| format!(", in {mode} mode"));
            let about = format!(
                "a program in the kernel forwards, by {}{mode}",
                fast_path.kind()
            );
            Ok((Some(fast_path), Some(about)))
        }
        Err(error) if arguments.fast_path == FastPathName::Auto => {
            let about = format!("no fast path, all packets come here: {error}");
            Ok((None, Some(about)))
        }
        Err(error) => Err(error.into()),
    }
}

/// The ports get what the fast path leaves.
fn port_config(arguments: &RouteArgs, fast_path: Option<&FastPath>) -> PortConfig {
    let mut config = arguments.frames.config();
    let kind = fast_path.map(FastPath::kind);
    if let PortConfig::Packet(config) = &mut config {
        config.after_classifiers = kind == Some(FastPathKind::TrafficControl);
    }
    config
}

/// The interface on whose link the gateway is.
fn interface_of(arguments: &RouteArgs, route: &Route) -> Result<usize, Failure> {
    let Some(gateway) = route.gateway else {
        return Ok(0);
    };
    let is_on_link =
        |addresses: &[baton_inet::Cidr]| addresses.iter().any(|own| own.contains(&gateway));
    let mut interfaces = arguments.iface.iter();
    interfaces
        .position(|interface| is_on_link(&interface.addresses))
        .ok_or_else(|| {
            let destination = route.destination;
            Failure::BadInput(format!(
                "--route {destination}={gateway}: {gateway} is on no link of the router; expected a neighbour of one of its addresses"
            ))
        })
}
