//! State that all threads of an application share: the host's half of the link, and who waits for which socket.

use crate::direct::Direct;
use crate::host::{FIRST_LISTENER, Host};
use crate::poll::{Polls, Registration};
use crate::waiter::{Parker, Waiter, Waiters, Wake};
use baton_host::{Ready, Receive, SocketId};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use rustix::fd::OwnedFd;
use smallvec::SmallVec;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// Number of times that a thread processes news on behalf of the sleeping leader before it wakes the leader.
const MOST_ROUNDS: u32 = 8;

/// Interval at which the keeper looks for news when it does not lead.
const KEEPERS_PAUSE: Span = Span::from_ms(100);

/// The side of a socket to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// Who waits for one socket.
#[derive(Debug, Default)]
struct Entry {
    readers: Waiters,
    writers: Waiters,
    registrations: SmallVec<[Registration; 1]>,
}

impl Entry {
    fn waiters(&mut self, side: Side) -> &mut Waiters {
        match side {
            Side::Read => &mut self.readers,
            Side::Write => &mut self.writers,
        }
    }
}

/// The thread that waits for the adapter on behalf of all.
#[derive(Debug)]
pub(crate) struct Leader {
    parker: Arc<Parker>,
    is_keeper: bool,
    /// `Some` while the leader sleeps, with the time until which it sleeps at the latest.
    sleeps: Option<Option<Time>>,
}

/// What all threads of an application share, behind a lock.
#[derive(Debug)]
pub(crate) struct Core {
    pub host: Host,
    pub polls: Polls,
    /// Entries of sockets, by socket.
    entries: Vec<Entry>,
    /// Entries of listeners in the kernel.
    listener_entries: Vec<Entry>,
    listeners: Vec<SocketId>,
    /// Listeners that the adapter has not confirmed yet.
    setting_up: Vec<SocketId>,
    /// Sockets that hold written data because buffer space is missing.
    held: Vec<SocketId>,
    /// Number of waiting tasks.
    tasks: usize,
    leader: Option<Leader>,
    followers: Vec<Arc<Parker>>,
    keeper: Option<Arc<Parker>>,
    /// `Some` while the keeper sleeps, with the time until which it sleeps at the latest.
    keeper_sleeps: Option<Option<Time>>,
    /// The keeper waits for the adapter or is about to, even if another thread has become the leader since.
    keeper_at_link: bool,
    /// Wakes a sleeping leader.
    kick: Arc<OwnedFd>,
    /// Whom to wake once the lock is released.
    to_wake: SmallVec<[Wake; 4]>,
    links_lost: u64,
    /// Nobody uses the adapter any more.
    pub closed: bool,
}

impl Core {
    pub(crate) fn new(host: Host, kick: Arc<OwnedFd>) -> Self {
        Self {
            links_lost: host.driver.links_lost(),
            host,
            polls: Polls::default(),
            entries: Vec::new(),
            listener_entries: Vec::new(),
            listeners: Vec::new(),
            setting_up: Vec::new(),
            held: Vec::new(),
            tasks: 0,
            leader: None,
            followers: Vec::new(),
            keeper: None,
            keeper_sleeps: None,
            keeper_at_link: false,
            kick,
            to_wake: SmallVec::new(),
            closed: false,
        }
    }

    // --- sockets ---

    /// Adds a socket.
    pub(crate) fn open(&mut self, socket: SocketId) {
        let (entries, index) = self.place(socket);
        if index >= entries.len() {
            entries.resize_with(index + 1, Entry::default);
        }
        debug_assert!(entries[index].registrations.is_empty());
    }

    fn place(&mut self, socket: SocketId) -> (&mut Vec<Entry>, usize) {
        match socket.0.checked_sub(FIRST_LISTENER) {
            Some(index) => (&mut self.listener_entries, index as usize),
            None => (&mut self.entries, socket.0 as usize),
        }
    }

    fn entry(&mut self, socket: SocketId) -> Option<&mut Entry> {
        let (entries, index) = self.place(socket);
        entries.get_mut(index)
    }

    /// Adds a listener.
    pub(crate) fn open_listener(&mut self, socket: SocketId) {
        self.open(socket);
        self.listeners.push(socket);
        self.setting_up.push(socket);
    }

    /// Closes a socket.
    pub(crate) fn close(&mut self, socket: SocketId, direct: Option<&Direct>) {
        if let Some(direct) = direct {
            self.host.account_direct(socket, direct);
        }
        if !direct.is_some_and(Direct::is_open) {
            // Unread data that has arrived turns an orderly close into a reset.
            self.turn();
        }
        if self.host.closes_by_reset(socket) {
            return self.abort(socket, direct);
        }
        if let Some(direct) = direct {
            direct.retire();
        }
        self.host.close(socket);
        self.forget(socket);
        self.hold_if_held(socket);
    }

    /// Closes a socket and resets its connection.
    pub(crate) fn abort(&mut self, socket: SocketId, direct: Option<&Direct>) {
        if let Some(direct) = direct {
            direct.retire();
        }
        self.host.abort(socket);
        self.forget(socket);
    }

    fn forget(&mut self, socket: SocketId) {
        self.listeners.retain(|&other| other != socket);
        self.setting_up.retain(|&other| other != socket);
        self.wake(socket, Side::Read);
        self.wake(socket, Side::Write);
        for registration in std::mem::take(self.registrations(socket)) {
            self.polls.forget(&registration, socket);
        }
    }

    /// Takes received data, or registers `waiter`. Empty data is the end of the stream. If the connection fails after its peer has ended
    /// its stream (`BrokenPipe`), readers see the end of the stream instead of the error.
    pub(crate) fn receive(
        &mut self,
        socket: SocketId,
        max: usize,
        waiter: Option<&Waiter>,
    ) -> Option<Result<Bytes, Error>> {
        let received = match self.host.receive(socket, max) {
            Receive::Data(data) => return Some(Ok(data)),
            received => received,
        };
        if self.host.is_delivery_due(socket) {
            return self.wait_for(socket, Side::Read, waiter);
        }
        let error = self.host.error_of(socket);
        match (error, received) {
            (Some(error), _) if error.kind() != ErrorKind::BrokenPipe => Some(Err(error)),
            (Some(_), _) | (None, Receive::EndOfStream) => Some(Ok(Bytes::new())),
            (None, Receive::Gone) => Some(Err(ErrorKind::BrokenPipe.into())),
            (None, _) => self.wait_for(socket, Side::Read, waiter),
        }
    }

    /// Peeks at received data in the kernel. Returns `None` unless the kernel has the connection and the layer holds none of its data.
    pub(crate) fn peek_in_kernel(
        &mut self,
        socket: SocketId,
        max: usize,
    ) -> Option<Result<Bytes, Error>> {
        let seen = self.host.peek_in_kernel(socket, max)?;
        Some(seen.or_else(|error| match self.host.error_of(socket) {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            Some(_) => Ok(Bytes::new()),
            None => Err(error),
        }))
    }

    /// Sends data, or registers `waiter`.
    pub(crate) fn send(
        &mut self,
        socket: SocketId,
        data: &Bytes,
        waiter: Option<&Waiter>,
    ) -> Option<Result<usize, Error>> {
        self.host.look_at_adapter(socket);
        match self.host.send(socket, data) {
            Err(_) => Some(Err(self.error(socket))),
            Ok(0) if !data.is_empty() => self.wait_for(socket, Side::Write, waiter),
            Ok(taken) => {
                self.hold_if_held(socket);
                Some(Ok(taken))
            }
        }
    }

    /// Accepts a connection, or registers `waiter`.
    pub(crate) fn accept(
        &mut self,
        listener: SocketId,
        waiter: Option<&Waiter>,
    ) -> Option<Result<SocketId, Error>> {
        if let Some(error) = self.host.error_of(listener) {
            return Some(Err(error));
        }
        match self.host.accept(listener) {
            Some(socket) => {
                self.open(socket);
                Some(Ok(socket))
            }
            None => self.wait_for(listener, Side::Read, waiter),
        }
    }

    /// Reports that a connection is established or why it failed, or registers `waiter`.
    pub(crate) fn connected(
        &mut self,
        socket: SocketId,
        waiter: Option<&Waiter>,
    ) -> Option<Result<(), Error>> {
        if self.host.is_open(socket) {
            return Some(Ok(()));
        }
        if let Some(error) = self.host.error_of(socket) {
            return Some(Err(error));
        }
        // A connection that was established and has already ended counts as opened.
        if !self.host.is_opening(socket) {
            return Some(Ok(()));
        }
        self.wait_for::<()>(socket, Side::Read, waiter);
        self.wait_for(socket, Side::Write, waiter)
    }

    /// Reports that a listener listens or why it cannot, or registers `waiter`.
    pub(crate) fn listening(
        &mut self,
        listener: SocketId,
        waiter: Option<&Waiter>,
    ) -> Option<Result<(), Error>> {
        if self.host.is_listening(listener) {
            return Some(Ok(()));
        }
        match self.host.error_of(listener) {
            Some(error) => Some(Err(error)),
            None => self.wait_for(listener, Side::Read, waiter),
        }
    }

    /// Returns the local endpoint of a connection or why it is unknown, or registers `waiter`.
    pub(crate) fn local(
        &mut self,
        socket: SocketId,
        waiter: Option<&Waiter>,
    ) -> Option<Result<Endpoint, Error>> {
        if let Some(known) = self.host.local(socket) {
            return Some(known);
        }
        self.wait_for::<()>(socket, Side::Read, waiter);
        self.wait_for(socket, Side::Write, waiter)
    }

    /// Returns why a socket is unusable.
    pub(crate) fn error(&self, socket: SocketId) -> Error {
        let error = self.host.error_of(socket);
        error.unwrap_or_else(|| ErrorKind::BrokenPipe.into())
    }

    /// Registers `waiter`, if there is one.
    fn wait_for<T>(
        &mut self,
        socket: SocketId,
        side: Side,
        waiter: Option<&Waiter>,
    ) -> Option<Result<T, Error>> {
        let waiters = self.entry(socket).map(|entry| entry.waiters(side));
        if let (Some(waiters), Some(waiter)) = (waiters, waiter) {
            let is_task = waiters.add(waiter);
            self.tasks += usize::from(is_task);
        }
        None
    }

    /// Registers a waiter for a side of a socket, whether or not that side is ready now.
    pub(crate) fn wait_until(&mut self, socket: SocketId, side: Side, waiter: &Waiter) {
        self.wait_for::<()>(socket, side, Some(waiter));
    }

    /// Records the socket if it holds data that was taken from the application and not sent.
    pub(crate) fn hold_if_held(&mut self, socket: SocketId) {
        if self.host.held(socket) > 0 && !self.held.contains(&socket) {
            self.held.push(socket);
        }
    }

    /// Returns whether the adapter has fetched all data and requests, or is gone.
    pub(crate) fn is_flushed(&mut self) -> bool {
        self.host.driver.os_mut().unmask_lazy();
        self.turn();
        self.host.is_flushed()
    }

    // --- readiness ---

    /// Sends what is due, processes what has arrived, and wakes whoever waited for it. Returns true if something happened.
    pub(crate) fn turn(&mut self) -> bool {
        let moved = self.host.turn();
        self.dispatch();
        moved
    }

    /// Wakes the waiters of sockets that have become ready.
    fn dispatch(&mut self) {
        while let Some(direct) = self.host.poll_ended_direct() {
            if let Some(socket) = direct.socket() {
                self.follow_direct(socket, &direct);
            }
        }
        while let Some(ready) = self.host.next_ready() {
            match ready {
                Ready::Acceptable => self.signal_listeners(),
                // Polls have reported this data, but a reader may wait for its delivery.
                Ready::Readable(socket) if self.host.is_repeated(socket) => {
                    self.wake(socket, Side::Read);
                }
                Ready::Readable(socket) => {
                    self.signal(socket, Side::Read);
                    if !self.host.is_open(socket) {
                        self.signal(socket, Side::Write);
                    }
                }
                Ready::Writable(socket) => self.signal(socket, Side::Write),
            }
        }
        if !self.setting_up.is_empty() {
            self.signal_set_up();
        }
        self.held.retain(|&socket| self.host.held(socket) > 0);
        let links_lost = self.host.driver.links_lost();
        if links_lost != self.links_lost {
            self.links_lost = links_lost;
            self.setting_up = self.listeners.clone();
            for listener in self.listeners.clone() {
                self.signal(listener, Side::Read);
            }
        }
    }

    fn signal_listeners(&mut self) {
        for index in 0..self.listeners.len() {
            let listener = self.listeners[index];
            if self.host.is_acceptable(listener) {
                self.signal(listener, Side::Read);
            }
        }
    }

    fn signal_set_up(&mut self) {
        let host = &self.host;
        let is_set_up = |listener| host.is_listening(listener) || host.error_of(listener).is_some();
        let (done, waiting): (Vec<_>, Vec<_>) = (self.setting_up.iter())
            .copied()
            .partition(|&listener| is_set_up(listener));
        self.setting_up = waiting;
        for listener in done {
            self.signal(listener, Side::Read);
        }
    }

    /// Notifies the waiters and polls of a socket that one of its sides has become ready.
    pub(crate) fn signal(&mut self, socket: SocketId, side: Side) {
        self.wake(socket, side);
        let entry = self.entry(socket);
        let registrations = entry.into_iter().flat_map(|it| &mut it.registrations);
        let told = registrations.filter_map(|it| it.signal(side).then_some(it.poll));
        for poll in told.collect::<SmallVec<[usize; 1]>>() {
            for waiter in self.polls.push(poll, socket) {
                self.wake_one(waiter);
            }
        }
    }

    pub(crate) fn wake(&mut self, socket: SocketId, side: Side) {
        let Some(entry) = self.entry(socket) else {
            return;
        };
        for waiter in entry.waiters(side).take() {
            self.wake_one(waiter);
        }
    }

    fn wake_one(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Task(waker) => {
                self.tasks -= 1;
                self.to_wake.push(Wake::Task(waker));
            }
            Waiter::Thread(parker) if parker.notify() => match &self.leader {
                Some(leader) if Arc::ptr_eq(&leader.parker, &parker) => {
                    if leader.sleeps.is_some() {
                        self.kick();
                    }
                }
                _ => self.to_wake.push(Wake::Thread(parker)),
            },
            Waiter::Thread(_) => {}
        }
    }

    /// Takes those to wake once the lock is released.
    pub(crate) fn take_to_wake(&mut self) -> SmallVec<[Wake; 4]> {
        std::mem::take(&mut self.to_wake)
    }

    // --- registrations with a poll ---

    /// Returns the registrations of a socket, each of which is with a different poll.
    pub(crate) fn registrations(&mut self, socket: SocketId) -> &mut SmallVec<[Registration; 1]> {
        let (entries, index) = self.place(socket);
        &mut entries[index].registrations
    }

    /// Returns the registration with one poll, if there is one.
    pub(crate) fn registration(
        &mut self,
        socket: SocketId,
        poll: usize,
    ) -> Option<&mut Registration> {
        let mut registrations = self.registrations(socket).iter_mut();
        registrations.find(|registration| registration.poll == poll)
    }

    /// Registers a socket with a poll.
    pub(crate) fn add_registration(&mut self, socket: SocketId, registration: Registration) {
        if !registration.in_kernel {
            self.polls.enter(registration.poll);
        }
        self.registrations(socket).push(registration);
    }

    /// Signals to a new registration what is ready already.
    pub(crate) fn signal_present(&mut self, socket: SocketId, is_listener: bool) {
        let host = &mut self.host;
        let (readable, writable) = if is_listener {
            let has_news = host.is_acceptable(socket) || host.error_of(socket).is_some();
            (has_news, false)
        } else {
            let unread = host.unread(socket);
            (unread.len > 0 || unread.ended, host.is_open(socket))
        };
        if readable {
            self.signal(socket, Side::Read);
        }
        if writable {
            self.signal(socket, Side::Write);
        }
    }

    /// Closes a poll and removes all registrations with it.
    pub(crate) fn close_poll(&mut self, poll: usize) {
        self.polls.close(poll);
        let entries = self.entries.iter_mut().chain(&mut self.listener_entries);
        for entry in entries {
            entry.registrations.retain(|known| known.poll != poll);
        }
    }

    // --- connections that the application uses directly, without the lock ---

    /// Considers moving a connection after the application has used it directly.
    pub(crate) fn consider(&mut self, socket: SocketId, direct: &Direct) {
        self.host.consider_direct(socket, direct);
        self.follow_direct(socket, direct);
    }

    /// Ends the direct use of a connection.
    pub(crate) fn end_direct(&mut self, socket: SocketId, direct: &Direct) {
        self.host.end_direct(socket, direct);
        self.follow_direct(socket, direct);
    }

    /// Lets the application use a connection directly again, unless a thread waits for the connection or something else prevents it.
    pub(crate) fn begin_direct(&mut self, socket: SocketId, direct: &Direct) {
        if !self.host.is_in_stack(socket) {
            return;
        }
        let is_waited_for =
            (self.entry(socket)).is_none_or(|it| !(it.readers.is_empty() && it.writers.is_empty()));
        if direct.may_open() && !is_waited_for {
            self.host.begin_direct(socket);
            self.follow_direct(socket, direct);
        }
    }

    /// Switches the registrations of a connection between the application's epoll instance and the polls. Events that one has reported may
    /// be reported again by the other.
    fn follow_direct(&mut self, socket: SocketId, direct: &Direct) {
        let in_kernel = direct.is_open();
        // A connection that is registered with several polls is not used directly.
        let registrations = self.registrations(socket).iter_mut();
        let changed: SmallVec<[usize; 1]> = registrations
            .filter_map(|it| {
                let before = std::mem::replace(&mut it.in_kernel, in_kernel);
                (before != in_kernel).then_some(it.poll)
            })
            .collect();
        for &poll in &changed {
            match in_kernel {
                true => self.polls.leave(poll),
                false => self.polls.enter(poll),
            }
        }
        if !in_kernel && !changed.is_empty() {
            self.signal(socket, Side::Read);
            self.signal(socket, Side::Write);
        }
    }

    // --- leading ---

    /// Returns whether no thread but the keeper waits for the adapter.
    pub(crate) fn is_without_leader(&self) -> bool {
        self.leader.as_ref().is_none_or(|leader| leader.is_keeper)
    }

    pub(crate) fn is_led_by(&self, parker: &Arc<Parker>) -> bool {
        let leader = self.leader.as_ref();
        leader.is_some_and(|leader| Arc::ptr_eq(&leader.parker, parker))
    }

    pub(crate) fn set_leader(&mut self, parker: &Arc<Parker>, is_keeper: bool) {
        if !self.is_led_by(parker) {
            self.leader = Some(Leader {
                parker: Arc::clone(parker),
                is_keeper,
                sleeps: None,
            });
        }
    }

    /// Records that the leader goes to sleep or has woken up.
    pub(crate) fn set_sleeps(&mut self, parker: &Arc<Parker>, sleeps: Option<Option<Time>>) {
        if let Some(leader) = &mut self.leader
            && Arc::ptr_eq(&leader.parker, parker)
        {
            leader.sleeps = sleeps;
        }
    }

    /// Ends the lead of a thread, if it is the leader, and lets a follower take its place.
    pub(crate) fn leave(&mut self, parker: &Arc<Parker>) {
        if !self.is_led_by(parker) {
            return;
        }
        self.leader = None;
        self.promote();
    }

    /// Wakes one of the followers, which checks whether it still has to wait and becomes the leader if so.
    fn promote(&mut self) {
        if let Some(next) = self.followers.first()
            && next.notify()
        {
            self.to_wake.push(Wake::Thread(Arc::clone(next)));
        }
    }

    pub(crate) fn follow(&mut self, parker: &Arc<Parker>) {
        self.followers.push(Arc::clone(parker));
    }

    pub(crate) fn unfollow(&mut self, parker: &Arc<Parker>) {
        self.followers.retain(|other| !Arc::ptr_eq(other, parker));
    }

    pub(crate) fn set_keeper(&mut self, parker: Arc<Parker>) {
        self.keeper = Some(parker);
    }

    /// Records whether the keeper waits for the adapter.
    pub(crate) fn set_keeper_at_link(&mut self, at_link: bool) {
        self.keeper_at_link = at_link;
    }

    /// Returns whether the keeper has to wait for the adapter, or look for one, if no other thread does.
    pub(crate) fn needs_keeper(&self) -> bool {
        let has_work = self.tasks > 0 || !self.held.is_empty() || self.polls.are_kept();
        // Data of a moving connection can be read only after the move.
        let has_work = has_work || self.host.are_moving();
        has_work || self.host.driver.retry_is_due()
    }

    /// Records that the keeper goes to sleep, and returns until when. The keeper wakes up for the next deadline if there is no leader to do
    /// so. With connections in the kernel it also wakes up periodically, because the adapter may want to return a connection, or the kernel
    /// may now have buffer space for a closed one.
    pub(crate) fn keeper_goes_to_sleep(&mut self) -> Option<Time> {
        let host = &self.host;
        let look = self.keepers_pause().map(|pause| host.driver.now() + pause);
        let due = host.poll_timeout().filter(|_| self.leader.is_none());
        let until = [due, look].into_iter().flatten().min();
        self.keeper_sleeps = Some(until);
        until
    }

    /// Returns how long the keeper waits between two looks for events of connections in the kernel, which do not wake it.
    pub(crate) fn keepers_pause(&self) -> Option<Span> {
        self.host.is_on_kernel().then_some(KEEPERS_PAUSE)
    }

    /// Records that the keeper has woken up.
    pub(crate) fn keeper_is_awake(&mut self) {
        self.keeper_sleeps = None;
    }

    /// Returns whether a deadline comes before `until`, so that a thread that sleeps until then would miss it.
    fn is_due_before(&self, until: Option<Time>) -> bool {
        let due = self.host.poll_timeout();
        due.is_some_and(|due| until.is_none_or(|until| due < until))
    }

    /// Ends a call of a thread that does not lead: submits requests and wakes the leader or the keeper if necessary.
    pub(crate) fn settle(&mut self) {
        self.host.driver.transmit();
        // Submitting may have freed space in a queue.
        self.dispatch();
        let Some(leader) = &self.leader else {
            if !self.followers.is_empty() {
                // The follower that was to become the leader already has what it waited for: promote another one.
                self.promote();
            } else if self.needs_keeper()
                || (self.keeper_sleeps).is_some_and(|until| self.is_due_before(until))
            {
                self.wake_keeper();
            }
            return;
        };
        let Some(sleeps_until) = leader.sleeps else {
            return;
        };
        // Because this thread used the link, the adapter believes that this side is awake, but the leader is asleep.
        let mut rounds = 0;
        while !self.host.driver.prepare_to_sleep() && rounds < MOST_ROUNDS {
            self.turn();
            rounds += 1;
        }
        if rounds == MOST_ROUNDS || self.is_due_before(sleeps_until) {
            self.kick();
        }
    }

    pub(crate) fn wake_keeper(&mut self) {
        if let Some(keeper) = &self.keeper {
            keeper.notify();
            self.to_wake.push(Wake::Thread(Arc::clone(keeper)));
            if self.keeper_at_link {
                // A thread that took over from the keeper and has left may have announced to the adapter that this side is awake: without
                // the kick, the keeper might sleep forever.
                self.kick();
            }
        }
    }

    /// Wakes a sleeping leader.
    pub(crate) fn kick(&mut self) {
        self.to_wake.push(Wake::Leader(Arc::clone(&self.kick)));
    }

    /// Resets the kick after the leader has seen it.
    pub(crate) fn handle_kick(&self) {
        let _ = rustix::io::read(&*self.kick, &mut [0; 8]);
    }
}
