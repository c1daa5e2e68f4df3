//! Applications of machines. A test gives frames directly to the driver and takes frames from it, and so do a web server, its clients and a
//! router.

mod connections;
mod datagrams;
mod of_test;
mod router;
mod tcp;
mod web;

pub(in crate::simulated) use connections::{Acceptor, Initiator};
pub(in crate::simulated) use datagrams::{Datagrams, LatencySum, Sending, What, hashes};
pub(in crate::simulated) use of_test::{PARTNER, RECEIVER, Senders, UNDER_TEST, of_test};
pub(in crate::simulated) use router::{IpRouter, RouterCounts};
pub(in crate::simulated) use tcp::{Sink, Source};
pub(in crate::simulated) use web::{ClientCounts, Clients, WebServer};

use super::frame::{Body, Contents, Frame};
use super::host::{Meter, Traffic};
use baton_wire::Time;
use std::num::NonZeroU64;
use tcp::Tcp;

/// A frame that an application gives to the driver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) len: u16,
    pub(super) to: u8,
    pub(super) body: Body,
    /// RSS hash of the frame.
    pub(super) hash: u32,
    /// Address of the frame in memory, if it is not in a buffer of its own.
    pub(super) lies_at: Option<NonZeroU64>,
}

impl Outgoing {
    /// Returns the frame for a queue, given to the driver at `now`.
    pub(super) fn frame(&self, now: Time, queue: u8) -> Frame {
        Frame {
            len: self.len,
            to: self.to,
            born: now,
            body: self.body,
            hash: self.hash,
            queue,
        }
    }
}

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
    /// Sends over TCP connections.
    Source(Box<Source>),
    /// Receives over TCP connections.
    Sink(Box<Sink>),
    /// Opens and closes TCP connections.
    Initiator(Box<Initiator>),
    /// Accepts TCP connections, and closes them after the partner has.
    Acceptor(Box<Acceptor>),
    /// Forwards IP packets.
    Router(Box<IpRouter>),
    /// Answers requests for files.
    WebServer(Box<WebServer>),
    /// Request files.
    Clients(Box<Clients>),
}

impl Application {
    /// Returns whether the application waits while the ring is full. If not, the driver refuses frames.
    #[inline]
    pub(super) fn waits_for_room(&self) -> bool {
        !matches!(self, Self::Datagrams(_))
    }

    /// Returns the application's TCP, if it has one.
    fn tcp(&self) -> Option<&Tcp> {
        match self {
            Self::Source(source) => Some(&source.tcp),
            Self::Sink(sink) => Some(&sink.tcp),
            Self::Initiator(initiator) => Some(&initiator.tcp),
            Self::Acceptor(acceptor) => Some(&acceptor.tcp),
            Self::WebServer(server) => Some(&server.tcp),
            Self::Clients(clients) => Some(&clients.tcp),
            Self::Datagrams(_) | Self::Router(_) => None,
        }
    }

    /// Returns whether the application may have a frame to send through a NIC.
    pub(super) fn wants_to_send(&self, now: Time, nic: u8) -> bool {
        match self {
            Self::Datagrams(datagrams) => datagrams.wants_to_send(now),
            Self::Initiator(initiator) => {
                initiator.tcp.may_transmit() || initiator.next_due() <= now
            }
            Self::Router(router) => router.wants_to_send(nic),
            _ => self.tcp().is_some_and(Tcp::may_transmit),
        }
    }

    /// Returns the next frame to send through a NIC.
    pub(super) fn poll_send(
        &mut self,
        now: Time,
        nic: u8,
        contents: &mut Contents,
    ) -> Option<Outgoing> {
        let segments = &mut contents.segments;
        match self {
            Self::Datagrams(datagrams) => datagrams.poll_send(now, &mut contents.packets),
            Self::Source(source) => source.poll_send(now, segments),
            Self::Sink(sink) => sink.tcp.poll_send(now, segments),
            Self::Initiator(initiator) => initiator.poll_send(now, segments),
            Self::Acceptor(acceptor) => acceptor.tcp.poll_send(now, segments),
            Self::Router(router) => router.poll_send(nic),
            Self::WebServer(server) => server.poll_send(now, segments),
            Self::Clients(clients) => clients.poll_send(now, segments),
        }
    }

    /// Returns when the application may next want to send if nothing arrives.
    #[inline]
    pub(super) fn next_due(&self) -> Time {
        match self {
            Self::Datagrams(datagrams) => datagrams.next_due(),
            Self::Initiator(initiator) => initiator.next_due(),
            Self::Clients(clients) => clients.next_due(),
            _ => self.tcp().map_or(Time::NEVER, Tcp::next_due),
        }
    }

    /// Handles a frame that has reached host memory.
    pub(super) fn deliver(&mut self, now: Time, frame: &Frame) {
        if let Self::Datagrams(datagrams) = self {
            datagrams.deliver(now, frame);
        }
    }

    /// Handles a frame, at an address in memory, that the driver of a NIC delivers.
    pub(super) fn receive(
        &mut self,
        now: Time,
        (nic, lies_at): (u8, NonZeroU64),
        frame: &Frame,
        contents: &mut Contents,
    ) {
        let key = match (frame.body, &mut *self) {
            (Body::Packet(key), Self::Router(router)) => {
                return router.receive(nic, lies_at, key, &mut contents.packets);
            }
            (Body::Segment(key), _) => key,
            #[cfg(test)]
            (Body::Packet(key), Self::Datagrams(datagrams)) => {
                datagrams.take(contents.packets.bytes_mut(key));
                return contents.packets.remove(key);
            }
            (body, _) => return contents.forget(body),
        };
        let segment = contents.segments.remove(key);
        match self {
            Self::Datagrams(_) | Self::Router(_) => {}
            Self::Source(source) => source.receive(now, segment),
            Self::Sink(sink) => sink.receive(now, segment),
            Self::Initiator(initiator) => initiator.receive(now, segment),
            Self::Acceptor(acceptor) => acceptor.receive(now, segment),
            Self::WebServer(server) => server.receive(now, segment),
            Self::Clients(clients) => clients.receive(now, segment),
        }
    }

    /// Returns whether the application has work other than sending.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        match self {
            Self::Router(router) => router.has_work(),
            Self::WebServer(server) => server.has_work(),
            _ => false,
        }
    }

    /// Does the next piece of work; returns false if there was none.
    pub(super) fn work(
        &mut self,
        now: Time,
        meter: &mut Meter<'_>,
        contents: &mut Contents,
    ) -> bool {
        match self {
            Self::Router(router) => router.work(now, meter, &mut contents.packets),
            Self::WebServer(server) => server.work(now, meter),
            _ => false,
        }
    }

    /// Returns how the host has to handle a received frame.
    pub(super) fn traffic_in(&self, frame: &Frame, contents: &Contents) -> Traffic {
        match (frame.body, self) {
            (Body::Segment(key), Self::WebServer(server)) => {
                let flow = contents.segments[key].flow_at_receiver();
                Traffic::Socket(server.connection(&flow))
            }
            (Body::Segment(_), _) => Traffic::Segment,
            _ => Traffic::Datagram,
        }
    }

    /// Returns how the host has to handle a frame that the application sends.
    pub(super) fn traffic_out(&self, next: &Outgoing, contents: &Contents) -> Traffic {
        match (next.body, self) {
            (Body::Segment(key), Self::WebServer(server)) => {
                let sent = &contents.segments[key];
                let (local, remote) = (sent.src, sent.dst);
                Traffic::Socket(server.connection(&baton_wire::Flow { local, remote }))
            }
            (Body::Segment(_), _) => Traffic::Segment,
            _ => Traffic::Datagram,
        }
    }
}
