//! Load control of one's own: `cargo run --release -p baton-sim --example load_control`.

use baton_nic::{Governor, LoadState, Step};
use baton_sim::config::Experiment;
use baton_sim::{Machine, NoObserver, RunError};

/// Soft_Limit rises by one while the queue is short, and is halved when it is long.
#[derive(Debug)]
struct Halving(u32);

impl Governor for Halving {
    fn run(&mut self, qlen: u32, _cnum: u32) -> Step {
        match qlen {
            0..8 => self.0 = self.0.saturating_add(1),
            8..=64 => return Step::None,
            _ => self.0 = (self.0 / 2).max(1),
        }
        if qlen < 8 {
            Step::Raised
        } else {
            Step::Lowered
        }
    }

    fn soft_limit(&self) -> u32 {
        self.0
    }

    fn state(&self) -> LoadState {
        LoadState::Monitor
    }
}

fn main() -> Result<(), RunError> {
    let experiment = Experiment::default();
    let machine = Machine::builder(&experiment)
        .load_control(Halving)
        .build()?;
    let results = machine.run("", &mut NoObserver)?;
    let lost: u64 = results.nic.drops.values().sum();
    println!(
        "{:.0} requests/s, {lost} frames lost",
        results.clients.request_rate
    );
    Ok(())
}
