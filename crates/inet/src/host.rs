//! An interface and a stack joined: frames in, frames out, connections between.

use crate::icmp::Quote;
use crate::interface::{Received, empty_segment};
use crate::{ConfigError, Interface, InterfaceConfig, Refusal, Sent};
use baton_tcp::{Config, Handled, PathError, Segment, Stack};
use baton_wire::{Buffer, Flow, SeqNr, Time};
use bytes::Bytes;

/// What a frame was to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A segment, and what the stack did with it.
    Segment(Handled),
    /// News of a segment that this host sent, and why the stack did not take it in, if it did not.
    PathError(Result<(), baton_tcp::Refusal>),
    /// Something the interface sees to itself.
    Consumed,
    /// Not taken in by the interface.
    Refused(Refusal),
}

/// A host with one interface.
///
/// Calling order: after `handle_frame`, `handle_timeouts` or anything done to the stack, poll the stack's events and
/// [`Host::poll_frame`] until each gives nothing, and the events once more: a segment that cannot be sent may end a connection.
/// Call [`Host::handle_timeouts`] when [`Host::poll_timeout`]'s moment has come.
/// Time never goes back.
#[derive(Debug)]
pub struct Host {
    stack: Stack<Bytes>,
    interface: Interface,
    /// The segment that arrived last, without its data: segments are too large to be moved about.
    arrived: Segment<Bytes>,
}

impl Host {
    /// A host whose connections have parameters `config`, as long as they are not given others. `secret` seeds what must not
    /// be guessed.
    ///
    /// # Errors
    /// When the interface cannot work with its parameters.
    pub fn new(
        interface: InterfaceConfig,
        config: Config,
        secret: u64,
    ) -> Result<Self, ConfigError> {
        let interface = Interface::new(interface)?;
        Ok(Self::join(Stack::new(config, secret), interface))
    }

    /// A host made of a stack and an interface.
    pub fn join(stack: Stack<Bytes>, interface: Interface) -> Self {
        Self {
            stack,
            interface,
            arrived: empty_segment(),
        }
    }

    // --- getters ---

    /// Its connections.
    pub fn stack(&self) -> &Stack<Bytes> {
        &self.stack
    }

    /// Its connections, to work with. Poll frames afterwards.
    pub fn stack_mut(&mut self) -> &mut Stack<Bytes> {
        &mut self.stack
    }

    /// Its interface.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Its interface, to work with. Poll frames afterwards.
    pub fn interface_mut(&mut self) -> &mut Interface {
        &mut self.interface
    }

    /// When [`Host::handle_timeouts`] must next be called, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (stack, interface) = (self.stack.poll_timeout(), self.interface.poll_timeout());
        [stack, interface].into_iter().flatten().min()
    }

    // --- events in ---

    /// Takes in a frame, and hands what it carries to the stack.
    pub fn handle_frame(&mut self, now: Time, frame: Bytes) -> Arrived {
        match self.interface.receive(now, frame, &mut self.arrived) {
            Received::Segment => {
                let handled = self.stack.handle_lent(now, &mut self.arrived);
                if handled.new_ack {
                    self.interface.confirm(now, self.arrived.src.addr);
                }
                Arrived::Segment(handled)
            }
            Received::PathError(Quote { flow, seq }, error) => {
                Arrived::PathError(self.stack.handle_path_error(now, &flow, seq, error))
            }
            Received::Consumed => Arrived::Consumed,
            Received::Refused(reason) => Arrived::Refused(reason),
        }
    }

    /// Runs the timers that are due.
    pub fn handle_timeouts(&mut self, now: Time) {
        self.interface.handle_timeouts(now);
        while let Some((flow, seq, error)) = self.interface.poll_path_error() {
            self.report(now, &flow, seq, error);
        }
        self.stack.handle_timeouts(now);
    }

    /// Tells the stack of a segment that could not be sent. It counts those that it has no use for.
    fn report(&mut self, now: Time, flow: &Flow, seq: SeqNr, error: PathError) {
        let _ = self.stack.handle_path_error(now, flow, seq, error);
    }

    // --- effects out ---

    /// Appends the next frame to send to `frame`; false when there is none.
    pub fn poll_frame(&mut self, now: Time, frame: &mut impl Buffer) -> bool {
        if self.interface.poll_frame(now, frame) {
            return true;
        }
        while let Some(segment) = self.stack.poll_outgoing(now) {
            match self.interface.send(now, &segment, frame) {
                Sent::Frame => return true,
                Sent::Waits => {
                    // The request for its neighbour, if this was the first.
                    if self.interface.poll_frame(now, frame) {
                        return true;
                    }
                }
                Sent::Refused(reason) => {
                    if let Some(error) = reason.path_error(self.interface.mtu()) {
                        let flow = Flow {
                            local: segment.src,
                            remote: segment.dst,
                        };
                        let seq = segment.header.seq;
                        self.report(now, &flow, seq, error);
                    }
                }
            }
        }
        false
    }

    /// Asserts every invariant of the stack and the interface.
    pub fn check(&self) {
        self.stack.check();
        self.interface.check();
    }
}
