//! The server's processor and its measurements.

use super::meter::HostMeter;
use super::names::snake_case;
use crate::config::{Experiment, HostConfig};
use crate::hardware::{ConfigError, Processor};
use crate::results::{Cycles, HostResults, PerPacket};
use baton_host::FileId;
use baton_kernel::{Access, LAYERS, footprint};
use baton_wire::{Span, Time};
use baton_workload::{Content, Workload};

/// A host's processor, which does one piece of work at a time.
#[derive(Debug)]
pub struct HostProcessor {
    meter: HostMeter,
    processor: Processor,
    interrupts: u64,
}

impl HostProcessor {
    /// Creates an idle processor. Without `cost_models`, all work takes no time.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn new(host: &HostConfig, cost_models: bool) -> Result<Self, ConfigError> {
        Ok(Self {
            meter: HostMeter::new(host, cost_models)?,
            processor: Processor::new(&host.processor())?,
            interrupts: 0,
        })
    }

    /// Begins a piece of work, because of interrupts or a timer. Returns the meter to which its cost is reported.
    pub fn begin_piece(&mut self, now: Time, interrupts: usize) -> &mut HostMeter {
        self.meter.begin(self.processor.cycle_at(now));
        for _ in 0..interrupts {
            self.interrupts += 1;
            footprint::interrupt(&mut self.meter);
        }
        &mut self.meter
    }

    /// Ends the piece of work and returns the time at which it is done.
    pub fn end_piece(&mut self, now: Time) -> Time {
        self.processor.run(now, 0, self.meter.spent())
    }

    /// Charges for the time since `since`, or since counting began, during which the processor waited.
    pub fn wait(&mut self, since: Time, now: Time) {
        let since = since.max(self.processor.occupancy.measured_from());
        let cycles = self.processor.cycle_at(now) - self.processor.cycle_at(since);
        self.processor.run(since, 0, cycles);
    }

    /// Models that a device accesses this memory now.
    #[inline]
    pub fn dma(&mut self, now: Time, address: u64, len: u32, access: Access) {
        let cycle = self.processor.cycle_at(now);
        self.meter.dma_at(cycle, address, len, access);
    }

    /// Returns cycles by layer since counting began.
    pub(super) fn layers(&self) -> &[Cycles; LAYERS.len()] {
        &self.meter.layers
    }

    /// Returns the number of interrupts since counting began.
    pub(super) fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// Resets all counters.
    pub fn restart_counts(&mut self, now: Time) {
        self.meter.restart_counts();
        self.processor.occupancy.start_measurement(now);
        self.interrupts = 0;
    }

    /// Returns the busy time since counting began.
    pub(super) fn busy(&self, now: Time) -> Span {
        self.processor.occupancy.busy(now)
    }

    /// Returns the share of the time since counting began in which the processor worked or waited, 0 to 1.
    pub fn utilisation(&self, now: Time) -> f64 {
        self.processor.occupancy.utilisation(now)
    }

    pub(super) fn results(&self, now: Time, host_packets: u64, nic_packets: u64) -> HostResults {
        let busy = self.processor.occupancy.busy(now).as_ps() as f64;
        let idle = self.processor.occupancy.idle(now).as_ps() as f64;
        let layers = self.meter.layers;
        let total: u64 = layers.iter().map(Cycles::total).sum();
        let stack: u64 = LAYERS
            .iter()
            .filter(|layer| layer.is_network_stack())
            .map(|&layer| layers[layer as usize].total())
            .sum();
        let per_packet = |kind: usize, packets: u64| {
            let tally = self.meter.tallies[kind];
            let per = |value: u64| (packets > 0).then(|| value as f64 / packets as f64);
            PerPacket {
                packets,
                cycles: per(tally.cycles),
                instructions: per(tally.executed * u64::from(self.meter.instructions_per_cycle)),
                l2_misses: per(tally.l2_misses),
            }
        };
        let idle_cycles = if busy > 0.0 {
            (total as f64 * idle / busy) as u64
        } else {
            0
        };
        HostResults {
            idle_percent: 100.0 * idle / (busy + idle),
            network_stack_percent: match busy + idle {
                0.0 => f64::NAN,
                _ => 100.0 * stack as f64 / (total + idle_cycles).max(1) as f64,
            },
            layers: LAYERS
                .iter()
                .map(|&l| (snake_case(l), layers[l as usize]))
                .collect(),
            idle_cycles,
            interrupts: self.interrupts,
            host_packets: per_packet(0, host_packets),
            nic_packets: per_packet(1, nic_packets),
            ..HostResults::default()
        }
    }
}

/// Returns the content of the file cache when a run begins: the result of one pass over a log, or all files of a workload without end.
pub(super) fn preloaded(experiment: &Experiment, workload: &dyn Workload) -> Vec<(FileId, u64)> {
    if !experiment.run.preload || experiment.host.kernel.file_cache.kib == 0 {
        return Vec::new();
    }
    let references = workload.references();
    if references.is_empty() {
        let sizes = (0..).zip(workload.files().sizes());
        return sizes.map(|(file, &bytes)| (FileId(file), bytes)).collect();
    }
    let requests = references
        .iter()
        .filter(|request| request.content == Content::Static);
    requests
        .map(|request| (FileId(request.file), request.bytes))
        .collect()
}
