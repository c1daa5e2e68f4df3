//! A custom batching rule, on a machine whose adapter runs all of TCP: `cargo run --release -p baton-sim --example batching`.

use baton_bus::{BatchingRule, Urgency};
use baton_sim::config::{EstablishedBy, Experiment};
use baton_sim::{Machine, NoObserver, RunError};
use baton_wire::{Span, Time};

/// Transfers a descriptor immediately if somebody waits for it, and within a millisecond otherwise.
#[derive(Debug, Default)]
struct Awaited(Option<Time>);

impl BatchingRule for Awaited {
    fn queued(&mut self, now: Time, _flow: u32, urgency: Urgency) -> Time {
        let due = match urgency {
            Urgency::Lazy => now + Span::from_ms(1),
            Urgency::Awaited | Urgency::AtOnce => now,
        };
        *self.0.insert(self.0.map_or(due, |other| other.min(due)))
    }
    fn taken(&mut self, _now: Time) {
        self.0 = None;
    }
    fn clear(&mut self) {
        self.0 = None;
    }
}

fn main() -> Result<(), RunError> {
    let mut experiment = Experiment::default();
    experiment.offload.established_by = EstablishedBy::Adapter;
    experiment.clients.connections = 16;
    let machine = Machine::builder(&experiment).batching(|_depth| Awaited::default());
    let results = machine.build()?.run("", &mut NoObserver)?;
    let crossings = results.crossings_per_response();
    println!("{crossings:.2} crossings for a response");
    Ok(())
}
