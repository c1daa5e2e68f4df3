//! Custom load control: `cargo run --release -p baton-sim --example load_control`.

use baton_nic::{Governor, Load};
use baton_sim::config::Experiment;
use baton_sim::{Machine, NoObserver, RunError};

/// Raises Soft_Limit by one while the queue is short, and halves it when the queue is long.
#[derive(Debug)]
struct Halving(u32);

impl Governor for Halving {
    fn run(&mut self, load: &Load, _cnum: u32) {
        match load.qlen {
            0..8 => self.0 = self.0.saturating_add(1),
            8..=64 => {}
            _ => self.0 = (self.0 / 2).max(1),
        }
    }

    fn soft_limit(&self) -> u32 {
        self.0
    }
}

fn main() -> Result<(), RunError> {
    let experiment = Experiment::default();
    let machine = Machine::builder(&experiment).load_control(Halving);
    let results = machine.build()?.run("", &mut NoObserver)?;
    println!("{:.0} requests/s", results.clients.request_rate);
    Ok(())
}
