//! A custom congestion controller on the server: `cargo run --release -p baton-sim --example congestion_controller`.

use baton_sim::config::Experiment;
use baton_sim::{Machine, NoObserver, RunError};
use baton_tcp::{Ack, Acked, Congestion, Controller, Custom, Loss, Needs, Window};

/// Sets the window to the bytes that the highest delivery rate so far carries in 20 ms, but to at least ten segments, and reduces it after each loss.
#[derive(Clone, Debug, Default)]
struct Delivered(u32);

impl Controller for Delivered {
    fn needs(&self) -> Needs {
        Needs::ACKS | Needs::RATE_SAMPLES | Needs::WINDOW
    }
    fn on_ack(&mut self, ack: &Ack) {
        let rate = ack.sample.map_or(0, |sample| sample.rate);
        self.0 = self.0.max((rate / 50) as u32);
    }
    fn on_loss(&mut self, _window: Window, _loss: &Loss) -> u32 {
        self.0 = self.0 / 10 * 7;
        u32::MAX
    }
    fn on_growth(&mut self, _window: Window, _acked: &Acked) -> u32 {
        0 // Never called, because this controller sets the window itself.
    }
    fn window(&self) -> u32 {
        self.0.max(14_600)
    }
}

fn main() -> Result<(), RunError> {
    let mut experiment = Experiment::default();
    let delivered = Custom::new("delivered", &|_seed, _saved| Box::<Delivered>::default());
    experiment.tcp.congestion = Congestion::Custom(delivered);
    let machine = Machine::builder(&experiment).build()?;
    let results = machine.run("", &mut NoObserver)?;
    println!("{:.0} requests/s", results.clients.request_rate);
    Ok(())
}
