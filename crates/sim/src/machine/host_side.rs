//! The server's processor with its kernel and web server: one piece of work at a time.

use super::application::{self, Application};
use super::builder::Policies;
use super::meter::HostMeter;
use super::names::{counts, since, snake_case};
use super::port::Port;
use super::subnets;
use crate::config::{ApplicationConfig, Experiment, Invalid};
use crate::hardware::Processor;
use crate::results::{Cycles, HostResults, PerPacket};
use baton_host::{FileId, Kernel, LAYERS, NicId, Ready, footprint};
use baton_wire::{Span, Symbolic, Time};
use baton_workload::Workload;
use std::collections::{BTreeMap, VecDeque};

/// The server without its NICs.
pub(super) struct HostSide {
    pub(super) kernel: Kernel<Symbolic>,
    pub(super) meter: HostMeter,
    pub(super) application: Application,
    processor: Processor,
    /// NICs whose interrupts were raised and not yet taken, in order.
    interrupts_pending: VecDeque<u8>,
    /// The interrupt handler is emptying the ring of this NIC.
    in_handler: Option<u8>,
    /// Reads that the disks are done with and the kernel was not told of.
    disk_interrupts: VecDeque<u64>,
    ready: VecDeque<Ready>,
    ready_batch: Vec<Ready>,
    wait_events: usize,
    pub(super) busy: bool,
    interrupts: u64,
    drops_before: BTreeMap<String, u64>,
    retransmissions_before: u64,
    timeouts_before: u64,
}

impl HostSide {
    /// A server at rest, to be asked for what `workload` asks for; `nics` is the experiment as each of its NICs sees it.
    pub(super) fn new(
        experiment: &Experiment,
        nics: &[Experiment],
        workload: &dyn Workload,
        policies: Policies,
    ) -> Result<Self, Invalid> {
        let host = &experiment.host;
        let mut config = host.kernel.clone();
        // Without memory set aside on the NICs there is nothing to look up.
        config.nic_cache.enabled = nics.iter().any(|of_nic| of_nic.nic_cache().enabled);
        let knows_files = config.nic_cache.enabled || config.file_cache.kib > 0;
        let mut kernel = Kernel::new(
            config,
            experiment.tcp.clone(),
            experiment.run.seed ^ 0x5e17_e700,
        );
        let coherence = policies.coherence.map(|make| make());
        kernel.set_policies(policies.selection, coherence, policies.affinity);
        if let Some(make) = policies.replacement {
            kernel.set_replacement(move |blocks| make(blocks));
        }
        let changes_files = !matches!(
            experiment.application,
            ApplicationConfig::Web(_) | ApplicationConfig::Pages(_)
        );
        if knows_files || changes_files {
            let files = application::files(&experiment.application);
            kernel.set_file_store(Box::new(files));
        }
        if let Some(file) = application::transient_file(&experiment.application) {
            kernel.set_transient(file);
        }
        if experiment.offload.is_none() {
            for (file, bytes) in preloaded(experiment, workload) {
                kernel.preload(file, bytes);
            }
        }
        for (nic, of_nic) in (0..).zip(nics) {
            let address = subnets::server(nic);
            if experiment.offload.is_none() {
                kernel.listen(address);
            }
            kernel.attach_nic(address.addr, of_nic.nic.firmware.hard_limit);
        }
        Ok(Self {
            application: Application::new(&experiment.application),
            kernel,
            meter: HostMeter::new(host, experiment.run.cost_models)?,
            processor: Processor::new(&host.processor()).map_err(|e| e.within("host"))?,
            interrupts_pending: VecDeque::with_capacity(nics.len()),
            in_handler: None,
            disk_interrupts: VecDeque::new(),
            ready: VecDeque::new(),
            ready_batch: Vec::new(),
            wait_events: host.wait_events as usize,
            busy: false,
            interrupts: 0,
            drops_before: BTreeMap::new(),
            retransmissions_before: 0,
            timeouts_before: 0,
        })
    }

    /// The NIC may interrupt: no earlier interrupt of it is being handled.
    pub(super) fn takes_interrupts(&self, nic: u8) -> bool {
        self.in_handler != Some(nic) && !self.interrupts_pending.contains(&nic)
    }

    pub(super) fn raise_interrupt(&mut self, nic: u8) {
        debug_assert!(
            self.takes_interrupts(nic),
            "the NIC waits until its last interrupt was handled"
        );
        self.interrupts_pending.push_back(nic);
    }

    /// The disks are done with a read.
    pub(super) fn disk_interrupt(&mut self, token: u64) {
        self.disk_interrupts.push_back(token);
    }

    /// Does the next piece of work, most urgent first: ring, interrupt, timers, application. Gives the moment it ends,
    /// or nothing when there is nothing to do.
    pub(super) fn work(&mut self, now: Time, ports: &mut [Port]) -> Option<Time> {
        self.meter.begin(self.processor.cycle_at(now));
        if let Some(nic) = self.in_handler {
            match ports[nic as usize].ring.pop() {
                Some(upcall) => {
                    self.kernel
                        .handle_upcall(now, NicId(nic), upcall, &mut self.meter);
                    return Some(self.charge(now, ports));
                }
                None => self.in_handler = None,
            }
        }
        if let Some(nic) = self.interrupts_pending.pop_front() {
            self.in_handler = Some(nic);
            self.interrupts += 1;
            self.kernel.handle_interrupt(&mut self.meter);
        } else if let Some(token) = self.disk_interrupts.pop_front() {
            self.interrupts += 1;
            self.kernel.handle_disk(token, &mut self.meter);
        } else if self.kernel.poll_timeout().is_some_and(|due| due <= now) {
            self.kernel.handle_timeouts(now, &mut self.meter);
        } else if !self.application(now) {
            return None;
        }
        Some(self.charge(now, ports))
    }

    /// A piece of work for sockets on the adapter begins, by interrupts or a timer; what it costs goes to this meter.
    pub(super) fn begin_piece(&mut self, now: Time, interrupts: usize) -> &mut HostMeter {
        self.meter.begin(self.processor.cycle_at(now));
        for _ in 0..interrupts {
            self.interrupts += 1;
            footprint::interrupt(&mut self.meter);
        }
        &mut self.meter
    }

    /// When that piece ends: some time later, so that time goes on.
    pub(super) fn end_piece(&mut self, now: Time) -> Time {
        let (executed, stalled) = self.meter.spent();
        self.processor.run(now, executed.max(1), stalled)
    }

    /// When something is due that nobody else causes.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let application = self
            .application
            .poll_timeout()
            .filter(|_| !self.kernel.application_sleeps());
        match (self.kernel.poll_timeout(), application) {
            (Some(kernel), Some(application)) => Some(kernel.min(application)),
            (kernel, application) => kernel.or(application),
        }
    }

    /// One step of the application; false when it has nothing to do.
    fn application(&mut self, now: Time) -> bool {
        if self.kernel.application_sleeps() {
            return false;
        }
        if let Some(ready) = self.ready.pop_front() {
            let mut system = self.kernel.sockets(now, &mut self.meter);
            self.application.step(now, &mut system, ready);
            return true;
        }
        let due = self.application.poll_timeout();
        if due.is_some_and(|due| due <= now) {
            let mut system = self.kernel.sockets(now, &mut self.meter);
            self.application.handle_timeout(now, &mut system);
            return true;
        }
        let mut system = self.kernel.sockets(now, &mut self.meter);
        if self.application.serve_next(now, &mut system) {
            return true;
        }
        if !self.kernel.has_ready() {
            return false;
        }
        self.ready_batch.clear();
        self.kernel
            .wait(&mut self.meter, &mut self.ready_batch, self.wait_events);
        self.ready.extend(self.ready_batch.drain(..));
        true
    }

    /// Lets the piece of work that began at `now` take its time; what it posted is posted as it goes along.
    fn charge(&mut self, now: Time, ports: &mut [Port]) -> Time {
        let (executed, stalled) = self.meter.spent();
        let cycles = executed + stalled;
        let end = if cycles == 0 {
            now
        } else {
            self.processor.run(now, executed, stalled)
        };
        while let Some((nic, descriptor)) = self.kernel.poll_descriptor() {
            let (executed, stalled) = self.meter.next_posted();
            let share = u128::from((end - now).as_ps()) * u128::from(executed + stalled);
            let after = Span::from_ps((share / u128::from(cycles.max(1))) as u64);
            ports[nic.0 as usize].outbox.post(now + after, descriptor);
        }
        end
    }

    /// Forgets what was counted so far.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.meter.restart_counts();
        self.processor.start_measurement(now);
        self.interrupts = 0;
        self.drops_before = counts(self.kernel.stats().drops());
        self.retransmissions_before = self.kernel.tcp_stats().retransmissions;
        self.timeouts_before = self.kernel.tcp_stats().timeouts;
    }

    pub(super) fn results(&self, now: Time, host_packets: u64, nic_packets: u64) -> HostResults {
        let busy = self.processor.busy(now).as_ps() as f64;
        let idle = self.processor.idle(now).as_ps() as f64;
        let all = (busy + idle).max(1.0);
        let layers = self.meter.layers;
        let total: u64 = layers.iter().map(Cycles::total).sum();
        let stack: u64 = LAYERS
            .iter()
            .filter(|layer| layer.is_network_stack())
            .map(|&layer| layers[layer as usize].total())
            .sum();
        let per_packet = |kind: usize, packets: u64| {
            let tally = self.meter.tallies[kind];
            let per = |value: u64| {
                if packets == 0 {
                    0.0
                } else {
                    value as f64 / packets as f64
                }
            };
            PerPacket {
                packets,
                cycles: per(tally.cycles),
                instructions: per(tally.instructions),
                l2_misses: per(tally.l2_misses),
            }
        };
        let idle_cycles = if busy > 0.0 {
            (total as f64 * idle / busy) as u64
        } else {
            0
        };
        HostResults {
            idle_percent: 100.0 * idle / all,
            network_stack_percent: 100.0 * stack as f64 / (total + idle_cycles).max(1) as f64,
            layers: LAYERS
                .iter()
                .map(|&l| (snake_case(l), layers[l as usize]))
                .collect(),
            idle_cycles,
            interrupts: self.interrupts,
            host_packets: per_packet(0, host_packets),
            nic_packets: per_packet(1, nic_packets),
            drops: since(&self.drops_before, counts(self.kernel.stats().drops())),
            retransmissions: self.kernel.tcp_stats().retransmissions - self.retransmissions_before,
            timeouts: self.kernel.tcp_stats().timeouts - self.timeouts_before,
        }
    }
}

/// What is in the file cache when a run begins: what one pass over a log leaves there, or all files of a load that has no end.
pub(super) fn preloaded(experiment: &Experiment, workload: &dyn Workload) -> Vec<(FileId, u64)> {
    if !experiment.run.preload || experiment.host.kernel.file_cache.kib == 0 {
        return Vec::new();
    }
    let references = workload.references();
    if references.is_empty() {
        let sizes = (0..).zip(workload.files().sizes());
        return sizes.map(|(file, &bytes)| (FileId(file), bytes)).collect();
    }
    let requests = references.iter().filter(|request| !request.dynamic);
    requests
        .map(|request| (FileId(request.file), request.bytes))
        .collect()
}
