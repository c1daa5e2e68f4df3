//! The kernel's sockets, for the web server: to compare with, where there is nothing else, or to hand connections from to an adapter beside
//! the kernel.
//!
//! As good as one thread can do it: edge-triggered readiness, no system call to find out that there is nothing, and one
//! call for a whole response.

mod socket;
mod stack;

#[cfg(test)]
mod tests;

pub use stack::KernelStats;

use crate::adapter::ApplicationRow;
use crate::broker::BrokerClient;
use crate::clock::Clock;
use crate::places::PlaceRow;
use crate::remote::{LinkNews, LinkWatch, application_row, link_counters};
use crate::snapshot::{SnapshotSource, add_handoffs};
use crate::world::SocketWorld;
use baton_host::layer::{AdapterEnd, AdapterId, LayerCalls, SocketLayer};
use baton_host::{Ready, Selection};
use baton_sockets::{Driver, HostEnd};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use rustix::io::Errno;
use stack::KernelStack;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::slice;
use std::time::Duration;

/// The only one, if there is one.
const ADAPTER: AdapterId = AdapterId(0);

/// Between two moves of a connection there is time for several retransmission timeouts: each move forgets congestion window and round trip.
const LEAST_STAY: Span = Span::from_secs(1);

/// Is told what befalls a link.
pub type Told = Box<dyn FnMut(&LinkNews)>;

/// An adapter beside the kernel.
pub struct KernelHandoff {
    /// Its sockets.
    pub driver: Driver,
    /// Who takes connections out of the kernel.
    pub broker: BrokerClient,
    /// Which connections go to the adapter.
    pub selection: Box<dyn Selection>,
    /// Is told what befalls the link.
    pub tell: Told,
}

struct Attached {
    driver: Driver,
    watch: LinkWatch<Told>,
}

/// Sockets whose connections are the kernel's, until they are handed off.
pub struct KernelSockets {
    stack: KernelStack,
    layer: SocketLayer<Bytes>,
    adapter: Option<Attached>,
    clock: Clock,
}

impl KernelSockets {
    /// No sockets yet, and at most so many connections.
    ///
    /// # Errors
    /// The system has no room for another epoll instance.
    pub fn new(
        most_sockets: usize,
        clock: Clock,
        handoff: Option<KernelHandoff>,
    ) -> io::Result<Self> {
        let (broker, selection, adapter) = match handoff {
            None => (None, None, None),
            Some(handoff) => {
                let KernelHandoff { driver, tell, .. } = handoff;
                let watch = LinkWatch::new(tell);
                let attached = Attached { driver, watch };
                (
                    Some(handoff.broker),
                    Some(handoff.selection),
                    Some(attached),
                )
            }
        };
        let mut stack = KernelStack::new(broker)?;
        if let Some(Attached { driver, .. }) = &adapter {
            stack.wait_also_for(driver.as_fd())?;
        }
        let mut layer = SocketLayer::new(most_sockets, selection);
        layer.set_least_stay(LEAST_STAY);
        Ok(Self {
            stack,
            layer,
            adapter,
            clock,
        })
    }

    /// Listens at `port` on all addresses. Gives where, one for each version of IP that the system has.
    ///
    /// # Errors
    /// The port is in use, or may not be used.
    pub fn listen(&mut self, port: u16, backlog: u32) -> io::Result<Vec<Endpoint>> {
        let mut at = Vec::new();
        for addr in [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ] {
            match self.stack.listen(SocketAddr::new(addr, port), backlog) {
                Ok(listener) => {
                    self.layer.add_listener(listener, ADAPTER);
                    at.push(Endpoint::new(addr, port));
                }
                // A system without this version.
                Err(error) if error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(Attached { driver, .. }) = &mut self.adapter {
            // No packets come by it beside a kernel, but by it the adapter tells Soft_Limit.
            let (now, any) = (
                driver.now(),
                Endpoint::new(Ipv4Addr::UNSPECIFIED.into(), port),
            );
            driver
                .os_mut()
                .packet_socket(now, any)
                .map_err(|status| io::Error::other(status.to_string()))?;
        }
        Ok(at)
    }

    /// Totals of the kernel's part.
    pub fn stats(&self) -> KernelStats {
        self.stack.stats
    }

    /// Its sockets.
    pub fn layer(&self) -> &SocketLayer<Bytes> {
        &self.layer
    }

    fn take_events(&mut self) {
        while let Some((conn, event)) = self.stack.poll_event() {
            self.layer.handle_event(&mut self.stack, conn, &event);
        }
    }
}

/// The adapter, if there is one.
fn ends(adapter: &mut Option<Attached>) -> &mut [AdapterEnd<Bytes, HostEnd>] {
    match adapter {
        Some(Attached { driver, .. }) => slice::from_mut(driver.adapter_end()),
        None => &mut [],
    }
}

impl SocketWorld for KernelSockets {
    type Calls<'a>
        = LayerCalls<'a, Bytes, HostEnd, KernelStack>
    where
        Self: 'a;

    fn name(&self) -> String {
        match &self.adapter {
            None => "the kernel's sockets".to_owned(),
            Some(Attached { driver, .. }) => format!(
                "the kernel's sockets, handed off to the adapter at {}",
                driver.address()
            ),
        }
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn turn(&mut self) -> io::Result<()> {
        if let Some(Attached { driver, watch }) = &mut self.adapter {
            driver.turn();
            if watch.look(driver) {
                self.layer.handle_adapter_lost(ADAPTER);
            }
            let ends = slice::from_mut(driver.adapter_end());
            self.layer
                .handle_adapters(self.clock.now(), &mut self.stack, ends);
        }
        self.take_events();
        if let Some(Attached { driver, .. }) = &mut self.adapter {
            driver.turn();
        }
        Ok(())
    }

    fn next_ready(&mut self) -> Option<Ready> {
        self.layer.next_ready()
    }

    fn calls(&mut self) -> Self::Calls<'_> {
        let now = self.clock.now();
        self.layer
            .calls(now, &mut self.stack, ends(&mut self.adapter))
    }

    fn unlisten(&mut self) {
        self.layer.take_listeners().for_each(drop);
        self.stack.unlisten();
    }

    fn wait(&mut self, due: Time) -> io::Result<()> {
        let span = Duration::from(due.saturating_since(self.clock.now()));
        let longest = match &mut self.adapter {
            None => span,
            Some(Attached { driver, .. }) => {
                let of_driver = driver.before_wait()?;
                of_driver.map_or(span, |of_driver| of_driver.min(span))
            }
        };
        self.stack.wait(longest)
    }
}

impl SnapshotSource for KernelSockets {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        let (layer, kernel) = (self.layer.stats(), &self.stack.stats);
        for (name, value) in [
            ("open", self.layer.len() as u64),
            ("accepted", layer.accepted),
            (
                "accepts_deferred",
                layer.accepts_deferred + kernel.accepts_deferred,
            ),
            (
                "ended_abnormally",
                layer.ended_abnormally + kernel.ended_abnormally,
            ),
            ("waits", kernel.waits),
        ] {
            counters.insert(format!("sockets.{name}"), value);
        }
        if let Some(Attached { driver, .. }) = &self.adapter {
            link_counters(driver, counters);
            add_handoffs(&self.layer, driver.os().soft_limit(), counters);
            for (name, value) in [
                ("not_taken", kernel.not_taken),
                ("not_given_back", kernel.not_given_back),
            ] {
                counters.insert(format!("handoff.{name}"), value);
            }
        }
    }

    fn applications(&self, now: Time) -> Vec<ApplicationRow> {
        let attached = self.adapter.iter();
        attached
            .map(|attached| application_row(&attached.driver, now, 0))
            .collect()
    }

    fn places(&self, now: Time) -> Vec<PlaceRow> {
        let states = self.layer.states().filter(|_| self.adapter.is_some());
        states.map(|state| PlaceRow::new(now, &state)).collect()
    }
}
