//! What a snapshot contains about the adapter process.

use super::rows::ApplicationRow;
use super::service::AdapterService;
use crate::snapshot::{SnapshotSource, add_fields, snake_case};
use baton_nic::Drops;
use baton_tcp::ConnId;
use baton_wire::Time;
use std::collections::BTreeMap;

impl AdapterService {
    /// Adds the lengths of the queues and the counts of drops, if there are queues.
    fn add_queues(&self, counters: &mut BTreeMap<String, u64>) {
        let process = &self.process;
        if process.does_all() {
            return;
        }
        let drops = Drops {
            memory: self.adapter().packets_without_memory(),
            ..process.drops().clone()
        };
        for (reason, count) in drops.iter() {
            counters.insert(format!("adapter.dropped.{reason}"), count);
        }
        let lengths = process.queue_lengths();
        for (queue, len) in [
            ("arrivals", lengths.arrivals),
            ("host_receive", lengths.host_receive),
            ("nic_receive", lengths.nic_receive),
            ("host_send", lengths.host_send),
            ("commands", lengths.commands),
        ] {
            counters.insert(format!("adapter.waiting.{queue}"), len as u64);
        }
    }
}

impl SnapshotSource for AdapterService {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        let stats = self.stats();
        let mapped = self
            .attached()
            .map(|application| application.memory_bytes());
        for (name, value) in [
            ("attached", stats.attached),
            ("attached_now", self.attached().count() as u64),
            ("left", stats.left),
            ("cut_off", stats.cut_off.total()),
            ("not_attached", stats.not_attached),
            ("shared_bytes", mapped.sum()),
            ("reclaimed_bytes", stats.reclaimed_bytes),
            ("hidden_notices", self.hidden_notices()),
        ] {
            counters.insert(format!("applications.{name}"), value);
        }
        if let Some(beside) = &self.beside {
            add_fields("beside", beside.stats(), counters);
            add_fields("captured", &beside.captured(), counters);
        }
        if let Some(siblings) = &self.siblings {
            add_fields("engines", siblings.stats(), counters);
            // The sum over all engines is their number.
            counters.insert("engines.count".to_owned(), 1);
        }
        for (reason, count) in stats.cut_off.iter() {
            counters.insert(format!("applications.cut_off.{reason}"), count);
        }
        let refusals = self
            .listeners()
            .into_iter()
            .flat_map(|listeners| listeners.refusals());
        for (refusal, count) in refusals {
            // The name of the variant without its fields.
            let name = snake_case(refusal);
            let name = name.split([' ', '(']).next().unwrap_or_default();
            *counters
                .entry(format!("applications.refused.{name}"))
                .or_default() += count;
        }
        let adapter = self.adapter();
        let totals = adapter.stats();
        add_fields("adapter", &totals, counters);
        for (status, count) in totals.by_status.iter() {
            counters.insert(format!("adapter.answered.{}", snake_case(status)), count);
        }
        for row in adapter.sessions() {
            for (name, bytes) in [
                ("adapter.cache_bytes", row.cache_bytes),
                ("adapter.cached_bytes", row.cached_bytes),
            ] {
                *counters.entry(name.to_owned()).or_default() += u64::from(bytes);
            }
        }
        counters.insert("adapter.orphans".to_owned(), adapter.orphans() as u64);
        self.add_queues(counters);
    }

    fn applications(&self, now: Time) -> Vec<ApplicationRow> {
        let adapter = self.adapter();
        self.attached()
            .map(|application| application.row(now, adapter))
            .collect()
    }

    fn application_of(&self, conn: ConnId) -> Option<u32> {
        let session = self.adapter().session_of(conn)?;
        Some(self.number_of(session))
    }
}
