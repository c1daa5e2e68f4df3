//! `baton live serve`: runs a web server on the engine, on an adapter or on the kernel's TCP.

use super::descriptors::batching;
use super::log::daemon_log;
use super::{await_socket, bad_broker, control_at, engine, stop};
use crate::cli::{DescriptorArgs, ServeArgs};
use crate::failure::Failure;
use crate::output::{print, tell};
use crate::runner::Interrupt;
use baton_bus::descriptor::Status;
use baton_host::adapter::OsLayerConfig;
use baton_host::{NicCacheConfig, SelectionConfig};
use baton_live::bus::log::{self, Level};
use baton_live::http::HttpConfig;
use baton_live::{
    AdapterSockets, CannotListen, Clock, ControlSocket, HandoffConfig, HandoffSockets,
    KernelHandoff, KernelSockets, LinkNews, Places, ServiceConfig, Snapshot, Waiting, WebService,
    WorldService,
};
use baton_report::grouped;
use baton_sockets::kernel::Handoff;
use baton_sockets::{AdapterAddress, Driver, DriverConfig};
use baton_wire::Endpoint;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Runs the command until it is interrupted.
///
/// # Errors
/// Fails on bad input, or if an interface fails.
pub fn execute(arguments: &ServeArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    check_folder("--root", &arguments.root)?;
    if let Some(folder) = &arguments.upload {
        check_folder("--upload", folder)?;
    }
    if arguments.adapter.is_none() && arguments.descriptors != DescriptorArgs::default() {
        let message = "--batching, --level, --timer-us, --max-descriptors: descriptors are used only with --adapter; expected --adapter";
        return Err(Failure::BadInput(message.to_owned()));
    }
    if let Some(AdapterAddress::Unix(path)) = &arguments.adapter {
        // If the adapter is not ready, the attempt to attach reports that.
        await_socket(path);
    }
    log::set_global(daemon_log("serve", None, Level::Warn)?);
    let places = Places::here();
    let control = arguments.control.clone();
    let mut control = control_at(&places, &control.unwrap_or_else(|| places.serve()), None)?;
    let totals = if arguments.kernel || arguments.broker.is_some() {
        on_kernel(arguments, &mut control, interrupt)?
    } else if let (Some(address), Some(policy)) = (&arguments.adapter, &arguments.handoff) {
        with_handoff(arguments, address, policy, &mut control, interrupt)?
    } else if let Some(address) = &arguments.adapter {
        on_adapter(arguments, address, &mut control, interrupt)?
    } else {
        on_engine(arguments, &mut control, interrupt)?
    };
    print(&totals)
}

/// Serves with an engine in this process.
fn on_engine(
    arguments: &ServeArgs,
    control: &mut ControlSocket,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let mut running = engine::start(&arguments.link, engine::tcp_config(&arguments.link))?;
    let engine = &mut running.engine;
    let mut service = WebService::start(&config(arguments), engine.host_mut())
        .map_err(|error| bad_root(arguments, &error))?;
    for address in &arguments.link.addr {
        let at = Endpoint::new(address.addr(), arguments.port);
        announce(arguments, &format!("at http://{at}/"));
    }
    baton_live::serve(
        engine,
        &mut service,
        Some(control),
        stop(interrupt),
        tell_wait,
    )?;
    let snapshot = Snapshot::take(engine, &service);
    Ok(totals(&snapshot) + &link_totals(&snapshot))
}

/// Serves with the engine of an adapter in another process.
fn on_adapter(
    arguments: &ServeArgs,
    address: &AdapterAddress,
    control: &mut ControlSocket,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let config = config(arguments);
    let driver = attach(arguments, address, &config)?;
    let mut sockets = AdapterSockets::new(driver, tell_news(address));
    let backlog = u32::try_from(config.backlog).unwrap_or(u32::MAX);
    for addr in [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ] {
        let at = Endpoint::new(addr, config.port);
        sockets
            .listen(at, backlog)
            .map_err(|refused| bad_adapter(address, &with_advice(&refused)))?;
    }
    let port = config.port;
    announce(
        arguments,
        &format!("on port {port} of all addresses of the adapter at {address}"),
    );
    let mut service =
        WorldService::start(&config, sockets).map_err(|error| bad_root(arguments, &error))?;
    service.serve(Some(control), stop(interrupt), tell_wait)?;
    Ok(totals(&service.snapshot()))
}

/// Serves with a stack in this process, from which the policy moves connections to the adapter that has the interface.
fn with_handoff(
    arguments: &ServeArgs,
    address: &AdapterAddress,
    policy: &SelectionConfig,
    control: &mut ControlSocket,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let config = config(arguments);
    let driver = attach(arguments, address, &config)?;
    let handoff = HandoffConfig {
        selection: policy.build(),
        tcp: engine::tcp_config(&arguments.link),
        port: config.port,
        backlog: config.backlog,
        most_sockets: config.most_connections,
        secret: engine::random(),
    };
    let sockets = HandoffSockets::new(driver, handoff, tell_news(address))
        .map_err(|refused| bad_adapter(address, &with_advice(&refused)))?;
    for at in sockets.listening() {
        announce(arguments, &format!("at http://{at}/"));
    }
    let mut service =
        WorldService::start(&config, sockets).map_err(|error| bad_root(arguments, &error))?;
    service.serve(Some(control), stop(interrupt), tell_wait)?;
    let snapshot = service.snapshot();
    Ok(totals(&snapshot) + &handoff_totals(&snapshot))
}

fn attach(
    arguments: &ServeArgs,
    address: &AdapterAddress,
    service: &ServiceConfig,
) -> Result<Driver, Failure> {
    let config = driver_config(arguments, service)?;
    Driver::open(address.clone(), config).map_err(|error| bad_adapter(address, &error))
}

fn bad_adapter(address: &AdapterAddress, error: &dyn Display) -> Failure {
    Failure::BadInput(format!("--adapter {address}: {error}"))
}

/// Reports changes of the link to the operator.
fn tell_news(address: &AdapterAddress) -> impl FnMut(&LinkNews) + use<> {
    let named = address.to_string();
    move |news| match news {
        LinkNews::Lost(why) => tell(&format!("{why}; waiting for another adapter at {named}\n")),
        LinkNews::Attached => tell(&format!("attached to an adapter at {named} again\n")),
    }
}

/// Reports to the operator why the server has not ended yet.
fn tell_wait(waiting: &Waiting) {
    tell(&format!("{waiting}\n"));
}

/// Returns the adapter's refusal, with advice.
fn with_advice(refused: &CannotListen) -> String {
    let advice = match refused.status {
        Status::AddressInUse => {
            "; end the application that listens there or give another port with --port"
        }
        Status::Aborted => "; check whether the adapter is running",
        _ => "",
    };
    format!("{refused}{advice}")
}

/// Returns parameters for a web server: many connections, each of which receives little and sends much.
fn driver_config(arguments: &ServeArgs, service: &ServiceConfig) -> Result<DriverConfig, Failure> {
    let usual = DriverConfig::default();
    let OsLayerConfig {
        batching: usually,
        ring_depth,
        ..
    } = &usual.os;
    Ok(DriverConfig {
        os: OsLayerConfig {
            batching: batching(arguments.descriptors, usually, *ring_depth)?,
            most_sockets: u32::try_from(service.most_connections)
                .unwrap_or(u32::MAX)
                .min(usual.os.most_sockets),
            half_close: true,
            nic_cache: NicCacheConfig {
                enabled: arguments.nic_cache.is_some(),
                block_bytes: arguments.nic_cache_block,
                replacement: arguments.nic_cache.unwrap_or_default(),
                ..NicCacheConfig::default()
            },
            ..usual.os
        },
        ..usual
    })
}

/// Returns the adapter that connections are moved to from the kernel, if there is one.
fn beside_kernel(
    arguments: &ServeArgs,
    config: &ServiceConfig,
) -> Result<Option<KernelHandoff>, Failure> {
    let (Some(path), Some(address)) = (&arguments.broker, &arguments.adapter) else {
        return Ok(None);
    };
    let path = path.clone().unwrap_or_else(|| Places::here().broker());
    let handoff = Handoff::by(&path, arguments.handoff.as_ref());
    let handoff = handoff.map_err(|error| bad_broker(&path, &error))?;
    Ok(Some(KernelHandoff {
        driver: attach(arguments, address, config)?,
        handoff,
        tell: Box::new(tell_news(address)),
    }))
}

/// Serves with the kernel's TCP.
fn on_kernel(
    arguments: &ServeArgs,
    control: &mut ControlSocket,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let config = config(arguments);
    let handoff = beside_kernel(arguments, &config)?;
    let mut sockets = KernelSockets::new(config.most_connections, Clock::start(), handoff)
        .map_err(|error| Failure::Failed(format!("--kernel: {error}")))?;
    // The system limits the backlog (net.core.somaxconn).
    let listening = sockets
        .listen(config.port, u32::MAX)
        .map_err(|error| bad_port(config.port, &error))?;
    let mut service =
        WorldService::start(&config, sockets).map_err(|error| bad_root(arguments, &error))?;
    if let Some(Endpoint { port, .. }) = listening.first() {
        let place = format!("on port {port} of all addresses of this host");
        announce(arguments, &place);
    }
    service.serve(Some(control), stop(interrupt), tell_wait)?;
    let snapshot = service.snapshot();
    Ok(match arguments.broker {
        None => totals(&snapshot),
        Some(_) => totals(&snapshot) + &handoff_totals(&snapshot),
    })
}

fn config(arguments: &ServeArgs) -> ServiceConfig {
    ServiceConfig {
        port: arguments.port,
        idle_timeout_s: arguments.idle_timeout,
        most_connections: arguments.max_connections,
        ..ServiceConfig::new(HttpConfig {
            upload: arguments.upload.clone(),
            ..HttpConfig::new(&arguments.root)
        })
    }
}

fn announce(arguments: &ServeArgs, place: &str) {
    tell(&format!("serving {} {place}\n", arguments.root.display()));
}

fn bad_root(arguments: &ServeArgs, error: &io::Error) -> Failure {
    Failure::BadInput(format!("--root {}: {error}", arguments.root.display()))
}

fn bad_port(port: u16, error: &io::Error) -> Failure {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => "end the process that listens there or give another port",
        ErrorKind::PermissionDenied => "run as root or give a port of at least 1024",
        _ => "give another port",
    };
    Failure::BadInput(format!("--port {port}: {error}; {advice}"))
}

/// Summarises the server's work in a few lines.
fn totals(snapshot: &Snapshot) -> String {
    let count = |name: &str| grouped(snapshot.counters.get(name).copied().unwrap_or_default());
    let lost: u64 = ["web.lost", "web.bad_requests", "web.changed_content"]
        .iter()
        .filter_map(|&name| snapshot.counters.get(name))
        .sum();
    format!(
        "{} connections, {} responses with {} bytes of content, {} uploads; {} connections aborted\n",
        count("web.accepted"),
        count("web.responses"),
        count("web.content_bytes"),
        count("http.uploads"),
        grouped(lost),
    )
}

/// Summarises handoffs and restored connections in a line.
fn handoff_totals(snapshot: &Snapshot) -> String {
    let count = |name: &str| {
        let name = format!("handoff.{name}");
        grouped(snapshot.counters.get(&name).copied().unwrap_or_default())
    };
    format!(
        "{} connections handed off to the adapter, {} refused by it; {} taken back, {} lost when an adapter ended\n",
        count("handoffs_accepted"),
        count("handoffs_refused"),
        count("restored"),
        count("lost_with_adapter"),
    )
}

/// Summarises the traffic on the link in a line.
fn link_totals(snapshot: &Snapshot) -> String {
    let count = |name: &str| grouped(snapshot.counters.get(name).copied().unwrap_or_default());
    format!(
        "{} frames received, {} sent; {} segments retransmitted\n",
        count("inet.frames_received"),
        count("inet.frames_sent"),
        count("tcp.retransmissions"),
    )
}

fn check_folder(flag: &str, path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let reason = if path.exists() {
        "is not a folder"
    } else {
        "does not exist"
    };
    Err(Failure::BadInput(format!(
        "{flag} {}: {reason}; expected a folder",
        path.display()
    )))
}
