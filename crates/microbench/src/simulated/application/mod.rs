//! Applications of machines. A test gives frames directly to the driver and takes frames from it, and so do a web server, its clients and a
//! router.

mod connections;
mod datagrams;
mod of_test;
mod router;
mod tcp;
mod web;

pub(in crate::simulated) use datagrams::{Datagrams, LatencySum, Sending, What, hashes};
pub(in crate::simulated) use of_test::{PARTNER, RECEIVER, Senders, UNDER_TEST, of_test};
pub(in crate::simulated) use router::IpRouter;
pub(in crate::simulated) use web::{Clients, WebServer};

use super::counts::Counts;
use super::frame::{Body, Frame};
use super::host::{Meter, Traffic};
use baton_wire::{Flow, Time};
use tcp::{OnTcp, Program, Tcp};

/// One of the processors that share a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Number of this processor, from 0.
    pub(super) core: u8,
    /// Number of processors.
    pub(super) cores: u8,
}

impl Share {
    /// The share of a processor that runs the whole test.
    pub(super) const WHOLE: Self = Self { core: 0, cores: 1 };

    /// Returns this processor's part of `count` items.
    pub(super) fn of(self, count: u64) -> u64 {
        let (core, cores) = (u64::from(self.core), u64::from(self.cores));
        count / cores + u64::from(core < count % cores)
    }
}

/// Application of a machine. All but a router use one NIC.
#[derive(Debug)]
pub(super) enum Application {
    /// Sends datagrams to another machine, or receives them, or both.
    Datagrams(Datagrams),
    /// Uses TCP connections.
    Tcp(Box<OnTcp>),
    /// Forwards IP packets.
    Router(Box<IpRouter>),
}

impl Application {
    /// Creates the application that runs `program` on `tcp`.
    fn on(tcp: Tcp, program: impl Program + 'static) -> Self {
        Self::Tcp(Box::new(OnTcp::new(tcp, program)))
    }

    /// Returns whether the application waits while the ring is full. If not, the driver refuses frames.
    #[inline]
    pub(super) fn waits_for_room(&self) -> bool {
        !matches!(self, Self::Datagrams(_))
    }

    /// Returns whether the application may have a frame to send through a NIC.
    pub(super) fn wants_to_send(&self, now: Time, nic: u8) -> bool {
        match self {
            Self::Datagrams(datagrams) => datagrams.next_due() <= now,
            Self::Tcp(on_tcp) => on_tcp.wants_to_send(now),
            Self::Router(router) => router.wants_to_send(nic),
        }
    }

    /// Returns the next frame to send through a NIC.
    pub(super) fn poll_send(&mut self, now: Time, nic: u8) -> Option<Frame> {
        match self {
            Self::Datagrams(datagrams) => datagrams.poll_send(now),
            Self::Tcp(on_tcp) => on_tcp.poll_send(now),
            Self::Router(router) => router.poll_send(nic),
        }
    }

    /// Returns when the application may next want to send if nothing arrives.
    #[inline]
    pub(super) fn next_due(&self) -> Time {
        match self {
            Self::Datagrams(datagrams) => datagrams.next_due(),
            Self::Tcp(on_tcp) => on_tcp.next_due(),
            Self::Router(_) => Time::NEVER,
        }
    }

    /// Handles a frame that has reached host memory.
    pub(super) fn deliver(&mut self, now: Time, frame: &Frame) {
        if let Self::Datagrams(datagrams) = self {
            datagrams.deliver(now, frame);
        }
    }

    /// Handles a frame that the driver of a NIC delivers.
    pub(super) fn receive(&mut self, now: Time, nic: u8, frame: Frame) {
        match self {
            Self::Datagrams(datagrams) => datagrams.receive(frame),
            Self::Tcp(on_tcp) => {
                if let Body::Segment(segment) = frame.body {
                    on_tcp.receive(now, *segment);
                }
            }
            Self::Router(router) => router.receive(nic, frame),
        }
    }

    /// Returns whether the application has work other than sending.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        match self {
            Self::Datagrams(_) => false,
            Self::Tcp(on_tcp) => on_tcp.program.has_work(),
            Self::Router(router) => router.has_work(),
        }
    }

    /// Does the next piece of work; returns false if there was none.
    pub(super) fn work(&mut self, now: Time, meter: &mut Meter<'_>) -> bool {
        match self {
            Self::Datagrams(_) => false,
            Self::Tcp(on_tcp) => on_tcp.work(now, meter),
            Self::Router(router) => router.work(now, meter),
        }
    }

    /// Returns how the host has to handle a frame that the application receives or sends.
    pub(super) fn traffic(&self, frame: &Frame, is_received: bool) -> Traffic {
        match (&frame.body, self) {
            (Body::Segment(segment), Self::Tcp(on_tcp)) => on_tcp.traffic(&match is_received {
                true => segment.flow_at_receiver(),
                false => Flow {
                    local: segment.src,
                    remote: segment.dst,
                },
            }),
            (Body::Segment(_), _) => Traffic::Segment,
            _ => Traffic::Datagram,
        }
    }

    /// Returns the application's counts by `now`.
    pub(super) fn counts(&self, now: Time) -> Counts {
        match self {
            Self::Datagrams(datagrams) => datagrams.counts(now),
            Self::Tcp(on_tcp) => on_tcp.program.counts(now),
            Self::Router(router) => router.counts,
        }
    }
}
