//! The host's process: an application above the sockets.

use super::super::application::{self, Application};
use super::super::builder::Policies;
use super::super::changes::Change;
use super::super::host_side::{HostSide, preloaded};
use super::super::meter::HostMeter;
use super::super::subnets;
use super::data::LinkData;
use super::host_stack::{HostStack, adapter_end};
use super::link::SimulatedLink;
use super::metered::{LinkMeter, Metered};
use super::worker::Worker;
use crate::config::{EstablishedBy, Experiment, Invalid, OffloadHostConfig, Piece};
use baton_bus::BatchingRule;
use baton_bus::link::LinkError;
use baton_host::offload::{OsLayer, OsLayerConfig, OsLayerStats};
use baton_host::{
    DiskRead, FileCacheStats, FileSystem, Meter, NicCacheStats, Owner, Ready, SocketId, footprint,
};
use baton_wire::{Symbolic, Time};
use baton_workload::Workload;
use std::collections::VecDeque;

/// The process with all that is its own.
pub(super) struct HostProcess {
    os: OsLayer<LinkData>,
    /// None: all connections are on the adapter.
    stack: Option<Box<HostStack>>,
    application: Application,
    files: FileSystem<Symbolic>,
    /// Reads of the disk that a piece of work has asked for, and that is over.
    reads: VecDeque<DiskRead>,
    /// Reads that are done.
    from_disk: VecDeque<u64>,
    worker: Worker,
    piece: Piece,
    /// The piece of work before this one left something to do: no interrupt has to tell of it.
    goes_on: bool,
    link_meter: LinkMeter,
}

impl HostProcess {
    /// A process that is about to listen.
    pub(super) fn new(
        experiment: &Experiment,
        config: &OffloadHostConfig,
        established_by: EstablishedBy,
        policies: &mut Policies,
        workload: &dyn Workload,
    ) -> Result<Self, Invalid> {
        let interface = OsLayerConfig {
            nic_cache: experiment.nic_cache(),
            ..config.interface.clone()
        };
        let mut os = OsLayer::new(interface)
            .map_err(|error| Invalid::new("offload.host.interface", error, "one that can work"))?;
        if let Some(make) = policies.replacement.take() {
            os.set_replacement(make);
        }
        if let Some(protocol) = policies.coherence.take() {
            os.set_coherence(protocol);
        }
        let local = subnets::server(0);
        let stack = match established_by {
            EstablishedBy::Adapter => {
                os.listen(Time::ZERO, local, config.backlog)
                    .map_err(|status| {
                        let path = "offload.host.interface.most_sockets";
                        Invalid::new(path, format!("{status:?}"), "room for a listener")
                    })?;
                None
            }
            EstablishedBy::Host => {
                let policy = || experiment.host.kernel.selection.build();
                let selection = policies.selection.take().unwrap_or_else(policy);
                let stack = HostStack::new(experiment, config, selection, &mut os, local)?;
                Some(Box::new(stack))
            }
        };
        let packets = stack.as_ref().map(|stack| stack.packets());
        let mut worker = Worker::new(config.wake_up, experiment.run.seed ^ 0x4057);
        worker.wake(Time::ZERO);
        Ok(Self {
            os,
            stack,
            application: Application::new(&experiment.application),
            files: files(experiment, workload),
            reads: VecDeque::new(),
            from_disk: VecDeque::new(),
            worker,
            piece: config.piece,
            goes_on: false,
            link_meter: LinkMeter::new(config.interface.ring_depth, packets),
        })
    }

    pub(super) fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        self.os.set_batching(rule);
    }

    /// When it is to be looked at.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.worker.poll_timeout(self.timer())
    }

    fn timer(&self) -> Option<Time> {
        let of_stack = self.stack.as_ref().and_then(|stack| stack.poll_timeout());
        let of_application = self.application.poll_timeout();
        let all = [
            self.os.poll_timeout(),
            of_application.filter(|_| !self.files.application_sleeps()),
            of_stack,
        ];
        all.into_iter().flatten().min()
    }

    /// Ends the piece of work that ends at `now`, and releases what goes onto the link.
    pub(super) fn end_work(&mut self, now: Time, link: &mut SimulatedLink) {
        if self.worker.ends(now) {
            link.release_host(now);
            while let Some(read) = self.files.poll_disk() {
                self.reads.push_back(read);
            }
            let is_left = self.piece == Piece::One && self.has_ready();
            if link.is_waiting_for_host() || self.may_put(link) || is_left {
                self.worker.go_on(now);
                self.goes_on = self.piece == Piece::One;
            }
        }
    }

    /// Whether the application has something to do.
    fn has_ready(&self) -> bool {
        let of_sockets = || match &self.stack {
            None => self.os.has_ready(),
            Some(stack) => stack.has_ready(),
        };
        let has_event = || self.files.has_writable() || self.application.has_next() || of_sockets();
        !self.files.application_sleeps() && has_event()
    }

    /// The disk is done with a read, and its data is in memory.
    pub(super) fn handle_disk(&mut self, token: u64) {
        self.from_disk.push_back(token);
    }

    /// The next read for the disk.
    pub(super) fn poll_disk(&mut self) -> Option<DiskRead> {
        self.reads.pop_front()
    }

    /// A change of a file that happened since this was last asked.
    pub(super) fn poll_change(&mut self) -> Option<Change> {
        self.application.poll_change()
    }

    /// Whether requests that found no room would find some now.
    fn may_put(&self, link: &SimulatedLink) -> bool {
        self.os.queue().is_held_up() && link.has_room_for_requests()
    }

    /// Something has happened on the link.
    pub(super) fn look_at(&mut self, now: Time, link: &SimulatedLink) {
        if link.is_waiting_for_host() || self.may_put(link) || !self.from_disk.is_empty() {
            self.worker.wake(now);
        }
    }

    /// Begins a piece of work at `now`, if it is awake and has something to do: one turn of the server's event loop, with all that is there;
    /// or only what one response brings, and where there is none, what the application does about one event. What is asked for meanwhile
    /// leaves together.
    ///
    /// # Errors
    /// The adapter broke a rule, or the link is gone.
    pub(super) fn begin_work(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        host: &mut HostSide,
    ) -> Result<(), LinkError> {
        if !self.worker.may_begin(now, self.timer()) {
            return Ok(());
        }
        let goes_on = std::mem::take(&mut self.goes_on);
        let meter = host.begin_piece(now, self.worker.is_waking() && !goes_on);
        let most_events = match self.piece {
            Piece::All => usize::MAX,
            // As in an interrupt's handler: what comes goes before the application.
            Piece::One if link.is_waiting_for_host() => 0,
            Piece::One => 1,
        };
        self.os.gather(now, link)?;
        self.link_meter.charge(link, meter);
        while let Some(token) = self.from_disk.pop_front() {
            self.files.handle_disk(token, meter);
        }
        self.files.wake_waiting();
        meter.owner(match self.stack {
            None => Owner::Nic,
            Some(_) => Owner::Host,
        });
        if let Some(stack) = &mut self.stack {
            stack.handle_arrived(now, adapter_end(&mut self.os, link), meter);
            let end = adapter_end(&mut self.os, link);
            stack.settle(now, end, &mut self.files, meter);
        }
        self.run_application(now, link, meter, most_events);
        self.os.transmit(now, link)?;
        self.link_meter.charge(link, meter);
        self.worker.work(host.end_piece(now));
        Ok(())
    }

    /// The application's turn: its timers, and at most so many events. It has none while it sleeps.
    fn run_application(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        meter: &mut HostMeter,
        most_events: usize,
    ) {
        let due = self.application.poll_timeout();
        if due.is_some_and(|due| due <= now) && !self.files.application_sleeps() {
            self.act(now, link, meter, |application, system| {
                application.handle_timeout(now, system);
            });
        }
        for _ in 0..most_events {
            if self.files.application_sleeps() {
                return;
            }
            if let Some(ready) = self.next_ready() {
                self.handle_ready(now, link, meter, ready);
            } else if self.application.has_next() {
                self.act(now, link, meter, |application, system| {
                    application.serve_next(now, system);
                });
            } else {
                return;
            }
        }
    }

    /// The application does something about an event.
    fn handle_ready(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        meter: &mut HostMeter,
        ready: Ready,
    ) {
        let socket = socket_of(ready);
        let stack = self.stack.as_deref();
        if stack.is_some_and(|stack| socket.is_some_and(|socket| stack.is_on_adapter(socket))) {
            meter.owner(Owner::Nic);
        }
        footprint::wait_event(meter, socket.map(|socket| socket.0));
        let before = socket.and_then(|socket| stack?.connection_of(socket));
        self.act(now, link, meter, |application, system| {
            application.step(now, system, ready);
        });
        if let (Some((conn, flow)), Some(stack)) = (before, &self.stack)
            && !stack.has(&flow)
        {
            self.files.handle_left(conn);
        }
    }

    /// Lets the application act on its sockets and files, and the stack send what comes of it.
    fn act(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        meter: &mut HostMeter,
        what: impl FnOnce(&mut Application, &mut Metered<'_>),
    ) {
        let Some(stack) = &mut self.stack else {
            let mut calls = self.os.calls(now, link);
            let mut system = Metered::new(&mut calls, &mut self.files, meter);
            return what(&mut self.application, &mut system);
        };
        let mut calls = stack.calls(now, adapter_end(&mut self.os, link));
        let mut system = Metered::new(&mut calls, &mut self.files, meter);
        what(&mut self.application, &mut system);
        meter.owner(Owner::Host);
        let end = adapter_end(&mut self.os, link);
        stack.settle(now, end, &mut self.files, meter);
    }

    /// The next thing that the application can do about a socket.
    fn next_ready(&mut self) -> Option<Ready> {
        if let Some(socket) = self.files.next_writable() {
            return Some(Ready::Writable(socket));
        }
        match &mut self.stack {
            None => self.os.next_ready(),
            Some(stack) => stack.next_ready(),
        }
    }

    /// Totals of its sockets on the adapter.
    pub(super) fn stats(&self) -> &OsLayerStats {
        self.os.stats()
    }

    /// The host's own stack, if it has one.
    pub(super) fn stack(&self) -> Option<&HostStack> {
        self.stack.as_deref()
    }

    /// What the file cache did; none where all files are in memory.
    pub(super) fn file_cache_stats(&self) -> Option<&FileCacheStats> {
        self.files.cache_stats()
    }

    /// Times that a file ended before what was asked for.
    pub(super) fn files_shrunk(&self) -> u64 {
        self.files.shrunk()
    }

    /// What the adapter's data cache did, and the blocks that it holds and may hold; nothing where none is used.
    pub(super) fn nic_cache(&self) -> Option<(&NicCacheStats, (u32, u32))> {
        let stats = self.os.nic_cache_stats()?;
        Some((stats, self.os.nic_cache_blocks()))
    }

    /// Its queue of requests.
    pub(super) fn queue(&self) -> &baton_bus::DescriptorQueue {
        self.os.queue()
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.os.check();
        self.files.check();
        if let Some(stack) = &self.stack {
            stack.check();
        }
    }
}

fn socket_of(ready: Ready) -> Option<SocketId> {
    match ready {
        Ready::Acceptable => None,
        Ready::Readable(socket) | Ready::Writable(socket) => Some(socket),
    }
}

/// The files of the application, and what of them is in memory.
fn files(experiment: &Experiment, workload: &dyn Workload) -> FileSystem<Symbolic> {
    let store = Box::new(application::files(&experiment.application));
    let mut files = FileSystem::new(&experiment.host.kernel.file_cache, store);
    for (file, bytes) in preloaded(experiment, workload) {
        files.preload(file, bytes);
    }
    files
}
