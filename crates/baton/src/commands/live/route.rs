//! `baton live route`: an IP router between interfaces.

use crate::cli::RouteArgs;
use crate::failure::Failure;
use crate::output::tell;
use crate::runner::Interrupt;
use baton_inet::{InterfaceConfig, Route, Router};
use baton_live::port::Counted;
use baton_live::{Attachment, Clock, Forwarding, Link, LinkSpec};

/// Runs the command.
///
/// # Errors
/// Fails on bad input, or if an interface fails.
pub fn execute(arguments: &RouteArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut routes: Vec<Vec<Route>> = vec![Vec::new(); arguments.iface.len()];
    for given in &arguments.route {
        routes[interface_of(arguments, &given.0)?].push(given.0);
    }
    let (mut configs, mut ports, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes = Vec::new();
    for (interface, routes) in arguments.iface.iter().zip(routes) {
        let spec = LinkSpec {
            attachment: Attachment::Interface(interface.name.clone()),
            namespace: arguments.netns.clone(),
            host_addresses: Vec::new(),
            port: arguments.frames.config(),
            engines: 1,
            engine_addresses: interface.addresses.clone(),
        };
        let mut link = Link::up(&spec)?;
        notes.append(&mut link.notes);
        let info = link.info().clone();
        configs.push(InterfaceConfig {
            mtu: info.mtu,
            routes,
            verify_checksums: !arguments.no_verify,
            ..InterfaceConfig::new(info.mac, interface.addresses.clone())
        });
        let (opened, made) = link.into_parts();
        ports.extend(opened.into_iter().map(Counted::new));
        kept.push(made);
    }
    let router =
        Router::new(configs).map_err(|error| Failure::BadInput(format!("--iface: {error}")))?;
    for note in notes {
        tell(&format!("note: {note}\n"));
    }
    let mut forwarding = Forwarding::new(router, ports, Clock::start());
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

/// Returns the interface whose link has the gateway.
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
                "--route {destination}={gateway}: {gateway} is in no network of the router's interfaces; expected a gateway in one of them"
            ))
        })
}
