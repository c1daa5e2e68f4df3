//! A host: an interface and a TCP stack, between frames and connections.

mod lookup;

pub use lookup::LookedUp;

use crate::icmp::Quote;
use crate::interface::{Received, Run, empty_segment, packet_of, push_data};
use crate::{ConfigError, Interface, InterfaceConfig, Medium, Refusal, SendRefusal, Sent};
use baton_tcp::{Config, Handled, Outgoing, OutgoingRun, PathError, RunLimit, Segment, Stack};
use baton_wire::{Buffer, Flow, SeqNr, Time};
use bytes::Bytes;
use std::collections::VecDeque;

/// IPv6 and TCP headers without options, bytes.
const IPV6_HEADERS_BYTES: u16 = 60;

/// Maximum number of packets for or from another stack that wait to be polled.
const MOST_PACKETS: usize = 4096;

/// Packets for or from another stack that were dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketDrops {
    /// Too many [unclaimed](Host::pass_unclaimed) packets waited to be polled.
    pub host_receive_queue: u64,
    /// Too many packets waited to be [sent](Host::send_packet).
    pub host_send_queue: u64,
    /// The packet came back for a connection that this stack does not have either.
    pub no_connection: u64,
}

/// Maximum number of segments in a run: runs longer than 64 KiB gain nothing.
const MOST_RUN: usize = 64;

/// Result of processing a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A segment, and what the stack did with it.
    Segment(Handled),
    /// An ICMP error about a segment that this host sent, and why the stack refused it, if it did.
    PathError(Result<(), baton_tcp::Refusal>),
    /// The interface handled the frame itself.
    Consumed,
    /// The interface refused the frame.
    Refused(Refusal),
    /// A segment, or an ICMP error about one, that does not belong to the stack: see [`Host::pass_unclaimed`].
    Unclaimed,
}

/// Which packets a host leaves to another stack with the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// None: the stack resets connections that it does not have.
    Nothing,
    /// Those that belong to none of the stack's connections and open none at a listener of the stack.
    Unclaimed,
    /// Those that belong to none of the stack's connections: other stacks may have the connection, or a listener at the same address.
    Listeners,
}

/// What an [`Unclaimed`] packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnclaimedKind {
    /// A segment that opens a connection.
    Opening,
    /// Another segment.
    Segment,
    /// An ICMP error about a segment.
    PathError,
}

/// A TCP packet for an address of the interface that does not belong to the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclaimed {
    /// The packet's connection, as this host would name it.
    pub flow: Flow,
    /// What the packet is.
    pub kind: UnclaimedKind,
    /// The IP packet, a part of the frame without a copy. Its checksums were verified, if the interface does that.
    pub packet: Bytes,
}

/// A host with one interface.
///
/// Calling order: after `handle_frame`, `handle_frames`, `handle_timeouts` or a mutator of the stack, poll the stack's events and
/// [`Host::poll_frames`] until there are none, and then the events again, since a segment that cannot be sent may end a connection.
/// Call [`Host::handle_timeouts`] at the time that [`Host::poll_timeout`] returns.
/// Time never goes back.
///
/// ```
/// use baton_inet::{Host, InterfaceConfig};
/// use baton_tcp::Config;
/// use baton_wire::{Endpoint, Flow, Time};
///
/// let host = |number: u8| {
///     let address = format!("10.0.0.{number}/24").parse().expect("an address");
///     let interface = InterfaceConfig::new([2, 0, 0, 0, 0, number], vec![address]);
///     Host::new(interface, Config::default(), u64::from(number)).expect("right parameters")
/// };
/// let (mut client, mut server) = (host(1), host(2));
/// let address = Endpoint::new([10, 0, 0, 2].into(), 80);
/// let listener = server.stack_mut().listen(address, 16);
/// let flow = Flow { local: Endpoint::new([10, 0, 0, 1].into(), 49152), remote: address };
/// client.stack_mut().connect(Time::ZERO, flow).expect("the flow is not in use");
///
/// // A question for the server's Ethernet address, its answer, and the segments.
/// let mut frame = Vec::new();
/// loop {
///     frame.clear();
///     if client.poll_frame(Time::ZERO, &mut frame) {
///         server.handle_frame(Time::ZERO, frame.clone().into());
///     } else if server.poll_frame(Time::ZERO, &mut frame) {
///         client.handle_frame(Time::ZERO, frame.clone().into());
///     } else {
///         break;
///     }
/// }
/// assert!(server.stack_mut().accept(listener).is_some());
/// ```
#[derive(Debug)]
pub struct Host {
    stack: Stack<Bytes>,
    interface: Interface,
    /// The segment that arrived last, kept here because segments are too large to be moved.
    arrived: Segment<Bytes>,
    passing: Passing,
    unclaimed: VecDeque<Unclaimed>,
    /// Packets of another stack, to be sent.
    outgoing: VecDeque<Bytes>,
    drops: PacketDrops,
}

impl Host {
    /// Creates a host whose connections have the parameters `config` by default. `secret` seeds everything that must not be
    /// guessed.
    ///
    /// # Errors
    /// Fails if the interface cannot work with its parameters.
    pub fn new(
        interface: InterfaceConfig,
        config: Config,
        secret: u64,
    ) -> Result<Self, ConfigError> {
        let interface = Interface::new(interface)?;
        Ok(Self::join(Stack::new(config, secret), interface))
    }

    /// Creates a host from a stack and an interface.
    pub fn join(mut stack: Stack<Bytes>, mut interface: Interface) -> Self {
        interface.set_flow_label_key(stack.flow_label_key());
        let mtu = interface.config().mtu;
        stack.limit_ipv6_mss(mtu.saturating_sub(IPV6_HEADERS_BYTES));
        Self {
            stack,
            interface,
            arrived: empty_segment(),
            passing: Passing::Nothing,
            unclaimed: VecDeque::new(),
            outgoing: VecDeque::new(),
            drops: PacketDrops::default(),
        }
    }

    // --- getters ---

    /// The host's TCP stack.
    pub fn stack(&self) -> &Stack<Bytes> {
        &self.stack
    }

    /// The host's TCP stack, mutably. Poll frames afterwards.
    pub fn stack_mut(&mut self) -> &mut Stack<Bytes> {
        &mut self.stack
    }

    /// The host's interface.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The host's interface, mutably. Poll frames afterwards.
    pub fn interface_mut(&mut self) -> &mut Interface {
        &mut self.interface
    }

    /// When [`Host::handle_timeouts`] must be called next, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (stack, interface) = (self.stack.poll_timeout(), self.interface.poll_timeout());
        [stack, interface].into_iter().flatten().min()
    }

    /// Packets for or from another stack that were dropped.
    pub fn packet_drops(&self) -> PacketDrops {
        self.drops
    }

    // --- mutators ---

    /// Sets which packets are kept for [`Host::poll_unclaimed`].
    pub fn pass_unclaimed(&mut self, passing: Passing) {
        self.passing = passing;
    }

    /// Sends an IP packet of another stack, from an address of the interface.
    pub fn send_packet(&mut self, packet: Bytes) {
        match self.outgoing.len() < MOST_PACKETS {
            true => self.outgoing.push_back(packet),
            false => self.drops.host_send_queue += 1,
        }
    }

    // --- events in ---

    /// Processes a frame, and passes its content to the stack.
    pub fn handle_frame(&mut self, now: Time, frame: Bytes) -> Arrived {
        let whole = self.kept(&frame);
        let received = self.interface.receive(now, frame, &mut self.arrived);
        self.handle_or_keep(now, received, self.interface.config().medium, whole)
    }

    /// Processes an IP packet that another host with the same addresses received: as if it had arrived here in a frame.
    pub fn offer_packet(&mut self, now: Time, packet: Bytes) -> Arrived {
        let whole = self.kept(&packet);
        let received = self
            .interface
            .receive_as(now, Medium::Ip, packet, &mut self.arrived);
        self.handle_or_keep(now, received, Medium::Ip, whole)
    }

    /// Returns a copy of a frame that may have to be passed on.
    fn kept(&self, frame: &Bytes) -> Option<Bytes> {
        (self.passing != Passing::Nothing).then(|| frame.clone())
    }

    /// Processes what was received, or keeps the packet `whole` if it belongs to another stack.
    fn handle_or_keep(
        &mut self,
        now: Time,
        received: Received,
        medium: Medium,
        whole: Option<Bytes>,
    ) -> Arrived {
        let Some(whole) = whole else {
            return self.handle_received(now, received);
        };
        let is_own = self.is_own(now, &received);
        self.handle_or_pass(now, received, medium, &whole, is_own)
    }

    /// Reports whether the content belongs to the stack, or to no stack.
    fn is_own(&mut self, now: Time, received: &Received) -> bool {
        match received {
            Received::Segment => self.owns_arrived(now),
            Received::PathError(Quote { flow, .. }, _) => self.stack.find(flow).is_some(),
            Received::Consumed | Received::Refused(_) => true,
        }
    }

    /// Reports whether the segment that arrived is not left to another stack.
    fn owns_arrived(&mut self, now: Time) -> bool {
        match self.passing {
            Passing::Listeners => self.stack.has_connection_of(now, &self.arrived),
            Passing::Nothing | Passing::Unclaimed => self.stack.claims(now, &self.arrived),
        }
    }

    /// Processes a frame, unless its connection is in another stack: then returns its packet.
    pub fn handle_frame_unless(
        &mut self,
        now: Time,
        frame: Bytes,
        is_elsewhere: impl Fn(&Flow) -> bool,
    ) -> Option<Unclaimed> {
        let whole = frame.clone();
        let received = self.interface.receive(now, frame, &mut self.arrived);
        let is_own = match &received {
            Received::Segment => !is_elsewhere(&self.arrived.flow_at_receiver()),
            Received::PathError(Quote { flow, .. }, _) => !is_elsewhere(flow),
            Received::Consumed | Received::Refused(_) => true,
        };
        let medium = self.interface.config().medium;
        self.handle_or_pass(now, received, medium, &whole, is_own);
        self.poll_unclaimed()
    }

    fn handle_or_pass(
        &mut self,
        now: Time,
        received: Received,
        medium: Medium,
        whole: &Bytes,
        is_own: bool,
    ) -> Arrived {
        let (flow, kind) = match &received {
            Received::Segment if !is_own => {
                let kind = match self.arrived.header.opens() {
                    true => UnclaimedKind::Opening,
                    false => UnclaimedKind::Segment,
                };
                (self.arrived.flow_at_receiver(), kind)
            }
            Received::PathError(Quote { flow, .. }, _) if !is_own => {
                (*flow, UnclaimedKind::PathError)
            }
            _ => return self.handle_received(now, received),
        };
        self.arrived.payload.clear();
        match packet_of(medium, whole) {
            Some(packet) if self.unclaimed.len() < MOST_PACKETS => {
                let unclaimed = Unclaimed { flow, kind, packet };
                self.unclaimed.push_back(unclaimed);
            }
            _ => self.drops.host_receive_queue += 1,
        }
        Arrived::Unclaimed
    }

    /// Processes an IP packet that arrived at another stack, for a connection of this stack; drops other packets.
    pub fn handle_packet(&mut self, now: Time, packet: Bytes) -> Arrived {
        let received = self
            .interface
            .receive_as(now, Medium::Ip, packet, &mut self.arrived);
        match received {
            Received::Segment if !self.stack.claims(now, &self.arrived) => {
                self.arrived.payload.clear();
                self.drops.no_connection += 1;
                Arrived::Unclaimed
            }
            _ => self.handle_received(now, received),
        }
    }

    /// Processes an IP packet of a connection that no stack has: the stack answers it as usual.
    pub fn handle_stray(&mut self, now: Time, packet: Bytes) -> Arrived {
        let received = self
            .interface
            .receive_as(now, Medium::Ip, packet, &mut self.arrived);
        self.handle_received(now, received)
    }

    fn handle_received(&mut self, now: Time, received: Received) -> Arrived {
        match received {
            Received::Segment => {
                let handled = self.stack.handle_lent(now, &mut self.arrived);
                if handled.new_ack {
                    self.interface.confirm(now, self.arrived.src.addr);
                }
                Arrived::Segment(handled)
            }
            Received::PathError(Quote { flow, seq }, error) => {
                Arrived::PathError(self.stack.handle_path_error(now, &flow, seq, error))
            }
            Received::Consumed => Arrived::Consumed,
            Received::Refused(reason) => Arrived::Refused(reason),
        }
    }

    /// Processes frames that arrived together, and passes consecutive segments of one connection to the stack together. The result
    /// is the same as if they were handled one by one, but takes less time.
    pub fn handle_frames(&mut self, now: Time, frames: impl IntoIterator<Item = Bytes>) {
        let mut arrivals = self.arrivals(now);
        for frame in frames {
            arrivals.push(frame);
        }
    }

    /// Processes frames that arrived together and are given one after the other.
    pub fn arrivals(&mut self, now: Time) -> Arrivals<'_> {
        Arrivals {
            host: self,
            now,
            waiting: false,
            run: None,
        }
    }

    /// Passes the segment that arrived to the stack.
    #[inline(always)]
    fn hand_over(&mut self, now: Time) {
        let handled = match self.arrived.payload.len() {
            0 | 1 => self.stack.handle_lent(now, &mut self.arrived),
            _ => self.stack.handle_merged(now, &mut self.arrived),
        };
        if handled.new_ack {
            self.interface.confirm(now, self.arrived.src.addr);
        }
    }

    /// Runs the timers that are due.
    pub fn handle_timeouts(&mut self, now: Time) {
        self.interface.handle_timeouts(now);
        while let Some((flow, seq, error)) = self.interface.poll_path_error() {
            self.report(now, &flow, seq, error);
        }
        self.stack.handle_timeouts(now);
    }

    /// Reports to the stack that a segment could not be sent. The stack counts reports that it refuses.
    fn report(&mut self, now: Time, flow: &Flow, seq: SeqNr, error: PathError) {
        let _ = self.stack.handle_path_error(now, flow, seq, error);
    }

    /// Reports a refused segment to the stack, if the refusal matters to the segment's connection.
    #[cold]
    fn report_refused(&mut self, now: Time, refused: RefusedSegment) {
        if let Some(error) = refused.reason.path_error(self.interface.mtu()) {
            self.report(now, &refused.flow, refused.seq, error);
        }
    }

    // --- effects out ---

    /// Returns the next packet that does not belong to the stack.
    pub fn poll_unclaimed(&mut self) -> Option<Unclaimed> {
        self.unclaimed.pop_front()
    }

    /// Appends the next frame to send to `frame`. Returns false if there is none.
    pub fn poll_frame(&mut self, now: Time, frame: &mut impl Buffer) -> bool {
        self.poll_frames(now, 1, frame, |_| {}) > 0
    }

    /// Appends at most `most` frames to send to `frames`, and calls `end` after each. Returns their number. Consecutive segments of
    /// one connection are encoded as one run.
    pub fn poll_frames<B: Buffer>(
        &mut self,
        now: Time,
        most: usize,
        frames: &mut B,
        mut end: impl FnMut(&mut B),
    ) -> usize {
        let mut count = 0;
        while count < most {
            count += self.poll_packets(now, most - count, frames, &mut end);
            if count == most {
                break;
            }
            let limit = RunLimit {
                segments: (most - count).min(MOST_RUN) as u32,
                packet_len: self.interface.mtu().into(),
            };
            let Some(run) = self.stack.poll_run(now, limit) else {
                break;
            };
            let segments = run.segments as usize;
            if segments > 1 && self.interface.send_run(now, &run, frames, &mut end) {
                count += segments;
                continue;
            }
            if segments > 1 {
                let (sent, refused) = send_apart(&mut self.interface, now, &run, frames, &mut end);
                count += sent;
                if let Some(refused) = refused {
                    self.report_refused(now, refused);
                }
                continue;
            }
            match self.interface.send(now, &run.first, frames) {
                Sent::Frame => {
                    end(frames);
                    count += 1;
                }
                // If this was the first packet to the neighbour, the request for the neighbour comes next.
                Sent::Waits => {}
                Sent::Refused(reason) => {
                    let refused = RefusedSegment::new(&run.first, reason);
                    self.report_refused(now, refused);
                }
            }
        }
        count
    }

    /// Appends frames that are not segments of the stack: the interface's own frames, and packets of another stack.
    #[inline]
    pub fn poll_packets<B: Buffer>(
        &mut self,
        now: Time,
        most: usize,
        frames: &mut B,
        mut end: impl FnMut(&mut B),
    ) -> usize {
        let mut count = 0;
        while count < most {
            if self.interface.poll_frame(now, frames) {
                end(frames);
                count += 1;
            } else if let Some(packet) = self.outgoing.pop_front() {
                if self.interface.send_packet(now, &packet, frames) == Sent::Frame {
                    end(frames);
                    count += 1;
                }
            } else {
                break;
            }
        }
        count
    }

    /// Asserts every invariant of the stack and the interface.
    pub fn check(&self) {
        self.stack.check();
        self.interface.check();
    }
}

/// Frames that arrive together (see [`Host::handle_frames`]). All of them have been processed once this is dropped.
#[derive(Debug)]
pub struct Arrivals<'a> {
    host: &'a mut Host,
    now: Time,
    /// The segment in the host's `arrived` was not passed to the stack yet.
    waiting: bool,
    /// What a segment that continues the waiting one looks like; computed when another frame is compared with it.
    run: Option<Option<Run>>,
}

impl Arrivals<'_> {
    /// Processes the next frame.
    #[inline]
    pub fn push(&mut self, frame: Bytes) {
        let Host {
            interface, arrived, ..
        } = &mut *self.host;
        if self.waiting {
            let run = self.run.get_or_insert_with(|| Run::after(arrived));
            if let Some(data) = interface.take_next(run, &frame, arrived) {
                push_data(arrived, frame, data);
                return;
            }
            self.hand_over();
        }
        self.take(frame);
    }

    #[inline]
    fn take(&mut self, frame: Bytes) {
        let host = &mut *self.host;
        let whole = host.kept(&frame);
        let received = host.interface.receive(self.now, frame, &mut host.arrived);
        (self.waiting, self.run) = (matches!(received, Received::Segment), None);
        if let Some(whole) = whole
            && !host.is_own(self.now, &received)
        {
            self.waiting = false;
            let medium = host.interface.config().medium;
            host.handle_or_pass(self.now, received, medium, &whole, false);
            return;
        }
        if let Received::PathError(Quote { flow, seq }, error) = received {
            host.report(self.now, &flow, seq, error);
        }
    }

    fn hand_over(&mut self) {
        self.waiting = false;
        self.host.hand_over(self.now);
    }
}

impl Drop for Arrivals<'_> {
    fn drop(&mut self) {
        if self.waiting {
            self.hand_over();
        }
    }
}

/// A segment that the interface did not send.
#[derive(Debug)]
struct RefusedSegment {
    flow: Flow,
    seq: SeqNr,
    reason: SendRefusal,
}

impl RefusedSegment {
    fn new(segment: &Outgoing<'_, Bytes>, reason: SendRefusal) -> Self {
        let (local, remote) = (segment.src, segment.dst);
        Self {
            flow: Flow { local, remote },
            seq: segment.header.seq,
            reason,
        }
    }
}

/// Sends the segments of a run one by one. Returns how many frames were appended, and the first segment that was refused.
fn send_apart<B: Buffer>(
    interface: &mut Interface,
    now: Time,
    run: &OutgoingRun<'_, Bytes>,
    frames: &mut B,
    end: &mut impl FnMut(&mut B),
) -> (usize, Option<RefusedSegment>) {
    let (mut sent, mut refused) = (0, None);
    run.for_each(|segment| match interface.send(now, segment, frames) {
        Sent::Frame => {
            end(frames);
            sent += 1;
        }
        Sent::Waits => {}
        Sent::Refused(reason) => {
            refused.get_or_insert_with(|| RefusedSegment::new(segment, reason));
        }
    });
    (sent, refused)
}
