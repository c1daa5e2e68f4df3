//! A custom selection policy compared with a published one, on the same machine and load: `cargo run --release --example selection_policy`.

use baton_host::{Decision, Selection, View};
use baton_sim::config::Experiment;
use baton_sim::{Machine, NoObserver, RunError};

/// Hands off connections that have many bytes to send.
#[derive(Debug)]
struct Backlog(u32);

impl Selection for Backlog {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn on_send(&mut self, view: &View) -> Decision {
        match view.bytes_in_send_buffer >= self.0 {
            true => Decision::HandOff,
            false => Decision::Stay,
        }
    }
}

fn main() -> Result<(), RunError> {
    let experiment = Experiment::default();
    let fcfs = Machine::builder(&experiment).build()?;
    let own = Machine::builder(&experiment)
        .selection(Backlog(4096))
        .build()?;
    for (name, machine) in [("first come, first served", fcfs), ("4 KiB to send", own)] {
        let results = machine.run("", &mut NoObserver)?;
        println!("{name}: {:.0} requests/s", results.clients.request_rate);
    }
    Ok(())
}
