//! The kernel's sockets for the web server: for comparison, where nothing else is available, or to hand off connections to an adapter
//! beside the kernel.
//!
//! Designed for speed in a single thread: edge-triggered readiness, no system calls that find nothing to do, and one call per response.

#[cfg(test)]
mod tests;

use crate::adapter::ApplicationRow;
use crate::clock::Clock;
use crate::remote::{LinkNews, LinkWatch, application_row, link_counters};
use crate::snapshot::{SnapshotSource, add_handoffs};
use crate::world::SocketWorld;
use baton_host::Ready;
use baton_host::layer::{LayerCalls, SocketLayer};
use baton_sockets::kernel::{Handoff, KernelLayer, KernelStack, KernelStats, PlaceRow};
use baton_sockets::{Driver, HostEnd};
use baton_wire::{Endpoint, Time};
use bytes::Bytes;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

/// Callback for events of a link.
pub type Told = Box<dyn FnMut(&LinkNews)>;

/// An adapter beside the kernel.
pub struct KernelHandoff {
    /// Driver of the adapter's sockets.
    pub driver: Driver,
    /// Moves connections to the adapter.
    pub handoff: Handoff,
    /// Called for events of the link.
    pub tell: Told,
}

struct Attached {
    driver: Driver,
    watch: LinkWatch<Told>,
}

/// Sockets whose connections belong to the kernel until they are handed off.
pub struct KernelSockets {
    kernel: KernelLayer,
    adapter: Option<Attached>,
    clock: Clock,
}

impl KernelSockets {
    /// Creates an instance without sockets, for at most `most_sockets` connections.
    ///
    /// # Errors
    /// The system cannot create another epoll instance, or the adapter has no space for this application.
    pub fn new(
        most_sockets: usize,
        clock: Clock,
        adapter: Option<KernelHandoff>,
    ) -> io::Result<Self> {
        let Some(KernelHandoff {
            mut driver,
            handoff,
            tell,
        }) = adapter
        else {
            return Ok(Self {
                kernel: KernelLayer::new(most_sockets, None)?,
                adapter: None,
                clock,
            });
        };
        let mut kernel = KernelLayer::new(most_sockets, Some(handoff))?;
        kernel.stack_mut().wait_also_for(driver.as_fd())?;
        kernel.follow_limits(&mut driver)?;
        let watch = LinkWatch::new(tell);
        Ok(Self {
            kernel,
            adapter: Some(Attached { driver, watch }),
            clock,
        })
    }

    /// Listens at `port` on all addresses. Returns one endpoint for each version of IP that the system supports.
    ///
    /// # Errors
    /// The port is in use, or may not be used.
    pub fn listen(&mut self, port: u16, backlog: u32) -> io::Result<Vec<Endpoint>> {
        let mut at = Vec::new();
        for addr in [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ] {
            let wanted = SocketAddr::new(addr, port);
            match self.kernel.listen(wanted, backlog, true) {
                Ok((_, local)) => at.push(Endpoint::new(local.ip(), local.port())),
                // The system does not support this version.
                Err(error) if error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    /// Returns the counters of the kernel's part.
    pub fn stats(&self) -> KernelStats {
        *self.kernel.stack().stats()
    }

    /// Returns the socket layer.
    pub fn layer(&self) -> &SocketLayer<Bytes> {
        self.kernel.layer()
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
        let now = self.clock.now();
        let Some(Attached { driver, watch }) = &mut self.adapter else {
            self.kernel.turn(now, None);
            return Ok(());
        };
        driver.look_for_adapter();
        self.kernel.turn(now, Some(driver));
        watch.look(driver);
        Ok(())
    }

    fn submit(&mut self) {
        if let Some(Attached { driver, .. }) = &mut self.adapter {
            driver.transmit();
        }
    }

    fn next_ready(&mut self) -> Option<Ready> {
        self.kernel.layer_mut().next_ready()
    }

    fn calls(&mut self) -> Self::Calls<'_> {
        let driver = self.adapter.as_mut().map(|attached| &mut attached.driver);
        self.kernel.calls(self.clock.now(), driver)
    }

    fn unlisten(&mut self) {
        self.kernel.unlisten();
    }

    fn wait(&mut self, due: Time) -> io::Result<()> {
        let due = self.kernel.poll_timeout().map_or(due, |own| own.min(due));
        let span = Duration::from(due.saturating_since(self.clock.now()));
        let longest = match &mut self.adapter {
            None => span,
            Some(Attached { driver, .. }) => {
                let of_driver = driver.before_wait()?;
                of_driver.map_or(span, |of_driver| of_driver.min(span))
            }
        };
        self.kernel.stack_mut().wait(longest)
    }
}

impl SnapshotSource for KernelSockets {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        let (layer, kernel) = (self.layer().stats(), self.kernel.stack().stats());
        for (name, value) in [
            ("open", self.layer().len() as u64),
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
            add_handoffs(self.layer(), driver.os().soft_limit(), counters);
            for (name, value) in [
                ("not_taken", kernel.not_taken),
                ("not_given_back", kernel.not_given_back),
                ("options_not_kept", kernel.options_not_kept),
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
        let states = self.layer().states().filter(|_| self.adapter.is_some());
        states.map(|state| PlaceRow::new(now, &state)).collect()
    }
}
