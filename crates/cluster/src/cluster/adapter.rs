//! One of the host's adapters: its address, its TCP, its process, and both ends of its link.

use super::settings::{Parameters, process, tcp_config};
use baton_bus::HostLink;
use baton_bus::link::{Faults, LinkError, MemoryAdapter, MemoryHost, memory_link};
use baton_host::SocketId;
use baton_host::adapter::OsLayer;
use baton_host::layer::AdapterEnd;
use baton_inet::{Cidr, Host, InterfaceConfig, Medium, Passing};
use baton_live::adapter::{Below, work};
use baton_nic::adapter::{Adapter, Ending, SessionId};
use baton_nic::{Links, Lower, Process};
use baton_tcp::Config;
use baton_testkit::Random;
use baton_wire::{Endpoint, Time};
use bytes::Bytes;
use std::fmt::{Debug, Formatter, Result};
use std::net::{IpAddr, Ipv4Addr};

/// Port on which the host's application listens.
pub const PORT: u16 = 80;
/// Value at [`Time::ZERO`] of the clock that host and adapters share.
pub const EPOCH_NS: u64 = 1_000_000_007;
/// Maximum number of pieces of work that an adapter does in one operation.
const MOST_PIECES: usize = 5;
/// Last octet of the first adapter's address; the others follow.
const FIRST: u8 = 100;

/// Links of an adapter that has only one application.
struct OnlyLink<'a>(SessionId, &'a mut MemoryAdapter<Bytes>);

impl Links<Bytes> for OnlyLink<'_> {
    type Link = MemoryAdapter<Bytes>;

    fn link(&mut self, session: SessionId) -> Option<&mut Self::Link> {
        (session == self.0).then_some(&mut *self.1)
    }
}

/// The host's end of an adapter.
pub type End = AdapterEnd<Bytes, MemoryHost<Bytes>>;

/// Returns the address of an adapter.
pub fn address(number: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, FIRST + number as u8))
}

/// Returns the adapter that an IPv4 packet comes from.
pub fn source(packet: &[u8]) -> usize {
    usize::from(packet[15] - FIRST)
}

/// Returns the adapter that an IPv4 packet goes to.
pub fn destination(packet: &[u8]) -> usize {
    usize::from(packet[19] - FIRST)
}

/// Creates a host with these addresses.
pub fn host(addresses: Vec<IpAddr>, tcp: Config, seed: u64) -> Host {
    let cidrs = addresses.into_iter().map(|addr| Cidr::new(addr, 24));
    let cidrs = cidrs
        .collect::<std::result::Result<_, _>>()
        .expect("a network");
    let config = InterfaceConfig {
        medium: Medium::Ip,
        ..InterfaceConfig::new([2, 0, 0, 0, 0, 1], cidrs)
    };
    Host::new(config, tcp, seed).expect("the parameters are valid")
}

/// An adapter.
pub struct AdapterSide {
    pub host: Host,
    pub adapter: Adapter<Bytes>,
    pub parameters: Parameters,
    session: SessionId,
    end: MemoryAdapter<Bytes>,
    process: Process<Bytes>,
    /// The socket through which the host receives its packets, if it has TCP of its own.
    pub packets: Option<SocketId>,
    pub is_lost: bool,
    /// Whether the adapter has been notified of something, or has not finished its work.
    pub rings: bool,
    /// Whether the adapter has notified the host, or the host has not finished its work with it.
    pub host_rings: bool,
    /// Whether the link currently refuses requests or responses, or delays DMA.
    pub is_hampered: bool,
}

impl Debug for AdapterSide {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.is_lost {
            return f.write_str("lost");
        }
        let sockets = self.adapter.sockets(self.host.stack(), self.session);
        f.debug_struct("AdapterSide")
            .field("rings", &(self.rings, self.host_rings, self.is_hampered))
            .field("queues", &self.process.queue_lengths())
            .field("sockets", &sockets.collect::<Vec<_>>())
            .field("session", self.adapter.stats_of(self.session))
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

impl AdapterSide {
    /// Creates a random adapter, and the host's end of its link.
    pub fn new(number: usize, random: &mut Random, for_packets: bool) -> (Self, End) {
        let parameters = Parameters::draw(random, number, for_packets);
        let (link, end) = memory_link(parameters.link);
        let adapter = parameters.adapter.clone();
        let mut adapter = Adapter::new(adapter).expect("the parameters are valid");
        let session = adapter.attach().expect("the first session");
        adapter.set_epoch(session, EPOCH_NS);
        let mut host = host(vec![address(number)], tcp_config(random), random.draw());
        host.pass_unclaimed(Passing::Unclaimed);
        let mut process = process(random);
        process.attach(session);
        let os = parameters.host.clone();
        let mut os = OsLayer::new(os).expect("the parameters are valid");
        let packets = for_packets.then(|| {
            let packets = os.packet_socket(Time::ZERO, Endpoint::new(address(number), PORT));
            packets.expect("the first socket")
        });
        let side = Self {
            host,
            adapter,
            parameters,
            session,
            end,
            process,
            packets,
            is_lost: false,
            rings: true,
            host_rings: true,
            is_hampered: false,
        };
        (side, End { os, link })
    }

    /// Handles a frame that has arrived.
    pub fn receive(&mut self, now: Time, frame: Bytes) {
        self.rings = true;
        if self.process.does_all() {
            self.host.handle_frame(now, frame);
            return;
        }
        let bytes = frame.len() as u32;
        // A dropped frame is counted.
        let _ = (self.process).receive(now, &mut self.adapter, frame, bytes);
    }

    /// Does all pending work, or some pieces of it, and passes frames to `send`. Returns true if there may be more.
    pub fn work(&mut self, now: Time, mut send: impl FnMut(Bytes)) -> bool {
        let transfers = self.transfers();
        let mut below = Below {
            siblings: None,
            visits: 0,
            host: &mut self.host,
            beside: None,
            quiet: false,
            arrived: 1,
            unclaimed: 0,
            room: MOST_PIECES,
            frames: &mut Vec::new(),
            end: &mut |frame| send(std::mem::take(frame).into()),
        };
        let (process, adapter) = (&mut self.process, &mut self.adapter);
        let mut links = OnlyLink(self.session, &mut self.end);
        let did = process.look(now, adapter, &mut below, &mut links);
        let mut did = did.expect("the host obeys the protocol");
        if process.does_all() {
            below.room = usize::MAX;
            below.transmit(now, usize::MAX);
        } else {
            let worked = work(now, process, adapter, &mut below, &mut links);
            did |= worked.expect("the host obeys the protocol");
            did |= process.has_work(adapter, &links);
            process.check();
        }
        self.rings = did;
        self.host_rings |= self.transfers() > transfers;
        self.rings
    }

    /// Returns the number of transfers of responses so far.
    fn transfers(&self) -> u64 {
        let queue = self.adapter.queue(self.session);
        queue.stats().per_transfer.transfers
    }

    /// Returns when the adapter next has something to do; `None` once the adapter is lost.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timers = [self.host.poll_timeout(), self.adapter.poll_timeout()];
        timers.into_iter().flatten().min().filter(|_| !self.is_lost)
    }

    /// Detaches the host, whose end of the link is cut.
    fn detach(&mut self, now: Time, link: &Faults, ending: Ending) {
        link.cut();
        let stack = self.host.stack_mut();
        self.adapter.detach(now, stack, self.session, ending);
        self.process.detach(self.session);
    }

    /// Loses the link, and drops all state of the adapter.
    pub fn lose(&mut self, now: Time, end: &mut End) {
        self.is_lost = true;
        (self.rings, self.host_rings, self.is_hampered) = (false, false, false);
        self.detach(now, &end.link.faults(), Ending::Reset);
        end.os.handle_link_lost(now);
    }

    /// Loses the link, and attaches the host again by a new one.
    pub fn lose_link(&mut self, now: Time, end: &mut End, random: &mut Random) {
        let ending = match random.percent(50) {
            true => Ending::Reset,
            false => Ending::Drain,
        };
        self.detach(now, &end.link.faults(), ending);
        if random.percent(50) {
            assert_eq!(end.os.pump(now, &mut end.link), Err(LinkError::Gone));
        }
        end.os.handle_link_lost(now);
        end.os.check();
        assert_eq!(end.os.outstanding(), 0);
        (end.link, self.end) = memory_link(self.parameters.link);
        self.session = self.adapter.attach().expect("the previous session is over");
        self.adapter.set_epoch(self.session, EPOCH_NS);
        self.process.attach(self.session);
        (self.rings, self.host_rings, self.is_hampered) = (true, true, false);
    }

    /// Asserts that no socket, request or buffer is in use.
    pub fn check_empty(&self, end: &End) {
        assert_eq!((end.os.sockets(), end.os.outstanding()), (0, 0));
        assert_eq!(end.link.free_buffers(), self.parameters.link.buffers);
        let sockets = self.adapter.sockets(self.host.stack(), self.session);
        assert_eq!(sockets.count(), 0, "no socket remains on the adapter");
    }
}
