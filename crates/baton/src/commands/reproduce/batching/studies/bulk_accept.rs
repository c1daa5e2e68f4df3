//! One ACCEPT for several connections (batching 2.3).

use super::Findings;
use super::connections::with_connections;
use super::sweep::{CROSSINGS, RATE, RESPONSE, Series, Sweep};
use crate::commands::reproduce::batching::lab::Lab;
use crate::commands::reproduce::batching::machine::offload;
use crate::failure::Failure;
use baton_sim::config::Experiment;

const CONNECTIONS: [u32; 4] = [1, 5, 100, 1_000];

pub(super) fn run(lab: &Lab<'_>) -> Result<Findings, Failure> {
    let series = CONNECTIONS.map(|connections| Series {
        name: format!("{connections} conn."),
        experiment: with_connections(&lab.machine, connections),
        dashed: false,
    });
    Sweep {
        title: "Bulk accept: connections that one ACCEPT waits for, 1 KB".to_owned(),
        x: "connections for one ACCEPT",
        log_x: true,
        values: vec![1, 2, 4, 8, 16, 32],
        set,
        series: series.into(),
        metrics: vec![RESPONSE, RATE, CROSSINGS],
        remark: "The first connection waits for the others, at most 1 ms here: with few connections that is lost time, with many it saves most ACCEPTs.",
    }
    .run(lab)
}

fn set(experiment: &mut Experiment, connections: u32) {
    let interface = &mut offload(experiment).host.interface;
    interface.bulk_accept = connections as u16;
    interface.accept_timeout_us = 1_000;
}
