//! Worlds of all kinds.

use super::Random;
use crate::patient::patient;
use baton_cache::{AdmissionConfig, ReplacementConfig};
use baton_host::{
    AffinityConfig, CoherenceConfig, Config, FileCacheConfig, NicCacheConfig, SelectionConfig,
};
use baton_nic::{CacheConfig, LoadControl, Relief, Scheduler, Transmit};

fn one_of<T: Copy>(choices: &[T], random: &mut Random) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

pub fn tcp(random: &mut Random) -> baton_tcp::Config {
    baton_tcp::Config {
        send_buffer: 3000 + random.below(40_000) as u32,
        receive_buffer: 4000 + random.below(60_000) as u32,
        timestamps: random.percent(50),
        sack: random.percent(50),
        nagle: random.percent(50),
        ..patient()
    }
}

/// The host. `handoff`: some connections go to the NIC.
pub fn host(handoff: bool, random: &mut Random) -> Config {
    let selection = match random.below(3) {
        _ if !handoff => SelectionConfig::Never,
        0 => SelectionConfig::Fcfs,
        _ => SelectionConfig::Threshold {
            enqueues: random.below(6) as u32,
        },
    };
    let admissions = [
        AdmissionConfig::All,
        AdmissionConfig::All,
        AdmissionConfig::SECOND_REQUEST,
        AdmissionConfig::TINY_LFU,
    ];
    Config {
        backlog: 8,
        hash_buckets: 16,
        receive_ring_entries: 8,
        transmit_ring_entries: 8,
        selection,
        mbufs: if random.percent(20) { 80 } else { 100_000 },
        file_cache: FileCacheConfig {
            kib: one_of(&[0, 64, 80, 128], random),
            replacement: one_of(&ReplacementConfig::ALL, random),
            blocking: random.percent(50),
            read_pages: 1 + random.below(6) as u32,
            reads: 1 + random.below(3) as u32,
        },
        nic_cache: NicCacheConfig {
            enabled: random.percent(95),
            block_bytes: one_of(&[512, 1024, 2048, 4096, 4096, 8192, 16_384], random),
            replacement: one_of(&ReplacementConfig::ALL, random),
            admission: one_of(&admissions, random),
            coherence: one_of(&CoherenceConfig::ALL, random),
        },
        affinity: one_of(
            &[
                AffinityConfig::Arrival,
                AffinityConfig::MostCached,
                AffinityConfig::ByFile,
            ],
            random,
        ),
        ..Config::default()
    }
}

pub fn nic(handoff: bool, random: &mut Random) -> baton_nic::Config {
    baton_nic::Config {
        hard_limit: if handoff {
            1 + random.below(5) as u32
        } else {
            0
        },
        scheduler: one_of(&[Scheduler::Fcfs, Scheduler::HostFirst], random),
        load_control: LoadControl {
            enabled: random.percent(20),
            high_water_packets: 4,
            low_water_packets: 2,
            relief: one_of(&[Relief::Active, Relief::Passive], random),
            ..LoadControl::default()
        },
        memory_kib: 2048,
        descriptor_queue_entries: if random.percent(30) { 4 } else { 512 },
        cache: CacheConfig {
            kib: one_of(&[0, 4, 16, 32, 64, 256], random),
            transmit: one_of(&[Transmit::Gather, Transmit::Copy], random),
            ..CacheConfig::default()
        },
        ..baton_nic::Config::default()
    }
}
