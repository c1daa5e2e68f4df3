//! The largest transfer, and with it how many descriptors one moves (batching 3.1, 5).

use super::Findings;
use super::sweep::{CROSSINGS, RESPONSE, Sweep, TRANSFER, files};
use crate::commands::reproduce::batching::lab::Lab;
use crate::commands::reproduce::batching::machine::offload;
use crate::failure::Failure;
use baton_bus::Descriptor;
use baton_sim::config::Experiment;

pub(super) fn run(lab: &Lab<'_>) -> Result<Findings, Failure> {
    Sweep {
        title: "Maximum transfer size: data and descriptors in one DMA, one connection".to_owned(),
        x: "maximum transfer, bytes",
        log_x: true,
        // "The prototype has the ability to transfer up to 64K bytes" (2.2).
        values: (9..=16).map(|power| 1 << power).collect(),
        set,
        series: files(&lab.machine, 1),
        metrics: vec![RESPONSE, TRANSFER, CROSSINGS],
        remark: "A file of n transfers costs n DMAs of data: beyond the page of 4 KB the size of the transfer decides crossings at 64 and 512 KB, and nothing at 1 KB, which fits any but the smallest.",
    }
    .run(lab)
}

fn set(experiment: &mut Experiment, bytes: u32) {
    let offload = offload(experiment);
    for batching in [
        &mut offload.host.interface.batching,
        &mut offload.adapter.interface.batching,
    ] {
        batching.max_transfer_bytes = bytes;
        batching.max_descriptors = (bytes / Descriptor::BYTES).min(128);
    }
}
