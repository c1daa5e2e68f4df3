//! The web server on sockets whose TCP runs elsewhere: in the kernel, or on an adapter.

use crate::adapter::ApplicationRow;
use crate::control::ControlSocket;
use crate::ending::{Stop, Waiting};
use crate::error::LiveError;
use crate::http::FileHttp;
use crate::snapshot::{Snapshot, SnapshotSource};
use crate::web::{ServiceConfig, Web};
use baton_apps::MeteredSockets;
use baton_apps::web::Server;
use baton_host::Ready;
use baton_sockets::kernel::PlaceRow;
use baton_wire::{Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;

/// Longest time until a request for a snapshot, or to stop, is noticed. Checking costs system calls, which are too expensive for every turn
/// of the loop.
const CONTROL_INTERVAL: Span = Span::from_ms(50);

/// The sockets of an application, and the means to wait for them.
pub trait SocketWorld: SnapshotSource {
    /// The socket calls that the application can make.
    type Calls<'a>: MeteredSockets<Bytes>
    where
        Self: 'a;

    /// Returns a human-readable name of the TCP implementation behind the sockets.
    fn name(&self) -> String;

    /// Returns the current time.
    fn now(&self) -> Time;

    /// Processes everything that has happened.
    ///
    /// # Errors
    /// No sockets will work any more.
    fn turn(&mut self) -> io::Result<()>;

    /// Returns the next socket that has an event.
    fn next_ready(&mut self) -> Option<Ready>;

    /// Submits the requests that were made. Events that have arrived meanwhile are left to the next turn, so that none of them waits while
    /// [`SocketWorld::wait`] sleeps.
    fn submit(&mut self);

    /// Returns the socket calls.
    fn calls(&mut self) -> Self::Calls<'_>;

    /// Stops accepting connections.
    fn unlisten(&mut self);

    /// Returns the number of connections that may still have data to send, including those that the application has closed.
    fn undrained(&self) -> usize {
        0
    }

    /// Resets all connections.
    fn reset_all(&mut self) {}

    /// Waits until something happens, or until `due`.
    ///
    /// # Errors
    /// The system cannot wait.
    fn wait(&mut self, due: Time) -> io::Result<()>;
}

/// A web server and its sockets.
pub struct WorldService<W> {
    web: Web,
    world: W,
}

impl<W: SocketWorld> WorldService<W> {
    /// Creates a server on `world`, whose sockets already listen.
    ///
    /// # Errors
    /// The root folder cannot be served.
    pub fn start(config: &ServiceConfig, world: W) -> io::Result<Self> {
        // A header sent on its own would be a separate segment, or a separate descriptor.
        let web = Web::new(config, true)?;
        Ok(Self { web, world })
    }

    /// Returns the server.
    pub fn server(&self) -> &Server<Bytes, FileHttp> {
        self.web.server()
    }

    /// Returns the server's sockets.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// Returns a snapshot of the current state.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of_sockets(self.world.now(), self.world.name(), self)
    }

    /// Serves until `stop` requests the end, then finishes the open connections, and calls `operator` if that takes a while. Answers
    /// requests that arrive at `control`.
    ///
    /// # Errors
    /// No sockets work any more.
    pub fn serve(
        &mut self,
        mut control: Option<&mut ControlSocket>,
        stop: impl Fn() -> Stop,
        mut operator: impl FnMut(&Waiting),
    ) -> Result<(), LiveError> {
        let no_more = || LiveError::failed("cannot open another socket");
        let mut heard_at = Time::ZERO;
        loop {
            self.turn().map_err(no_more())?;
            let now = self.world.now();
            let undrained = self.world.undrained();
            if self.web.is_done() && undrained == 0 {
                return Ok(());
            }
            if self.web.is_overdue(now) {
                // A turn issues the resets of the server's own connections; connections that the server has closed already are reset below.
                self.turn().map_err(no_more())?;
                self.world.reset_all();
                self.world.submit();
                return Ok(());
            }
            if now >= heard_at {
                heard_at = now + CONTROL_INTERVAL;
                if let Some(control) = &mut control {
                    control.serve(|_| self.snapshot().to_line());
                }
                if self.web.handle_stop(now, stop()) {
                    self.world.unlisten();
                    continue;
                }
                if let Some(waiting) = self.web.poll_waiting(now, undrained) {
                    operator(&waiting);
                }
            }
            let due = heard_at.min(self.web.poll_timeout());
            self.world
                .wait(due)
                .map_err(LiveError::failed("cannot wait for sockets"))?;
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        self.world.turn()?;
        while let Some(ready) = self.world.next_ready() {
            self.web.step(&mut self.world.calls(), ready);
        }
        let now = self.world.now();
        if now >= self.web.poll_timeout() || self.web.is_ending() {
            self.web.handle_timeouts(now, &mut self.world.calls());
        }
        self.world.submit();
        Ok(())
    }
}

impl<W: SocketWorld> SnapshotSource for WorldService<W> {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        self.web.add_counters(counters);
        self.world.add_counters(counters);
    }

    fn applications(&self, now: Time) -> Vec<ApplicationRow> {
        self.world.applications(now)
    }

    fn places(&self, now: Time) -> Vec<PlaceRow> {
        self.world.places(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpConfig;
    use baton_bus::link::{MemoryConfig, MemoryHost, memory_link};
    use baton_host::adapter::{Calls, OsLayer, OsLayerConfig};
    use std::cell::Cell;

    /// Sockets on which something arrives after each turn.
    struct Busy {
        os: OsLayer<Bytes>,
        link: MemoryHost<Bytes>,
        has_arrived: Cell<bool>,
        ready: Option<Ready>,
        waits: u32,
    }

    impl SocketWorld for Busy {
        type Calls<'a> = Calls<'a, Bytes, MemoryHost<Bytes>>;

        fn name(&self) -> String {
            "busy".to_owned()
        }

        fn now(&self) -> Time {
            self.has_arrived.set(true);
            Time::ZERO + Span::from_ms(self.waits.into())
        }

        fn turn(&mut self) -> io::Result<()> {
            self.ready = self.has_arrived.take().then_some(Ready::Acceptable);
            Ok(())
        }

        fn next_ready(&mut self) -> Option<Ready> {
            self.ready.take()
        }

        fn submit(&mut self) {}

        fn calls(&mut self) -> Self::Calls<'_> {
            self.os.calls(Time::ZERO, &mut self.link)
        }

        fn unlisten(&mut self) {}

        fn wait(&mut self, _due: Time) -> io::Result<()> {
            assert_eq!(
                self.ready, None,
                "nobody would handle it before the wait ends"
            );
            self.waits += 1;
            Ok(())
        }
    }

    impl SnapshotSource for Busy {
        fn add_counters(&self, _counters: &mut BTreeMap<String, u64>) {}
    }

    #[test]
    fn no_event_waits_while_the_server_sleeps() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, _adapter) = memory_link(MemoryConfig {
            ring_depth: 16,
            buffers: 8,
            buffer_bytes: 2048,
        });
        let world = Busy {
            os: OsLayer::new(OsLayerConfig::default()).expect("parameters that work"),
            link,
            has_arrived: Cell::new(false),
            ready: None,
            waits: 0,
        };
        let config = ServiceConfig::new(HttpConfig::new(folder.path()));
        let mut service = WorldService::start(&config, world).expect("the folder exists");
        let asked = Cell::new(0);
        let stop = || match asked.replace(asked.get() + 1) {
            0 => Stop::No,
            _ => Stop::InOrder,
        };
        service.serve(None, stop, |_| {}).expect("nothing fails");
        assert!(service.world.waits > 0);
    }
}
