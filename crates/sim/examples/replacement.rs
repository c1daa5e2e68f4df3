//! A custom replacement policy in the NICs' caches: `cargo run --release -p baton-sim --example replacement`.

use baton_cache::Replacement;
use baton_sim::config::Experiment;
use baton_sim::{Machine, NoObserver, RunError};

/// Evicts the newest block, which is best if files are read cyclically.
#[derive(Debug, Default)]
struct Newest(Vec<u32>);

impl Replacement for Newest {
    fn inserted(&mut self, slot: u32, _key: u64, _bytes: u32) {
        self.0.push(slot);
    }
    fn used(&mut self, _slot: u32) {}
    fn removed(&mut self, slot: u32) {
        self.0.retain(|&other| other != slot);
    }
    fn victim(&mut self) -> Option<u32> {
        self.0.pop()
    }
    fn check(&self) {}
}

fn main() -> Result<(), RunError> {
    let mut experiment = Experiment::default();
    experiment.nic.firmware.cache.kib = 1024;
    experiment.host.kernel.nic_cache.enabled = true;
    let own = Machine::builder(&experiment).replacement(|_blocks| Newest::default());
    let results = own.build()?.run("", &mut NoObserver)?;
    let kept = results.content_kept_off_bus_percent.expect("content");
    println!("{kept:.1} % of content stays off the bus");
    Ok(())
}
