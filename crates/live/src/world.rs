//! The web server on sockets that somebody else's TCP is behind: the kernel's, or an adapter's.

use crate::adapter::ApplicationRow;
use crate::control::ControlSocket;
use crate::ending::{Stop, Waiting};
use crate::error::LiveError;
use crate::http::FileHttp;
use crate::snapshot::{Snapshot, SnapshotSource};
use crate::web::{ServiceConfig, Web};
use baton_apps::web::Server;
use baton_host::{Ready, Sockets};
use baton_sockets::kernel::PlaceRow;
use baton_wire::{Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;

/// Whoever asks for a snapshot, or for the end, is heard after so long at the latest. Asking costs system calls, which are
/// not to be paid for at each turn.
const CONTROL_INTERVAL: Span = Span::from_ms(50);

/// The sockets of an application, and the wait for them.
pub trait SocketWorld: SnapshotSource {
    /// The calls that the application can make.
    type Calls<'a>: Sockets<Bytes>
    where
        Self: 'a;

    /// What connections are made through, for people.
    fn name(&self) -> String;

    /// The time.
    fn now(&self) -> Time;

    /// Takes in what has happened, and sees to it that what was asked for is carried out.
    ///
    /// # Errors
    /// There will be no more sockets.
    fn turn(&mut self) -> io::Result<()>;

    /// The next socket that has something to say.
    fn next_ready(&mut self) -> Option<Ready>;

    /// The calls.
    fn calls(&mut self) -> Self::Calls<'_>;

    /// Accepts no more connections.
    fn unlisten(&mut self);

    /// Connections for which something may have to be sent, those that the application has closed among them.
    fn undrained(&self) -> usize {
        0
    }

    /// Resets them.
    fn reset_all(&mut self) {}

    /// Waits until something has happened, or until `due`.
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
    /// A server on these sockets, which listen already.
    ///
    /// # Errors
    /// The root cannot be served.
    pub fn start(config: &ServiceConfig, world: W) -> io::Result<Self> {
        // A header that left by itself would be a segment, or a descriptor, of its own.
        let web = Web::new(config, true)?;
        Ok(Self { web, world })
    }

    /// The server.
    pub fn server(&self) -> &Server<Bytes, FileHttp> {
        self.web.server()
    }

    /// Its sockets.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// What goes on.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of_sockets(self.world.now(), self.world.name(), self)
    }

    /// Serves until `stop` says so, then ends what is under way, and tells `operator` if that takes a while; answers who asks at `control`.
    ///
    /// # Errors
    /// There are no more sockets.
    pub fn serve(
        &mut self,
        mut control: Option<&mut ControlSocket>,
        stop: impl Fn() -> Stop,
        mut operator: impl FnMut(&Waiting),
    ) -> Result<(), LiveError> {
        let no_more = || LiveError::failed("there are no more sockets");
        let mut heard_at = Time::ZERO;
        loop {
            self.turn().map_err(no_more())?;
            let now = self.world.now();
            let undrained = self.world.undrained();
            if self.web.is_done() && undrained == 0 {
                return Ok(());
            }
            if self.web.is_overdue(now) {
                // What the server resets is asked for by a turn, what it has closed already is not.
                self.turn().map_err(no_more())?;
                self.world.reset_all();
                return self.world.turn().map_err(no_more());
            }
            if now >= heard_at {
                heard_at = now + CONTROL_INTERVAL;
                if let Some(control) = &mut control {
                    control.serve(|| self.snapshot().to_line());
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
        self.world.turn()
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
