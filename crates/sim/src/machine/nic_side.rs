//! The NIC's processor with its firmware: one piece of work at a time.

use super::delay::Delays;
use super::meter::NicMeter;
use super::names::{since, snake_case};
use crate::config::{Experiment, Invalid};
use crate::hardware::NicProcessor;
use crate::results::{NicResults, TaskResults};
use baton_nic::{Firmware, TASKS, Task};
use baton_wire::{Span, Symbolic, Time};
use std::collections::BTreeMap;

/// The NIC without its rings.
pub(super) struct NicSide {
    pub(super) firmware: Firmware<Symbolic>,
    pub(super) meter: NicMeter,
    processor: NicProcessor,
    pub(super) busy: bool,
    pub(super) interrupt_count: usize,
    pub(super) interrupt_delay: Span,
    pub(super) send_delay: Delays,
    pub(super) receive_delay: Delays,
    /// Frames of host connections, in both directions.
    pub(super) host_packets: u64,
    /// Frames of offloaded connections that were sent.
    pub(super) nic_packets_sent: u64,
    drops_before: BTreeMap<String, u64>,
    retransmissions_before: u64,
    timeouts_before: u64,
}

impl NicSide {
    pub(super) fn new(experiment: &Experiment, seed: u64) -> Result<Self, Invalid> {
        let nic = &experiment.nic;
        let mut firmware: Firmware<Symbolic> = Firmware::new(
            nic.firmware.clone(),
            experiment.tcp.clone(),
            seed ^ 0x0f1c_4a4e,
        );
        if nic.store_bytes {
            firmware
                .cache_region_mut()
                .mirror(baton_apps::symbolic::render);
        }
        Ok(Self {
            firmware,
            meter: NicMeter::new(nic, experiment.run.cost_models),
            processor: NicProcessor::new(&nic.processor()).map_err(|e| e.within("nic"))?,
            busy: false,
            interrupt_count: nic.interrupt.count as usize,
            interrupt_delay: Span::from_us(nic.interrupt.delay_us),
            send_delay: Delays::new(),
            receive_delay: Delays::new(),
            host_packets: 0,
            nic_packets_sent: 0,
            drops_before: BTreeMap::new(),
            retransmissions_before: 0,
            timeouts_before: 0,
        })
    }

    /// Does the next piece of work; gives the moment it ends, or nothing when there is none.
    pub(super) fn work(&mut self, now: Time) -> Option<Time> {
        self.firmware.poll_work(now, &mut self.meter)?;
        let instructions = self.meter.take_spent();
        Some(if instructions == 0 {
            now
        } else {
            self.processor.run(now, instructions)
        })
    }

    /// When all that the meter has heard of since the last piece of work is done: some time later, so that time goes on.
    pub(super) fn spend(&mut self, now: Time) -> Time {
        let instructions = self.meter.take_spent();
        self.processor.run(now, instructions.max(1))
    }

    /// A packet of the host is on the wire, after so long on the NIC.
    pub(super) fn count_host_packet_sent(&mut self, delay: Span) {
        self.host_packets += 1;
        self.send_delay.record(delay);
    }

    /// A received packet is on its way to the host, after so long on the NIC.
    pub(super) fn count_host_packet_received(&mut self, delay: Span) {
        self.host_packets += 1;
        self.receive_delay.record(delay);
    }

    /// Frames of offloaded connections in both directions.
    pub(super) fn nic_packets(&self) -> u64 {
        self.nic_packets_sent + self.meter.counts[Task::Receive as usize]
    }

    /// Connections on it at this moment.
    pub(super) fn connections_now(&self) -> f64 {
        f64::from(self.firmware.connections())
    }

    /// Forgets what was counted so far.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.meter.restart_counts();
        self.processor.start_measurement(now);
        self.send_delay.clear();
        self.receive_delay.clear();
        self.host_packets = 0;
        self.nic_packets_sent = 0;
        self.drops_before = self.drops();
        self.retransmissions_before = self.firmware.tcp_stats().retransmissions;
        self.timeouts_before = self.firmware.tcp_stats().timeouts;
    }

    fn drops(&self) -> BTreeMap<String, u64> {
        let drops = &self.firmware.stats().dropped;
        BTreeMap::from([
            ("arrival_queue".to_owned(), drops.arrival_queue),
            ("host_receive_queue".to_owned(), drops.host_receive_queue),
            ("nic_receive_queue".to_owned(), drops.nic_receive_queue),
            ("memory".to_owned(), drops.memory),
        ])
    }

    /// What all of `nics` together did, at least one: sums, and shares of the time of all.
    pub(super) fn results(nics: &[&Self], now: Time, connections_mean: f64) -> NicResults {
        let sum = |value: &dyn Fn(&Self) -> u64| nics.iter().map(|nic| value(nic)).sum::<u64>();
        let busy = sum(&|nic| nic.processor.busy(now).as_ps()) as f64;
        let idle = sum(&|nic| nic.processor.idle(now).as_ps()) as f64;
        let task = |&task: &Task| {
            let count = |nic: &Self| nic.meter.counts[task as usize];
            let results = TaskResults {
                count: sum(&count),
                instructions: sum(&|nic| count(nic) * nic.meter.cost(task)),
            };
            (snake_case(task), results)
        };
        let mut drops = BTreeMap::new();
        for nic in nics {
            for (reason, count) in since(&nic.drops_before, nic.drops()) {
                *drops.entry(reason).or_default() += count;
            }
        }
        NicResults {
            idle_percent: 100.0 * idle / (busy + idle).max(1.0),
            tasks: TASKS.iter().map(task).collect(),
            send_delay_us: Delays::joined(nics.iter().map(|nic| &nic.send_delay)).distribution(1e3),
            receive_delay_us: Delays::joined(nics.iter().map(|nic| &nic.receive_delay))
                .distribution(1e3),
            drops,
            connections_mean,
            retransmissions: sum(&|nic| {
                nic.firmware.tcp_stats().retransmissions - nic.retransmissions_before
            }),
            timeouts: sum(&|nic| nic.firmware.tcp_stats().timeouts - nic.timeouts_before),
        }
    }
}
