//! An adapter on an interface that the kernel also uses, and an application whose connections move between kernel and adapter.

use crate::peers::{switch_off, with_far_end};
use crate::wire::{NEAR, on_veth};
use baton_host::{Alternate, Selection, SelectionConfig};
use baton_inet::Host;
use baton_live::adapter::{
    AdapterService, AdapterServiceConfig, BesideKernel, Listeners, run_adapter,
};
use baton_live::broker::{Broker, BrokerLink};
use baton_live::port::{AfXdpConfig, FaultSpec, Faults, PacketSocket, Port};
use baton_live::xdp::Mode;
use baton_live::{Clock, ControlSocket, Engine, Stop};
use baton_sockets::broker::BrokerClient;
use baton_sockets::kernel::Handoff;
use baton_sockets::{Adapter, AdapterAddress, DriverConfig};
use baton_tcp::Config;
use baton_wire::Span;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs `work` with an adapter and a broker at the near end of a veth pair, and an application whose connections move, to the adapter or
/// back, at each write.
pub fn with_application(work: impl FnOnce(&Adapter, &[std::net::TcpListener], &Path) + Send) {
    with_application_on(|work| on_veth(1, work), work);
}

/// Like [`with_application`], on a link that `cable` creates.
pub fn with_application_on(
    cable: impl FnOnce(&mut (dyn FnMut() + Send)),
    work: impl FnOnce(&Adapter, &[std::net::TcpListener], &Path) + Send,
) {
    with_application_seen(cable, |adapter, listeners, path, _| {
        work(adapter, listeners, path);
    });
}

/// Like [`with_application_on`], with a port that receives copies of all frames at the far end.
pub fn with_application_seen(
    cable: impl FnOnce(&mut (dyn FnMut() + Send)),
    work: impl FnOnce(&Adapter, &[std::net::TcpListener], &Path, PacketSocket) + Send,
) {
    let mut work = Some(work);
    cable(&mut || {
        let work = work.take().expect("`cable` calls this once");
        with_far_end(&switch_off, |listeners, seen| {
            with_application_to(&listeners, None, |adapter, listeners, path| {
                work(adapter, listeners, path, seen);
            });
        });
    });
}

/// Like [`with_application`], with existing listeners and XDP programs in this mode.
pub fn with_application_to(
    listeners: &[std::net::TcpListener],
    mode: Option<Mode>,
    work: impl FnOnce(&Adapter, &[std::net::TcpListener], &Path),
) {
    with_application_at(NEAR, mode, |adapter, path| work(adapter, listeners, path));
}

/// Runs `work` with an adapter, a broker and an application at the interface `name`.
pub fn with_application_at(name: &str, mode: Option<Mode>, work: impl FnOnce(&Adapter, &Path)) {
    with_application_by(AdapterServiceConfig::default(), name, mode, work);
}

/// Does what [`with_application_at`] does with an adapter that has this configuration.
pub fn with_application_by(
    config: AdapterServiceConfig,
    name: &str,
    mode: Option<Mode>,
    work: impl FnOnce(&Adapter, &Path),
) {
    let folder = tempfile::tempdir().expect("a folder");
    let (stop, path) = (AtomicBool::new(false), folder.path());
    let broker = Broker::start(&path.join("broker"), name, mode).expect("XDP");
    let opened = open_at(path, name);
    let listeners_at = Listeners::open(&path.join("adapter"), None, Default::default());
    let attach_at = listeners_at.expect("a free path");
    let faults = FaultSpec::default();
    thread::scope(|scope| {
        scope.spawn(|| serve(opened, config, &faults, attach_at, path, &stop));
        let _stop = StopOnDrop(&stop);
        work(&attach(path), path);
    });
    drop(broker);
}

/// Attaches to the running broker as its adapter.
pub fn open(path: &Path) -> BesideKernel {
    open_at(path, NEAR)
}

fn open_at(path: &Path, name: &str) -> BesideKernel {
    let policy = SelectionConfig::default();
    let link = BrokerLink::attach(&path.join("broker"), name, &Config::default(), &policy);
    let link = link
        .expect("the broker accepts the adapter")
        .expect("the broker listens");
    BesideKernel::open(name, &AfXdpConfig::default(), link).expect("sockets")
}

/// Sets a flag when dropped, to stop other threads when a test has finished or failed.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the adapter, with `faults` on its sent and received frames.
pub fn serve(
    opened: BesideKernel,
    config: AdapterServiceConfig,
    faults: &FaultSpec,
    listeners: Listeners,
    path: &Path,
    stop: &AtomicBool,
) {
    let host = Host::new(opened.interface, Config::default(), 1).expect("valid addresses");
    let port: Box<dyn Port> = Box::new(Faults::new(opened.port, faults, 1));
    let mut engine = Engine::new(host, port, Clock::start());
    let service = AdapterService::new(config, Some(listeners), engine.host_mut());
    let mut service = service.expect("a valid configuration");
    service.set_beside(opened.beside, engine.host_mut().stack_mut());
    let mut control = ControlSocket::bind(&path.join("control")).expect("a free path");
    let until = || match stop.load(Ordering::Relaxed) {
        true => Stop::InOrder,
        false => Stop::No,
    };
    run_adapter(&mut engine, &mut service, Some(&mut control), until, |_| {})
        .expect("the interface exists");
}

pub fn attach(path: &Path) -> Adapter {
    attach_with(path, DriverConfig::default(), Alternate { enqueues: 1 })
}

pub fn attach_with(
    path: &Path,
    config: DriverConfig,
    selection: impl Selection + 'static,
) -> Adapter {
    let handoff = Handoff {
        broker: BrokerClient::connect(&path.join("broker")).expect("the broker listens"),
        selection: Box::new(selection),
        least_stay: Span::ZERO,
        kept: None,
    };
    let address = AdapterAddress::Unix(path.join("adapter"));
    let adapter = Adapter::open_beside_kernel(address, config, handoff);
    adapter.expect("the adapter listens")
}
