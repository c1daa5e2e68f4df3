//! The sockets of an adapter in another process, for the web server.

use crate::adapter::{ApplicationRow, BusRow, RingRow};
use crate::snapshot::{SnapshotSource, add_fields};
use crate::world::SocketWorld;
use baton_bus::descriptor::Status;
use baton_host::offload::Calls;
use baton_host::{Ready, SocketId};
use baton_sockets::{Driver, HostEnd};
use baton_wire::{Endpoint, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// An answer of the adapter is looked for at least so often.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Why there are no sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the adapter does not let this process listen at {at}: {status}")]
pub struct CannotListen {
    /// Where.
    pub at: Endpoint,
    /// What the adapter says.
    pub status: Status,
}

/// What befalls the link, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// It is lost; the text says why.
    Lost(String),
    /// There is a new one.
    Attached,
}

/// The sockets of an adapter.
pub struct AdapterSockets<N> {
    driver: Driver,
    listeners: Vec<(SocketId, Endpoint)>,
    tell: N,
    /// As last told.
    attached: bool,
}

impl<N: FnMut(&LinkNews)> AdapterSockets<N> {
    /// Without listeners. What befalls the link is told to `tell`.
    pub fn new(driver: Driver, tell: N) -> Self {
        Self {
            driver,
            listeners: Vec::new(),
            tell,
            attached: true,
        }
    }

    /// Listens there, and again on each adapter that is found after this one is lost.
    ///
    /// # Errors
    /// The adapter does not let this process, or is gone.
    pub fn listen(&mut self, at: Endpoint, backlog: u32) -> Result<(), CannotListen> {
        let now = self.driver.now();
        let listening = self.driver.os_mut().listen(now, at, backlog);
        let id = listening.map_err(|status| CannotListen { at, status })?;
        self.listeners.push((id, at));
        while !self.driver.os().is_listening(id) {
            if let Some(status) = self.driver.os().error_of(id) {
                return Err(CannotListen { at, status });
            }
            if !self.driver.is_attached() {
                let status = Status::Aborted;
                return Err(CannotListen { at, status });
            }
            // That the system cannot wait is no reason not to ask.
            if !self.driver.turn() {
                let _ = self.driver.wait(Some(LONGEST_WAIT));
            }
        }
        Ok(())
    }

    /// The layer below.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Tells of what has befallen the link.
    fn tell_news(&mut self) {
        let attached = self.driver.is_attached();
        if attached == self.attached {
            return;
        }
        self.attached = attached;
        let news = match self.driver.trouble() {
            Some(trouble) if !attached => LinkNews::Lost(trouble.to_string()),
            _ => LinkNews::Attached,
        };
        (self.tell)(&news);
    }

    /// A listener that the adapter has refused is of no use: the service ends.
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
        self.tell_news();
        self.check_listeners()
    }

    fn next_ready(&mut self) -> Option<Ready> {
        self.driver.next_ready()
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
        let link = self.driver.link().counters();
        let spins = self.driver.spins();
        add_fields("os", self.driver.os().stats(), counters);
        for (name, value) in [
            ("sockets.open", self.driver.os().sockets() as u64),
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

    /// This process itself, as it sees its side of the link.
    fn applications(&self, now: Time) -> Vec<ApplicationRow> {
        let os = self.driver.os();
        let link = self.driver.link();
        let listeners = self.listeners.len() as u64;
        vec![ApplicationRow {
            number: 0,
            pid: Some(std::process::id()),
            name: "this process".to_owned(),
            link: link.kind().to_owned(),
            attached_ms: now.as_ms(),
            sockets: os.sockets() as u64,
            listeners,
            connections: (os.sockets() as u64).saturating_sub(listeners),
            bus: BusRow {
                requests: RingRow::from(os.queue()),
                doorbells_rung: link.counters().doorbells_rung,
                doorbells_saved: link.counters().doorbells_saved,
                memory_bytes: link.memory_bytes(),
                ..BusRow::default()
            },
        }]
    }
}
