//! The host's process: an application on top of the sockets.

use super::super::application::{self, Application};
use super::super::builder::Policies;
use super::super::capture::Taps;
use super::super::changes::Change;
use super::super::host_processor::{HostProcessor, preloaded};
use super::super::meter::HostMeter;
use super::super::subnets;
use super::super::system_calls::SystemCalls;
use super::End;
use super::adapter_calls::{AdapterCalls, numbered};
use super::answering::Answering;
use super::carrier::Carrier;
use super::file_system::FileSockets;
use super::host_stack::{Around, HostStack};
use super::metered::{LinkMeter, Metered, OnHost};
use super::turns::Turns;
use super::worker::Worker;
use crate::config::{EstablishedBy, Experiment, Invalid, Piece};
use baton_bus::link::LinkError;
use baton_host::layer::{AdapterId, Move, Place};
use baton_host::{Ready, SocketId};
use baton_kernel::{
    DiskRead, FileCacheStats, FileSystem, Meter, NetworkDrops, NetworkMemory, Op, Owner, footprint,
};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use baton_workload::Workload;
use std::collections::VecDeque;

/// Minimum interval between two reports of the processor's work to the selection policy.
const BETWEEN_REPORTS: Span = Span::from_ms(1);

/// The process with its own state.
pub(super) struct HostProcess {
    /// The host's own stack, or `None` if all connections are on the adapters.
    stack: Option<Box<HostStack>>,
    application: Application,
    files: FileSystem<Symbolic>,
    memory: NetworkMemory,
    answering: Answering,
    /// Disk reads that were requested by pieces of work that are done.
    reads: VecDeque<DiskRead>,
    /// Tokens of completed disk reads.
    from_disk: VecDeque<u64>,
    worker: Worker,
    /// Time of the next call, or [`Time::NEVER`] if it is unknown.
    due: Time,
    piece: Piece,
    /// Whether the previous piece of work left work to do, so that no interrupt is needed.
    goes_on: bool,
    /// Next adapter whose response is processed, if pieces are single items, and next adapter whose event is processed.
    responses: Turns,
    events: Turns,
    /// Meters by adapter.
    link_meters: Vec<LinkMeter>,
    /// When to report the processor's work to the selection policy next, or [`Time::NEVER`] if the policy does not want that.
    reports_at: Time,
    /// Since when the process could work but waits for the processor's register writes.
    stalled_since: Option<Time>,
}

impl HostProcess {
    /// Creates a process that will listen at each adapter's address; `nics` is the experiment as each of its NICs sees it.
    pub(super) fn new(
        experiment: &Experiment,
        nics: &[Experiment],
        policies: &mut Policies,
        ends: &mut [End],
        workload: &dyn Workload,
    ) -> Result<Self, Invalid> {
        let config = &experiment.offload.host;
        let stack = match experiment.offload.established_by {
            EstablishedBy::Adapter => {
                listen(experiment.host.kernel.backlog, ends)?;
                None
            }
            EstablishedBy::Host => {
                let policy = || experiment.host.kernel.selection.build();
                let selection = policies.selection.take().unwrap_or_else(policy);
                let stack = HostStack::new(experiment, nics, selection, ends)?;
                Some(Box::new(stack))
            }
        };
        let ring_depth = config.interface.ring_depth;
        let buffer_space = ends.iter().map(|end| end.link.buffer_space()).max();
        let buffer_space = buffer_space.unwrap_or_default();
        let kernel = &experiment.host.kernel;
        let (stacks_adapters, first_cluster) = match stack {
            None => (0, 0),
            Some(_) => (ends.len() as u32, kernel.clusters),
        };
        let buffers = (first_cluster, buffer_space);
        let link_meter = |adapter| LinkMeter::new((adapter, ends.len()), ring_depth, buffers);
        let link_meters = (0..ends.len()).map(link_meter).collect();
        let mut worker = Worker::new(config.wake_up, experiment.run.seed ^ 0x4057);
        worker.wake(Time::ZERO);
        let mut memory = NetworkMemory::new(kernel, stacks_adapters);
        for (adapter, of_nic) in nics.iter().enumerate().take(stacks_adapters as usize) {
            memory.set_checksums(adapter, of_nic.nic.checksums());
        }
        let mut process = Self {
            stack,
            application: Application::new(&experiment.application),
            files: files(experiment, workload),
            memory,
            answering: Answering::new(policies.affinity.take().or_else(|| kernel.affinity.build())),
            reads: VecDeque::new(),
            from_disk: VecDeque::new(),
            worker,
            due: Time::NEVER,
            piece: config.piece,
            goes_on: false,
            responses: Turns::default(),
            events: Turns::default(),
            link_meters,
            reports_at: Time::NEVER,
            stalled_since: None,
        };
        if (process.stack.as_ref()).is_some_and(|stack| stack.layer().wants_work()) {
            process.reports_at = Time::ZERO;
        }
        process.expect(Time::ZERO, ends);
        Ok(process)
    }

    /// Returns the time of the next call, or [`Time::NEVER`] if it is unknown.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Returns whether the process sleeps until an event wakes it up.
    pub(super) fn is_asleep(&self) -> bool {
        self.worker.is_asleep()
    }

    /// Reports whether there is disk data that the process has not yet handled.
    pub(super) fn has_from_disk(&self) -> bool {
        !self.from_disk.is_empty()
    }

    /// Recomputes the time of the next call after a change of state.
    fn expect(&mut self, now: Time, ends: &[End]) {
        let due = self.worker.poll_timeout(now, || self.timer(ends));
        self.due = due.unwrap_or(Time::NEVER);
    }

    fn timer(&self, ends: &[End]) -> Option<Time> {
        let of_stack = self.stack.as_ref().and_then(|stack| stack.poll_timeout());
        let of_application = self.application.poll_timeout();
        let of_application = of_application.filter(|_| !self.files.application_sleeps());
        let of_sockets = ends.iter().map(|end| end.os.poll_timeout());
        let first = of_sockets
            .chain([of_application, of_stack])
            .fold(Time::NEVER, |first, timer| {
                timer.map_or(first, |timer| timer.min(first))
            });
        (first < Time::NEVER).then_some(first)
    }

    /// Ends the piece of work that ends at `now`, and releases its output to the links.
    #[inline]
    pub(super) fn end_work(&mut self, now: Time, ends: &mut [End], carrier: &mut Carrier) {
        if self.worker.ends(now) {
            self.leave(now, ends, carrier);
        }
    }

    /// Sends the output of the piece of work, and computes the time of the next call.
    fn leave(&mut self, now: Time, ends: &mut [End], carrier: &mut Carrier) {
        for end in &mut *ends {
            end.link.release_host(now, carrier);
        }
        while let Some(read) = self.files.poll_disk() {
            self.reads.push_back(read);
        }
        let is_left = self.piece == Piece::One && self.has_ready(ends);
        if is_left || ends.iter().any(wants_host) {
            self.worker.go_on(now);
            self.due = now;
            self.goes_on = self.piece == Piece::One;
        } else {
            self.expect(now, ends);
        }
    }

    /// Reports whether the application has something to do.
    fn has_ready(&self, ends: &[End]) -> bool {
        let of_sockets = || match &self.stack {
            None => ends.iter().any(|end| end.os.has_ready()),
            Some(stack) => stack.layer().has_ready(),
        };
        let has_event = || self.files.has_writable() || self.application.has_next() || of_sockets();
        !self.files.application_sleeps() && has_event()
    }

    /// Handles the completion of a disk read, whose data is in memory.
    pub(super) fn handle_disk(&mut self, token: u64) {
        self.from_disk.push_back(token);
    }

    /// Returns the next read for the disk.
    pub(super) fn poll_disk(&mut self) -> Option<DiskRead> {
        self.reads.pop_front()
    }

    /// Returns the next change of a file that was not yet reported.
    pub(super) fn poll_change(&mut self) -> Option<Change> {
        self.application.poll_change()
    }

    /// Wakes the process up if there is an event on the links or from a disk.
    pub(super) fn look_at(&mut self, now: Time, ends: &[End]) {
        if ends.iter().any(wants_host) || !self.from_disk.is_empty() {
            self.worker.wake(now);
            self.expect(now, ends);
        }
    }

    /// Begins a piece of work at `now`, if the process is awake and has work. A piece that takes no time ends immediately.
    ///
    /// # Errors
    /// An adapter broke a rule, or its link is closed.
    #[inline]
    pub(super) fn begin_work(
        &mut self,
        now: Time,
        ends: &mut [End],
        carrier: &mut Carrier,
        host: &mut HostProcessor,
        taps: &mut Taps,
    ) -> Result<(), LinkError> {
        if self.due <= now {
            if carrier.stalls_host() {
                self.stalled_since.get_or_insert(now);
                self.due = carrier.due();
                return Ok(());
            }
            if let Some(since) = self.stalled_since.take() {
                host.wait(since, now);
            }
            self.do_piece(now, ends, host)?;
            self.due = host.end_piece(now);
            if let Some(recorder) = taps.recorder() {
                recorder.host_works((now, self.due), host);
                while let Some((flow, what)) = self.poll_progress() {
                    recorder.connection_moves(now, flow.remote, what);
                }
            }
            self.worker.work(self.due);
            self.end_work(now, ends, carrier);
        }
        Ok(())
    }

    /// Does a piece of work. This is one iteration of the server's event loop with all pending work, or only the processing of one response
    /// or, if there is none, the application's reaction to one event. Output of the piece leaves together.
    fn do_piece(
        &mut self,
        now: Time,
        ends: &mut [End],
        host: &mut HostProcessor,
    ) -> Result<(), LinkError> {
        if now >= self.reports_at
            && let Some(stack) = &mut self.stack
        {
            self.reports_at = now + BETWEEN_REPORTS;
            stack.layer_mut().handle_work(now, host.busy(now), 0);
        }
        let goes_on = std::mem::take(&mut self.goes_on);
        let responding = ends.iter().filter(|end| end.link.is_waiting_for_host());
        let interrupts = match self.worker.is_waking() && !goes_on {
            // Each adapter has its own interrupt line.
            true => responding.count().max(1),
            false => 0,
        };
        let meter = host.begin_piece(now, interrupts);
        let waits = |adapter: usize| ends[adapter].link.is_waiting_for_host().then_some(());
        let (from, most_events) = match self.piece {
            Piece::All => (0..ends.len(), usize::MAX),
            // As in an interrupt handler, arrivals take precedence over the application.
            Piece::One => match self.responses.take(ends.len(), waits) {
                Some((adapter, ())) => (adapter..adapter + 1, 0),
                None => (0..0, 1),
            },
        };
        for End { os, link } in &mut ends[from] {
            os.gather(now, link)?;
        }
        for (end, link_meter) in ends.iter_mut().zip(&mut self.link_meters) {
            link_meter.charge(&mut end.link, meter);
        }
        meter.owner(Owner::Nic);
        for (adapter, end) in (0..).map(AdapterId).zip(&mut *ends) {
            let buffers = self.memory.buffers();
            self.files
                .handle_adapter(adapter, &mut end.os, buffers, meter);
        }
        while let Some(token) = self.from_disk.pop_front() {
            self.files.handle_disk(token, meter);
        }
        self.files.wake_waiting(self.memory.buffers());
        meter.owner(match self.stack {
            None => Owner::Nic,
            Some(_) => Owner::Host,
        });
        if let Some(stack) = &mut self.stack {
            let mut around = Around {
                files: &mut self.files,
                memory: &mut self.memory,
                answering: &mut self.answering,
                meter,
            };
            stack.handle_arrived(now, ends, &mut around);
            stack.settle(now, ends, &mut around);
        }
        self.remove_delivered(ends, meter);
        self.run_application(now, ends, meter, most_events);
        self.leave_memory(ends, meter);
        for (End { os, link }, link_meter) in ends.iter_mut().zip(&mut self.link_meters) {
            os.transmit(now, link)?;
            link_meter.charge(link, meter);
        }
        Ok(())
    }

    /// Removes the blocks of pages that were evicted from main memory from the adapters' caches.
    fn leave_memory(&mut self, ends: &mut [End], meter: &mut HostMeter) {
        let page = u64::from(footprint::PAGE_BYTES);
        while let Some((file, offset)) = self.files.poll_evicted() {
            let left = ends
                .iter_mut()
                .map(|end| end.os.file_left_memory(file, offset, page));
            meter.run(Op::CacheRemove, left.sum::<u32>());
        }
    }

    /// Removes delivered blocks of transient files from the adapters' caches.
    #[inline]
    fn remove_delivered(&mut self, ends: &mut [End], meter: &mut HostMeter) {
        while let Some(block) = self.files.poll_delivered() {
            let os = &mut ends[usize::from(block.adapter.0)].os;
            let left = os.block_delivered(block.file, block.number);
            meter.run(Op::CacheRemove, left.into());
        }
    }

    /// Runs the application's timers, and handles at most `most_events` events. Does nothing while the application sleeps.
    fn run_application(
        &mut self,
        now: Time,
        ends: &mut [End],
        meter: &mut HostMeter,
        most_events: usize,
    ) {
        let due = self.application.poll_timeout();
        if due.is_some_and(|due| due <= now) && !self.files.application_sleeps() {
            self.act(now, ends, meter, |application, system| {
                application.handle_timeout(now, system);
            });
        }
        for _ in 0..most_events {
            if self.files.application_sleeps() {
                return;
            }
            if let Some(ready) = self.next_ready(ends) {
                self.handle_ready(now, ends, meter, ready);
            } else if let Some(socket) = self.application.next_turn() {
                self.step(now, ends, meter, Ready::Writable(socket));
            } else if self.application.has_next() {
                self.act(now, ends, meter, |application, system| {
                    application.serve_next(now, system);
                });
                self.remove_delivered(ends, meter);
            } else {
                return;
            }
        }
    }

    /// Lets the application handle a change of readiness.
    fn handle_ready(&mut self, now: Time, ends: &mut [End], meter: &mut HostMeter, ready: Ready) {
        if let Ready::Writable(socket) = ready
            && let Some(Place::Host(conn)) = self.place_of(socket)
        {
            self.memory.wake(conn, meter);
        }
        self.step(now, ends, meter, ready);
    }

    /// Lets the application handle an event that a wait reports.
    fn step(&mut self, now: Time, ends: &mut [End], meter: &mut HostMeter, ready: Ready) {
        let socket = socket_of(ready);
        let place = socket.and_then(|socket| self.place_of(socket));
        if matches!(place, Some(Place::Adapter(_))) {
            meter.owner(Owner::Nic);
        }
        footprint::wait_event(meter, socket.map(|socket| socket.0));
        self.act(now, ends, meter, |application, system| {
            application.step(now, system, ready);
        });
    }

    /// Returns the stack that currently owns the socket's connection, or `None` if the socket is not connected or the host has no stack.
    fn place_of(&self, socket: SocketId) -> Option<Place> {
        let state = self.stack.as_deref()?.layer().state_of(socket)?;
        Some(state.place)
    }

    /// Lets the application act on its sockets and files, and lets the stack send the results.
    fn act(
        &mut self,
        now: Time,
        ends: &mut [End],
        meter: &mut HostMeter,
        what: impl FnOnce(&mut Application, &mut Metered<'_, '_>),
    ) {
        let mut around = Around {
            files: &mut self.files,
            memory: &mut self.memory,
            answering: &mut self.answering,
            meter,
        };
        let application = &mut self.application;
        let on = |sockets: &mut dyn FileSockets, around: &mut Around<'_, HostMeter>| {
            what(application, &mut SystemCalls(OnHost { sockets, around }));
        };
        let Some(stack) = &mut self.stack else {
            return on(&mut AdapterCalls::new(now, ends), &mut around);
        };
        on(&mut stack.calls(now, ends), &mut around);
        around.meter.owner(Owner::Host);
        stack.settle(now, ends, &mut around);
    }

    /// Returns the next readiness event for the application.
    fn next_ready(&mut self, ends: &mut [End]) -> Option<Ready> {
        if let Some(socket) = self.files.next_writable() {
            return Some(Ready::Writable(socket));
        }
        if let Some(stack) = &mut self.stack {
            return stack.layer_mut().next_ready();
        }
        let adapters = ends.len();
        let next = |adapter: usize| ends[adapter].os.next_ready();
        let (adapter, ready) = self.events.take(adapters, next)?;
        Some(numbered(adapters, adapter, ready))
    }

    /// Announces a connection from this endpoint, with the expected number of enqueues to its send buffer.
    pub(super) fn foresee(&mut self, from: Endpoint, enqueues: u32) {
        if let Some(stack) = &mut self.stack {
            stack.layer_mut().foresee(from, enqueues);
        }
    }

    /// Records the progress of moving connections from now on.
    pub(super) fn keep_progress(&mut self) {
        if let Some(stack) = &mut self.stack {
            stack.layer_mut().keep_progress();
        }
    }

    fn poll_progress(&mut self) -> Option<(Flow, Move)> {
        self.stack.as_mut()?.layer_mut().poll_progress()
    }

    /// Returns the numbers of free mbufs and free clusters.
    pub(super) fn free_buffers(&self) -> (u32, u32) {
        self.memory.free()
    }

    /// Returns the host's own stack, if it has one.
    pub(super) fn stack(&self) -> Option<&HostStack> {
        self.stack.as_deref()
    }

    /// Returns the counters of the file cache, or `None` if all files are in memory.
    pub(super) fn file_cache_stats(&self) -> Option<&FileCacheStats> {
        self.files.cache_stats()
    }

    /// Returns the numbers of packets dropped because memory was exhausted.
    pub(super) fn drops(&self) -> NetworkDrops {
        self.memory.drops()
    }

    /// Returns how often a file ended before the requested range.
    pub(super) fn files_shrunk(&self) -> u64 {
        self.files.shrunk()
    }

    /// Asserts all invariants.
    pub(super) fn check(&self) {
        self.files.check();
        self.memory.check(self.files.mbufs_lent());
        if let Some(stack) = &self.stack {
            stack.check();
        }
    }
}

/// Makes each adapter's sockets listen.
fn listen(backlog: u32, ends: &mut [End]) -> Result<(), Invalid> {
    for (adapter, end) in (0..).zip(ends) {
        let local = subnets::server(adapter);
        let listener = end.os.listen(Time::ZERO, local, backlog);
        listener.map_err(|status| {
            let path = "offload.host.interface.most_sockets";
            Invalid::new(path, format!("{status:?}"), "room for a listener")
        })?;
    }
    Ok(())
}

/// Reports whether an event waits for the host, or the ring now has space for requests that were held up.
fn wants_host(End { os, link }: &End) -> bool {
    link.is_waiting_for_host() || link.has_room_for_requests(os.queue())
}

fn socket_of(ready: Ready) -> Option<SocketId> {
    match ready {
        Ready::Acceptable => None,
        Ready::Readable(socket) | Ready::Writable(socket) => Some(socket),
    }
}

/// Returns the files of the application, with the initial content of the file cache.
fn files(experiment: &Experiment, workload: &dyn Workload) -> FileSystem<Symbolic> {
    let store = Box::new(application::files(&experiment.application));
    let mut files = FileSystem::new(&experiment.host.kernel.file_cache, store);
    if let Some(file) = application::transient_file(&experiment.application) {
        files.set_transient(file);
    }
    for (file, bytes) in preloaded(experiment, workload) {
        files.preload(file, bytes);
    }
    files
}
