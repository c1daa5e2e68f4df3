//! The single-threaded layer: the host's half, its link, and waiting for it.

mod attaching;
mod retry;
mod waiting;

pub use attaching::Trouble;
pub(crate) use waiting::readable;

use crate::config::DriverConfig;
use crate::error::OpenError;
use crate::link::HostEnd;
use baton_host::Ready;
use baton_host::adapter::{Calls, OsLayer};
use baton_host::layer::AdapterEnd;
use baton_iolib::{AdapterAddress, AnyHostLink, LinkCounters, Spin, SpinStats};
use baton_wire::{Span, Time};
use bytes::Bytes;
use retry::Retry;
use rustix::event::epoll;
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether and when the clock was read in the current call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldTime {
    /// The clock is read each time.
    Off,
    Unread,
    Read(Time),
}

/// Rounds of work per turn, before the application gets control.
const MOST_ROUNDS: u32 = 4;

/// Sockets of an adapter for an application that has one thread, or that synchronizes its threads itself.
///
/// Call in this order: [`Driver::turn`]; [`Driver::next_ready`] until it returns `None`, handling each socket through [`Driver::calls`] and
/// [`Driver::os_mut`]; [`Driver::transmit`], which submits the requests made meanwhile; [`Driver::wait`]. A second [`Driver::turn`] before the
/// wait would take events from the link, and the wait does not end for events that were taken already.
///
/// An event loop that waits for other things as well waits for the driver's file descriptor (`as_fd`) to become readable instead, no longer
/// than [`Driver::before_wait`] says.
///
/// When the adapter is gone, all connections have failed. Listeners stay: they listen again once [`Driver::turn`] has found an adapter, for
/// which it looks at growing intervals.
///
/// ```no_run
/// use baton_host::{Ready, Receive, Sockets};
/// use baton_sockets::{AdapterAddress, Driver, DriverConfig};
///
/// // An echo server.
/// let address: AdapterAddress = "/run/baton/adapter.sock".parse()?;
/// let mut driver = Driver::open(address, DriverConfig::default())?;
/// let now = driver.now();
/// let local = "0.0.0.0:7".parse::<std::net::SocketAddr>()?;
/// driver.os_mut().listen(now, baton_wire::Endpoint::new(local.ip(), local.port()), 128)?;
/// loop {
///     driver.turn();
///     while let Some(ready) = driver.next_ready() {
///         let mut calls = driver.calls();
///         match ready {
///             Ready::Acceptable => while calls.accept().is_some() {},
///             Ready::Readable(socket) => match calls.receive(socket, 4096) {
///                 Receive::Data(data) => drop(calls.send(socket, data)),
///                 Receive::WouldBlock => {}
///                 Receive::EndOfStream | Receive::Gone => calls.close(socket),
///             },
///             Ready::Writable(_) => {}
///         }
///     }
///     driver.transmit();
///     driver.wait(None)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Driver {
    address: AdapterAddress,
    config: DriverConfig,
    end: AdapterEnd<Bytes, HostEnd>,
    start: Instant,
    /// The time of the current call, if [`Driver::hold_time`] has begun it.
    held_time: Cell<HeldTime>,
    spin: Spin,
    retry: Retry,
    /// Why the last link was lost, or the last attempt to find another adapter failed.
    trouble: Option<Trouble>,
    /// Readable when there is work to do.
    epoll: Arc<OwnedFd>,
    /// The events of the link that the epoll instance waits for.
    watched: epoll::EventFlags,
    links_lost: u64,
}

impl Driver {
    /// Attaches to an adapter.
    ///
    /// # Errors
    /// There is no adapter, or it refuses.
    pub fn open(address: AdapterAddress, mut config: DriverConfig) -> Result<Self, OpenError> {
        config.geometry.most_sends = config.os.most_sends;
        config.os.reports_unread = true;
        let os = OsLayer::new(config.os.clone())?;
        let link = AnyHostLink::connect(&address, &config.geometry)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| OpenError::NoRoom(error.into()))?;
        let mut driver = Self {
            end: AdapterEnd {
                os,
                link: HostEnd::Lost(LinkCounters::default()),
            },
            start: Instant::now(),
            held_time: Cell::new(HeldTime::Off),
            spin: Spin::new(Duration::from_micros(config.most_spin_us.into())),
            retry: Retry::new(&config),
            trouble: None,
            epoll: Arc::new(epoll),
            watched: epoll::EventFlags::empty(),
            links_lost: 0,
            address,
            config,
        };
        driver.install(link).map_err(OpenError::NoRoom)?;
        Ok(driver)
    }

    /// Returns the time since the driver was created.
    pub fn now(&self) -> Time {
        if let HeldTime::Read(now) = self.held_time.get() {
            return now;
        }
        let now = Time::ZERO + Span::from(self.start.elapsed());
        if self.held_time.get() == HeldTime::Unread {
            self.held_time.set(HeldTime::Read(now));
        }
        now
    }

    /// Begins a short call, in which [`Driver::now`] reads the clock only once. Reading it may take as long as the rest of the call.
    pub(crate) fn hold_time(&self) {
        self.held_time.set(HeldTime::Unread);
    }

    /// Returns the address of the adapter.
    pub fn address(&self) -> &AdapterAddress {
        &self.address
    }

    /// Returns the parameters.
    pub fn config(&self) -> &DriverConfig {
        &self.config
    }

    /// Returns the host's half.
    pub fn os(&self) -> &OsLayer<Bytes> {
        &self.end.os
    }

    /// Returns the host's half, to listen and to connect. The next [`Driver::turn`] submits the requests.
    pub fn os_mut(&mut self) -> &mut OsLayer<Bytes> {
        &mut self.end.os
    }

    /// Returns the sockets and their link, for a socket layer that also has its own stack.
    pub fn adapter_end(&mut self) -> &mut AdapterEnd<Bytes, HostEnd> {
        &mut self.end
    }

    /// Returns the socket calls. The next [`Driver::turn`] submits their requests.
    pub fn calls(&mut self) -> Calls<'_, Bytes, HostEnd> {
        let now = self.now();
        self.end.os.calls(now, &mut self.end.link)
    }

    /// Returns the link.
    pub fn link(&self) -> &HostEnd {
        &self.end.link
    }

    /// Returns counters of how often spinning before a sleep has paid off.
    pub fn spins(&self) -> &SpinStats {
        self.spin.stats()
    }

    /// Returns whether there is an adapter.
    pub fn is_attached(&self) -> bool {
        !self.end.link.is_lost()
    }

    /// Returns how many links were lost.
    pub fn links_lost(&self) -> u64 {
        self.links_lost
    }

    /// Returns the next socket that has become ready.
    pub fn next_ready(&mut self) -> Option<Ready> {
        self.end.os.next_ready()
    }

    /// Submits what is due and processes what has arrived; looks for an adapter if there is none and the next attempt is due. Returns true
    /// if something happened.
    pub fn turn(&mut self) -> bool {
        self.look_for_adapter() || self.turn_attached()
    }

    /// Looks for an adapter if there is none and the next attempt is due. Returns true if one is attached by it.
    pub fn look_for_adapter(&mut self) -> bool {
        self.retry_is_due() && {
            let found = AnyHostLink::connect(&self.address, &self.config.geometry);
            self.handle_attempt(found)
        }
    }

    /// Works like [`Driver::turn`], without looking for an adapter.
    pub(crate) fn turn_attached(&mut self) -> bool {
        if self.end.link.is_lost() {
            return false;
        }
        let now = self.now();
        let mut moved = false;
        for _ in 0..MOST_ROUNDS {
            match self.end.os.pump(now, &mut self.end.link) {
                Ok(true) => moved = true,
                Ok(false) => break,
                Err(error) => {
                    self.lose(error);
                    return true;
                }
            }
        }
        moved
    }

    /// Submits what is due, without processing what has arrived.
    pub fn transmit(&mut self) {
        if self.end.link.is_lost() {
            return;
        }
        let now = self.now();
        if let Err(error) = self.end.os.transmit(now, &mut self.end.link) {
            self.lose(error);
        }
    }
}
