//! What a test does on a machine: it replays frames into the driver, and takes what the driver gives.

mod connections;
mod datagrams;
mod tcp;

pub(in crate::simulated) use connections::{Acceptor, Initiator};
pub(in crate::simulated) use datagrams::{Datagrams, Sending};
pub(in crate::simulated) use tcp::{Sink, Source};

use super::frame::{Body, Frame, Segment};
use baton_wire::Time;
use slab::Slab;

/// A frame that a test gives to the driver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) len: u16,
    pub(super) to: u8,
    pub(super) body: Body,
}

impl Outgoing {
    /// The frame, given at `now`.
    pub(super) fn frame(&self, now: Time) -> Frame {
        Frame {
            len: self.len,
            to: self.to,
            born: now,
            body: self.body,
        }
    }
}

/// What a machine is for.
#[derive(Debug)]
pub(super) enum Application {
    /// Datagrams to another machine, or from one, or both.
    Datagrams(Datagrams),
    /// Sends over TCP connections.
    Source(Box<Source>),
    /// Receives over TCP connections.
    Sink(Box<Sink>),
    /// Opens and closes TCP connections.
    Initiator(Box<Initiator>),
    /// Takes them.
    Acceptor(Box<Acceptor>),
}

impl Application {
    /// Whether a full ring makes it wait. If not, the driver refuses frames.
    pub(super) fn waits_for_room(&self) -> bool {
        !matches!(self, Self::Datagrams(_))
    }

    /// Whether it may have a frame to send.
    pub(super) fn wants_to_send(&self, now: Time) -> bool {
        match self {
            Self::Datagrams(datagrams) => datagrams.wants_to_send(now),
            Self::Source(source) => source.tcp.may_transmit(),
            Self::Sink(sink) => sink.tcp.may_transmit(),
            Self::Initiator(initiator) => {
                initiator.tcp.may_transmit() || initiator.next_due() <= now
            }
            Self::Acceptor(acceptor) => acceptor.tcp.may_transmit(),
        }
    }

    /// The next frame to send.
    pub(super) fn poll_send(
        &mut self,
        now: Time,
        segments: &mut Slab<Segment>,
    ) -> Option<Outgoing> {
        match self {
            Self::Datagrams(datagrams) => datagrams.poll_send(now),
            Self::Source(source) => source.poll_send(now, segments),
            Self::Sink(sink) => sink.tcp.poll_send(now, segments),
            Self::Initiator(initiator) => initiator.poll_send(now, segments),
            Self::Acceptor(acceptor) => acceptor.tcp.poll_send(now, segments),
        }
    }

    /// When it may want to send next, if nothing arrives.
    pub(super) fn next_due(&self) -> Time {
        match self {
            Self::Datagrams(datagrams) => datagrams.next_due(),
            Self::Source(source) => source.tcp.next_due(),
            Self::Sink(sink) => sink.tcp.next_due(),
            Self::Initiator(initiator) => initiator.next_due(),
            Self::Acceptor(acceptor) => acceptor.tcp.next_due(),
        }
    }

    /// A frame has reached its memory.
    pub(super) fn deliver(&mut self, now: Time, frame: &Frame) {
        if let Self::Datagrams(datagrams) = self {
            datagrams.deliver(now, frame);
        }
    }

    /// The driver gives it a frame.
    pub(super) fn receive(&mut self, now: Time, frame: &Frame, segments: &mut Slab<Segment>) {
        let Body::Segment(key) = frame.body else {
            return;
        };
        let segment = segments.remove(key);
        match self {
            Self::Datagrams(_) => {}
            Self::Source(source) => source.receive(now, segment),
            Self::Sink(sink) => sink.receive(now, segment),
            Self::Initiator(initiator) => initiator.receive(now, segment),
            Self::Acceptor(acceptor) => acceptor.receive(now, segment),
        }
    }
}
