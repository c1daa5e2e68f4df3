//! The NIC's processor and its measurements.

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
    /// Frames of host connections, both directions.
    pub(super) host_packets: u64,
    /// Frames sent for offloaded connections.
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

    /// Charges the work reported to the meter since the last call, and returns when it is done.
    pub(super) fn spend(&mut self, now: Time) -> Time {
        let instructions = self.meter.take_spent();
        self.processor.run(now, instructions)
    }

    /// Returns the busy time since the measurement began.
    pub(super) fn busy(&self, now: Time) -> Span {
        self.processor.occupancy.busy(now)
    }

    /// Counts a packet of the host that was put on the wire, after `delay` on the NIC.
    pub(super) fn count_host_packet_sent(&mut self, delay: Span) {
        self.host_packets += 1;
        self.send_delay.record(delay);
    }

    /// Counts a received packet that was passed to the host, after `delay` on the NIC.
    pub(super) fn count_host_packet_received(&mut self, delay: Span) {
        self.host_packets += 1;
        self.receive_delay.record(delay);
    }

    /// Returns the number of frames of offloaded connections, both directions.
    pub(super) fn nic_packets(&self) -> u64 {
        self.nic_packets_sent + self.meter.counts[Task::Receive as usize]
    }

    /// Resets all counters.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.meter.restart_counts();
        self.processor.occupancy.start_measurement(now);
        self.send_delay.clear();
        self.receive_delay.clear();
        self.host_packets = 0;
        self.nic_packets_sent = 0;
    }

    /// Returns the combined results of `nics`, at least one: sums, and shares of the total time. Counters of TCP and of queues are not
    /// known here.
    pub(super) fn results(nics: &[&Self], now: Time, connections_mean: f64) -> NicResults {
        let sum = |value: &dyn Fn(&Self) -> u64| nics.iter().map(|nic| value(nic)).sum::<u64>();
        let busy = sum(&|nic| nic.processor.occupancy.busy(now).as_ps()) as f64;
        let idle = sum(&|nic| nic.processor.occupancy.idle(now).as_ps()) as f64;
        let task = |&task: &Task| {
            let count = |nic: &Self| nic.meter.counts[task as usize];
            let results = TaskResults {
                count: sum(&count),
                instructions: sum(&|nic| nic.meter.by_task[task as usize]),
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
