//! From 1 to 10,000 connections (batching 5: "more connections").

use super::Findings;
use super::sweep::{CROSSINGS, RATE, RESPONSE, Series, Sweep};
use crate::commands::reproduce::batching::lab::Lab;
use crate::commands::reproduce::batching::machine::offload;
use crate::commands::reproduce::batching::settings::{Setting, Settings, Sides};
use crate::failure::Failure;
use baton_sim::config::Experiment;

/// More replies than connections, so that each has a share in what is measured.
const REPLIES_PER_CONNECTION: u64 = 3;

pub(super) fn run(lab: &Lab<'_>) -> Result<Findings, Failure> {
    let level_4 = Setting {
        level: 4,
        ..Setting::MINIMAL
    };
    let level_32 = Setting {
        level: 32,
        ..Setting::MINIMAL
    };
    let series = [
        ("baseline", Settings::BASELINE),
        ("adapter, level 4", Settings::of(Sides::Adapter, level_4)),
        ("adapter, level 32", Settings::of(Sides::Adapter, level_32)),
        ("both, level 32", Settings::of(Sides::Both, level_32)),
    ];
    let series = series.map(|(name, settings)| {
        let mut experiment = lab.machine.clone();
        settings.apply(&mut experiment);
        Series {
            name: name.to_owned(),
            experiment,
            dashed: false,
        }
    });
    Sweep {
        title: "1 to 10,000 connections, 1 KB".to_owned(),
        x: "connections",
        log_x: true,
        values: vec![1, 2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000],
        set,
        series: series.into(),
        metrics: vec![RESPONSE, RATE, CROSSINGS],
        remark: "While a piece of work is done more arrives, and leaves together afterwards: with many connections both sides batch by themselves, and levels add less and less.",
    }
    .run(lab)
}

fn set(experiment: &mut Experiment, connections: u32) {
    *experiment = with_connections(experiment, connections);
}

/// The machine with so many connections, large enough for them, and a run long enough.
pub(super) fn with_connections(machine: &Experiment, connections: u32) -> Experiment {
    let mut experiment = machine.clone();
    experiment.clients.connections = connections;
    let backlog = &mut experiment.host.kernel.backlog;
    *backlog = (*backlog).max(2 * connections);
    let offload = offload(&mut experiment);
    let host = &mut offload.host;
    host.interface.most_sockets = host.interface.most_sockets.max(4 * connections);
    let adapter = &mut offload.adapter.interface;
    adapter.most_sockets = adapter.most_sockets.max(4 * connections);
    adapter.most_backlog = adapter.most_backlog.max(2 * connections);
    offload.link.buffers = offload.link.buffers.max(16 * connections);
    let replies = REPLIES_PER_CONNECTION * u64::from(connections);
    let run = &mut experiment.run;
    run.warmup_responses = run.warmup_responses.max(Some(replies / 3));
    run.measured_responses = run.measured_responses.max(Some(replies));
    experiment
}
