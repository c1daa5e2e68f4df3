//! The server: its host, its adapters, and the links between them. Either all of TCP is on the adapters (full offload, the batching paper),
//! or only the connections that the host has handed off (handoff-policies).
//!
//! Host and adapters run the same code as live, [`baton_host::adapter`] and [`baton_nic::adapter`]. Here they are connected by a link on
//! which crossings take time and are counted. Each of them is a process that sleeps, wakes up, and works: it does all pending work in one
//! piece, as in the batching paper, or one item at a time, like the firmware of the handoff papers. The output of a piece of work leaves
//! when the piece is done.

mod adapter_calls;
mod adapter_process;
mod answering;
mod carrier;
mod counts;
mod data;
mod data_cache;
mod driver;
mod file_system;
mod hardware;
mod host_process;
mod host_stack;
mod link;
mod metered;
mod reads;
mod transfers;
mod turns;
mod worker;
mod writes;

use super::builder::Policies;
use super::capture::Taps;
use super::changes::Change;
use super::host_processor::HostProcessor;
use super::port::Port;
use crate::config::{Experiment, Invalid, Piece};
use adapter_process::AdapterProcess;
use baton_bus::BytesByCategory;
use baton_bus::interconnect::{DeviceId, InterconnectConfig};
use baton_bus::link::LinkError;
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_host::layer::AdapterEnd;
use baton_kernel::{DiskRead, FileCacheStats};
use baton_tcp::Segment;
use baton_wire::{Endpoint, Span, Symbolic, Time};
use baton_workload::Workload;
use carrier::{Carrier, Crossing, Landed};
use counts::Before;
use data::LinkData;
use hardware::Hardware;
use host_process::HostProcess;
use link::SimulatedLink;
pub(super) use transfers::BusTransfer;

/// The host's end of an adapter.
type End = AdapterEnd<LinkData, SimulatedLink>;

/// The host's process, the adapters' processes, and the links between them.
pub(super) struct Server {
    adapters: Vec<AdapterProcess>,
    /// Host's ends by adapter.
    ends: Vec<End>,
    carrier: Carrier,
    host: HostProcess,
    /// Whether the interconnect is not ideal.
    takes_time: bool,
    before: Before,
    /// When the hardware of an adapter has its next event.
    hardware_due: Time,
}

impl Server {
    /// Creates a server that will listen; `nics` is the experiment as each of its NICs sees it.
    ///
    /// # Errors
    /// A part of the experiment is invalid.
    pub(super) fn new(
        experiment: &Experiment,
        nics: &[Experiment],
        mut policies: Policies,
        workload: &dyn Workload,
    ) -> Result<Self, Invalid> {
        let config = &experiment.offload;
        let ends = (0..).zip(nics);
        let ends = ends.map(|(number, of_nic)| end(of_nic, number, &policies));
        let mut ends = ends.collect::<Result<Vec<_>, _>>()?;
        let host = HostProcess::new(experiment, nics, &mut policies, &mut ends, workload)?;
        if let Some(stack) = host.stack() {
            for (end, (_, socket)) in ends.iter_mut().zip(stack.packets()) {
                end.link.set_packets(socket.0);
            }
        }
        let adapters = (0..).zip(nics);
        let adapters = adapters.map(|(number, of_nic)| adapter(of_nic, number, &policies));
        let adapters = adapters.collect::<Result<Vec<_>, _>>()?;
        let latency = Span::from_ns(config.link.latency_ns.into());
        let configs = nics.iter().map(|of_nic| &of_nic.nic);
        let interconnect = &nics[0].interconnect;
        Ok(Self {
            carrier: Carrier::new(interconnect, configs, latency)?,
            adapters,
            ends,
            host,
            takes_time: *interconnect != InterconnectConfig::Ideal,
            before: Before::default(),
            hardware_due: Time::NEVER,
        })
    }

    /// Handles a frame from the wire of an adapter with its port, which is the last frame that passed `taps`.
    ///
    /// # Errors
    /// One side broke a rule of the link.
    pub(super) fn receive(
        &mut self,
        now: Time,
        (nic, port): (u8, &mut Port),
        segment: Segment<Symbolic>,
        taps: &mut Taps,
    ) -> Result<(), LinkError> {
        self.catch_up(now)?;
        self.adapters[usize::from(nic)].handle_frame(now, segment, port, taps);
        self.expect_hardware();
        Ok(())
    }

    /// Computes when the hardware of an adapter has its next event.
    #[inline]
    fn expect_hardware(&mut self) {
        let all = self.adapters.iter();
        let hardware = all.filter_map(|adapter| adapter.hardware.as_deref());
        self.hardware_due = hardware.map(Hardware::due).fold(Time::NEVER, Time::min);
    }

    /// Handles the events of the adapters' hardware that are due.
    #[cold]
    fn run_hardware(&mut self, now: Time, ports: &mut [Port], taps: &mut Taps) {
        let adapters = (0..).map(DeviceId).zip(&mut self.adapters);
        for ((device, adapter), port) in adapters.zip(ports) {
            if adapter.run_hardware(now, port, taps) {
                self.carrier.announce(now, device);
            }
        }
        self.expect_hardware();
    }

    /// Announces a connection from this endpoint, with the number of enqueues to its send buffer, which the simulator knows.
    pub(super) fn foresee(&mut self, from: Endpoint, enqueues: u32) {
        self.host.foresee(from, enqueues);
    }

    /// Returns when the next internal event happens that cannot be processed later, or [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        let (work, crossing) = (self.work_due(), self.carrier.due());
        match crossing < work && (self.carrier.has_landed() || self.somebody_waits()) {
            true => crossing,
            false => work,
        }
    }

    /// Returns when the next process must be called.
    #[inline]
    fn work_due(&self) -> Time {
        let of_adapters = self.adapters.iter().map(AdapterProcess::due);
        of_adapters.fold(self.host.due().min(self.hardware_due), Time::min)
    }

    /// Reports whether a process sleeps until something arrives, or may continue with output that was held up. All other processes are busy
    /// until they are due, and check for arrivals then.
    fn somebody_waits(&self) -> bool {
        let waits =
            |adapter: usize| self.adapters[adapter].is_asleep() && self.carrier.goes_to(adapter);
        self.host.is_asleep() && self.carrier.goes_to_host()
            || (0..self.adapters.len()).any(waits)
            || self.is_held_up()
    }

    /// Reports whether output waits for ring space, or disk data waits for the host.
    fn is_held_up(&self) -> bool {
        let mut adapters = self.adapters.iter().zip(&self.ends);
        self.host.has_from_disk()
            || adapters
                .any(|(adapter, end)| adapter.queue().is_held_up() || end.os.queue().is_held_up())
    }

    /// Processes arrivals before `now`, each at its time. No process has waited for them.
    ///
    /// # Errors
    /// One side broke a rule of the link.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time) -> Result<(), LinkError> {
        match self.carrier.due() < now {
            true => self.see_before(now),
            false => Ok(()),
        }
    }

    #[inline(never)]
    fn see_before(&mut self, now: Time) -> Result<(), LinkError> {
        while self.carrier.due() < now {
            let at = self.carrier.due();
            self.carrier.handle_timeout(at);
            self.look(at)?;
        }
        Ok(())
    }

    /// Lets all processes do their due work, always in the same order. Frames sent by an adapter pass `taps` on the way to its port.
    /// Returns when the next event happens, like [`Server::due`].
    ///
    /// # Errors
    /// One side broke a rule of the link.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        host: &mut HostProcessor,
        ports: &mut [Port],
        taps: &mut Taps,
    ) -> Result<Time, LinkError> {
        self.catch_up(now)?;
        if self.work_due() <= now {
            let adapters = self.adapters.iter_mut().zip(&mut self.ends);
            for ((adapter, end), port) in adapters.zip(&mut *ports) {
                adapter.end_work(now, &mut end.link, &mut self.carrier, port, taps)?;
            }
            self.host.end_work(now, &mut self.ends, &mut self.carrier);
        }
        loop {
            self.carrier.handle_timeout(now);
            self.look(now)?;
            if self.hardware_due <= now {
                self.run_hardware(now, ports, taps);
                self.look(now)?;
            }
            if self.work_due() <= now {
                let adapters = self.adapters.iter_mut().zip(&mut self.ends);
                for ((adapter, end), port) in adapters.zip(&mut *ports) {
                    adapter.begin_work(now, &mut end.link, &mut self.carrier, port, taps)?;
                }
                (self.host).begin_work(now, &mut self.ends, &mut self.carrier, host, taps)?;
            }
            if self.host.is_asleep() {
                self.arm_interrupts(now);
            }
            self.expect_hardware();
            // After work that took no time there may be more to do.
            let due = self.due();
            if due > now {
                return Ok(due);
            }
        }
    }

    /// Delivers everything that has arrived by `now`.
    #[inline]
    fn look(&mut self, now: Time) -> Result<(), LinkError> {
        match self.carrier.has_landed() || self.is_held_up() {
            true => self.look_at_all(now),
            false => Ok(()),
        }
    }

    #[inline(never)]
    fn look_at_all(&mut self, now: Time) -> Result<(), LinkError> {
        while let Some(landed) = self.carrier.poll_landed() {
            match landed {
                Landed::OfAdapter(device, crossing) => {
                    let adapter = usize::from(device.0);
                    let link = &mut self.ends[adapter].link;
                    link.handle_landed(crossing);
                    match crossing {
                        Crossing::Responses(count) => self.responses_arrived(now, device, count),
                        Crossing::Interrupt => self.interrupted(now, device),
                        _ => self.adapters[adapter].look_at(now, link)?,
                    }
                }
                Landed::FromDisk(token) => self.host.handle_disk(token),
            }
        }
        if self.is_held_up() {
            for (adapter, end) in self.adapters.iter_mut().zip(&mut self.ends) {
                adapter.look_at(now, &mut end.link)?;
            }
            self.host.look_at(now, &self.ends);
        }
        Ok(())
    }

    /// Handles the arrival of responses in host memory.
    fn responses_arrived(&mut self, now: Time, device: DeviceId, count: u32) {
        let Some(hardware) = &mut self.adapters[usize::from(device.0)].hardware else {
            return self.host.look_at(now, &self.ends);
        };
        (0..count).for_each(|_| hardware.interrupt.handle_received(now));
        if hardware.interrupt.poll_message() {
            self.carrier.announce(now, device);
        }
        self.expect_hardware();
    }

    /// Lets the hardware of the adapters interrupt the host, which sleeps.
    #[inline]
    fn arm_interrupts(&mut self, now: Time) {
        for adapter in &mut self.adapters {
            if let Some(hardware) = &mut adapter.hardware {
                hardware.interrupt.end(now, (0, 0), 0);
            }
        }
    }

    /// Handles the arrival of an interrupt from an adapter.
    fn interrupted(&mut self, now: Time, device: DeviceId) {
        self.host.look_at(now, &self.ends);
        if let Some(hardware) = &mut self.adapters[usize::from(device.0)].hardware {
            hardware.interrupt.handle_message();
            hardware.interrupt.take();
            if self.host.is_asleep() {
                hardware.interrupt.end(now, (0, 0), 0);
            }
        }
        self.expect_hardware();
    }

    /// Records internal events for a timeline from now on.
    pub(super) fn keep_for_timeline(&mut self) {
        self.carrier.keep_transfers();
        self.host.keep_progress();
    }

    /// Returns the next completed transfer, if transfers are recorded.
    pub(super) fn poll_transfer(&mut self) -> Option<BusTransfer> {
        self.carrier.poll_transfer()
    }

    /// Transfers the data of the completed disk read with this token to the host's memory.
    ///
    /// # Errors
    /// One side broke a rule of the link.
    pub(super) fn write_from_disk(
        &mut self,
        now: Time,
        token: u64,
        bytes: BytesByCategory,
    ) -> Result<(), LinkError> {
        self.catch_up(now)?;
        match self.takes_time {
            true => self.carrier.write_from_disk(now, token, bytes),
            false => self.host.handle_disk(token),
        }
        Ok(())
    }

    /// Returns the next read for the disks.
    pub(super) fn poll_disk(&mut self) -> Option<DiskRead> {
        self.host.poll_disk()
    }

    /// Returns the next change of a file that was not yet reported.
    pub(super) fn poll_change(&mut self) -> Option<Change> {
        self.host.poll_change()
    }

    /// Returns the counters of the file cache, or `None` if all files are in memory.
    pub(super) fn file_cache_stats(&self) -> Option<&FileCacheStats> {
        self.host.file_cache_stats()
    }

    /// Asserts all invariants.
    pub(super) fn check(&self) {
        for (adapter, end) in self.adapters.iter().zip(&self.ends) {
            adapter.check();
            end.os.check();
            end.link.check();
        }
        self.host.check();
    }
}

/// Creates the host's end of the adapter with this number, from the experiment as the adapter sees it.
fn end(experiment: &Experiment, number: u8, policies: &Policies) -> Result<End, Invalid> {
    let config = &experiment.offload;
    let (host, adapter) = (&config.host.interface, &config.adapter.interface);
    let interface = OsLayerConfig {
        nic_cache: experiment.nic_cache(),
        ..host.clone()
    };
    let mut os = OsLayer::new(interface)
        .map_err(|error| Invalid::new("offload.host.interface", error, "a valid interface"))?;
    if let Some(make) = policies.replacement.clone() {
        os.set_replacement(move |blocks| make(blocks));
    }
    if let Some(make) = &policies.coherence {
        os.set_coherence(make());
    }
    if let Some(make) = &policies.batching {
        os.set_batching(make(host.ring_depth));
    }
    let most_bytes = adapter.batching.max_transfer_bytes;
    let (device, depth) = (DeviceId(number), adapter.ring_depth);
    let mut link = SimulatedLink::new(&config.link, device, depth, most_bytes);
    if config.host.piece == Piece::One {
        link.get_one_by_one();
    }
    let takes_no_time = experiment.interconnect == InterconnectConfig::Ideal
        && config.link.latency_ns == 0
        && experiment.nic.hardware.is_none();
    // An adapter that does all pending work in one piece would process the data within the same piece.
    if takes_no_time && config.adapter.piece == Piece::One {
        link.move_data_at_once();
    }
    Ok(End { os, link })
}

/// Creates the adapter with this number, from the experiment as the adapter sees it.
fn adapter(
    experiment: &Experiment,
    number: u8,
    policies: &Policies,
) -> Result<AdapterProcess, Invalid> {
    let config = &experiment.offload.adapter;
    let hard_limit = experiment.nic.firmware.hard_limit;
    let make = policies.load_control.as_ref();
    let governor = make.map(|make| make(hard_limit));
    let make = policies.scheduler.as_ref();
    let schedule = make.map(|make| make(hard_limit));
    let mut adapter = AdapterProcess::new(experiment, number, config, governor, schedule)?;
    if let Some(make) = &policies.batching {
        adapter.set_batching(make(config.interface.ring_depth));
    }
    Ok(adapter)
}
