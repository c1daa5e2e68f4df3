//! The other engines of an adapter: what engines send to each other, and how they agree on ports.
//!
//! Each engine has a thread, a queue of the interface, a TCP stack and applications of its own. The interface chooses the engine that receives
//! a frame, by a hash of the four-tuple or because that engine last sent a segment of the connection. No lock is taken and nothing is shared
//! while segments of an engine's own connections arrive. A segment of a connection that an engine does not have visits the other engines one
//! after the other. Frames that are not TCP segments go to all engines, of which only the first answers.

use crate::snapshot::Snapshot;
use baton_bus::shared::{Mailbox, Sender, Undelivered, mailbox};
use baton_inet::UnclaimedKind;
use baton_iolib::AnyAdapterLink;
use baton_nic::adapter::{PortRegistry, Sharing, overlap};
use baton_tcp::Stack;
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use rustc_hash::FxHashSet;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

/// Maximum number of engines of an adapter: the users of a port are the bits of one word.
pub const MOST_ENGINES: usize = 64;
/// Maximum number of messages that wait at one engine. Packets beyond are dropped, as in a full queue of an interface.
const MOST_MESSAGES: usize = 4096;
/// Interval at which ports that an engine no longer uses are released.
const RELEASE_EVERY: Span = Span::from_secs(5);

/// What one engine sends to another.
pub(super) enum Message {
    /// An application that was accepted.
    Application(AnyAdapterLink),
    /// An IP packet, and the number of engines that it has visited, none of which has its connection.
    Packet(Bytes, u32),
    /// A frame that concerns all engines.
    Frame(Bytes),
    /// A question for the engine's state.
    Question(mpsc::Sender<Snapshot>),
}

/// What the engines know of one of them.
struct Member {
    to: Sender<Message>,
    bell: OwnedFd,
    /// The applications of this engine.
    tenants: Mutex<Vec<Tenant>>,
}

/// An application, as the system knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tenant {
    user: Option<u32>,
    process: Option<u32>,
}

impl Tenant {
    fn of(link: &AnyAdapterLink) -> Self {
        let application = link.application();
        Self {
            user: application.uid,
            process: application.pid,
        }
    }

    /// Returns whether the process still runs. Its engine may not have noticed yet that it has ended.
    fn lives(self) -> bool {
        let process = self
            .process
            .and_then(|pid| Pid::from_raw(pid.cast_signed()));
        process.is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH))
    }
}

/// A listener of an engine.
#[derive(Debug, PartialEq, Eq)]
struct Listening {
    engine: usize,
    local: Endpoint,
    sharing: Option<Sharing>,
}

/// What all engines share.
struct Family {
    members: Vec<Member>,
    listening: Mutex<Vec<Listening>>,
    /// The engines that may have connections with a local port, by port: one bit each.
    users_of_ports: Box<[AtomicU64]>,
}

/// Counters of an engine's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SiblingStats {
    /// Packets sent to the next engine, because this one does not have their connection.
    pub forwarded: u64,
    /// Packets received from other engines.
    pub visited: u64,
    /// Frames sent to all other engines.
    pub broadcast: u64,
    /// Messages that were dropped because the other engine had too many.
    pub dropped: u64,
}

/// An engine's view of the engines of its adapter.
pub struct Siblings {
    number: usize,
    family: Arc<Family>,
    mailbox: Mailbox<Message>,
    stats: SiblingStats,
    release_at: Time,
}

impl Siblings {
    /// Creates the views of `engines` engines, in their order.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn of(engines: usize) -> io::Result<Vec<Self>> {
        assert!((1..=MOST_ENGINES).contains(&engines), "{engines} engines");
        let mut mailboxes = Vec::new();
        let mut members = Vec::new();
        for _ in 0..engines {
            let (to, mailbox) = mailbox(MOST_MESSAGES);
            mailboxes.push(mailbox);
            members.push(Member {
                to,
                bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
                tenants: Mutex::default(),
            });
        }
        let family = Arc::new(Family {
            members,
            listening: Mutex::default(),
            users_of_ports: (0..=u16::MAX).map(|_| AtomicU64::new(0)).collect(),
        });
        let view = |(number, mailbox)| Self {
            number,
            family: Arc::clone(&family),
            mailbox,
            stats: SiblingStats::default(),
            release_at: Time::ZERO,
        };
        Ok(mailboxes.into_iter().enumerate().map(view).collect())
    }

    /// Returns the number of this engine, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the number of engines.
    pub fn engines(&self) -> usize {
        self.family.members.len()
    }

    /// Returns the counters.
    pub fn stats(&self) -> &SiblingStats {
        &self.stats
    }

    // --- messages ---

    /// Returns the next message to this engine.
    pub(super) fn receive(&mut self) -> Option<Message> {
        let message = self.mailbox.receive()?;
        self.stats.visited += u64::from(matches!(message, Message::Packet(..)));
        Some(message)
    }

    /// Sends a message to an engine, and counts it if that engine has too many.
    fn send(&mut self, engine: usize, message: Message) -> Result<(), Undelivered<Message>> {
        let member = &self.family.members[engine];
        let sent = member.to.send(message).map(|wake| {
            if wake {
                // A counter that is full wakes up the engine as well.
                let _ = rustix::io::write(&member.bell, &1_u64.to_ne_bytes());
            }
        });
        self.stats.dropped += u64::from(matches!(sent, Err(Undelivered::Full(_))));
        sent
    }

    /// Returns whether a packet of a connection that this engine does not have goes on to the next engine. It has visited `visits` engines
    /// before; `is_accepting` says whether an application here waits for connections to its address, and is `None` without a listener.
    ///
    /// In the first round, a packet looks for its connection or, if it opens one, for an application that waits for it; in the second round
    /// for any listener. The last engine answers it.
    pub(super) fn must_forward(
        &self,
        visits: u32,
        kind: UnclaimedKind,
        is_accepting: Option<bool>,
    ) -> bool {
        let engines = self.engines() as u32;
        match kind {
            UnclaimedKind::Opening if visits < engines => is_accepting != Some(true),
            UnclaimedKind::Segment if visits < engines => true,
            UnclaimedKind::Opening | UnclaimedKind::Segment => {
                is_accepting.is_none() && visits + 1 < 2 * engines
            }
            // All engines get such errors.
            UnclaimedKind::PathError => false,
        }
    }

    /// Sends a packet on to the next engine that has not ended.
    pub(super) fn forward(&mut self, packet: Bytes, visits: u32) {
        self.stats.forwarded += 1;
        let mut message = Message::Packet(packet, visits + 1);
        for step in 1..self.engines() {
            let next = (self.number + step) % self.engines();
            match self.send(next, message) {
                Err(Undelivered::Gone(Message::Packet(packet, visits))) => {
                    message = Message::Packet(packet, visits + 1);
                }
                // The peer sends a packet that is lost here again, as one that is lost elsewhere.
                _ => return,
            }
        }
    }

    /// Sends a frame to all other engines.
    pub(super) fn broadcast(&mut self, frame: &Bytes) {
        self.stats.broadcast += 1;
        for engine in self.others() {
            let _ = self.send(engine, Message::Frame(frame.clone()));
        }
    }

    /// Asks the other engines for their state. Their answers arrive at the receiver, which ends when no more will come.
    pub(super) fn ask(&mut self) -> mpsc::Receiver<Snapshot> {
        let (to, answers) = mpsc::channel();
        for engine in self.others() {
            let _ = self.send(engine, Message::Question(to.clone()));
        }
        answers
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.number;
        (0..self.engines()).filter(move |&engine| engine != own)
    }

    /// Asks the other engines to wake up this one from now on. Returns false if there is a message already.
    pub(super) fn prepare_to_sleep(&mut self) -> bool {
        self.mailbox.prepare_to_sleep()
    }

    /// Records that this engine is awake.
    pub(super) fn awake(&self) {
        self.mailbox.awake();
    }

    /// Silences the bell of this engine, which may have rung.
    pub(super) fn silence(&self) {
        let _ = rustix::io::read(&self.family.members[self.number].bell, &mut [0; 8]);
    }

    // --- applications ---

    /// Returns the users of all applications.
    pub(super) fn users(&self) -> Vec<Option<u32>> {
        let members = self.family.members.iter();
        members
            .flat_map(|member| lock(&member.tenants).clone())
            .map(|tenant| tenant.user)
            .collect()
    }

    /// Gives a new application to the engine with the fewest. Returns it if that is this engine.
    pub(super) fn place(&mut self, link: AnyAdapterLink) -> Option<AnyAdapterLink> {
        let members = &self.family.members;
        let living = |&engine: &usize| {
            let tenants = lock(&members[engine].tenants);
            tenants.iter().filter(|tenant| tenant.lives()).count()
        };
        let engine = (0..members.len()).min_by_key(living);
        let engine = engine.unwrap_or(self.number);
        let tenant = Tenant::of(&link);
        lock(&members[engine].tenants).push(tenant);
        if engine == self.number {
            return Some(link);
        }
        let unsent = match self.send(engine, Message::Application(link)) {
            Ok(()) => return None,
            Err(Undelivered::Full(message) | Undelivered::Gone(message)) => message,
        };
        forget(&self.family.members[engine], tenant);
        lock(&self.family.members[self.number].tenants).push(tenant);
        match unsent {
            Message::Application(link) => Some(link),
            _ => None,
        }
    }

    /// Records that an application of this engine has gone.
    pub(super) fn application_left(&self, user: Option<u32>, process: Option<u32>) {
        let tenant = Tenant { user, process };
        forget(&self.family.members[self.number], tenant);
    }

    // --- ports ---

    /// Returns this engine's access to the ports that all engines use. Of `chosen`, from which sockets get ports that they do not ask for,
    /// each engine has an equal part.
    pub(super) fn port_registry(&self, chosen: RangeInclusive<u16>) -> Box<dyn PortRegistry> {
        Box::new(Registry {
            engine: self.number,
            family: Arc::clone(&self.family),
            chosen,
        })
    }

    /// Releases the ports that no listener and no connection of this engine uses any more, from time to time.
    pub(super) fn release_ports(&mut self, now: Time, stack: &Stack<Bytes>) {
        if now < self.release_at {
            return;
        }
        self.release_at = now + RELEASE_EVERY;
        let own = 1 << self.number;
        let ports = self.family.users_of_ports.iter();
        let mut unused: FxHashSet<u16> = (0..=u16::MAX)
            .zip(ports)
            .filter(|(_, users)| users.load(Ordering::Relaxed) & own != 0)
            .map(|(port, _)| port)
            .collect();
        if unused.is_empty() {
            return;
        }
        for conn in stack.connections() {
            unused.remove(&stack.flow(conn).local.port);
        }
        for (flow, _) in stack.time_waits(now) {
            unused.remove(&flow.local.port);
        }
        // Under the lock, so that no listener of this engine is added meanwhile.
        for listening in lock(&self.family.listening).iter() {
            if listening.engine == self.number {
                unused.remove(&listening.local.port);
            }
        }
        for port in unused {
            self.family.users_of_ports[usize::from(port)].fetch_and(!own, Ordering::Relaxed);
        }
    }
}

impl AsFd for Siblings {
    /// The descriptor that becomes readable when another engine wakes up this one.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.family.members[self.number].bell.as_fd()
    }
}

/// One engine's access to the ports of all.
struct Registry {
    engine: usize,
    family: Arc<Family>,
    chosen: RangeInclusive<u16>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Registry")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl Registry {
    fn own(&self) -> u64 {
        1 << self.engine
    }

    fn users(&self, port: u16) -> &AtomicU64 {
        &self.family.users_of_ports[usize::from(port)]
    }

    /// Returns whether the port is in this engine's part of those that engines choose.
    fn is_in_part(&self, port: u16) -> bool {
        usize::from(port) % self.family.members.len() == self.engine
    }

    fn permits(&self, listening: &[Listening], local: Endpoint, sharing: Option<Sharing>) -> bool {
        let mut others = listening
            .iter()
            .filter(|other| other.engine != self.engine && overlap(other.local, local));
        others.all(|other| sharing.is_some() && (other.local, other.sharing) == (local, sharing))
    }
}

impl PortRegistry for Registry {
    fn may_choose(&self, port: u16) -> bool {
        self.is_in_part(port) && self.users(port).load(Ordering::Relaxed) & !self.own() == 0
    }

    fn may_listen(&self, local: Endpoint, sharing: Option<Sharing>) -> bool {
        self.permits(&lock(&self.family.listening), local, sharing)
    }

    fn listen(&mut self, local: Endpoint, sharing: Option<Sharing>) -> bool {
        let mut listening = lock(&self.family.listening);
        let permitted = self.permits(&listening, local, sharing);
        if permitted {
            listening.push(Listening {
                engine: self.engine,
                local,
                sharing,
            });
            self.users(local.port)
                .fetch_or(self.own(), Ordering::Relaxed);
        }
        permitted
    }

    fn unlisten(&mut self, local: Endpoint) {
        let mut listening = lock(&self.family.listening);
        let is_this = |other: &Listening| (other.engine, other.local) == (self.engine, local);
        if let Some(index) = listening.iter().position(is_this) {
            listening.swap_remove(index);
        }
    }

    fn connect_from(&mut self, port: u16) -> bool {
        if self.chosen.contains(&port) && !self.is_in_part(port) {
            return false;
        }
        let own = self.own();
        let claim = |users: u64| (users & !own == 0).then_some(users | own);
        let claimed = (self.users(port)).fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim);
        claimed.is_ok()
    }
}

/// Returns whether a frame concerns all engines: everything but whole TCP segments, whose headers follow those of Ethernet and IP.
pub(super) fn is_for_all(frame: &[u8]) -> bool {
    let (ether_type, packet) = match frame {
        [_, _, _, _, _, _, _, _, _, _, _, _, a, b, packet @ ..] => ([*a, *b], packet),
        _ => return true,
    };
    match (ether_type, packet) {
        // IPv4: no fragment, and the protocol is TCP.
        ([0x08, 0x00], [_, _, _, _, _, _, a, b, _, 6, ..]) => (a & 0x3f, *b) != (0, 0),
        // IPv6: TCP follows immediately.
        ([0x86, 0xdd], [_, _, _, _, _, _, 6, ..]) => false,
        _ => true,
    }
}

fn forget(member: &Member, tenant: Tenant) {
    let mut tenants = lock(&member.tenants);
    if let Some(index) = tenants.iter().position(|&other| other == tenant) {
        tenants.swap_remove(index);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_tcp::Config;
    use baton_wire::Flow;
    use std::num::NonZero;

    const CHOSEN: RangeInclusive<u16> = 32_768..=60_999;

    fn at(port: u16) -> Endpoint {
        Endpoint::new([10, 9, 0, 2].into(), port)
    }

    fn sharing(user: u32) -> Option<Sharing> {
        NonZero::new(7).map(|number| (user, number))
    }

    #[test]
    fn listeners_exclude_those_of_other_engines_unless_they_share() {
        let siblings = Siblings::of(3).expect("descriptors");
        let mut ports: Vec<_> = (siblings.iter().map(|it| it.port_registry(CHOSEN))).collect();
        assert!(ports[0].listen(at(80), None));
        let any = Endpoint::new([0, 0, 0, 0].into(), 80);
        for local in [at(80), any] {
            assert!(!ports[1].may_listen(local, None));
            assert!(!ports[1].listen(local, sharing(1)));
        }
        assert!(ports[1].listen(at(81), sharing(1)));
        assert!(!ports[2].listen(at(81), sharing(2)), "of another user");
        assert!(!ports[2].listen(at(81), None));
        assert!(ports[2].listen(at(81), sharing(1)));
        ports[0].unlisten(at(80));
        assert!(ports[1].listen(at(80), None));
    }

    #[test]
    fn each_engine_chooses_ports_of_its_own() {
        let siblings = Siblings::of(3).expect("descriptors");
        let mut ports: Vec<_> = (siblings.iter().map(|it| it.port_registry(CHOSEN))).collect();
        for port in CHOSEN {
            let choosing = (ports.iter()).filter(|ports| ports.may_choose(port));
            assert_eq!(choosing.count(), 1);
        }
        let of_last = 32_771;
        assert!(ports[2].may_choose(of_last));
        assert!(!ports[1].connect_from(of_last), "the other may choose it");
        assert!(ports[1].listen(at(of_last), None));
        assert!(!ports[2].may_choose(of_last));
        assert!(ports[0].connect_from(1000));
        assert!(ports[0].connect_from(1000));
        assert!(!ports[1].connect_from(1000));
    }

    #[test]
    fn ports_are_released_when_neither_a_listener_nor_a_connection_uses_them() {
        let mut siblings = Siblings::of(2).expect("descriptors");
        let mut ports: Vec<_> = (siblings.iter().map(|it| it.port_registry(CHOSEN))).collect();
        let mut stack = Stack::new(Config::default(), 1);
        assert!(ports[0].connect_from(1000) && ports[0].connect_from(1001));
        assert!(ports[0].listen(at(1002), None));
        let flow = Flow {
            local: at(1001),
            remote: Endpoint::new([10, 9, 0, 1].into(), 80),
        };
        let conn = stack.connect(Time::ZERO, flow).expect("a free flow");
        let mut now = Time::ZERO;
        let mut free = |stack: &Stack<Bytes>, ports: &mut [Box<dyn PortRegistry>]| {
            now += RELEASE_EVERY;
            siblings[0].release_ports(now, stack);
            let free = [1000, 1001, 1002].map(|port| ports[1].connect_from(port));
            siblings[1].release_ports(now, &Stack::new(Config::default(), 2));
            free
        };
        assert_eq!(free(&stack, &mut ports), [true, false, false]);
        stack.abort(conn);
        while stack.poll_event().is_some() {}
        ports[0].unlisten(at(1002));
        assert_eq!(free(&stack, &mut ports), [true, true, true]);
    }

    #[test]
    fn an_application_whose_process_has_ended_does_not_count() {
        let tenant = |process| Tenant {
            user: Some(1),
            process,
        };
        let mut child = std::process::Command::new("true").spawn().expect("it runs");
        child.wait().expect("it ends");
        assert!(!tenant(Some(child.id())).lives());
        assert!(tenant(Some(std::process::id())).lives());
        assert!(tenant(None).lives(), "on another machine");
    }

    #[test]
    fn only_whole_segments_concern_one_engine() {
        let frame =
            |ether_type: [u8; 2], packet: &[u8]| [&[0; 12], &ether_type[..], packet].concat();
        let v4 = |fragment: [u8; 2], protocol| {
            let [a, b] = fragment;
            frame([8, 0], &[0x45, 0, 0, 40, 0, 0, a, b, 64, protocol, 0, 0])
        };
        let v6 = |next| frame([0x86, 0xdd], &[0x60, 0, 0, 0, 0, 20, next, 64]);
        // Bit 0x40 forbids fragments.
        for segment in [v4([0, 0], 6), v4([0x40, 0], 6), v6(6)] {
            assert!(!is_for_all(&segment));
        }
        let other = [
            v4([0x20, 0], 6),
            v4([0, 1], 6),
            v4([0, 0], 1),
            v6(58),
            v6(0),
            frame([8, 6], &[0; 28]),
            frame([8, 0], &[0x45]),
            vec![0; 13],
        ];
        for frame in other {
            assert!(is_for_all(&frame), "{frame:?}");
        }
    }
}
