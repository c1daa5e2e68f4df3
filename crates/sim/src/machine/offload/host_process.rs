//! The host's process: an application above the sockets.

use super::super::host_side::HostSide;
use super::super::meter::HostMeter;
use super::super::program::Program;
use super::super::subnets;
use super::data::LinkData;
use super::host_stack::{HostStack, adapter_end};
use super::link::SimulatedLink;
use super::metered::{LinkMeter, Metered};
use super::worker::Worker;
use crate::config::{EstablishedBy, Experiment, Invalid, OffloadHostConfig, Piece};
use baton_bus::BatchingRule;
use baton_bus::link::LinkError;
use baton_host::offload::{OsLayer, OsLayerStats};
use baton_host::{Meter, Owner, Ready, Selection, SocketId, footprint};
use baton_wire::Time;

/// The process with all that is its own.
pub(super) struct HostProcess {
    os: OsLayer<LinkData>,
    /// None: all connections are on the adapter.
    stack: Option<Box<HostStack>>,
    program: Program,
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
        selection: Option<Box<dyn Selection>>,
    ) -> Result<Self, Invalid> {
        let mut os = OsLayer::new(config.interface.clone())
            .map_err(|error| Invalid::new("offload.host.interface", error, "one that can work"))?;
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
                let selection = selection.unwrap_or_else(policy);
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
            program: Program::new(&experiment.application),
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
        let all = [
            self.os.poll_timeout(),
            self.program.poll_timeout(),
            of_stack,
        ];
        all.into_iter().flatten().min()
    }

    /// Ends the piece of work that ends at `now`, and releases what goes onto the link.
    pub(super) fn end_work(&mut self, now: Time, link: &mut SimulatedLink) {
        if self.worker.ends(now) {
            link.release_host(now);
            let is_left = self.piece == Piece::One && self.has_ready();
            if link.is_waiting_for_host() || self.may_put(link) || is_left {
                self.worker.go_on(now);
                self.goes_on = self.piece == Piece::One;
            }
        }
    }

    /// Whether the application has something to do.
    fn has_ready(&self) -> bool {
        match &self.stack {
            None => self.os.has_ready(),
            Some(stack) => stack.has_ready(),
        }
    }

    /// Whether requests that found no room would find some now.
    fn may_put(&self, link: &SimulatedLink) -> bool {
        self.os.queue().is_held_up() && link.has_room_for_requests()
    }

    /// Something has happened on the link.
    pub(super) fn look_at(&mut self, now: Time, link: &SimulatedLink) {
        if link.is_waiting_for_host() || self.may_put(link) {
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
        match &mut self.stack {
            None => self.run_on_adapter(now, link, meter, most_events),
            Some(_) => self.run_on_both(now, link, meter, most_events),
        }
        self.os.transmit(now, link)?;
        self.link_meter.charge(link, meter);
        self.worker.work(host.end_piece(now));
        Ok(())
    }

    /// The application's turn where all sockets are the adapter's.
    fn run_on_adapter(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        meter: &mut HostMeter,
        most_events: usize,
    ) {
        meter.owner(Owner::Nic);
        self.program
            .handle_timeouts(now, &mut Metered::new(self.os.calls(now, link), meter));
        for _ in 0..most_events {
            let Some(ready) = self.os.next_ready() else {
                break;
            };
            charge_event(ready, meter);
            let mut sockets = Metered::new(self.os.calls(now, link), meter);
            self.program.step(now, &mut sockets, ready);
        }
    }

    /// The turn of the host's own stack, and of the application above it.
    fn run_on_both(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        meter: &mut HostMeter,
        most_events: usize,
    ) {
        let Some(stack) = &mut self.stack else { return };
        meter.owner(Owner::Host);
        stack.handle_arrived(now, adapter_end(&mut self.os, link), meter);
        let calls = stack.calls(now, adapter_end(&mut self.os, link));
        self.program
            .handle_timeouts(now, &mut Metered::new(calls, meter));
        stack.settle(now, adapter_end(&mut self.os, link), meter);
        for _ in 0..most_events {
            let Some(ready) = stack.next_ready() else {
                return;
            };
            let is_on_adapter = socket_of(ready).is_some_and(|socket| stack.is_on_adapter(socket));
            if is_on_adapter {
                meter.owner(Owner::Nic);
            }
            charge_event(ready, meter);
            let calls = stack.calls(now, adapter_end(&mut self.os, link));
            self.program
                .step(now, &mut Metered::new(calls, meter), ready);
            meter.owner(Owner::Host);
            stack.settle(now, adapter_end(&mut self.os, link), meter);
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

    /// Its queue of requests.
    pub(super) fn queue(&self) -> &baton_bus::DescriptorQueue {
        self.os.queue()
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.os.check();
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

/// The wait tells of an event.
fn charge_event(ready: Ready, meter: &mut HostMeter) {
    footprint::wait_event(meter, socket_of(ready).map(|socket| socket.0));
}
