//! A rule of batching of one's own, on a machine whose adapter has all of TCP: `cargo run --release -p baton-sim --example batching`.

use baton_bus::{BatchingRule, Urgency};
use baton_sim::config::{EstablishedBy, Experiment};
use baton_sim::{Machine, NoObserver, RunError};
use baton_wire::{Span, Time};

/// What somebody waits for goes at once, everything else after a millisecond.
#[derive(Debug, Default)]
struct Awaited {
    due: Option<Time>,
}

impl BatchingRule for Awaited {
    fn queued(&mut self, now: Time, _flow: u32, urgency: Urgency) -> Time {
        let due = match urgency {
            Urgency::Lazy => now + Span::from_ms(1),
            Urgency::Awaited | Urgency::AtOnce => now,
        };
        *self
            .due
            .insert(self.due.map_or(due, |other| other.min(due)))
    }
    fn most_waiting(&self) -> u32 {
        64
    }
    fn taken(&mut self, _now: Time) {
        self.due = None;
    }
    fn clear(&mut self) {
        self.due = None;
    }
}

fn main() -> Result<(), RunError> {
    let mut experiment = Experiment::default();
    experiment.offload.established_by = EstablishedBy::Adapter;
    experiment.clients.connections = 16;
    let machine = Machine::builder(&experiment).batching(|_depth| Awaited::default());
    let results = machine.build()?.run("", &mut NoObserver)?;
    println!(
        "{:.2} crossings for a response",
        results.crossings_per_response()
    );
    Ok(())
}
