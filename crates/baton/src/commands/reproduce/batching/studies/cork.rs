//! The cork timer (batching 3.1): how long data that is not a whole transfer is held back.

use super::Findings;
use super::sweep::{CROSSINGS, RESPONSE, Series, Sweep, TRANSFER};
use crate::commands::reproduce::batching::lab::Lab;
use crate::commands::reproduce::batching::machine::{offload, set_load};
use crate::failure::Failure;
use baton_sim::config::{ApplicationConfig, Experiment, PagesConfig};

/// A page is written in pieces of so many bytes ...
const PIECE_BYTES: u32 = 512;
/// ... with so much time between them, microseconds.
const INTERVALS_US: [u32; 3] = [50, 200, 1_000];
const PAGE_BYTES: u32 = 16 << 10;

pub(super) fn run(lab: &Lab<'_>) -> Result<Findings, Failure> {
    let series = INTERVALS_US.map(|interval_us| {
        let mut experiment = lab.machine.clone();
        set_load(&mut experiment, PAGE_BYTES, 1);
        experiment.application = ApplicationConfig::Pages(PagesConfig {
            piece_bytes: PIECE_BYTES,
            interval_us,
        });
        Series {
            name: format!("every {interval_us} us"),
            experiment,
            dashed: false,
        }
    });
    Sweep {
        title: "Cork timer: pages of 16 KB written in pieces of 512 B, one connection".to_owned(),
        x: "cork timer, us",
        log_x: true,
        values: vec![10, 100, 300, 1_000, 3_000, 10_000, 30_000],
        set: |experiment: &mut Experiment, us| offload(experiment).host.interface.cork_timer_us = us,
        series: series.into(),
        metrics: vec![RESPONSE, TRANSFER, CROSSINGS],
        remark: "A timer longer than a transfer takes to fill costs response time and saves nothing more. (Static files fill transfers at once, and the server uncorks at their end: for them the timer never fires.)",
    }
    .run(lab)
}
