//! Sockets on the adapter, by descriptors: all of TCP is there (full offload, the batching paper), or the connections that the host has
//! handed off (handoff-policies).
//!
//! Host and adapter are the live ones' code, [`baton_host::offload`] and [`baton_nic::offload`]; here they meet over a link on which
//! crossings take time and are counted, and each is a process that sleeps, wakes up, and works: all that is there in one piece, as in the
//! batching paper, or one thing at a time, as the firmware of the handoff papers. What a piece of work sends leaves when it is done.

mod adapter_process;
mod carrier;
mod data;
mod data_cache;
mod file_system;
mod host_process;
mod host_stack;
mod link;
mod metered;
mod stack_meter;
mod worker;

use super::builder::Policies;
use super::cache_counts;
use super::changes::Change;
use super::host_side::HostSide;
use super::names::{counts, since};
use super::nic_side::NicSide;
use crate::config::{Experiment, Invalid, OffloadConfig, Piece};
use crate::results::{HandoffResults, NicCacheResults, OffloadResults, Sample};
use adapter_process::AdapterProcess;
use baton_bus::interconnect::{InterconnectConfig, Usage};
use baton_bus::link::LinkError;
use baton_bus::{Accounting, BytesByCategory, EntriesPerTransfer};
use baton_host::{DiskRead, FileCacheStats, NicCacheStats};
use baton_nic::Drops;
use baton_tcp::Segment;
use baton_wire::{Symbolic, Time};
use baton_workload::Workload;
use host_process::HostProcess;
use host_stack::HostStack;
use link::SimulatedLink;
use std::collections::BTreeMap;

/// Both processes and what lies between them.
pub(super) struct Offload {
    adapter: AdapterProcess,
    link: SimulatedLink,
    host: HostProcess,
    /// The interconnect is not ideal.
    takes_time: bool,
    before: Before,
}

/// What was counted before measurement began.
#[derive(Default)]
struct Before {
    sent_again: [SentAgain; 2],
    drops: [BTreeMap<String, u64>; 2],
    host_transfers: EntriesPerTransfer,
    adapter_transfers: EntriesPerTransfer,
    nic_cache: NicCacheStats,
}

/// What a stack had to send again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentAgain {
    pub(super) segments: u64,
    pub(super) timeouts: u64,
}

impl SentAgain {
    fn since(&self, before: &Self) -> Self {
        Self {
            segments: self.segments - before.segments,
            timeouts: self.timeouts - before.timeouts,
        }
    }
}

impl Offload {
    /// A server that is about to listen.
    ///
    /// # Errors
    /// One of its parts cannot be.
    pub(super) fn new(
        experiment: &Experiment,
        config: &OffloadConfig,
        policies: &mut Policies,
        workload: &dyn Workload,
    ) -> Result<Self, Invalid> {
        let interface = &config.adapter.interface;
        let make = policies.load_control.as_ref();
        let governor = make.map(|make| make(interface.hard_limit));
        let make = policies.scheduler.as_ref();
        let schedule = make.map(|make| make(interface.hard_limit));
        let mut offload = Self {
            adapter: AdapterProcess::new(experiment, &config.adapter, governor, schedule)?,
            link: SimulatedLink::new(
                &config.link,
                &experiment.interconnect,
                interface.ring_depth,
                interface.batching.max_transfer_bytes,
            )?,
            host: HostProcess::new(
                experiment,
                &config.host,
                config.established_by,
                policies,
                workload,
            )?,
            takes_time: experiment.interconnect != InterconnectConfig::Ideal,
            before: Before::default(),
        };
        if config.host.piece == Piece::One {
            offload.link.get_one_by_one();
        }
        if let (Piece::One, Some(stack)) = (config.adapter.piece, offload.host.stack()) {
            offload.link.leave_out(stack.packets().0);
        }
        if let Some(make) = &policies.batching {
            let host = config.host.interface.ring_depth;
            offload.host.set_batching(make(host));
            offload.adapter.set_batching(make(interface.ring_depth));
        }
        Ok(offload)
    }

    /// A frame has come off the wire.
    pub(super) fn receive(&mut self, now: Time, segment: Segment<Symbolic>) {
        self.adapter.receive(now, data::from_wire(segment));
    }

    /// When something happens next that nobody outside causes.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let all = [
            self.adapter.poll_timeout(),
            self.link.poll_timeout(),
            self.host.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Lets everybody do what is due now, always in the same order. Frames that leave by it go to `send`.
    ///
    /// # Errors
    /// One side broke a rule of the link.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        host: &mut HostSide,
        nic: &mut NicSide,
        mut send: impl FnMut(Segment<Symbolic>),
    ) -> Result<(), LinkError> {
        self.adapter.end_work(now, &mut self.link, nic, |segment| {
            send(data::to_wire(&segment));
        })?;
        self.host.end_work(now, &mut self.link);
        self.link.handle_timeout(now);
        while let Some(token) = self.link.poll_from_disk() {
            self.host.handle_disk(token);
        }
        self.adapter.look_at(now, &mut self.link)?;
        self.host.look_at(now, &self.link);
        self.adapter.begin_work(now, &mut self.link, nic)?;
        self.host.begin_work(now, &mut self.link, host)
    }

    /// A disk has done the read of this token: its data goes into the host's memory.
    pub(super) fn write_from_disk(&mut self, now: Time, token: u64, bytes: BytesByCategory) {
        match self.takes_time {
            true => self.link.write_from_disk(now, token, bytes),
            false => self.host.handle_disk(token),
        }
    }

    /// The next read for the disks.
    pub(super) fn poll_disk(&mut self) -> Option<DiskRead> {
        self.host.poll_disk()
    }

    /// A change of a file that happened since this was last asked.
    pub(super) fn poll_change(&mut self) -> Option<Change> {
        self.host.poll_change()
    }

    /// What the file cache did; none where all files are in memory.
    pub(super) fn file_cache_stats(&self) -> Option<&FileCacheStats> {
        self.host.file_cache_stats()
    }

    /// Connections, frames that wait at the adapter, and Soft_Limit: 0 where the adapter has all connections anyway.
    pub(super) fn sample(&self) -> Sample {
        let (adapter, stack) = (&self.adapter, self.host.stack());
        Sample {
            open: adapter.connections() + stack.map_or(0, HostStack::connections),
            connections: adapter.connections(),
            qlen: adapter.qlen(),
            soft_limit: stack.map_or(0, |_| adapter.soft_limit()),
            ..Sample::default()
        }
    }

    /// Handoffs since the start of the run; none where the adapter establishes all connections.
    pub(super) fn handoffs(&self) -> Option<HandoffResults> {
        let stats = self.host.stack()?.stats();
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

    /// Measurement begins.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.link.restart_counts(now);
        self.before = Before {
            sent_again: self.sent_again_in_all(),
            drops: self.drops_in_all(),
            host_transfers: self.host.queue().stats().per_transfer,
            adapter_transfers: self.adapter.queue().stats().per_transfer,
            nic_cache: (self.host.nic_cache())
                .map(|(stats, _)| stats.clone())
                .unwrap_or_default(),
        };
    }

    /// DMAs by direction and bytes by category since measurement began.
    pub(super) fn accounting(&self) -> Accounting {
        *self.link.accounting()
    }

    /// What the data cache did since measurement began; nothing where none is used.
    pub(super) fn nic_cache(&self) -> Option<NicCacheResults> {
        let (now, blocks) = self.host.nic_cache()?;
        Some(cache_counts::of_nic_cache(
            now,
            &self.before.nic_cache,
            blocks,
        ))
    }

    /// How the interconnect was used since measurement began; none where it is ideal.
    pub(super) fn usage(&mut self, now: Time) -> Option<Usage> {
        self.takes_time.then(|| self.link.usage(now))
    }

    /// Segments that the host and the adapter have sent again since measurement began, and their retransmission timeouts.
    pub(super) fn sent_again(&self) -> [SentAgain; 2] {
        let [host, adapter] = &self.before.sent_again;
        let now = self.sent_again_in_all();
        [now[0].since(host), now[1].since(adapter)]
    }

    /// Packets that the host and the adapter have dropped since measurement began, by reason.
    pub(super) fn drops(&self) -> [BTreeMap<String, u64>; 2] {
        let [host, adapter] = self.drops_in_all();
        [
            since(&self.before.drops[0], host),
            since(&self.before.drops[1], adapter),
        ]
    }

    fn drops_in_all(&self) -> [BTreeMap<String, u64>; 2] {
        let (host, adapter) = (self.host.stats(), self.adapter.stats());
        let of_host = [
            ("transmit_queue", host.packets_dropped),
            ("file_shrunk", self.host.files_shrunk()),
        ];
        let of_sockets = [
            ("no_host_buffer", adapter.packets_without_buffer),
            ("host_buffer_too_short", adapter.packets_too_long),
        ];
        let of_queues = self.adapter.drops().into_iter().flat_map(Drops::iter);
        [
            counts(of_host.into_iter()),
            counts(of_sockets.into_iter().chain(of_queues)),
        ]
    }

    fn sent_again_in_all(&self) -> [SentAgain; 2] {
        let of_host = self.host.stack().map(HostStack::tcp_stats);
        [of_host, Some(self.adapter.tcp_stats())].map(|stats| {
            stats.map_or(SentAgain::default(), |stats| SentAgain {
                segments: stats.retransmissions,
                timeouts: stats.timeouts,
            })
        })
    }

    pub(super) fn results(&self) -> OffloadResults {
        let host = self.host.queue().stats().per_transfer;
        let adapter = self.adapter.queue().stats().per_transfer;
        OffloadResults {
            host_transfers: host.since(&self.before.host_transfers),
            adapter_transfers: adapter.since(&self.before.adapter_transfers),
        }
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.adapter.check();
        self.link.check();
        self.host.check();
    }
}
