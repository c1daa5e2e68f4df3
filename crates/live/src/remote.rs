//! The sockets of an adapter in another process, for the web server.

use crate::adapter::{ApplicationRow, BusRow, RingRow};
use crate::snapshot::{SnapshotSource, add_fields, snake_case};
use crate::world::SocketWorld;
use baton_bus::descriptor::Status;
use baton_host::adapter::{Calls, OsLayer};
use baton_host::{Ready, SocketId};
use baton_sockets::{Driver, HostEnd};
use baton_wire::{Endpoint, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Maximum time until the driver is checked again for an answer of the adapter.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The error of a listener that the adapter refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the adapter does not let this process listen at {at}: {status}")]
pub struct CannotListen {
    /// Endpoint of the listener.
    pub at: Endpoint,
    /// Status that the adapter reported.
    pub status: Status,
}

/// An event of the link, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// The link is lost; the text gives the reason.
    Lost(String),
    /// The application is attached again.
    Attached,
}

/// The sockets of an adapter.
pub struct AdapterSockets<N> {
    driver: Driver,
    listeners: Vec<(SocketId, Endpoint)>,
    watch: LinkWatch<N>,
}

/// Reports the loss of the link, and the next attachment.
pub(crate) struct LinkWatch<N> {
    tell: N,
    /// State of the link that was last reported.
    attached: bool,
}

impl<N: FnMut(&LinkNews)> LinkWatch<N> {
    /// Creates a watch of a link that is attached.
    pub(crate) fn new(tell: N) -> Self {
        let attached = true;
        Self { tell, attached }
    }

    /// Checks whether the state of the link has changed; returns true if the link has just been lost.
    pub(crate) fn look(&mut self, driver: &Driver) -> bool {
        let attached = driver.is_attached();
        if attached == self.attached {
            return false;
        }
        self.attached = attached;
        let news = match driver.trouble() {
            Some(trouble) if !attached => LinkNews::Lost(trouble.to_string()),
            _ => LinkNews::Attached,
        };
        (self.tell)(&news);
        !attached
    }
}

/// Waits until the adapter has agreed to a socket at `at`, which `agreed` checks.
///
/// # Errors
/// The adapter refuses, or is gone.
pub(crate) fn until_agreed<T>(
    driver: &mut Driver,
    socket: SocketId,
    at: Endpoint,
    agreed: impl Fn(&OsLayer<Bytes>) -> Option<T>,
) -> Result<T, CannotListen> {
    loop {
        if let Some(found) = agreed(driver.os()) {
            return Ok(found);
        }
        let refused = driver.os().error_of(socket);
        let lost = || (!driver.is_attached()).then_some(Status::Aborted);
        if let Some(status) = refused.or_else(lost) {
            return Err(CannotListen { at, status });
        }
        // If the wait fails, the loop polls instead.
        if !driver.turn() {
            let _ = driver.wait(Some(LONGEST_WAIT));
        }
    }
}

impl<N: FnMut(&LinkNews)> AdapterSockets<N> {
    /// Creates sockets without listeners. Events of the link are reported to `tell`.
    pub fn new(driver: Driver, tell: N) -> Self {
        Self {
            driver,
            listeners: Vec::new(),
            watch: LinkWatch::new(tell),
        }
    }

    /// Listens at `at`, and does so again on each adapter that is found after this one is lost.
    ///
    /// # Errors
    /// The adapter refuses, or is gone.
    pub fn listen(&mut self, at: Endpoint, backlog: u32) -> Result<(), CannotListen> {
        let now = self.driver.now();
        let listening = self.driver.os_mut().listen(now, at, backlog);
        let id = listening.map_err(|status| CannotListen { at, status })?;
        self.listeners.push((id, at));
        until_agreed(&mut self.driver, id, at, |os| {
            os.is_listening(id).then_some(())
        })
    }

    /// Returns the driver of the sockets.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    fn check_listeners(&self) -> io::Result<()> {
        for &(id, at) in &self.listeners {
            if let Some(status) = self.driver.os().error_of(id) {
                let kind = baton_sockets::kind_of(status);
                return Err(io::Error::new(kind, CannotListen { at, status }));
            }
        }
        Ok(())
    }
}

impl<N: FnMut(&LinkNews)> SocketWorld for AdapterSockets<N> {
    type Calls<'a>
        = Calls<'a, Bytes, HostEnd>
    where
        Self: 'a;

    fn name(&self) -> String {
        format!("the adapter at {}", self.driver.address())
    }

    fn now(&self) -> Time {
        self.driver.now()
    }

    fn turn(&mut self) -> io::Result<()> {
        self.driver.turn();
        self.watch.look(&self.driver);
        self.check_listeners()
    }

    fn next_ready(&mut self) -> Option<Ready> {
        self.driver.next_ready()
    }

    fn submit(&mut self) {
        self.driver.transmit();
    }

    fn calls(&mut self) -> Self::Calls<'_> {
        self.driver.calls()
    }

    fn unlisten(&mut self) {
        let now = self.driver.now();
        for (listener, _) in self.listeners.drain(..) {
            self.driver.os_mut().close(now, listener);
        }
    }

    fn wait(&mut self, due: Time) -> io::Result<()> {
        let span = due.saturating_since(self.driver.now());
        self.driver.wait(Some(span.into()))
    }
}

impl<N: FnMut(&LinkNews)> SnapshotSource for AdapterSockets<N> {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        link_counters(&self.driver, counters);
    }

    fn applications(&self, now: Time) -> Vec<ApplicationRow> {
        vec![application_row(
            &self.driver,
            now,
            self.listeners.len() as u64,
        )]
    }
}

/// Adds the counters of the host's half of the sockets and of its link.
pub(crate) fn link_counters(driver: &Driver, counters: &mut BTreeMap<String, u64>) {
    let link = driver.link().counters();
    let spins = driver.spins();
    add_fields("os", driver.os().stats(), counters);
    if let Some(stats) = driver.os().nic_cache_stats() {
        add_fields("nic_cache", stats, counters);
        for (reason, count) in &stats.bypassed {
            let name = format!("nic_cache.bypassed.{}", snake_case(reason));
            counters.insert(name, *count);
        }
        let (blocks, capacity) = driver.os().nic_cache_blocks();
        counters.insert("nic_cache.blocks".to_owned(), blocks.into());
        counters.insert("nic_cache.capacity".to_owned(), capacity.into());
    }
    for (name, value) in [
        ("sockets.open", driver.os().sockets() as u64),
        ("link.transfers", link.transfers),
        ("link.doorbells_rung", link.doorbells_rung),
        ("link.doorbells_saved", link.doorbells_saved),
        ("link.sleeps", link.sleeps),
        ("link.sleeps_saved", link.sleeps_saved),
        ("link.spins_paid_off", spins.paid_off),
        ("link.spins_in_vain", spins.in_vain),
        ("link.bytes_out", link.bytes_out),
        ("link.bytes_in", link.bytes_in),
    ] {
        counters.insert(name.to_owned(), value);
    }
}

/// Returns the row of this process as an application of its adapter; `others` is the number of its sockets that are not connections.
pub(crate) fn application_row(driver: &Driver, now: Time, others: u64) -> ApplicationRow {
    let os = driver.os();
    let link = driver.link();
    ApplicationRow {
        number: 0,
        pid: Some(std::process::id()),
        uid: Some(rustix::process::getuid().as_raw()),
        name: "this process".to_owned(),
        link: link.kind().to_owned(),
        attached_ms: now.as_ms(),
        sockets: os.sockets() as u64,
        listeners: others,
        connections: (os.sockets() as u64).saturating_sub(others),
        bus: BusRow {
            requests: RingRow::from(os.queue()),
            doorbells_rung: link.counters().doorbells_rung,
            doorbells_saved: link.counters().doorbells_saved,
            memory_bytes: link.memory_bytes(),
            ..BusRow::default()
        },
    }
}
