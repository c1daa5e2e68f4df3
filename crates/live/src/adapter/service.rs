//! The service that runs on the engine: an adapter for applications in other processes.

use super::application::{ApplicationLinks, Attached};
use super::below::{Below, work};
use super::beside::Beside;
use super::config::AdapterServiceConfig;
use super::cutoff::CutOffs;
use super::listeners::Listeners;
use super::notice::Notice;
use super::siblings::{Message, Siblings, is_for_all};
use super::timeline::AdapterTimeline;
use super::wakeups::Wakeups;
use crate::capture::flow_of;
use crate::clock::Clock;
use crate::ending::{End, Stop};
use crate::engine::Application;
use crate::error::LiveError;
use crate::snapshot::Snapshot;
use crate::throttle::Throttle;
use baton_bus::link::LinkError;
use baton_bus::{Batching, BatchingRule};
use baton_inet::{Host, Passing};
use baton_iolib::{AnyAdapterLink, Lines};
use baton_nic::adapter::{Adapter, AdapterConfig, Ending, SessionId};
use baton_nic::{Config, Governor, Process, Schedule};
use baton_tcp::Stack;
use baton_timeline::Way;
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::PollFlags;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc;
use std::time::Instant;
use std::vec::Drain;

/// Longest time that hosts have at shutdown to take back their connections.
const LONGEST_RELIEF: Span = Span::from_secs(3);
/// Longest wait for acknowledgments of a connection's data before it returns to the kernel. A lost segment is retransmitted after a timeout
/// of 200 ms and a round trip or two: half a second is enough for one loss on paths of up to 100 ms, and leaves most of the relief time.
const LONGEST_SETTLE: Span = Span::from_ms(500);
/// Time after the start in which nothing is refused: hosts of a former adapter have yet to attach, and look for an adapter every half
/// second.
pub(super) const QUIET_START: Span = Span::from_secs(2);
/// Up to this number of applications, all are served when one has rung, because asking epoll which one has rung takes longer.
const FEW: usize = 4;
/// Maximum number of pending notices; later ones are discarded.
const MOST_NOTICES: usize = 256;

/// Number by which [`Wakeups`] reports that another engine has rung. The numbers of applications are smaller.
const OF_SIBLINGS: u32 = u32::MAX;
/// Maximum number of messages of other engines that one turn of the loop handles.
const MOST_MESSAGES: usize = 256;

/// Makes the batching rule for an application, given the number of descriptors in its ring.
type MakeBatching = dyn Fn(u32) -> Box<dyn BatchingRule>;

/// The service's counters of applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationStats {
    /// Applications that have attached so far.
    pub attached: u64,
    /// Applications that left by themselves.
    pub left: u64,
    /// Applications that were cut off, by reason.
    pub cut_off: CutOffs,
    /// Applications that were accepted and then dropped, because the adapter had no space for them.
    pub not_attached: u64,
    /// Bytes of memory, now freed, that the adapter shared with applications that have left.
    pub reclaimed_bytes: u64,
}

/// The adapter, its applications, and the listeners through which they attach.
///
/// Order of calls: the engine calls it as an [`Application`]. After a turn of the loop with nothing to do ([`AdapterService::was_busy`]),
/// call [`AdapterService::prepare_to_sleep`] before the engine waits. Only if it returns true may the engine wait, also for the descriptors
/// of [`AdapterService::fds`]. Call [`AdapterService::awake`] afterwards.
pub struct AdapterService {
    pub(super) adapter: Adapter<Bytes>,
    pub(super) process: Process<Bytes>,
    /// Present if a kernel owns the interface and the adapter serves only connections that were taken out of that kernel.
    pub(super) beside: Option<Beside>,
    /// Present if the adapter has several engines.
    pub(super) siblings: Option<Siblings>,
    /// Where other engines expect this one's state.
    questions: Vec<mpsc::Sender<Snapshot>>,
    batching: Option<Box<MakeBatching>>,
    /// Time at which the engine's clock started, on CLOCK_MONOTONIC, in ns. With `None`, applications get no timestamps.
    epoch_ns: Option<u64>,
    on_exit: Ending,
    /// `None` once the shutdown has begun, and for all engines of an adapter but the first.
    listeners: Option<Listeners>,
    /// Applications, indexed by the number of their session.
    applications: Vec<Option<Attached>>,
    wakeups: Wakeups,
    stats: ApplicationStats,
    notices: VecDeque<Notice>,
    lines: Lines<(&'static str, Option<u32>)>,
    timeline: Option<Box<AdapterTimeline>>,
    /// Limits how often the listeners are checked.
    listeners_throttle: Throttle,
    /// Whether the last turn of the loop had something to do.
    busy: bool,
    /// How often the attached applications had been woken at the last call of [`AdapterService::take_rang`].
    rung: u64,
    /// Number of segments received until the last call of `look`.
    segments_received: u64,
    /// Time at which the quiet period after the start ends; `None` before the first turn.
    quiet_until: Option<Time>,
    end: End,
    /// Deadline for hosts to take back their connections; `None` before the shutdown, and once applications have been detached.
    relief_ends_at: Option<Time>,
}

impl AdapterService {
    /// Creates an adapter with the addresses of `host`, for applications that attach through `listeners` or are assigned to this engine by
    /// the first of several.
    ///
    /// # Errors
    /// The parameters cannot work, or the process has no descriptors left.
    pub fn new(
        config: AdapterServiceConfig,
        listeners: Option<Listeners>,
        host: &mut Host,
    ) -> Result<Self, LiveError> {
        host.pass_unclaimed(Passing::Unclaimed);
        if let Some(bytes) = config.memory {
            host.stack_mut().limit_memory(bytes);
        }
        let addresses = &host.interface().config().addresses;
        let adapter = AdapterConfig {
            addresses: addresses.iter().map(|address| address.addr()).collect(),
            reports_unread: true,
            ..config.adapter
        };
        let adapter =
            Adapter::new(adapter).map_err(|error| LiveError::BadInput(error.to_string()))?;
        Ok(Self {
            adapter,
            process: (config.firmware.as_ref()).map_or_else(Process::all_at_once, Process::new),
            beside: None,
            siblings: None,
            questions: Vec::new(),
            batching: None,
            epoch_ns: None,
            on_exit: config.on_exit,
            listeners,
            applications: Vec::new(),
            wakeups: Wakeups::new()
                .map_err(LiveError::failed("cannot wait for several applications"))?,
            stats: ApplicationStats::default(),
            notices: VecDeque::new(),
            lines: Lines::default(),
            timeline: None,
            listeners_throttle: Throttle::default(),
            busy: false,
            rung: 0,
            segments_received: 0,
            quiet_until: None,
            end: End::default(),
            relief_ends_at: None,
        })
    }

    // --- getters ---

    /// Returns the counters.
    pub fn stats(&self) -> &ApplicationStats {
        &self.stats
    }

    /// Returns the adapter.
    pub fn adapter(&self) -> &Adapter<Bytes> {
        &self.adapter
    }

    /// Returns the listeners, or `None` once the shutdown has begun or if the engine is not the first of its adapter.
    pub fn listeners(&self) -> Option<&Listeners> {
        self.listeners.as_ref()
    }

    /// Returns the attached applications.
    pub(super) fn attached(&self) -> impl Iterator<Item = &Attached> {
        self.applications.iter().flatten()
    }

    /// Returns whether an application has been woken since the last call.
    pub fn take_rang(&mut self) -> bool {
        let rung = self.attached().map(Attached::doorbells_rung).sum();
        std::mem::replace(&mut self.rung, rung) != rung
    }

    /// Returns whether the last turn of the loop had something to do.
    pub fn was_busy(&self) -> bool {
        self.busy
    }

    /// Returns whether the shutdown has begun and either no connection remains or those that remain are to be reset.
    pub fn has_ended(&self, now: Time, host: &Host) -> bool {
        let is_empty = self.relief_ends_at.is_none() && host.stack().is_empty();
        self.end.has_begun() && (is_empty || self.end.is_over(now))
    }

    // --- mutators: the caller's own policies, to be set before applications attach ---

    /// Sets the scheduler that picks the next piece of work (handoff-policies 3.1). An adapter that did all work at once now does one piece
    /// at a time, with queues of default length.
    pub fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        if self.process.does_all() {
            self.process = Process::new(&Config::default());
        }
        self.process.set_schedule(schedule);
    }

    /// Lets the adapter share its interface with the kernel: the adapter works only for captured flows, and records changes of the
    /// connections of `stack`. A connection waits for a short time until all its sent data is acknowledged before it goes back, because the
    /// kernel waits one to three seconds before it retransmits.
    pub fn set_beside(&mut self, beside: Beside, stack: &mut Stack<Bytes>) {
        stack.note_changes();
        self.adapter.set_custody(Box::new(beside.custody()));
        self.adapter.settle_before_export(LONGEST_SETTLE);
        self.beside = Some(beside);
    }

    /// Makes this the service of one of several engines of an adapter. Must be called before applications attach.
    ///
    /// # Errors
    /// The system has no space for another descriptor.
    pub fn set_siblings(&mut self, siblings: Siblings) -> io::Result<()> {
        let config = self.adapter.config();
        let registry = siblings.port_registry(config.first_port..=config.last_port);
        self.adapter.set_port_registry(registry);
        self.wakeups
            .add(siblings.as_fd(), PollFlags::IN, OF_SIBLINGS)?;
        self.siblings = Some(siblings);
        Ok(())
    }

    /// Starts recording in `timeline`.
    pub fn set_timeline(&mut self, timeline: AdapterTimeline) {
        self.timeline = Some(Box::new(timeline));
    }

    /// Takes the timeline. Nothing is recorded until it is put back.
    pub fn take_timeline(&mut self) -> Option<Box<AdapterTimeline>> {
        self.timeline.take()
    }

    pub(super) fn put_timeline(&mut self, timeline: Box<AdapterTimeline>) {
        self.timeline = Some(timeline);
    }

    /// Sets the governor, which decides how many connections may be on the adapter (handoff-policies 3.2).
    pub fn set_governor(&mut self, governor: Box<dyn Governor>) {
        self.adapter.set_governor(governor);
    }

    /// Gives applications on this machine timestamps of their bytes on request (SO_TIMESTAMPING). `clock` is the engine's clock.
    pub fn set_clock(&mut self, clock: &Clock) {
        self.epoch_ns = u64::try_from(clock.monotonic().as_nanos()).ok();
    }

    /// Sets the rule for when answers are transferred (batching 3.1). `make` gets the ring size in descriptors of each application.
    pub fn set_batching(&mut self, make: impl Fn(u32) -> Box<dyn BatchingRule> + 'static) {
        self.batching = Some(Box::new(make));
    }

    // --- effects out ---

    /// Returns the next notice for the operator.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        let hidden = || {
            let ((kind, user), count) = self.lines.poll_hidden(Instant::now())?;
            Some(Notice::Hidden(kind, user, count))
        };
        self.notices.pop_front().or_else(hidden)
    }

    /// Returns the number of notices that were suppressed.
    pub(super) fn hidden_notices(&self) -> u64 {
        self.lines.hidden()
    }

    fn tell(&mut self, notice: Notice) {
        if self.notices.len() < MOST_NOTICES && self.lines.shows(Instant::now(), notice.key()) {
            self.notices.push_back(notice);
        }
    }

    // --- applications come ---

    /// Attaches the applications that wait at the listeners.
    fn welcome(&mut self, now: Time, stack: &mut Stack<Bytes>) {
        let own = || self.attached().map(|one| one.about.uid).collect();
        let mut attached: Vec<_> = self.siblings.as_ref().map_or_else(own, Siblings::users);
        while let Some(link) = self
            .listeners
            .as_mut()
            .and_then(|listeners| listeners.next(&attached))
        {
            attached.push(link.application().uid);
            let own = match &mut self.siblings {
                Some(siblings) => siblings.place(link),
                None => Some(link),
            };
            if let Some(link) = own {
                self.attach(now, stack, link);
            }
        }
    }

    /// Handles messages of other engines.
    fn read_messages(&mut self, now: Time, host: &mut Host) {
        for _ in 0..MOST_MESSAGES {
            let Some(message) = self.siblings.as_mut().and_then(Siblings::receive) else {
                break;
            };
            self.busy = true;
            match message {
                Message::Application(link) => self.attach(now, host.stack_mut(), link),
                Message::Packet(packet, visits) => self.take_visitor(now, host, packet, visits),
                Message::Frame(frame) => {
                    host.handle_frame(now, frame);
                    // The first engine answers what belongs to no engine.
                    while host.poll_unclaimed().is_some() {}
                }
                Message::Question(asker) => self.questions.push(asker),
            }
        }
        if let Some(siblings) = &mut self.siblings {
            siblings.release_ports(now, host.stack());
        }
    }

    /// Handles a packet that other engines have passed on.
    fn take_visitor(&mut self, now: Time, host: &mut Host, packet: Bytes, visits: u32) {
        let mut below = Below {
            quiet: self.is_quiet(now),
            host,
            beside: None,
            siblings: self.siblings.as_mut(),
            visits: 0,
            arrived: 0,
            unclaimed: 0,
            room: 0,
            frames: &mut Vec::new(),
            end: &mut |_| {},
        };
        // Packets that the interface delivered to this engine first.
        below.pass_unclaimed(now, &mut self.adapter);
        below.visits = visits;
        below.host.offer_packet(now, packet);
        below.pass_unclaimed(now, &mut self.adapter);
    }

    /// Returns a place to which another engine expects this one's state to be sent.
    pub(super) fn poll_question(&mut self) -> Option<mpsc::Sender<Snapshot>> {
        self.questions.pop()
    }

    /// Asks the other engines, if any, for their state.
    pub(super) fn ask_siblings(&mut self) -> Option<mpsc::Receiver<Snapshot>> {
        self.siblings.as_mut().map(Siblings::ask)
    }

    /// Returns the number by which users know an application of this engine.
    pub(super) fn number_of(&self, session: SessionId) -> u32 {
        let (number, engines) = match &self.siblings {
            Some(siblings) => (siblings.number() as u32, siblings.engines() as u32),
            None => (0, 1),
        };
        session.0 * engines + number
    }

    /// Attaches the application at the other end of `link`.
    fn attach(&mut self, now: Time, stack: &mut Stack<Bytes>, link: AnyAdapterLink) {
        let (user, process) = (link.application().uid, link.application().pid);
        if self.end.has_begun() {
            return self.forget(user, process);
        }
        let geometry = *link.geometry();
        let epoch_ns = self.epoch_ns.filter(|_| link.is_local());
        let common = &self.adapter.config().batching;
        let batching = Batching {
            level: common.level.min(geometry.ring_depth),
            max_transfer_bytes: geometry.buffer_bytes,
            ..common.clone()
        };
        // Dropping the link informs an application that cannot be served.
        let Ok(session) = self.adapter.attach_with(&batching, geometry.ring_depth) else {
            self.stats.not_attached += 1;
            return self.forget(user, process);
        };
        let number = self.number_of(session);
        let Ok(application) = Attached::new(now, (session, number), link, &self.wakeups) else {
            self.adapter.detach(now, stack, session, Ending::Reset);
            self.stats.not_attached += 1;
            return self.forget(user, process);
        };
        if let Some(user) = user {
            self.adapter.set_user(session, user);
        }
        if let Some(epoch_ns) = epoch_ns {
            self.adapter.set_epoch(session, epoch_ns);
        }
        if let Some(make) = &self.batching {
            self.adapter
                .set_batching(session, make(geometry.ring_depth));
        }
        self.process.attach(session);
        self.stats.attached += 1;
        self.busy = true;
        self.tell(Notice::Attached(application.about.clone()));
        let index = session.0 as usize;
        if index >= self.applications.len() {
            self.applications.resize_with(index + 1, || None);
        }
        self.applications[index] = Some(application);
    }

    /// Records for the other engines that an application has gone.
    fn forget(&self, user: Option<u32>, process: Option<u32>) {
        if let Some(siblings) = &self.siblings {
            siblings.application_left(user, process);
        }
    }

    // --- applications work ---

    /// Returns whether an unclaimed packet may belong to a host that has yet to attach or that has just taken back its connections, which a
    /// reset would end.
    fn is_quiet(&mut self, now: Time) -> bool {
        let until = *self.quiet_until.get_or_insert(now + QUIET_START);
        now < until || self.end.has_begun()
    }

    /// Checks the host and the applications for new work, and does all of it if all work is done at once.
    fn look(&mut self, now: Time, host: &mut Host) {
        let received = host.interface().stats().segments_received;
        let before = std::mem::replace(&mut self.segments_received, received);
        let mut below = Below {
            quiet: self.is_quiet(now),
            host,
            beside: self.beside.as_mut(),
            siblings: self.siblings.as_mut(),
            visits: 0,
            arrived: u32::try_from(received - before).unwrap_or(u32::MAX),
            unclaimed: 0,
            room: 0,
            frames: &mut Vec::new(),
            end: &mut |_| {},
        };
        let mut links = ApplicationLinks(&mut self.applications);
        let looked = (self.process).look(now, &mut self.adapter, &mut below, &mut links);
        self.busy |= below.unclaimed > 0;
        self.end_work(now, host, looked);
    }

    /// Detaches the application that has failed, if any.
    fn end_work(
        &mut self,
        now: Time,
        host: &mut Host,
        worked: Result<bool, (SessionId, LinkError)>,
    ) {
        match worked {
            Ok(did) => self.busy |= did,
            Err((session, error)) => self.part_with(now, host.stack_mut(), session, &error),
        }
    }

    /// Does the work of an adapter beside a kernel, and reports when the broker goes away or another one takes over.
    fn work_beside(&mut self, now: Time, host: &mut Host) {
        if let Some(beside) = &mut self.beside {
            let was_alone = beside.is_alone();
            beside.work(now, host, &mut self.adapter);
            let is_alone = beside.is_alone();
            match (was_alone, is_alone) {
                (false, true) => self.tell(Notice::Alone),
                (true, false) => self.tell(Notice::NotAlone),
                _ => {}
            }
        }
    }

    // --- applications go ---

    /// Detaches an application that has exited or broken the rules, and ends its connections.
    fn part_with(
        &mut self,
        now: Time,
        stack: &mut Stack<Bytes>,
        session: SessionId,
        error: &LinkError,
    ) {
        let sockets = self.adapter.row(session).sockets;
        let Some(application) = self.applications[session.0 as usize].take() else {
            return;
        };
        let about = application.about.clone();
        self.forget(about.uid, about.pid);
        self.stats.reclaimed_bytes += application.memory_bytes();
        application.stop_waiting(&self.wakeups);
        let ending = match error {
            LinkError::Gone => {
                self.stats.left += 1;
                let ending = self.on_exit;
                self.tell(Notice::Left {
                    about,
                    sockets,
                    ending,
                });
                ending
            }
            LinkError::Violation(violation) => {
                self.stats.cut_off.add(violation);
                let violation = *violation;
                self.tell(Notice::CutOff { about, violation });
                Ending::Reset
            }
        };
        self.detach(now, stack, session, ending);
        // Resets and FINs are pending.
        self.busy = true;
    }

    /// Handles the stop request `stop`. Returns true if this call begins the shutdown: the service accepts no more applications and detaches
    /// those that are attached, sends what they have written, and then closes their connections.
    pub fn handle_stop(&mut self, now: Time, host: &mut Host, stop: Stop) -> bool {
        let begins = self.end.handle(now, stop);
        if begins {
            self.begin_end(now, host);
        }
        let left = host.stack().len();
        if let Some(waiting) = self.end.poll_waiting(now, left) {
            self.tell(Notice::Waiting(waiting));
        }
        begins
    }

    fn begin_end(&mut self, now: Time, host: &mut Host) {
        self.listeners = None;
        // Hosts take back their connections. After that, or after a time limit, all applications are detached.
        if let Some(beside) = &self.beside {
            beside.end();
        }
        self.adapter.stop_imports(now);
        self.relief_ends_at = Some(now + LONGEST_RELIEF);
        self.part_with_relieved(now, host.stack_mut());
    }

    /// During the shutdown, detaches the applications once their connections have been taken back.
    fn part_with_relieved(&mut self, now: Time, stack: &mut Stack<Bytes>) {
        let has_all = |beside: &Beside| beside.with_applications() == 0;
        let has_left = || !self.adapter.has_imported() && self.beside.as_ref().is_none_or(has_all);
        let is_over = |limit| limit <= now || has_left();
        if !self.relief_ends_at.is_some_and(is_over) {
            return;
        }
        self.relief_ends_at = None;
        for application in std::mem::take(&mut self.applications).into_iter().flatten() {
            let session = application.session;
            self.stats.reclaimed_bytes += application.memory_bytes();
            self.forget(application.about.uid, application.about.pid);
            self.detach(now, stack, session, Ending::Drain);
        }
    }

    fn detach(&mut self, now: Time, stack: &mut Stack<Bytes>, session: SessionId, ending: Ending) {
        self.adapter.detach(now, stack, session, ending);
        self.process.detach(session);
    }

    // --- sleep ---

    /// Asks all applications to ring from now on. Returns false if there is something to do already.
    pub fn prepare_to_sleep(&mut self) -> bool {
        let siblings = self.siblings.as_mut();
        if !siblings.is_none_or(Siblings::prepare_to_sleep) {
            return false;
        }
        for application in self.applications.iter_mut().flatten() {
            if application.asleep {
                continue;
            }
            let is_full = self.adapter.room_for_requests(application.session) == 0;
            let sleeps = application.put_to_sleep(&self.wakeups, is_full);
            // The next turn finds the same error and handles it.
            if !sleeps.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// Handles the end of a wait at `now`: notes whether applications wait at the listeners, and which applications have rung. `ready` says
    /// which descriptors of [`AdapterService::fds`] are ready.
    ///
    /// # Errors
    /// The system cannot report which applications have rung.
    pub fn awake(&mut self, now: Time, ready: &[bool]) -> io::Result<()> {
        let [rung, at_listeners @ ..] = ready else {
            return Ok(());
        };
        self.listeners_throttle
            .handle_wait(now, at_listeners.contains(&true));
        if let Some(siblings) = &self.siblings {
            siblings.awake();
        }
        if !rung {
            return Ok(());
        }
        if let Some(siblings) = &self.siblings {
            siblings.silence();
        }
        if self.attached().count() <= FEW {
            for application in self.applications.iter_mut().flatten() {
                application.asleep = false;
            }
            return Ok(());
        }
        for number in self.wakeups.ready()? {
            if let Some(Some(application)) = self.applications.get_mut(number as usize) {
                application.asleep = false;
            }
        }
        Ok(())
    }

    /// Returns the descriptors to wait for: that of all applications first, then those of the listeners.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        let mut fds = SmallVec::new();
        fds.push((self.wakeups.as_fd(), PollFlags::IN));
        fds.extend(self.listeners.iter().flat_map(Listeners::fds));
        fds
    }
}

impl Application for AdapterService {
    fn receive(&mut self, now: Time, host: &mut Host, frames: Drain<'_, Bytes>) {
        if let Some(timeline) = &mut self.timeline {
            for frame in frames.as_slice() {
                timeline.frame(now, Way::In, frame);
            }
        }
        if let Some(siblings) = &mut self.siblings {
            let frames = frames.as_slice().iter();
            for frame in frames.filter(|frame| is_for_all(frame)) {
                siblings.broadcast(frame);
            }
        }
        if self.process.does_all() {
            return host.handle_frames(now, frames);
        }
        for frame in frames {
            let bytes = frame.len() as u32;
            // On an error the frame was dropped, and the process has counted it by reason.
            let _ = (self.process).receive(now, &mut self.adapter, frame, bytes);
        }
    }

    fn handle(&mut self, now: Time, host: &mut Host) {
        self.busy = false;
        self.read_messages(now, host);
        if self.listeners_throttle.is_due(now) {
            self.welcome(now, host.stack_mut());
        }
        self.look(now, host);
        self.work_beside(now, host);
        self.part_with_relieved(now, host.stack_mut());
        if let Some(beside) = &mut self.beside {
            beside.commit(now, host);
        }
    }

    fn poll_frames(
        &mut self,
        now: Time,
        host: &mut Host,
        most: usize,
        frames: &mut Vec<u8>,
        end: &mut dyn FnMut(&mut Vec<u8>),
    ) {
        let Some(mut timeline) = self.timeline.take() else {
            return self.gather_frames(now, host, most, frames, end);
        };
        let mut start = frames.len();
        self.gather_frames(now, host, most, frames, &mut |frames| {
            timeline.frame(now, Way::Out, &frames[start..]);
            end(frames);
            start = frames.len();
        });
        self.timeline = Some(timeline);
    }

    fn path_of(&self, host: &Host, way: Way, frame: &[u8]) -> Option<&'static str> {
        let flow = flow_of(way, frame)?;
        let is_here = host.stack().find(&flow).is_some();
        Some(match (way, &self.beside) {
            (Way::Out, _) if is_here => "sent by the adapter, which owns the connection",
            (Way::Out, _) => "sent by the adapter, outside its connections",
            (Way::In, _) if is_here => "received by the adapter, which owns the connection",
            (Way::In, Some(beside)) if beside.has(&flow) => {
                "held by the adapter: the connection is moving"
            }
            (Way::In, Some(_)) => "passed to the kernel: the connection has left the adapter",
            (Way::In, None) if self.adapter.host_for(flow.local).is_some() => {
                "passed to the application that handles packets outside the adapter's connections"
            }
            (Way::In, None) => "received by the adapter, outside its connections",
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let beside = self.beside.as_ref().map(Beside::poll_timeout);
        [self.adapter.poll_timeout(), beside]
            .into_iter()
            .flatten()
            .min()
    }
}

impl AdapterService {
    /// Implements [`Application::poll_frames`].
    fn gather_frames(
        &mut self,
        now: Time,
        host: &mut Host,
        most: usize,
        frames: &mut Vec<u8>,
        end: &mut dyn FnMut(&mut Vec<u8>),
    ) {
        if self.process.does_all() {
            host.poll_frames(now, most, frames, end);
            return;
        }
        let mut below = Below {
            quiet: self.is_quiet(now),
            host,
            beside: self.beside.as_mut(),
            siblings: self.siblings.as_mut(),
            visits: 0,
            arrived: 0,
            unclaimed: 0,
            room: most,
            frames,
            end,
        };
        let (process, adapter) = (&mut self.process, &mut self.adapter);
        let mut links = ApplicationLinks(&mut self.applications);
        let worked = work(now, process, adapter, &mut below, &mut links);
        self.end_work(now, host, worked);
        // The frames contradict the states recorded before: record the new states before the frames leave.
        if let Some(beside) = &mut self.beside {
            beside.commit(now, host);
        }
    }
}
