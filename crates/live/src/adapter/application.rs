//! An attached application.

use super::rows::{ApplicationRow, BusRow, RingRow};
use super::wakeups::Wakeups;
use baton_bus::link::{Counted, LinkError};
use baton_iolib::{AnyAdapterLink, Application as Peer, LiveLink};
use baton_nic::Links;
use baton_nic::adapter::{Adapter, SessionId};
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::PollFlags;
use std::fmt::{self, Display};
use std::io;
use std::os::fd::AsFd;

/// What is known about an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Number of the application among those attached.
    pub number: u32,
    /// Process ID, if the application runs on this machine.
    pub pid: Option<u32>,
    /// User ID, if the application runs on this machine.
    pub uid: Option<u32>,
    /// Name that the application gives itself.
    pub name: String,
}

impl About {
    pub(super) fn new(number: u32, peer: &Peer) -> Self {
        Self {
            number,
            pid: peer.pid,
            uid: peer.uid,
            name: match peer.peer {
                Some(address) => format!("{} at {address}", peer.name),
                None => peer.name.clone(),
            },
        }
    }
}

impl Display for About {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "application {} ({}", self.number, self.name)?;
        match self.pid {
            Some(pid) => write!(out, ", process {pid})"),
            None => write!(out, ")"),
        }
    }
}

/// An attached application with its link.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) about: About,
    pub(super) session: SessionId,
    pub(super) link: Counted<AnyAdapterLink>,
    since: Time,
    /// Whether the adapter ignores the application's link until the application rings its doorbell.
    pub(super) asleep: bool,
    /// Events of the link's file descriptor that wake up the loop.
    interest: PollFlags,
    /// Whether the link's other file descriptor wakes up the loop, too.
    has_other: bool,
}

/// The links of applications, by the number of their session.
pub(super) struct ApplicationLinks<'a>(pub(super) &'a mut [Option<Attached>]);

impl Links<Bytes> for ApplicationLinks<'_> {
    type Link = Counted<AnyAdapterLink>;

    fn link(&mut self, session: SessionId) -> Option<&mut Self::Link> {
        let application = self.0.get_mut(session.0 as usize)?.as_mut()?;
        // The link is about to be used, so the application need not ring: it is asked again before the next sleep.
        application.asleep = false;
        Some(&mut application.link)
    }

    fn is_asleep(&self, session: SessionId) -> bool {
        let application = self.0.get(session.0 as usize);
        matches!(application, Some(Some(application)) if application.asleep)
    }
}

impl Attached {
    /// Registers the application's link to wake up the loop. `number` is how users know the application.
    ///
    /// # Errors
    /// The system has no space for another descriptor.
    pub(super) fn new(
        now: Time,
        (session, number): (SessionId, u32),
        link: AnyAdapterLink,
        wakeups: &Wakeups,
    ) -> io::Result<Self> {
        let interest = link.interest();
        wakeups.add(link.as_fd(), interest, session.0)?;
        Ok(Self {
            about: About::new(number, link.application()),
            session,
            link: Counted::new(link),
            since: now,
            asleep: false,
            interest,
            has_other: false,
        })
    }

    /// Asks the application to ring its doorbell when it next makes a request or, if the adapter cannot accept any request (`is_full`), takes
    /// answers. Returns false if there is something to do already.
    ///
    /// # Errors
    /// The application breaks the rules.
    pub(super) fn put_to_sleep(
        &mut self,
        wakeups: &Wakeups,
        is_full: bool,
    ) -> Result<bool, LinkError> {
        let link = self.link.link_mut();
        self.asleep = match is_full {
            true => link.prepare_to_sleep_for_room()?,
            false => link.prepare_to_sleep()?,
        };
        let interest = link.interest();
        if self.asleep && interest != self.interest {
            let changed = wakeups.change(link.as_fd(), interest, self.session.0);
            debug_assert!(changed.is_ok(), "it is in the set: {changed:?}");
            self.interest = interest;
        }
        if let Some(other) = link.other_fd().filter(|_| self.asleep && !self.has_other) {
            let added = wakeups.add(other, PollFlags::IN, self.session.0);
            self.has_other = added.is_ok();
        }
        Ok(self.asleep)
    }

    /// Stops waiting for the application.
    pub(super) fn stop_waiting(&self, wakeups: &Wakeups) {
        let link = self.link.link();
        wakeups.remove(link.as_fd());
        link.other_fd()
            .into_iter()
            .for_each(|fd| wakeups.remove(fd));
    }

    /// Returns how often the adapter has rung the application's doorbell.
    pub(super) fn doorbells_rung(&self) -> u64 {
        self.link.link().counters().doorbells_rung
    }

    /// Returns the size in bytes of the memory that the application shares with the adapter.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self.link.link() {
            AnyAdapterLink::Shm(link) => link.geometry().pool_bytes(),
            AnyAdapterLink::Tcp(_) => 0,
        }
    }

    /// Returns the application's row for a snapshot.
    pub(super) fn row(&self, now: Time, adapter: &Adapter<Bytes>) -> ApplicationRow {
        let (traffic, counters) = (self.link.traffic(), self.link.link().counters());
        let queue = adapter.queue(self.session);
        let row = adapter.row(self.session);
        ApplicationRow {
            number: self.about.number,
            pid: self.about.pid,
            uid: self.about.uid,
            name: self.about.name.clone(),
            link: self.link.link().kind().to_owned(),
            attached_ms: now.saturating_since(self.since).as_us() / 1000,
            sockets: row.sockets as u64,
            listeners: row.listeners as u64,
            connections: row.connections as u64,
            bus: BusRow {
                requests: RingRow {
                    per_transfer: traffic.requests,
                    ..RingRow::default()
                },
                responses: RingRow::from(queue),
                crossings: traffic.account,
                doorbells_rung: counters.doorbells_rung,
                doorbells_saved: counters.doorbells_saved,
                memory_bytes: self.memory_bytes(),
            },
        }
    }
}
