//! `baton live broker`: takes connections out of the kernel for an adapter, and outlives the adapter.

use super::log::daemon_log;
use super::{admit, confine_to, service_user};
use crate::cli::{AdapterArgs, BrokerArgs};
use crate::failure::Failure;
use crate::runner::Interrupt;
use baton_host::SelectionConfig;
use baton_live::broker::{Broker, BrokerLink};
use baton_live::bus::log::{Level, Log};
use baton_live::{
    Confinement, Places, enter, keep_privileges_of_broker, within, without_capabilities,
};
use baton_report::grouped;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// Maximum time without an adapter, after which a broker that was started for an adapter ends.
const LONGEST_UNUSED: Duration = Duration::from_secs(2);
/// Maximum time until a broker has started, and until a broker that is about to end has ended.
const LONGEST_START: Duration = Duration::from_secs(10);

/// Runs the command until it is interrupted, or until the broker is no longer needed.
///
/// # Errors
/// Fails on bad input, or if an interface is not available.
pub fn execute(arguments: &BrokerArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(namespace) = &arguments.netns {
        // Enter it on this thread: a thread that waited for another would keep its privileges.
        enter(namespace)?;
    }
    let (places, starter) = (Places::here(), rustix::process::getuid().as_raw());
    let path = arguments.broker.clone();
    let path = path.unwrap_or_else(|| places.broker());
    let log = daemon_log("broker", arguments.log_level, Level::default())?;
    let user = service_user(&arguments.confinement)?;
    places.make_for(&path, user.as_ref())?;
    let socket = Broker::bind(&path)?;
    admit(user.as_ref(), arguments.group.as_ref(), &path)?;
    keep_privileges_of_broker(user.as_ref())?;
    without_capabilities(|| interrupt.listen())??;
    let mode = arguments.xdp_mode.map(|mode| mode.mode());
    let broker = Broker::start_at(socket, &arguments.iface, mode, starter)?;
    if log.shows(Level::Debug) {
        broker.tell_all_moves();
    }
    confine_to(Confinement::Broker, &arguments.confinement)?;
    run(arguments, &broker, &log, interrupt)
}

fn run(
    arguments: &BrokerArgs,
    broker: &Broker,
    log: &Log,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let mut used_at = Instant::now();
    let mut was_used = false;
    loop {
        while let Some(notice) = broker.poll_notice() {
            log.write(notice.level(), notice);
        }
        if interrupt.count() > 0 {
            return end(broker);
        }
        if !broker.is_unused() {
            (used_at, was_used) = (Instant::now(), true);
        }
        let longest = match was_used {
            true => LONGEST_UNUSED,
            false => LONGEST_START,
        };
        if arguments.while_used && used_at.elapsed() > longest {
            return Ok(());
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Ends the broker after the adapter's connections have been restored to the kernel.
fn end(broker: &Broker) -> Result<(), Failure> {
    match broker.restore_all() {
        0 => Ok(()),
        left => Err(Failure::Failed(format!(
            "{} connections could not be given back to the kernel and are reset",
            grouped(left)
        ))),
    }
}

/// Attaches an adapter to the broker at `path`, and starts a broker if there is none.
///
/// # Errors
/// Fails if the broker cannot be started, or if it refuses.
pub fn attach(arguments: &AdapterArgs, path: &Path, name: &str) -> Result<BrokerLink, Failure> {
    let tcp = super::adapter::kernel_tcp_config(&arguments.link);
    let policy = arguments
        .handoff
        .clone()
        .unwrap_or(SelectionConfig::Learned);
    let limit = Instant::now() + LONGEST_START;
    let mut started: Option<Child> = None;
    loop {
        let attach = || BrokerLink::attach(path, name, &tcp, &policy);
        if let Some(link) = within(arguments.link.netns.as_deref(), attach)?? {
            return Ok(link);
        }
        match &mut started {
            None => started = Some(start(arguments, path, name)?),
            Some(child) => {
                let failed =
                    |error| Failure::Failed(format!("cannot wait for the broker: {error}"));
                if let Some(status) = child.try_wait().map_err(failed)? {
                    let text = "the broker could not be started; its own message says why";
                    return Err(match status.code() {
                        Some(2) => Failure::BadInput(text.to_owned()),
                        _ => Failure::Failed(text.to_owned()),
                    });
                }
            }
        }
        if Instant::now() > limit {
            let path = path.display();
            let wait = LONGEST_START.as_secs();
            let text = format!("--broker {path}: the broker did not answer within {wait} s");
            return Err(Failure::Failed(text));
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Starts a broker in the namespace of the interface. The broker outlives this process, but ends when it is no longer used.
fn start(arguments: &AdapterArgs, path: &Path, name: &str) -> Result<Child, Failure> {
    let failed = |error| Failure::Failed(format!("cannot start the broker: {error}"));
    let this = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(this);
    command
        .args([
            "live",
            "broker",
            "--while-used",
            "--iface",
            name,
            "--broker",
        ])
        .arg(path);
    if let Some(mode) = arguments.link.frames.xdp_mode {
        command.args(["--xdp-mode", &mode.mode().to_string()]);
    }
    if let Some(level) = arguments.log_level {
        command.args(["--log-level", level.name()]);
    }
    if let Some(user) = &arguments.confinement.user {
        command.args(["--user", user.name()]);
    }
    if arguments.confinement.no_seccomp {
        command.arg("--no-seccomp");
    }
    if let Some(group) = &arguments.group {
        command.args(["--group", group.name()]);
    }
    // Signals that interrupt the adapter must not interrupt the broker.
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    within(arguments.link.netns.as_deref(), || command.spawn())?.map_err(failed)
}
