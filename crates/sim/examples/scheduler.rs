//! A custom scheduler compared with the paper's, on the same machine and load: `cargo run --release -p baton-sim --example scheduler`.

use baton_nic::{Heads, Schedule, Scheduler, Source};
use baton_sim::config::Experiment;
use baton_sim::{Machine, NoObserver, RunError};

/// Processes packets of connections on the NIC before all others.
#[derive(Clone, Debug)]
struct NicFirst;

impl Schedule for NicFirst {
    fn next(&self, heads: &Heads) -> Option<Source> {
        let nic = heads.of(Source::NicReceive).map(|_| Source::NicReceive);
        nic.or_else(|| Scheduler::HostFirst.next(heads))
    }

    fn looks_up_first(&self) -> bool {
        true
    }
}

fn main() -> Result<(), RunError> {
    let experiment = Experiment::default();
    let published = Machine::builder(&experiment).build()?;
    let own = Machine::builder(&experiment).scheduler(NicFirst).build()?;
    for (name, machine) in [("host first", published), ("NIC first", own)] {
        let results = machine.run("", &mut NoObserver)?;
        let delay = results.nic.receive_delay_us.p50;
        println!(
            "{name}: host packets spend {:.0} us on the NIC",
            delay.expect("packets")
        );
    }
    Ok(())
}
