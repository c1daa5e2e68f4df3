//! Creates the engine that the arguments specify.

use crate::cli::{LinkArgs, PortKind};
use crate::failure::Failure;
use crate::output::tell;
use baton_inet::{Host, InterfaceConfig, Route};
use baton_live::adapter::{Beside, BesideKernel};
use baton_live::broker::BrokerLink;
use baton_live::port::{Counted, Faults, Port};
use baton_live::{Attachment, Clock, Engine, Link, LinkSpec, within};
use baton_tcp::Config;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;

/// IPv4 and TCP headers without options, bytes.
const HEADERS_BYTES: u16 = 40;

/// An engine, its seed, and the resources that it needs as long as it runs.
pub struct Running<Kept> {
    /// The engine.
    pub engine: Engine<Box<dyn Port>>,
    /// The seed, drawn at random or given.
    pub seed: u64,
    /// Resources that are removed when dropped: interfaces, namespaces.
    _kept: Kept,
}

/// An engine of its own addresses that waits to be created by the thread that will run it.
pub struct Prepared {
    interface: InterfaceConfig,
    port: Box<dyn Port + Send>,
    seed: u64,
}

impl Prepared {
    /// Creates the engine, whose connections have the parameters `tcp`. Also returns its seed.
    ///
    /// # Errors
    /// Fails if a requested resource is not available.
    pub fn create(
        self,
        arguments: &LinkArgs,
        tcp: Config,
    ) -> Result<(Engine<Box<dyn Port>>, u64), Failure> {
        let engine = create(
            arguments,
            "--addr",
            self.interface,
            self.port,
            tcp,
            self.seed,
        )?;
        Ok((engine, self.seed))
    }
}

/// Creates the link and an engine on it, whose connections have the parameters `tcp`.
///
/// # Errors
/// Fails if a requested resource is not available.
pub fn start(arguments: &LinkArgs, tcp: Config) -> Result<Running<impl Sized + use<>>, Failure> {
    let (prepared, kept) = prepare(arguments, 1)?;
    let mut prepared = prepared.into_iter();
    let first = prepared.next().expect("a link has a port");
    let (engine, seed) = first.create(arguments, tcp)?;
    Ok(Running {
        engine,
        seed,
        _kept: kept,
    })
}

/// Creates the link and prepares `engines` engines on it. Also returns a value that the caller must keep as long as they run.
///
/// # Errors
/// Fails if a requested resource is not available.
pub fn prepare(
    arguments: &LinkArgs,
    engines: usize,
) -> Result<(Vec<Prepared>, impl Sized + use<>), Failure> {
    if arguments.addr.is_empty() {
        let expected = "--addr is missing; expected the engine's own address, such as 10.9.0.2/24";
        return Err(Failure::BadInput(expected.to_owned()));
    }
    let mut link = Link::up(&link_spec(arguments, engines)?)?;
    for note in std::mem::take(&mut link.notes) {
        tell(&format!("note: {note}\n"));
    }
    let info = link.info().clone();
    let seed = arguments.seed.unwrap_or_else(random);
    let routes = arguments.gateway.iter().copied().map(Route::default_by);
    let routes: Vec<Route> = routes.collect();
    let (ports, kept) = link.into_parts();
    let prepared = (0..).zip(ports).map(|(number, port)| Prepared {
        interface: InterfaceConfig {
            mtu: info.mtu,
            routes: routes.clone(),
            announce: number == 0,
            answers: number == 0,
            ..InterfaceConfig::new(info.mac, arguments.addr.clone())
        },
        port,
        seed: seed.wrapping_add(number),
    });
    Ok((prepared.collect(), kept))
}

/// Creates an engine on a port.
fn create(
    arguments: &LinkArgs,
    option: &str,
    interface: InterfaceConfig,
    port: Box<dyn Port>,
    tcp: Config,
    seed: u64,
) -> Result<Engine<Box<dyn Port>>, Failure> {
    let clock = Clock::start();
    let mss = interface.mtu.saturating_sub(HEADERS_BYTES);
    let interface = InterfaceConfig {
        verify_checksums: !arguments.no_verify,
        ..interface
    };
    let host = Host::new(interface, Config { mss, ..tcp }, seed)
        .map_err(|error| Failure::BadInput(format!("{option}: {error}")))?;
    let mut engine = Engine::new(host, with_faults(port, arguments, seed), clock);
    capture_to_file(&mut engine, arguments)?;
    Ok(engine)
}

/// Creates an engine beside the kernel, which owns the interface `name`. Also returns what the adapter of the engine needs.
///
/// # Errors
/// Fails if a requested resource is not available.
pub fn start_beside_kernel(
    arguments: &LinkArgs,
    name: &str,
    link: BrokerLink,
    tcp: Config,
) -> Result<(Running<()>, Beside), Failure> {
    let config = arguments.frames.af_xdp();
    let opened = within(arguments.netns.as_deref(), || {
        BesideKernel::open(name, &config, link)
    })??;
    let port = Box::new(opened.port);
    let seed = arguments.seed.unwrap_or_else(random);
    let engine = create(arguments, "--iface", opened.interface, port, tcp, seed)?;
    let running = Running {
        engine,
        seed,
        _kept: (),
    };
    Ok((running, opened.beside))
}

fn link_spec(arguments: &LinkArgs, engines: usize) -> Result<LinkSpec, Failure> {
    if arguments.tap.is_some() && arguments.frames.port_kind == PortKind::AfXdp {
        let expected =
            "--port-kind af-xdp does not work with --tap; expected --veth or --iface instead";
        return Err(Failure::BadInput(expected.to_owned()));
    }
    let attachment = match (&arguments.tap, &arguments.veth, &arguments.iface) {
        (Some(name), _, _) => Attachment::Tap(name.clone()),
        (_, Some(name), _) => Attachment::Veth(name.clone()),
        (_, _, Some(name)) => Attachment::Interface(name.clone()),
        (None, None, None) => {
            let expected = "no interface is given; expected one of --tap, --veth and --iface";
            return Err(Failure::BadInput(expected.to_owned()));
        }
    };
    Ok(LinkSpec {
        attachment,
        namespace: arguments.netns.clone(),
        host_addresses: arguments.host_addr.clone(),
        port: arguments.frames.config(),
        engines,
        engine_addresses: arguments.addr.clone(),
    })
}

/// Returns the parameters of connections.
pub fn tcp_config(arguments: &LinkArgs) -> Config {
    with_arguments(Config::default(), arguments)
}

/// Returns these parameters with those that were given.
pub fn with_arguments(usual: Config, arguments: &LinkArgs) -> Config {
    Config {
        send_buffer: arguments.send_buffer * 1024,
        receive_buffer: arguments.receive_buffer * 1024,
        congestion: arguments.congestion.unwrap_or(usual.congestion),
        ..usual
    }
}

/// Adds faults between the wire and captures, so that captures show the frames that the engine sees.
fn with_faults(port: Box<dyn Port>, arguments: &LinkArgs, seed: u64) -> Box<dyn Port> {
    let counted = Box::new(Counted::new(port));
    match &arguments.fault {
        None => counted,
        Some(spec) => Box::new(Faults::new(counted, spec, seed)),
    }
}

fn capture_to_file(
    engine: &mut Engine<Box<dyn Port>>,
    arguments: &LinkArgs,
) -> Result<(), Failure> {
    let Some(path) = &arguments.pcap else {
        return Ok(());
    };
    let interface = engine.port().link().name.clone();
    let captures = engine.captures_mut();
    File::create(path)
        .and_then(|file| captures.capture_to(file, &interface))
        .map_err(|error| {
            let path = path.display();
            Failure::BadInput(format!(
                "--pcap {path}: {error}; expected a path that can be written"
            ))
        })
}

/// Returns an unpredictable number, from the system's entropy.
pub fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
