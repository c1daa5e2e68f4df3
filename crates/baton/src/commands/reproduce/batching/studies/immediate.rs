//! Data inside descriptors (batching 2.3, "immediate mode").

use super::Findings;
use super::sweep::{CROSSINGS, RESPONSE, Series, Sweep};
use crate::commands::reproduce::batching::lab::Lab;
use crate::commands::reproduce::batching::machine::{offload, set_load};
use crate::failure::Failure;
use baton_sim::config::Experiment;

/// The longest that fits is 240 bytes; headers have 250, requests more.
const VALUES: [u32; 7] = [0, 16, 48, 80, 112, 176, 240];
/// Sizes of files, bytes: those that fit, and one that never does.
const FILES: [u32; 4] = [16, 100, 240, 1024];

pub(super) fn run(lab: &Lab<'_>) -> Result<Findings, Failure> {
    let series = FILES.map(|bytes| {
        let mut experiment = lab.machine.clone();
        set_load(&mut experiment, bytes, 1);
        Series {
            name: format!("{bytes} B"),
            experiment,
            dashed: false,
        }
    });
    Sweep {
        title: "Immediate data: sends that travel inside their descriptors, one connection".to_owned(),
        x: "longest data inside descriptors, bytes",
        log_x: false,
        values: VALUES.to_vec(),
        set,
        series: series.into(),
        metrics: vec![RESPONSE, CROSSINGS],
        remark: "Content that fits saves its DMA. The response time stays: headers of 250 bytes do not fit and are fetched all the same, and requests do not fit either.",
    }
    .run(lab)
}

fn set(experiment: &mut Experiment, bytes: u32) {
    let offload = offload(experiment);
    offload.host.interface.most_inline = bytes;
    offload.adapter.interface.most_inline = bytes;
}
