//! Measurements: the time series during a run, and the results at its end.

use super::Machine;
use super::cache_counts::of_file_cache;
use super::clients::FAILURES;
use super::marks::Marks;
use super::names::{complete, since};
use super::nic_processor::NicProcessor;
use super::response_time::SATURATED;
use super::tick::Tick;
use crate::results::{
    ClientResults, Ended, HandoffResults, InterconnectResults, Limit, NicResults, NotSteady,
    PortResults, Results, Sample, VERSION,
};
use baton_host::NotOffloaded;
use baton_wire::{Span, Time};
use std::collections::BTreeMap;
use std::ops::Range;

/// State at the beginning of the measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub(super) at: Time,
    /// Frames at the server's NICs until then.
    pub(super) packets: u64,
    /// Whether caches had free space and the first pass over the log was not complete, so that they still received blocks they will have
    /// from the second pass on.
    pub(super) caches_filling: bool,
}

impl Machine {
    pub(super) fn sample(&mut self) {
        let sample = Sample {
            time_us: self.now.as_ps() / 1_000_000,
            responses: self.responses(),
            unanswered: self.clients.arrived().map_or(0, |all| all.unanswered),
            ..self.server.sample()
        };
        self.series.push(sample);
        self.record_sample();
        self.arm(
            Tick::Sample,
            Some(self.now + Span::from_us(self.experiment.run.sample_us)),
        );
    }

    /// Writes the last point of the time series to the timeline, if there is one.
    pub(super) fn record_sample(&mut self) {
        if let (Some(recorder), Some(sample)) = (self.taps.recorder(), self.series.last()) {
            let (host, nics) = self.server.gauges();
            recorder.sample(self.now, sample, host, nics);
        }
    }

    pub(super) fn restart_counts(&mut self) {
        if let Some(recorder) = self.taps.recorder() {
            recorder.restart_counts(self.now);
            self.record_sample();
        }
        self.responses_before = self.responses();
        self.handoffs_before = self.server.handoffs().unwrap_or_default();
        self.host.restart_counts(self.now);
        for port in &mut self.ports {
            port.nic.restart_counts(self.now);
        }
        self.clients.restart_counts();
        self.storage.restart_counts(self.now);
        let file_cache = self.server.file_cache_stats();
        self.file_cache_before = file_cache.copied().unwrap_or_default();
        self.server.restart_counts(self.now);
        self.marks = Marks::new(self.mark());
    }

    pub(super) fn handoffs_measured(&self) -> HandoffResults {
        let now = self.server.handoffs().unwrap_or_default();
        let before = &self.handoffs_before;
        let (host, nic) = self.packets_by_owner();
        let mut not_offloaded = since(&before.not_offloaded, now.not_offloaded);
        complete(
            &mut not_offloaded,
            NotOffloaded::ALL.map(NotOffloaded::name),
        );
        HandoffResults {
            attempted: now.attempted - before.attempted,
            accepted: now.accepted - before.accepted,
            restored: now.restored - before.restored,
            forwarded: now.forwarded - before.forwarded,
            not_offloaded,
            offloaded_packets_percent: 100.0 * nic as f64 / (host + nic) as f64,
        }
    }

    /// Returns the measured frames of connections on the host, and of connections on the NICs.
    fn packets_by_owner(&self) -> (u64, u64) {
        let nics = || self.ports.iter().map(|port| &port.nic);
        (
            nics().map(|nic| nic.host_packets).sum(),
            nics().map(NicProcessor::nic_packets).sum(),
        )
    }

    /// Returns the combined results of these NICs.
    fn nic_results(&self, nics: Range<usize>, connections_mean: f64) -> NicResults {
        let sides: Vec<_> = self.ports[nics.clone()]
            .iter()
            .map(|port| &port.nic)
            .collect();
        let mut results = NicProcessor::results(&sides, self.now, connections_mean);
        nics.for_each(|nic| self.server.add_to_nic(nic, &mut results));
        results
    }

    /// Returns the results of each NIC, if they say more than the combined results.
    fn ports_results(&self, measured: Span) -> Vec<PortResults> {
        let results: Vec<_> = (0..self.ports.len())
            .zip(self.experiment.nic_names())
            .map(|(number, name)| {
                let connections = self.server.connections(number).into();
                PortResults {
                    name: name.to_owned(),
                    content_mbps: over(measured, self.clients.content_mbps(number as u8, measured)),
                    nic: self.nic_results(number..number + 1, connections),
                    cache: self.server.nic_cache(number),
                }
            })
            .collect();
        let one_without_cache = matches!(&results[..], [PortResults { cache: None, .. }]);
        if one_without_cache {
            Vec::new()
        } else {
            results
        }
    }

    /// Returns the results of the clients, and the share of their content that did not cross the bus to a NIC, per cent.
    fn client_results(&self, measured: Span) -> (ClientResults, Option<f64>) {
        let mut clients = self.clients.results(measured);
        complete(&mut clients.failed, FAILURES);
        let received = clients.content_mbps * measured.as_secs_f64() / 8e-6;
        let crossed = self.server.accounting().to_nic.bytes.content as f64;
        clients.request_rate = over(measured, clients.request_rate);
        clients.content_mbps = over(measured, clients.content_mbps);
        let kept = (received > 0.0).then(|| 100.0 * (1.0 - crossed / received));
        (clients, kept)
    }

    pub(super) fn results(&mut self, commit: &str, started: Started, ended: Ended) -> Results {
        let long_run = self.long_run(started);
        let Started {
            at: started,
            packets: packets_before,
            ..
        } = started;
        let measured = self.now - started;
        let usage = self.server.usage(self.now);
        let from_us = started.as_ps() / 1_000_000;
        let samples: Vec<_> = self
            .series
            .iter()
            .filter(|sample| sample.time_us >= from_us)
            .collect();
        let on_nic: u64 = samples
            .iter()
            .map(|sample| u64::from(sample.connections))
            .sum();
        let connections_mean = on_nic as f64 / samples.len() as f64;
        let (host_packets, nic_packets) = self.packets_by_owner();
        let file_cache = self.server.file_cache_stats();
        let file_cache = file_cache.map(|now| of_file_cache(now, &self.file_cache_before));
        let nic = self.nic_results(0..self.ports.len(), connections_mean);
        let mut host = self.host.results(self.now, host_packets, nic_packets);
        self.server.add_to_host(&mut host);
        let (clients, content_kept_off_bus_percent) = self.client_results(measured);
        let mut results = Results {
            version: VERSION,
            experiment: self.experiment.clone(),
            commit: commit.to_owned(),
            workload: BTreeMap::new(),
            warmup_s: started.as_secs_f64(),
            measured_s: measured.as_secs_f64(),
            packets: self.packets() - packets_before,
            ended,
            long_run,
            content_kept_off_bus_percent,
            clients,
            host,
            nic,
            nics: self.ports_results(measured),
            file_cache,
            disk: file_cache.map(|_| self.storage.results(self.now)),
            handoff: self.handoffs_measured(),
            bus: self.server.accounting(),
            interconnect: usage.map(InterconnectResults::from),
            offload: self.server.results(),
            series: self.series.clone(),
        };
        if falls_behind(&results) {
            results.long_run.response_ms = None;
            if !results.long_run.not_steady.contains(&NotSteady::Saturated) {
                results.long_run.not_steady.push(NotSteady::Saturated);
            }
        }
        results
    }
}

/// Reports whether an open loop's requests arrived faster than they were served while some resource was always busy. The requests in
/// progress do not show this, because a connection sends one request after another.
fn falls_behind(results: &Results) -> bool {
    let served = results.clients.request_rate;
    let open = results.clients.open_loop.as_ref();
    open.is_some_and(|open| served < (1.0 - SATURATED) * open.offered_rate)
        && !Limit::all_of(results).is_empty()
}

/// Returns a rate over this time, or NaN if no time was measured.
const fn over(measured: Span, rate: f64) -> f64 {
    if measured.as_ps() == 0 {
        f64::NAN
    } else {
        rate
    }
}
