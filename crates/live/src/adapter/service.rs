//! Applications of other processes on the engine's host.

use super::application::Attached;
use super::beside::Beside;
use super::config::AdapterServiceConfig;
use super::cutoff::CutOffs;
use super::listeners::Listeners;
use super::notice::Notice;
use super::one_by_one::{OneByOne, Parts};
use super::passing;
use super::timeline::AdapterTimeline;
use super::wakeups::Wakeups;
use crate::clock::Clock;
use crate::ending::{End, Stop};
use crate::engine::{Application, take_in};
use crate::error::LiveError;
use crate::lines::Lines;
use crate::throttle::Throttle;
use baton_bus::link::LinkError;
use baton_bus::{Batching, BatchingRule};
use baton_inet::Host;
use baton_iolib::AnyAdapterLink;
use baton_nic::adapter::{Adapter, AdapterConfig, Ending, SessionId, pump};
use baton_nic::{Config, Governor, Schedule};
use baton_tcp::Stack;
use baton_timeline::Way;
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::PollFlags;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;
use std::vec::Drain;

/// The longest that hosts have for taking their connections back at the end.
const LONGEST_RELIEF: Span = Span::from_secs(3);
/// The longest that a connection settles before the kernel has it back. A lost segment is noticed and goes again after a retransmission timeout
/// of 200 ms and a round trip or two: half a second is enough for one loss on paths of up to 100 ms. It leaves most of the time for relief.
const LONGEST_SETTLE: Span = Span::from_ms(500);
/// After its start an adapter refuses nothing for so long: hosts whose last adapter has stopped have yet to attach, and look every half
/// second.
pub(super) const QUIET_START: Span = Span::from_secs(2);
/// So many applications are all looked at when one has rung: to ask which takes longer.
const FEW: usize = 4;
/// Notices that wait to be told of at most; those that come after are not told of.
const MOST_NOTICES: usize = 256;

/// Makes a rule for an application's ring of so many descriptors.
type MakeBatching = dyn Fn(u32) -> Box<dyn BatchingRule>;

/// What the service counts of applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationStats {
    /// Attached so far.
    pub attached: u64,
    /// Gone by themselves.
    pub left: u64,
    /// Cut off, by what they did.
    pub cut_off: CutOffs,
    /// Let in and sent away again, because the adapter had no room for them.
    pub not_attached: u64,
    /// Memory that was shared with applications that are gone, bytes; it has been given back.
    pub reclaimed_bytes: u64,
}

/// The adapter, its applications, and the listeners that they come in by.
///
/// Order of calls: as an [`Application`] of an engine. After a turn that had nothing to do ([`AdapterService::was_busy`]), before the
/// engine waits, [`AdapterService::prepare_to_sleep`]; only if that says so it may wait, for what [`AdapterService::fds`] gives too; and
/// [`AdapterService::awake`] after it.
pub struct AdapterService {
    pub(super) adapter: Adapter<Bytes>,
    /// Does one piece of work at a time; none: all that is there.
    pub(super) one_by_one: Option<OneByOne>,
    /// A kernel has the interface, and this adapter single connections.
    pub(super) beside: Option<Beside>,
    batching: Option<Box<MakeBatching>>,
    /// When the engine's clock began, on CLOCK_MONOTONIC, ns; none: applications are told no times.
    epoch_ns: Option<u64>,
    on_exit: Ending,
    /// None once the end has begun.
    listeners: Option<Listeners>,
    /// By the number of their session.
    applications: Vec<Option<Attached>>,
    wakeups: Wakeups,
    stats: ApplicationStats,
    notices: VecDeque<Notice>,
    lines: Lines<(&'static str, Option<u32>)>,
    /// None: nobody wants one.
    timeline: Option<Box<AdapterTimeline>>,
    /// When to look at the listeners.
    listeners_throttle: Throttle,
    /// There was something to do in the last turn.
    busy: bool,
    /// An application was woken.
    rang: bool,
    /// Segments received, as of the last turn.
    segments_received: u64,
    /// When the quiet after the start ends; none before the first turn.
    quiet_until: Option<Time>,
    end: End,
    /// When hosts have had time enough to take their connections back.
    relief_ends_at: Option<Time>,
}

impl AdapterService {
    /// An adapter with the addresses of `host`, for applications that come in by `listeners`.
    ///
    /// # Errors
    /// Parameters that cannot work, or no files left.
    pub fn new(
        config: AdapterServiceConfig,
        listeners: Listeners,
        host: &mut Host,
    ) -> Result<Self, LiveError> {
        host.pass_unclaimed(true);
        let addresses = &host.interface().config().addresses;
        let adapter = AdapterConfig {
            addresses: addresses.iter().map(|address| address.addr()).collect(),
            ..config.adapter
        };
        let adapter =
            Adapter::new(adapter).map_err(|error| LiveError::BadInput(error.to_string()))?;
        Ok(Self {
            adapter,
            one_by_one: config.firmware.as_ref().map(OneByOne::new),
            beside: None,
            batching: None,
            epoch_ns: None,
            on_exit: config.on_exit,
            listeners: Some(listeners),
            applications: Vec::new(),
            wakeups: Wakeups::new()
                .map_err(LiveError::failed("cannot wait for several applications"))?,
            stats: ApplicationStats::default(),
            notices: VecDeque::new(),
            lines: Lines::default(),
            timeline: None,
            listeners_throttle: Throttle::default(),
            busy: false,
            rang: false,
            segments_received: 0,
            quiet_until: None,
            end: End::default(),
            relief_ends_at: None,
        })
    }

    // --- getters ---

    /// Totals.
    pub fn stats(&self) -> &ApplicationStats {
        &self.stats
    }

    /// The adapter.
    pub fn adapter(&self) -> &Adapter<Bytes> {
        &self.adapter
    }

    /// The listeners, until the end begins.
    pub fn listeners(&self) -> Option<&Listeners> {
        self.listeners.as_ref()
    }

    /// Applications that are attached.
    pub(super) fn attached(&self) -> impl Iterator<Item = &Attached> {
        self.applications.iter().flatten()
    }

    /// Whether an application was woken since this was asked last.
    pub fn take_rang(&mut self) -> bool {
        std::mem::take(&mut self.rang)
    }

    /// Whether the last turn had something to do.
    pub fn was_busy(&self) -> bool {
        self.busy
    }

    /// Whether the end was asked for and nothing is left, or what is left is to be left alone.
    pub fn has_ended(&self, now: Time, host: &Host) -> bool {
        let is_empty = self.relief_ends_at.is_none() && host.stack().is_empty();
        self.end.has_begun() && (is_empty || self.end.is_over(now))
    }

    /// How often those that are attached were woken.
    fn doorbells_rung(&self) -> u64 {
        self.attached().map(Attached::doorbells_rung).sum()
    }

    // --- mutators: policies of the caller's own, before there are applications ---

    /// Which piece of work is done next (handoff-policies 3.1). An adapter that was to do all at once does one at a time with it, with the
    /// usual lengths of queues.
    pub fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        let one_by_one = &mut self.one_by_one;
        let one_by_one = one_by_one.get_or_insert_with(|| OneByOne::new(&Config::default()));
        one_by_one.set_schedule(schedule);
    }

    /// A kernel has the interface: the adapter does all that is there at once, and only for flows that are captured. They go back at rest,
    /// if they come to it soon: the kernel waits one to three seconds before it sends again what is in flight then.
    pub fn set_beside(&mut self, beside: Beside) {
        self.one_by_one = None;
        self.adapter.set_custody(Box::new(beside.custody()));
        self.adapter.settle_before_export(LONGEST_SETTLE);
        self.beside = Some(beside);
    }

    /// Tells a timeline what it does from now on.
    pub fn set_timeline(&mut self, timeline: AdapterTimeline) {
        self.timeline = Some(Box::new(timeline));
    }

    /// The timeline, which is told nothing more, or until it is put back.
    pub fn take_timeline(&mut self) -> Option<Box<AdapterTimeline>> {
        self.timeline.take()
    }

    pub(super) fn put_timeline(&mut self, timeline: Box<AdapterTimeline>) {
        self.timeline = Some(timeline);
    }

    /// How many connections may be here (handoff-policies 3.2).
    pub fn set_governor(&mut self, governor: Box<dyn Governor>) {
        self.adapter.set_governor(governor);
    }

    /// Tells applications of this machine the times of their bytes where they ask (SO_TIMESTAMPING): the engine has this clock.
    pub fn set_clock(&mut self, clock: &Clock) {
        self.epoch_ns = u64::try_from(clock.monotonic().as_nanos()).ok();
    }

    /// When answers are transferred (batching 3.1): made for each application's ring of so many descriptors.
    pub fn set_batching(&mut self, make: impl Fn(u32) -> Box<dyn BatchingRule> + 'static) {
        self.batching = Some(Box::new(make));
    }

    // --- effects out ---

    /// The next thing to tell the operator.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        let hidden = || {
            let ((kind, user), count) = self.lines.poll_hidden(Instant::now())?;
            Some(Notice::Hidden(kind, user, count))
        };
        self.notices.pop_front().or_else(hidden)
    }

    /// Notices that were not told one by one.
    pub(super) fn hidden_notices(&self) -> u64 {
        self.lines.hidden()
    }

    fn tell(&mut self, notice: Notice) {
        if self.notices.len() < MOST_NOTICES && self.lines.shows(Instant::now(), notice.key()) {
            self.notices.push_back(notice);
        }
    }

    // --- applications come ---

    /// Lets in who waits at the listeners.
    fn welcome(&mut self, now: Time, stack: &mut Stack<Bytes>) {
        let mut attached: Vec<_> = self.attached().map(|one| one.about.uid).collect();
        while let Some(link) = self
            .listeners
            .as_mut()
            .and_then(|listeners| listeners.next(&attached))
        {
            attached.push(link.application().uid);
            self.attach(now, stack, link);
        }
    }

    /// Serves the application at the other end of `link`.
    fn attach(&mut self, now: Time, stack: &mut Stack<Bytes>, link: AnyAdapterLink) {
        let geometry = *link.geometry();
        let epoch_ns = self.epoch_ns.filter(|_| link.is_local());
        let common = &self.adapter.config().batching;
        let batching = Batching {
            level: common.level.min(geometry.ring_depth),
            max_transfer_bytes: geometry.buffer_bytes,
            ..common.clone()
        };
        // An application that cannot be served knows when its link is dropped.
        let Ok(session) = self.adapter.attach_with(&batching, geometry.ring_depth) else {
            self.stats.not_attached += 1;
            return;
        };
        let Ok(application) = Attached::new(now, session, link, &self.wakeups) else {
            self.adapter.detach(now, stack, session, Ending::Reset);
            self.stats.not_attached += 1;
            return;
        };
        if let Some(user) = application.link.link().application().uid {
            self.adapter.set_user(session, user);
        }
        if let Some(epoch_ns) = epoch_ns {
            self.adapter.set_epoch(session, epoch_ns);
        }
        if let Some(make) = &self.batching {
            self.adapter
                .set_batching(session, make(geometry.ring_depth));
        }
        if let Some(one_by_one) = &mut self.one_by_one {
            one_by_one.attach(session);
        }
        self.stats.attached += 1;
        self.busy = true;
        self.tell(Notice::Attached(application.about.clone()));
        let index = session.0 as usize;
        if index >= self.applications.len() {
            self.applications.resize_with(index + 1, || None);
        }
        self.applications[index] = Some(application);
    }

    // --- applications work ---

    /// Moves what can be moved between applications and the stack, or the firmware's queues, for each a bounded amount.
    fn pump_all(&mut self, now: Time, stack: &mut Stack<Bytes>) {
        let mut failed: SmallVec<[(SessionId, LinkError); 2]> = SmallVec::new();
        for application in self.applications.iter_mut().flatten() {
            let session = application.session;
            if application.asleep && !self.adapter.has_work(session) {
                continue;
            }
            application.asleep = false;
            let rung = application.doorbells_rung();
            let (adapter, link) = (&mut self.adapter, &mut application.link);
            let pumped = match &mut self.one_by_one {
                Some(one_by_one) => one_by_one.look_at(now, adapter, session, link),
                None => pump(now, adapter, stack, session, link),
            };
            match pumped {
                Ok(did) => {
                    self.busy |= did;
                    self.rang |= application.doorbells_rung() > rung;
                }
                Err(error) => failed.push((session, error)),
            }
        }
        for (session, error) in failed {
            self.part_with(now, stack, session, &error);
        }
    }

    // --- packets ---

    /// Whether what nobody claims may belong to a host that has yet to attach, or that has just taken its connections back. A reset
    /// would end its connections.
    fn is_quiet(&mut self, now: Time) -> bool {
        let until = *self.quiet_until.get_or_insert(now + QUIET_START);
        now < until || self.end.has_begun()
    }

    /// Passes the packets that have come at once; load control sees what of them was for TCP here.
    fn pass_packets(&mut self, now: Time, host: &mut Host) {
        let quiet = self.is_quiet(now);
        host.pass_unclaimed(quiet || self.beside.is_some() || self.adapter.passes_packets());
        let waiting = match &mut self.beside {
            Some(beside) => beside.hold(now, host),
            None => passing::pass_packets(now, host, &mut self.adapter, quiet),
        };
        self.busy |= waiting > 0;
        let received = host.interface().stats().segments_received;
        let arrived = received - self.segments_received;
        self.segments_received = received;
        if arrived > 0 {
            // What is found at a turn has waited in the interface while the last one went on.
            let qlen = u32::try_from(arrived)
                .unwrap_or(u32::MAX)
                .saturating_sub(waiting);
            self.adapter.control_load(now, qlen, None);
        }
    }

    /// Everything that is there, at once.
    fn do_all(&mut self, now: Time, host: &mut Host) {
        let stack = host.stack_mut();
        while let Some((conn, event)) = stack.poll_event() {
            self.adapter.handle_event(now, stack, conn, &event);
        }
        self.pass_packets(now, host);
        let stack = host.stack_mut();
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.adapter.handle_timeouts(now, stack);
        }
        self.pump_all(now, stack);
        self.busy |= passing::take_packets(now, host, &mut self.adapter);
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

    /// Ends what an application has, which is gone or has broken the rules.
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
        self.stats.reclaimed_bytes += application.memory_bytes();
        self.wakeups.remove(application.link.link().as_fd());
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
        // There are resets and ends to send.
        self.busy = true;
    }

    /// Does what it is asked for; true when the end begins by that: it takes no more applications, and parts with those there are. What
    /// they have sent goes out, then their connections are closed.
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
        // Hosts take their connections back; after that, or when that takes too long, all part.
        self.adapter.stop_imports(now);
        self.relief_ends_at = Some(now + LONGEST_RELIEF);
        self.part_with_relieved(now, host.stack_mut());
    }

    /// At the end, parts with the applications once their connections have been taken back.
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
            self.detach(now, stack, session, Ending::Drain);
        }
    }

    fn detach(&mut self, now: Time, stack: &mut Stack<Bytes>, session: SessionId, ending: Ending) {
        self.adapter.detach(now, stack, session, ending);
        if let Some(one_by_one) = &mut self.one_by_one {
            one_by_one.detach(session);
        }
    }

    // --- sleep ---

    /// Tells all applications that they have to ring from now on. False when there is something to do already.
    pub fn prepare_to_sleep(&mut self) -> bool {
        for application in self.applications.iter_mut().flatten() {
            if application.asleep {
                continue;
            }
            let is_full = self.adapter.room_for_requests(application.session) == 0;
            let sleeps = application.put_to_sleep(&self.wakeups, is_full);
            // What is wrong with it the next turn finds out, too.
            if !sleeps.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// A wait has ended at `now`: takes note of who waits at the listeners, and of which applications have rung. `ready` says what of
    /// [`AdapterService::fds`] has been seen.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn awake(&mut self, now: Time, ready: &[bool]) -> io::Result<()> {
        let [rung, at_listeners @ ..] = ready else {
            return Ok(());
        };
        self.listeners_throttle
            .handle_wait(now, at_listeners.contains(&true));
        if !rung {
            return Ok(());
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

    /// What it waits for: applications first, then the listeners.
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
        match &mut self.one_by_one {
            Some(one_by_one) => one_by_one.receive(now, &mut self.adapter, frames),
            None => take_in(now, host, frames),
        }
    }

    fn handle(&mut self, now: Time, host: &mut Host) {
        self.busy = false;
        if self.listeners_throttle.is_due(now) {
            self.welcome(now, host.stack_mut());
        }
        if let Some(one_by_one) = &mut self.one_by_one {
            one_by_one.look(now, host, &mut self.adapter);
            self.pump_all(now, host.stack_mut());
        } else {
            self.do_all(now, host);
        }
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

    fn poll_timeout(&self) -> Option<Time> {
        let beside = self.beside.as_ref().map(Beside::poll_timeout);
        [self.adapter.poll_timeout(), beside]
            .into_iter()
            .flatten()
            .min()
    }
}

impl AdapterService {
    /// As [`Application::poll_frames`].
    fn gather_frames(
        &mut self,
        now: Time,
        host: &mut Host,
        most: usize,
        frames: &mut Vec<u8>,
        end: &mut dyn FnMut(&mut Vec<u8>),
    ) {
        let (quiet, rung) = match self.one_by_one {
            Some(_) => (self.is_quiet(now), self.doorbells_rung()),
            None => (false, 0),
        };
        let Some(one_by_one) = &mut self.one_by_one else {
            host.poll_frames(now, most, frames, end);
            return;
        };
        let mut parts = Parts {
            host,
            adapter: &mut self.adapter,
            links: &mut self.applications,
            quiet,
        };
        match one_by_one.work(now, &mut parts, most, frames, end) {
            Ok(did) => self.busy |= did,
            Err((session, error)) => self.part_with(now, host.stack_mut(), session, &error),
        }
        self.rang |= self.doorbells_rung() > rung;
    }
}
