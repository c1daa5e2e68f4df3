//! What is measured: the time series while it runs, and the results at the end.

use super::Machine;
use super::cache_counts::CacheCounts;
use super::names::{counts, since};
use super::nic_side::NicSide;
use super::offload::Offload;
use super::tick::Tick;
use crate::results::{
    Ended, HandoffResults, InterconnectResults, NicResults, PortResults, Results, Sample,
};
use baton_bus::Accounting;
use baton_host::FileCacheStats;
use baton_nic::Firmware;
use baton_wire::{Span, Symbolic, Time};
use std::collections::BTreeMap;
use std::ops::Range;

impl Machine {
    pub(super) fn sample(&mut self) {
        let sample = Sample {
            time_us: self.now.as_ps() / 1_000_000,
            responses: self.responses_before + self.clients.measured.responses,
            ..match &self.offload {
                Some(offload) => offload.sample(),
                None => self.sample_kernel(),
            }
        };
        self.series.push(sample);
        self.arm(
            Tick::Sample,
            Some(self.now + Span::from_us(self.experiment.run.sample_us)),
        );
    }

    /// Connections, queues and limits where the kernel has the sockets.
    fn sample_kernel(&self) -> Sample {
        let owned = self.host.kernel.connections();
        let of_nics = |value: fn(&Firmware<Symbolic>) -> u32| {
            let nics = self.ports.iter().map(|port| &port.nic.firmware);
            nics.map(value).sum()
        };
        Sample {
            open: owned.host + owned.on_nic(),
            connections: of_nics(Firmware::connections),
            qlen: of_nics(Firmware::qlen),
            soft_limit: of_nics(Firmware::soft_limit),
            ..Sample::default()
        }
    }

    pub(super) fn restart_counts(&mut self) {
        self.responses_before = self.clients.measured.responses;
        self.handoffs_before = self.handoffs();
        self.host.restart_counts(self.now);
        for port in &mut self.ports {
            port.nic.restart_counts(self.now);
        }
        self.clients.restart_counts();
        self.storage.restart_counts(self.now);
        self.caches_before = CacheCounts::of(&self.host.kernel, self.file_cache_stats());
        self.crossings = Accounting::default();
        if let Some(bus) = &mut self.bus {
            bus.restart_counts(self.now);
        }
        if let Some(offload) = &mut self.offload {
            offload.restart_counts(self.now);
        }
    }

    /// Handoffs since the start of the run.
    pub(super) fn handoffs(&self) -> HandoffResults {
        if let Some(handoffs) = self.offload.as_ref().and_then(Offload::handoffs) {
            return handoffs;
        }
        let stats = self.host.kernel.stats();
        HandoffResults {
            attempted: stats.handoffs_attempted,
            accepted: stats.handoffs_accepted,
            restored: stats.restored,
            forwarded: stats.forwarded,
            not_offloaded: counts(stats.not_offloaded()),
            offloaded_packets_percent: 0.0,
        }
    }

    pub(super) fn handoffs_measured(&self) -> HandoffResults {
        let (before, now) = (&self.handoffs_before, self.handoffs());
        let (host, nic) = self.packets_by_owner();
        HandoffResults {
            attempted: now.attempted - before.attempted,
            accepted: now.accepted - before.accepted,
            restored: now.restored - before.restored,
            forwarded: now.forwarded - before.forwarded,
            not_offloaded: since(&before.not_offloaded, now.not_offloaded),
            offloaded_packets_percent: 100.0 * nic as f64 / (host + nic).max(1) as f64,
        }
    }

    /// Measured frames of connections on the host, and of those on the NICs.
    fn packets_by_owner(&self) -> (u64, u64) {
        let nics = || self.ports.iter().map(|port| &port.nic);
        (
            nics().map(|nic| nic.host_packets).sum(),
            nics().map(NicSide::nic_packets).sum(),
        )
    }

    /// What the file cache did since the start of the run; none where all files are in memory.
    fn file_cache_stats(&self) -> Option<&FileCacheStats> {
        match &self.offload {
            Some(offload) => offload.file_cache_stats(),
            None => self.host.kernel.file_cache_stats(),
        }
    }

    /// What these NICs did together. Where sockets are on adapters, TCP and queues are not the firmware's.
    fn nic_results(&self, nics: Range<usize>, connections_mean: f64) -> NicResults {
        let sides: Vec<_> = self.ports[nics.clone()]
            .iter()
            .map(|port| &port.nic)
            .collect();
        let mut results = NicSide::results(&sides, self.now, connections_mean);
        if let Some(offload) = &self.offload {
            nics.for_each(|nic| offload.add_to_nic(nic, &mut results));
        }
        results
    }

    /// Each NIC, where there is more to say than of all together.
    fn ports_results(&self, measured: Span) -> Vec<PortResults> {
        let kernel = &self.host.kernel;
        let results: Vec<_> = self
            .ports
            .iter()
            .enumerate()
            .zip(kernel.nics())
            .zip(self.experiment.nic_names())
            .map(|(((number, port), nic), name)| {
                let (connections, cache) = match &self.offload {
                    Some(offload) => (
                        offload.connections(number).into(),
                        offload.nic_cache(number),
                    ),
                    None => (
                        port.nic.connections_now(),
                        self.caches_before.nic_cache(kernel, nic),
                    ),
                };
                PortResults {
                    name: name.to_owned(),
                    content_mbps: self.clients.content_mbps(nic.0, measured),
                    nic: self.nic_results(number..number + 1, connections),
                    cache,
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

    pub(super) fn results(
        &mut self,
        commit: &str,
        started: Time,
        packets_before: u64,
        ended: Ended,
    ) -> Results {
        let measured = self.now - started;
        let usage = match (&mut self.bus, &mut self.offload) {
            (Some(bus), _) => Some(bus.usage(self.now)),
            (None, Some(offload)) => offload.usage(self.now),
            (None, None) => None,
        };
        let offload = self.offload.as_ref();
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
        let connections_mean = on_nic as f64 / samples.len().max(1) as f64;
        let (host_packets, nic_packets) = self.packets_by_owner();
        let file_cache = self.file_cache_stats();
        let file_cache = file_cache.map(|now| self.caches_before.file_cache(now));
        let nic = self.nic_results(0..self.ports.len(), connections_mean);
        let mut host = self.host.results(self.now, host_packets, nic_packets);
        if let Some(offload) = offload {
            offload.add_to_host(&mut host);
        }
        Results {
            version: 1,
            experiment: self.experiment.clone(),
            commit: commit.to_owned(),
            workload: BTreeMap::new(),
            warmup_s: started.as_secs_f64(),
            measured_s: measured.as_secs_f64(),
            packets: self.packets - packets_before,
            ended,
            clients: self.clients.results(measured),
            host,
            nic,
            nics: self.ports_results(measured),
            file_cache,
            disk: file_cache.map(|_| self.storage.results(self.now)),
            handoff: self.handoffs_measured(),
            bus: offload.map_or(self.crossings, Offload::accounting),
            interconnect: usage.map(InterconnectResults::from),
            offload: offload.map(Offload::results),
            series: self.series.clone(),
        }
    }
}
