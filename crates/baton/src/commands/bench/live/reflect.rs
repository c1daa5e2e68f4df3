//! `baton bench reflect`.

use super::session;
use crate::cli::BenchReflectArgs;
use crate::failure::Failure;
use crate::output::tell;
use crate::runner::Interrupt;
use baton_live::Clock;
use baton_tester::environment::{Environment, mac_text};
use baton_tester::remote::{Reflector, Welcome};

/// Length of the shortest IP packet of any test, which the interface must support. The tester checks the lengths that its tests need.
const SHORTEST: usize = 46;

/// Runs the command.
///
/// # Errors
/// Fails on bad input, or if an interface fails.
pub(in crate::commands::bench) fn execute(
    arguments: &BenchReflectArgs,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let spec = arguments.spec();
    let cpus: Vec<usize> = arguments.cpu.into_iter().collect();
    let specs = [spec];
    let mut opened = session::open(&specs, &cpus, arguments.up, SHORTEST, Clock::start())?;
    let station = opened.stations.remove(0);
    let mac = mac_text(station.link().mac);
    let welcome = Welcome {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        environment: Environment::take(),
        interface: opened.interfaces.remove(0),
    };
    let mut reflector = Reflector::new(station, arguments.netns.as_deref(), welcome)?;
    tell(&format!(
        "reflecting at {mac}; interrupt to end, test with `baton bench nic IFACE --partner {mac}`\n"
    ));
    let done = reflector.run(|| interrupt.requested(), |news| tell(&format!("{news}\n")));
    drop(reflector);
    drop(opened.changes);
    Ok(done?)
}
