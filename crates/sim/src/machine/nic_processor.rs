//! The NIC's processor, and what is measured of it.

use super::delay::Delays;
use super::meter::NicMeter;
use super::names::snake_case;
use crate::config::{Experiment, Invalid};
use crate::hardware;
use crate::results::{NicResults, TaskResults};
use baton_nic::{TASKS, Task};
use baton_wire::{Span, Time};

/// A NIC's processor.
pub(super) struct NicProcessor {
    pub(super) meter: NicMeter,
    processor: hardware::NicProcessor,
    pub(super) send_delay: Delays,
    pub(super) receive_delay: Delays,
    /// Frames of host connections, in both directions.
    pub(super) host_packets: u64,
    /// Frames of offloaded connections that were sent.
    pub(super) nic_packets_sent: u64,
}

impl NicProcessor {
    pub(super) fn new(experiment: &Experiment) -> Result<Self, Invalid> {
        let nic = &experiment.nic;
        Ok(Self {
            meter: NicMeter::new(nic, experiment.run.cost_models),
            processor: hardware::NicProcessor::new(&nic.processor())
                .map_err(|e| e.within("nic"))?,
            send_delay: Delays::new(),
            receive_delay: Delays::new(),
            host_packets: 0,
            nic_packets_sent: 0,
        })
    }

    /// When all that the meter has heard of since the last piece of work is done.
    pub(super) fn spend(&mut self, now: Time) -> Time {
        let instructions = self.meter.take_spent();
        self.processor.run(now, instructions)
    }

    /// Time worked since the measurement began.
    pub(super) fn busy(&self, now: Time) -> Span {
        self.processor.busy(now)
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

    /// Forgets what was counted so far.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.meter.restart_counts();
        self.processor.start_measurement(now);
        self.send_delay.clear();
        self.receive_delay.clear();
        self.host_packets = 0;
        self.nic_packets_sent = 0;
    }

    /// What all of `nics` together did, at least one: sums, and shares of the time of all. What their TCP and queues did is not known here.
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
        NicResults {
            idle_percent: 100.0 * idle / (busy + idle),
            tasks: TASKS.iter().map(task).collect(),
            send_delay_us: Delays::joined(nics.iter().map(|nic| &nic.send_delay)).distribution(1e3),
            receive_delay_us: Delays::joined(nics.iter().map(|nic| &nic.receive_delay))
                .distribution(1e3),
            connections_mean,
            ..NicResults::default()
        }
    }
}
