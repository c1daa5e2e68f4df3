//! `baton live adapter`: runs the engine for applications of other processes.

use super::descriptors::batching;
use super::engine::Prepared;
use super::log::daemon_log;
use super::{admit, broker, confine_to, control_at, engine, service_user, stop};
use crate::cli::{
    AdapterArgs, LinkArgs, LoadMeasureName, OnExit, QueueArgs, ReliefName, SchedulerName,
};
use crate::failure::Failure;
use crate::output::{note, print, reason, tell};
use crate::runner::Interrupt;
use baton_live::adapter::{
    AdapterService, AdapterServiceConfig, AdapterTimeline, Listeners, Siblings, run_adapter,
};
use baton_live::broker::end_predecessor;
use baton_live::bus::log::{Level, Log};
use baton_live::port::Port;
use baton_live::{
    Confinement, ControlSocket, Engine, Places, ServiceUser, Snapshot, Stop, allowed_cores,
    keep_no_privileges, pin_to_core, usable_memory,
};
use baton_nic::adapter::{AdapterConfig, Ending};
use baton_nic::{Config, LoadControl, LoadMeasure, Relief, Scheduler};
use baton_report::grouped;
use rustix::fs::{Access, access};
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// Runs the command until it is interrupted. Beside a kernel, this thread runs the engine, because a waiting thread would keep its
/// privileges. Otherwise each engine has a thread of its own, and only those threads are bound to cores.
///
/// # Errors
/// Fails on bad input, or if an interface fails.
pub fn execute(arguments: &AdapterArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    refuse_strangers(arguments)?;
    refuse_several_engines(arguments)?;
    let config = config(arguments)?;
    if arguments.is_beside() {
        return run_beside_kernel(arguments, config, interrupt);
    }
    run(arguments, config, interrupt)
}

fn config(arguments: &AdapterArgs) -> Result<AdapterServiceConfig, Failure> {
    let usual = AdapterServiceConfig::default();
    let AdapterConfig {
        batching: usually,
        ring_depth,
        ..
    } = &usual.adapter;
    let batching = batching(arguments.descriptors, usually, *ring_depth)?;
    let mut limits = usual.limits;
    let most = arguments.most_applications;
    limits.applications = most;
    limits.applications_of_user = arguments
        .most_applications_of_user
        .unwrap_or(most.div_ceil(2));
    limits.reserved_applications = most / 32;
    Ok(AdapterServiceConfig {
        adapter: AdapterConfig {
            batching,
            most_sessions: arguments.most_applications,
            hard_limit: arguments.hard_limit,
            cache_bytes: arguments.nic_cache,
            load_control: load_control(arguments)?,
            ..usual.adapter
        },
        firmware: arguments
            .scheduler
            .map(|name| firmware(name, arguments.queues)),
        memory: Some(arguments.memory.unwrap_or_else(|| usable_memory() / 4)),
        limits,
        on_exit: match arguments.on_exit {
            OnExit::Reset => Ending::Reset,
            OnExit::Drain => Ending::Drain,
        },
    })
}

/// Refuses TCP addresses other than loopback unless the network is trusted, because clients over TCP are not authenticated.
fn refuse_strangers(arguments: &AdapterArgs) -> Result<(), Failure> {
    match arguments.listen_tcp {
        Some(address) if !address.ip().is_loopback() && !arguments.trust_network => {
            Err(Failure::BadInput(format!(
                "--listen-tcp {address}: clients that connect over TCP are not authenticated; expected a loopback address, which a tunnel can \
                 lead to, or --trust-network if everyone on the network is trusted"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses what needs a single engine if there are several.
fn refuse_several_engines(arguments: &AdapterArgs) -> Result<(), Failure> {
    let needs_one = [
        (arguments.broker.is_some(), "--broker"),
        (arguments.handoff.is_some(), "--handoff"),
        (arguments.link.pcap.is_some(), "--pcap"),
        (arguments.timeline.file.is_some(), "--timeline"),
    ];
    match needs_one.into_iter().find(|&(given, _)| given) {
        Some((_, option)) if arguments.engines > 1 => {
            let engines = arguments.engines;
            let text = format!(
                "--engines {engines}: {option} works with one engine only; expected --engines 1"
            );
            Err(Failure::BadInput(text))
        }
        _ => Ok(()),
    }
}

/// Returns the parameters of connections that begin on an adapter with addresses of its own.
fn tcp_config(arguments: &LinkArgs) -> baton_tcp::Config {
    let mut usual = baton_tcp::Config::default();
    // Programs expect that data stays readable after a reset, as in Linux.
    usual.linux.keeps_received = true;
    engine::with_arguments(usual, arguments)
}

/// Returns the parameters of connections that come from the kernel: they follow Linux's rules, so that their peers notice no move.
pub fn kernel_tcp_config(arguments: &LinkArgs) -> baton_tcp::Config {
    let mut usual = baton_tcp::Config::linux();
    // Peers cannot see how send buffers are counted; the adapter counts only bytes.
    usual.linux.piece_overhead = 0;
    engine::with_arguments(usual, arguments)
}

/// Returns the firmware's scheduler and queues, with the values that were given.
fn firmware(scheduler: SchedulerName, queues: QueueArgs) -> Config {
    let usual = Config::default();
    let or = |given: Option<u32>, usual| given.unwrap_or(usual);
    Config {
        scheduler: match scheduler {
            SchedulerName::Fcfs => Scheduler::Fcfs,
            SchedulerName::HostFirst => Scheduler::HostFirst,
        },
        arrival_queue_packets: or(queues.arrival_queue_packets, usual.arrival_queue_packets),
        receive_queue_packets: or(queues.receive_queue_packets, usual.receive_queue_packets),
        descriptor_queue_entries: or(
            queues.descriptor_queue_entries,
            usual.descriptor_queue_entries,
        ),
        transmit_burst_segments: or(
            queues.transmit_burst_segments,
            usual.transmit_burst_segments,
        ),
        ..usual
    }
}

/// Returns the NIC's load control, with the watermarks that were given.
fn load_control(arguments: &AdapterArgs) -> Result<LoadControl, Failure> {
    let usual = LoadControl::default();
    let (Some(hiwat), Some(lowat)) = (arguments.hiwat, arguments.lowat) else {
        return Ok(usual);
    };
    if lowat >= hiwat {
        let message = format!("--lowat {lowat}: expected less than --hiwat {hiwat}");
        return Err(Failure::BadInput(message));
    }
    Ok(LoadControl {
        enabled: true,
        measure: match arguments.load_measure {
            LoadMeasureName::Queue => LoadMeasure::Queue,
            LoadMeasureName::Packets => LoadMeasure::PacketRate {
                high_per_s: hiwat,
                low_per_s: lowat,
                host_weight: 1,
                nic_weight: 4,
            },
        },
        high_water_packets: hiwat,
        low_water_packets: lowat,
        relief: match arguments.relief {
            ReliefName::Passive => Relief::Passive,
            ReliefName::Active => Relief::Active,
        },
        ..usual
    })
}

/// Runs the engines of an adapter with addresses of its own, each on a thread.
fn run(
    arguments: &AdapterArgs,
    config: AdapterServiceConfig,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let log = daemon_log("adapter", arguments.log_level, Level::default())?;
    let engines = usize::from(arguments.engines);
    let cores = cores_for(arguments.core, engines)?;
    if arguments.replace {
        let text = "--replace: expected --handoff or --broker, because only an adapter beside the kernel can give its connections back";
        return Err(Failure::BadInput(text.to_owned()));
    }
    let sockets = Sockets::of(arguments, Places::here(), None);
    let control = sockets.control()?;
    let listeners = sockets.listen(&config)?;
    let (prepared, _kept) = engine::prepare(&arguments.link, engines)?;
    let config = part_of(config, engines);
    let siblings = siblings(engines)?;
    let addresses = arguments.link.addr.iter();
    let addresses: Vec<String> = addresses
        .map(|address| address.addr().to_string())
        .collect();
    let on_cores: Vec<String> = cores.iter().map(usize::to_string).collect();
    let text = format!(
        "offloading TCP of {} on core{} {}; attach a server: baton live serve --adapter {} --root .",
        addresses.join(", "),
        if engines == 1 { "" } else { "s" },
        on_cores.join(", "),
        sockets.listen.display()
    );
    let (asked, has_failed) = (stop(interrupt), AtomicBool::new(false));
    let work = |prepared: Prepared, siblings: Option<Siblings>, core, desk: Option<Desk>| {
        pin_to_core(Some(core))?;
        let (mut engine, seed) = prepared.create(&arguments.link, tcp_config(&arguments.link))?;
        let mut config = config.clone();
        config.adapter.port_seed = seed;
        let is_first = desk.is_some();
        let (listeners, mut control) = desk.map(|desk| (desk.listeners, desk.control)).unzip();
        let mut service = AdapterService::new(config, listeners, engine.host_mut())?;
        service.set_clock(engine.clock());
        if let Some(siblings) = siblings {
            let joined = service.set_siblings(siblings);
            joined.map_err(|error| Failure::Failed(reason(&error)))?;
        }
        if let Some(timeline) = timeline(arguments)? {
            service.set_timeline(timeline);
        }
        if is_first {
            log.write(Level::Info, &text);
        }
        // If one engine fails, the others end at once.
        let stop = || match has_failed.load(Ordering::Relaxed) {
            true => Stop::AtOnce,
            false => asked(),
        };
        serve(&mut engine, &mut service, control.as_mut(), &log, stop)
    };
    let mut desk = Some(Desk { listeners, control });
    let ended: Vec<Result<Snapshot, Failure>> = thread::scope(|scope| {
        let starts = prepared.into_iter().zip(siblings).zip(cores);
        let threads = starts
            .enumerate()
            .map(|(number, ((prepared, siblings), core))| {
                let (work, desk, has_failed) = (&work, desk.take(), &has_failed);
                let name = format!("engine {number}");
                let run = move || {
                    let mut report = FailureReport {
                        to: has_failed,
                        has_failed: true,
                    };
                    let ended = work(prepared, siblings, core, desk);
                    report.has_failed = ended.is_err();
                    ended
                };
                let started = thread::Builder::new().name(name).spawn_scoped(scope, run);
                started.inspect_err(|_| has_failed.store(true, Ordering::Relaxed))
            });
        let threads: Vec<_> = threads.collect();
        let join = |thread: io::Result<ScopedJoinHandle<'_, _>>| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => Err(Failure::Failed(format!("cannot start a thread: {error}"))),
        };
        threads.into_iter().map(join).collect()
    });
    let snapshots = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of_all = snapshots.into_iter().reduce(Snapshot::joined);
    print(&of_all.as_ref().map(totals).unwrap_or_default())
}

/// Reports when dropped whether an engine has failed, also if its thread panics.
struct FailureReport<'a> {
    to: &'a AtomicBool,
    has_failed: bool,
}

impl Drop for FailureReport<'_> {
    fn drop(&mut self) {
        self.to.fetch_or(self.has_failed, Ordering::Relaxed);
    }
}

/// Connects the engines with each other, if there are several.
fn siblings(engines: usize) -> Result<Vec<Option<Siblings>>, Failure> {
    if engines == 1 {
        return Ok(vec![None]);
    }
    let siblings = Siblings::of(engines).map_err(|error| {
        Failure::Failed(format!("cannot connect the engines: {}", reason(&error)))
    })?;
    Ok(siblings.into_iter().map(Some).collect())
}

/// What only the first engine has.
struct Desk {
    listeners: Listeners,
    control: ControlSocket,
}

/// Returns the parameters of one of several engines: limits on the whole adapter are divided.
fn part_of(config: AdapterServiceConfig, engines: usize) -> AdapterServiceConfig {
    AdapterServiceConfig {
        memory: config.memory.map(|bytes| bytes / engines as u64),
        adapter: AdapterConfig {
            hard_limit: config.adapter.hard_limit.div_ceil(engines as u32),
            ..config.adapter
        },
        ..config
    }
}

/// Returns a core for each engine: `first` or the last core, and those below, in turn if there are fewer cores than engines.
///
/// # Errors
/// This process may not use the core `first`.
fn cores_for(first: Option<usize>, engines: usize) -> Result<Vec<usize>, Failure> {
    let allowed = allowed_cores().map_err(|error| {
        Failure::Failed(format!(
            "cannot choose a core for the engine: {}",
            reason(&error)
        ))
    })?;
    let Some(first) = first.or(allowed.last().copied()) else {
        return Ok(vec![0; engines]);
    };
    let Some(at) = allowed.iter().position(|&core| core == first) else {
        // Refused, with the cores that may be used.
        return Ok(vec![pin_to_core(Some(first))?; engines]);
    };
    let below = (0..=at).rev().chain((at + 1..allowed.len()).rev());
    Ok(below.map(|at| allowed[at]).cycle().take(engines).collect())
}

fn run_beside_kernel(
    arguments: &AdapterArgs,
    mut config: AdapterServiceConfig,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let Some(name) = &arguments.link.iface else {
        let text = "--broker, --handoff: an adapter beside the kernel needs an interface; expected --iface";
        return Err(Failure::BadInput(text.to_owned()));
    };
    let log = daemon_log("adapter", arguments.log_level, Level::default())?;
    let user = service_user(&arguments.confinement)?;
    let places = Places::of(arguments.link.netns.as_deref())?;
    let given = arguments.broker.clone().flatten();
    let path = given.unwrap_or_else(|| places.broker());
    if arguments.replace {
        replace(&path)?;
    }
    let sockets = Sockets::of(arguments, places, user.as_ref());
    let mut control = sockets.control()?;
    let link = broker::attach(arguments, &path, name)?;
    // Done only now, so that a broker that was just started may use all cores.
    let core = pin_to_core(arguments.core)?;
    // Opened only now, so that applications that find the adapter's socket also find the broker's.
    let listeners = sockets.listen(&config)?;
    let (mut running, beside) = engine::start_beside_kernel(
        &arguments.link,
        name,
        link,
        kernel_tcp_config(&arguments.link),
    )?;
    let engine = &mut running.engine;
    config.adapter.port_seed = running.seed;
    let mut service = AdapterService::new(config, Some(listeners), engine.host_mut())?;
    service.set_clock(engine.clock());
    service.set_beside(beside, engine.host_mut().stack_mut());
    if let Some(timeline) = timeline(arguments)? {
        service.set_timeline(timeline);
    }
    // From now on, the broker does everything that needs privileges.
    keep_no_privileges(user.as_ref())?;
    interrupt.listen()?;
    warn_of_unreachable(&path, user.as_ref());
    confine_to(Confinement::Adapter, &arguments.confinement)?;
    let text = format!(
        "taking over connections of the kernel on core {core}; attach a server: baton live serve --adapter {} --broker={} --root .",
        sockets.listen.display(),
        path.display()
    );
    log.write(Level::Info, text);
    let snapshot = serve(
        engine,
        &mut service,
        Some(&mut control),
        &log,
        stop(interrupt),
    )?;
    print(&totals(&snapshot))
}

/// Warns if `user` cannot reach the broker's socket: after the broker is killed, the adapter looks for the next broker as this user.
fn warn_of_unreachable(path: &Path, user: Option<&ServiceUser>) {
    if let (Some(user), Err(error)) = (user, access(path, Access::WRITE_OK)) {
        let (path, user) = (path.display(), user.name());
        note(&format!(
            "--broker {path}: {error} for user {user}, whom the adapter runs as: it will not find a broker that follows this one there; give a path in a \
             folder that everybody may enter"
        ));
    }
}

/// Paths of an adapter's sockets, and their owner.
struct Sockets<'a> {
    places: Places,
    listen: PathBuf,
    control: PathBuf,
    arguments: &'a AdapterArgs,
    user: Option<&'a ServiceUser>,
}

impl<'a> Sockets<'a> {
    fn of(arguments: &'a AdapterArgs, places: Places, user: Option<&'a ServiceUser>) -> Self {
        let (listen, control) = (arguments.listen.clone(), arguments.control.clone());
        Self {
            listen: listen.unwrap_or_else(|| places.adapter()),
            control: control.unwrap_or_else(|| places.control()),
            places,
            arguments,
            user,
        }
    }

    fn control(&self) -> Result<ControlSocket, Failure> {
        let socket = control_at(&self.places, &self.control, self.user)?;
        self.admit(&self.control)?;
        Ok(socket)
    }

    /// Opens the listeners for applications.
    fn listen(&self, config: &AdapterServiceConfig) -> Result<Listeners, Failure> {
        self.places.make_for(&self.listen, self.user)?;
        let listeners = Listeners::open(&self.listen, self.arguments.listen_tcp, config.limits)?;
        self.admit(&self.listen)?;
        Ok(listeners)
    }

    fn admit(&self, path: &Path) -> Result<(), Failure> {
        admit(self.user, self.arguments.group.as_ref(), path)
    }
}

/// Creates the timeline, if one was requested. Its file has its final name from the start, so that a killed process leaves the data that it
/// has written.
fn timeline(arguments: &AdapterArgs) -> Result<Option<AdapterTimeline>, Failure> {
    let Some(path) = &arguments.timeline.file else {
        return Ok(None);
    };
    let timeline = AdapterTimeline::create(path, &arguments.timeline.sampling());
    timeline.map(Some).map_err(|error| {
        let (path, why) = (path.display(), reason(&error));
        Failure::BadInput(format!(
            "--timeline {path}: {why}; expected a path that can be written"
        ))
    })
}

/// Ends the running adapter.
fn replace(path: &Path) -> Result<(), Failure> {
    match end_predecessor(path)? {
        Some(process) => tell(&format!(
            "process {process} has given its connections back to the kernel and ended\n"
        )),
        None => tell(&format!(
            "there is no adapter to replace at {}\n",
            path.display()
        )),
    }
    Ok(())
}

/// Serves until the end, and returns the final state.
fn serve(
    engine: &mut Engine<Box<dyn Port>>,
    service: &mut AdapterService,
    control: Option<&mut ControlSocket>,
    log: &Log,
    stop: impl Fn() -> Stop,
) -> Result<Snapshot, Failure> {
    let ended = run_adapter(engine, service, control, stop, |notice| {
        log.write(notice.level(), notice);
    });
    if let Some(timeline) = service.take_timeline() {
        let summary = timeline.finish(engine.now()).map_err(|error| {
            let why = reason(&error);
            Failure::Failed(format!("--timeline: cannot write: {why}"))
        })?;
        match summary {
            Some(summary) => note(&format!("timeline: {summary}")),
            None => note("timeline: empty, because the adapter ended before the timeline began"),
        }
    }
    ended?;
    Ok(Snapshot::take(engine, service))
}

/// Summarises the adapter's work in a few lines.
fn totals(snapshot: &Snapshot) -> String {
    let count = |name: &str| grouped(snapshot.counters.get(name).copied().unwrap_or_default());
    let captured = snapshot.counters.get("captured.captured").map(|_| {
        format!(
            "{} connections taken over from hosts, {} given back to them\n",
            count("adapter.imported"),
            count("adapter.exported"),
        )
    });
    format!(
        "{} applications, {} disconnected for breaking the protocol; {} connections accepted, {} opened\n\
         {} requests, {} responses; {} bytes sent, {} received\n\
         {} frames received, {} sent; {} segments retransmitted\n",
        count("applications.attached"),
        count("applications.cut_off"),
        count("adapter.accepted"),
        count("adapter.connected"),
        count("adapter.requests"),
        count("adapter.responses"),
        count("adapter.sent_bytes"),
        count("adapter.received_bytes"),
        count("inet.frames_received"),
        count("inet.frames_sent"),
        count("tcp.retransmissions"),
    ) + &captured.unwrap_or_default()
}
