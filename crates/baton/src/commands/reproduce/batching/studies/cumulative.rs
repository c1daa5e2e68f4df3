//! One completion for all sends up to it (batching 4).

use super::Findings;
use super::sweep::{CROSSINGS, Metric, RESPONSE, Sweep, files};
use crate::commands::reproduce::batching::machine::offload;
use crate::commands::reproduce::batching::{bench::Measured, lab::Lab};
use crate::failure::Failure;
use baton_sim::config::Experiment;

/// Descriptors that the adapter sends for each reply.
const RESPONSES: Metric = Metric {
    key: "adapter_descriptors_per_response",
    name: "adapter's descriptors for a reply",
    value: |measured: &Measured| {
        let run = &measured.first;
        run.adapter_transfers.entries as f64 / run.responses.max(1) as f64
    },
    log: false,
};

pub(super) fn run(lab: &Lab<'_>) -> Result<Findings, Failure> {
    let mut series = files(&lab.machine, 1);
    let mut scarce = files(&lab.machine, 1);
    for series in &mut scarce {
        // Sends are then fetched as acknowledgments make room, a few at a time.
        series.experiment.tcp.send_buffer = 32 << 10;
        series.name += ", 32 KB buffer";
        series.dashed = true;
    }
    series.extend(scarce.into_iter().skip(1));
    Sweep {
        title: "Cumulative completion: one SEND response for all sends before it, one connection".to_owned(),
        x: "cumulative, 0 or 1",
        log_x: false,
        values: vec![0, 1],
        set: |experiment: &mut Experiment, on| {
            offload(experiment).adapter.interface.cumulative_sends = on == 1;
        },
        series,
        metrics: vec![RESPONSE, CROSSINGS, RESPONSES],
        remark: "Completions that are found together cross together anyway, so cumulative ones save descriptors and their processing, not crossings, until there are more than one transfer holds.",
    }
    .run(lab)
}
