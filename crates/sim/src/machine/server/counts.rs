//! Measurements of host and adapters.

use super::super::cache_counts::of_nic_cache;
use super::super::names::{complete, counts, since, snake_case};
use super::super::timeline::Gauge;
use super::host_stack::HostStack;
use super::{End, Server};
use crate::hardware::nic::Dropped;
use crate::results::{
    HandoffResults, HostResults, NicCacheResults, NicResults, OffloadResults, Sample,
};
use baton_bus::interconnect::Usage;
use baton_bus::{Accounting, EntriesPerTransfer};
use baton_host::NicCacheStats;
use baton_kernel::NetworkDrops;
use baton_nic::Drops;
use baton_tcp::Refusal;
use baton_wire::Time;
use std::collections::BTreeMap;

/// Counters at the beginning of the measurement.
#[derive(Default)]
pub(super) struct Before {
    host: Counts,
    /// Counters by adapter.
    adapters: Vec<Counts>,
    nic_caches: Vec<NicCacheStats>,
    transfers: OffloadResults,
}

/// Counters of one side since the start of the run.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Segments that its TCP retransmitted.
    retransmissions: u64,
    timeouts: u64,
    drops: BTreeMap<String, u64>,
}

impl Counts {
    fn of_tcp(stats: &baton_tcp::Stats) -> Self {
        Self {
            retransmissions: stats.retransmissions,
            timeouts: stats.timeouts,
            drops: BTreeMap::new(),
        }
    }

    fn gauges(self) -> impl Iterator<Item = Gauge> {
        let dropped = |(name, count)| (format!("dropped: {name}"), "packets", count);
        [
            (
                "segments sent again".to_owned(),
                "segments",
                self.retransmissions,
            ),
            ("timeouts".to_owned(), "", self.timeouts),
        ]
        .into_iter()
        .chain(self.drops.into_iter().map(dropped))
    }

    fn since(self, before: &Self) -> Self {
        Self {
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
            drops: since(&before.drops, self.drops),
        }
    }
}

impl Server {
    /// Returns connections, frames that wait or were lost at the adapters, and Soft_Limits, which are 0 if the adapters have all connections
    /// anyway.
    pub(in super::super) fn sample(&self) -> Sample {
        let stack = self.host.stack();
        let connections = (0..self.adapters.len())
            .map(|nic| self.connections(nic))
            .sum();
        let soft_limits = self.adapters.iter().map(|adapter| adapter.soft_limit());
        Sample {
            open: connections + stack.map_or(0, HostStack::connections),
            connections,
            qlen: self.adapters.iter().map(|adapter| adapter.qlen()).sum(),
            soft_limit: stack.map_or(0, |_| soft_limits.sum()),
            drops: (0..self.adapters.len())
                .map(|nic| self.of_adapter(nic).drops.values().sum::<u64>())
                .sum(),
            ..Sample::default()
        }
    }

    /// Returns the values that a timeline samples for the host and for each adapter: free memory, and counters since the start of the run.
    pub(in super::super) fn gauges(&self) -> (Vec<Gauge>, Vec<Vec<Gauge>>) {
        let (mbufs, clusters) = self.host.free_buffers();
        let mut host = vec![
            ("free mbufs".to_owned(), "", mbufs.into()),
            ("free clusters".to_owned(), "", clusters.into()),
        ];
        host.extend(self.of_host().gauges());
        let of_adapter = |nic: usize| {
            let free = self.adapters[nic].free_memory();
            let free = free.map(|bytes| ("free memory".to_owned(), "bytes", bytes));
            let counted = self.of_adapter(nic).gauges();
            free.into_iter().chain(counted).collect()
        };
        (host, (0..self.adapters.len()).map(of_adapter).collect())
    }

    /// Returns the number of connections on an adapter.
    pub(in super::super) fn connections(&self, nic: usize) -> u32 {
        self.adapters[nic].connections()
    }

    /// Returns handoffs since the start of the run, or `None` if adapters establish all connections.
    pub(in super::super) fn handoffs(&self) -> Option<HandoffResults> {
        let stats = self.host.stack()?.layer().stats();
        let reasons = stats.not_offloaded.iter();
        Some(HandoffResults {
            attempted: stats.handoffs_attempted,
            accepted: stats.handoffs_accepted,
            restored: stats.restored,
            forwarded: stats.packets_forwarded,
            not_offloaded: counts(reasons.map(|(why, count)| (why.name(), count))),
            offloaded_packets_percent: 0.0,
        })
    }

    /// Starts the measurement.
    pub(in super::super) fn restart_counts(&mut self, now: Time) {
        self.carrier.restart_counts(now);
        for end in &mut self.ends {
            end.link.restart_counts();
        }
        self.before = Before {
            host: self.of_host(),
            adapters: (0..self.adapters.len())
                .map(|nic| self.of_adapter(nic))
                .collect(),
            nic_caches: self.nic_cache_stats(),
            transfers: self.transfers(),
        };
    }

    /// Returns DMAs by direction and bytes by category since the measurement began.
    pub(in super::super) fn accounting(&self) -> Accounting {
        let mut all = Accounting::default();
        for end in &self.ends {
            all += *end.link.accounting();
        }
        all
    }

    /// Returns the counters of an adapter's data cache since the measurement began, or `None` if no cache is used.
    pub(in super::super) fn nic_cache(&self, nic: usize) -> Option<NicCacheResults> {
        let os = &self.ends[nic].os;
        let (now, before) = (os.nic_cache_stats()?, &self.before.nic_caches[nic]);
        Some(of_nic_cache(now, before, os.nic_cache_blocks()))
    }

    fn nic_cache_stats(&self) -> Vec<NicCacheStats> {
        let stats = self
            .ends
            .iter()
            .map(|end| end.os.nic_cache_stats().cloned());
        stats.map(Option::unwrap_or_default).collect()
    }

    /// Returns the use of the interconnect since the measurement began, or `None` if it is ideal.
    pub(in super::super) fn usage(&self, now: Time) -> Option<Usage> {
        self.carrier.usage(now)
    }

    /// Adds the counters of the host's own stack since the measurement began.
    pub(in super::super) fn add_to_host(&self, results: &mut HostResults) {
        let counts = self.of_host().since(&self.before.host);
        results.retransmissions = counts.retransmissions;
        results.timeouts = counts.timeouts;
        results.drops.extend(counts.drops);
    }

    /// Adds the counters of an adapter's TCP and queues since the measurement began to those of other adapters.
    pub(in super::super) fn add_to_nic(&self, nic: usize, results: &mut NicResults) {
        let counts = self.of_adapter(nic).since(&self.before.adapters[nic]);
        results.retransmissions += counts.retransmissions;
        results.timeouts += counts.timeouts;
        for (reason, count) in counts.drops {
            *results.drops.entry(reason).or_default() += count;
        }
        let of_queues = Drops::default();
        complete(&mut results.drops, of_queues.iter().map(|(name, _)| name));
    }

    fn of_host(&self) -> Counts {
        let stack = self.host.stack();
        let stats = stack.map(|stack| stack.tcp_stats().clone());
        let stats = stats.unwrap_or_default();
        let NetworkDrops {
            receive_buffers,
            transmit_buffers,
        } = self.host.drops();
        let dropped = self.ends.iter().map(|end| end.os.stats().packets_dropped);
        let drops = [
            ("transmit_queue", dropped.sum()),
            ("file_shrunk", self.host.files_shrunk()),
            ("receive_buffers", receive_buffers),
            ("transmit_buffers", transmit_buffers),
        ];
        let of_tcp = Refusal::ALL.map(|reason| (snake_case(reason), stats.refused.get(reason)));
        let mut drops = counts(drops.into_iter());
        drops.extend(of_tcp);
        Counts {
            drops,
            ..Counts::of_tcp(&stats)
        }
    }

    fn of_adapter(&self, nic: usize) -> Counts {
        let adapter = &self.adapters[nic];
        let stats = adapter.stats();
        let of_adapter = [
            ("memory", adapter.packets_without_memory()),
            ("no_host_buffer", stats.packets_without_buffer),
            ("host_buffer_too_short", stats.packets_too_long),
        ];
        let of_queues = adapter.drops().into_iter().flat_map(Drops::iter);
        let hardware = adapter.hardware.as_ref();
        let of_hardware =
            hardware.map(|hardware| (Dropped::ReceiveFifo.name(), hardware.dropped()));
        Counts {
            drops: counts(of_queues.chain(of_adapter).chain(of_hardware)),
            ..Counts::of_tcp(adapter.tcp_stats())
        }
    }

    fn transfers(&self) -> OffloadResults {
        let of = |sum: &mut EntriesPerTransfer, queue: &baton_bus::DescriptorQueue| {
            *sum += queue.stats().per_transfer;
        };
        let mut all = OffloadResults::default();
        for (End { os, .. }, adapter) in self.ends.iter().zip(&self.adapters) {
            of(&mut all.host_transfers, os.queue());
            of(&mut all.adapter_transfers, adapter.queue());
        }
        all
    }

    /// Returns the descriptors per transfer since the measurement began.
    pub(in super::super) fn results(&self) -> OffloadResults {
        let (now, before) = (self.transfers(), &self.before.transfers);
        OffloadResults {
            host_transfers: now.host_transfers.since(&before.host_transfers),
            adapter_transfers: now.adapter_transfers.since(&before.adapter_transfers),
        }
    }
}
