//! AF_XDP sockets on an interface, one for each of its receive queues.
//!
//! Of the crates with such sockets, `xdpilone` is given on under the EUPL only and `xsk-rs` builds C libraries. `xdp` knows neither when the
//! kernel needs to be woken nor whether it copies, and its packets are pointers that are `unsafe` to receive and to send. System calls and
//! structures are `rustix`'s; what is left is the four rings.

mod checksum;
mod frames;
mod queue;
mod ring;

use super::any::Any;
use super::interface;
use super::packet::Transmit;
use super::watched::Watched;
use super::{
    Batch, CounterSink, Driver, InterfaceError, LinkInfo, Offload, Offloads, Port, PortDrop,
    PortDrops, RECEIVE_BATCH, tell_drops,
};
use crate::broker::BrokerLink;
use crate::xdp::{Lookup, Mode, Steering, XdpError};
use baton_iolib::Arena;
use baton_wire::{Span, Time};
use bytes::Bytes;
use checksum::finish;
use queue::{Kicked, Queue};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

/// Ethernet header and a VLAN tag, which come on top of the MTU.
const LINK_OVERHEAD: usize = 14 + 4;
/// Bytes before each frame that the kernel keeps for programs (XDP_PACKET_HEADROOM).
const HEADROOM: usize = 256;
/// Sizes that a chunk can have, bytes.
const CHUNKS: [usize; 2] = [2048, LARGEST_CHUNK];
const LARGEST_CHUNK: usize = 4096;

/// A queue whose socket was closed is free only a moment later; so long is it tried.
const LONGEST_BIND: Duration = Duration::from_secs(3);
const BIND_AGAIN: Duration = Duration::from_millis(10);

/// After so long a device is asked again that had no room.
const KICK_AGAIN: Span = Span::from_us(100);

/// Sizes and habits of AF_XDP sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdpConfig {
    /// The mode of the program that takes all frames; without, the native one where the driver has it.
    pub mode: Option<Mode>,
    /// Frames are copied even where the driver can do without.
    pub copies: bool,
    /// Frames that each queue has room for on their way in; a power of two.
    pub receive_frames: u32,
    /// Frames that each queue has room for on their way out; a power of two.
    pub transmit_frames: u32,
}

impl Default for AfXdpConfig {
    fn default() -> Self {
        Self {
            mode: None,
            copies: false,
            receive_frames: 2048,
            transmit_frames: 1024,
        }
    }
}

/// AF_XDP sockets: frames come to them before the kernel's stack sees them, so that it does not see them at all.
///
/// Frames are sent one by one, on the first queue; beside a kernel whose driver does not work on the sockets' memory, but cuts segments, by a
/// packet socket, which gives it runs of them as one packet.
#[derive(Debug)]
pub struct AfXdp {
    /// The program that takes all frames; none where a [`Lookup`] takes some.
    steering: Option<Steering>,
    queues: Vec<Queue>,
    /// What sends in their place.
    transmit: Option<Transmit>,
    /// Ready when one of several queues is.
    any: Option<Any>,
    /// The queue that is looked at first.
    next: usize,
    watched: Watched,
    longest: usize,
    mode: Mode,
    arena: Arena,
    drops: PortDrops,
    /// Checksums may have been left to hardware that does not exist.
    finishes: bool,
    /// Frames whose checksum was computed here.
    finished: u64,
    /// Frames that were given to the kernel.
    writes: u64,
    /// When the device is asked again that had no room for what is in the ring.
    again: Option<Time>,
}

type SetSocket<'a> = dyn Fn(u32, BorrowedFd<'_>) -> io::Result<()> + 'a;

/// What sees to it that frames come to sockets.
struct Taps<'a> {
    mode: Mode,
    queues: u32,
    /// From here on frames of this queue come to this socket.
    set_socket: Box<SetSocket<'a>>,
}

impl<'a> Taps<'a> {
    fn of(steering: &'a Steering) -> Self {
        Self {
            mode: steering.mode(),
            queues: steering.queues(),
            set_socket: Box::new(|queue, socket| steering.set_socket(queue, socket)),
        }
    }
}

impl AfXdp {
    /// Takes all frames that the interface `name` in this thread's network namespace receives: its kernel gets none any more.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn open(name: &str, config: &AfXdpConfig) -> Result<Self, XdpError> {
        // Refuses what cannot be used before anything happens to it.
        check_mtu(&interface::link_info(name)?)?;
        let steering = Steering::of_everything(name, config.mode)?;
        let mut port = Self::on(name, config, &steering)?;
        port.steering = Some(steering);
        Ok(port)
    }

    /// Takes those frames of the interface `name` that a lookup on it finds to be the adapter's.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn with_lookup(
        name: &str,
        config: &AfXdpConfig,
        lookup: &Lookup,
    ) -> Result<Self, XdpError> {
        Self::from_taps(name, config, &Taps::of(lookup.steering()))?.beside_kernel(name)
    }

    /// The same where the lookup is a broker's.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn by_broker(
        name: &str,
        config: &AfXdpConfig,
        broker: &BrokerLink,
    ) -> Result<Self, XdpError> {
        let taps = Taps {
            mode: broker.mode(),
            queues: broker.queues(),
            set_socket: Box::new(|queue, socket| broker.give_socket(queue, socket)),
        };
        Self::from_taps(name, config, &taps)?.beside_kernel(name)
    }

    /// Whatever the kernel may receive on the interface has to be received here, too.
    fn beside_kernel(mut self, name: &str) -> Result<Self, XdpError> {
        let takes_parts = self.queues.iter().all(Queue::takes_parts);
        if !takes_parts {
            check_mtu(self.watched.link())?;
            let joins = is_virtual(name)? || Offloads::of(name).is_on(Offload::GenericReceive)?;
            if self.mode == Mode::Generic && joins {
                return Err(XdpError::Joined(name.to_owned()));
            }
        }
        let cuts = Offloads::of(name).is_on(Offload::Segmentation)?;
        if !self.is_zero_copy() && (cuts || check_mtu(self.watched.link()).is_err()) {
            let index = interface::index(name)?;
            let transmit = Transmit::open(name, index, cuts);
            self.transmit = Some(transmit.map_err(XdpError::of("send by a packet socket"))?);
        }
        Ok(self)
    }

    /// Takes those frames of the interface `name` that another program on it gives to sockets.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn on(name: &str, config: &AfXdpConfig, steering: &Steering) -> Result<Self, XdpError> {
        check_mtu(&interface::link_info(name)?)?;
        Self::from_taps(name, config, &Taps::of(steering))
    }

    fn from_taps(name: &str, config: &AfXdpConfig, taps: &Taps<'_>) -> Result<Self, XdpError> {
        let link = interface::link_info(name)?;
        let interface = interface::index(name)?;
        let fits = |chunk: &usize| longest_frame(&link) + HEADROOM <= *chunk;
        let chunk = CHUNKS.into_iter().find(fits);
        // A driver works on the sockets' memory only where its own program runs.
        let copies = config.copies || taps.mode == Mode::Generic || chunk.is_none();
        let chunk = chunk.unwrap_or(LARGEST_CHUNK);
        let open = |number| {
            let mut queue =
                Queue::new(config, chunk).map_err(XdpError::of("open an AF_XDP socket"))?;
            bind(&mut queue, &link.name, interface, number, copies)?;
            (taps.set_socket)(number, queue.fd())
                .map_err(XdpError::of("give frames to an AF_XDP socket"))?;
            Ok(queue)
        };
        let queues: Vec<Queue> = (0..taps.queues)
            .map(open)
            .collect::<Result<_, XdpError>>()?;
        let any = Any::of(queues.iter().map(Queue::fd));
        let any = any.map_err(XdpError::of("wait for several queues"))?;
        Ok(Self {
            steering: None,
            queues,
            transmit: None,
            any,
            next: 0,
            longest: longest_frame(&link).min(chunk),
            finishes: taps.mode == Mode::Generic || is_virtual(name)?,
            finished: 0,
            watched: Watched::new(link)?,
            mode: taps.mode,
            arena: Arena::default(),
            drops: PortDrops::default(),
            writes: 0,
            again: None,
        })
    }

    /// Copies of its sockets, by queue.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(crate) fn copy_sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let copy = |queue: &Queue| queue.fd().try_clone_to_owned();
        self.queues.iter().map(copy).collect()
    }

    /// Where frames are taken from.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the driver works on the sockets' memory, so that the kernel copies no frame, on all queues.
    pub fn is_zero_copy(&self) -> bool {
        self.queues.iter().all(Queue::is_zero_copy)
    }

    /// Sockets that it has, one for each receive queue.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Has what [`Port::fd`] gives tell when there is room to send, or not any more.
    fn wait_for_room(&mut self, waits: bool) -> io::Result<()> {
        match &mut self.any {
            Some(any) => any.wait_for_room(self.queues[0].fd(), waits),
            None => Ok(()),
        }
    }

    /// Has the kernel send what is in the ring; false if the interface is down.
    fn kick(&mut self, now: Time) -> io::Result<bool> {
        let kicked = self.queues[0].kick()?;
        let holds_back = kicked != Kicked::LinkDown && self.queues[0].holds_back();
        self.again = holds_back.then(|| now + KICK_AGAIN);
        if let Kicked::Dropped(count) = kicked {
            self.drops.add(PortDrop::TransmitRefused, count);
        }
        Ok(kicked != Kicked::LinkDown)
    }

    fn drops(&self) -> PortDrops {
        let mut drops = self.drops;
        for queue in &self.queues {
            let Ok(statistics) = queue.statistics() else {
                continue;
            };
            // A frame is dropped for want of a chunk, or because it is longer than one and may not come in several. For want of the
            // first chunk the fill ring counts it, too; for want of more nobody does.
            let no_chunk = match queue.takes_parts() {
                true => statistics.rx_dropped,
                false => statistics.rx_fill_ring_empty_descs.unwrap_or_default(),
            };
            let no_chunk = no_chunk.min(statistics.rx_dropped);
            let ring_full = statistics.rx_ring_full.unwrap_or_default();
            drops.add(PortDrop::ReceiveRingFull, ring_full + no_chunk);
            drops.add(PortDrop::SuperFrame, statistics.rx_dropped - no_chunk);
            drops.add(PortDrop::TransmitRefused, statistics.tx_invalid_descs);
        }
        drops
    }
}

impl Port for AfXdp {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        if self.again.is_some_and(|again| again <= now) {
            self.kick(now)?;
        }
        self.watched.look(now)?;
        let Self {
            queues,
            arena,
            finishes,
            finished,
            ..
        } = self;
        let mut left = RECEIVE_BATCH;
        for turn in 0..queues.len() {
            let queue = (self.next + turn) % queues.len();
            left -= queues[queue].receive(left, |frame| {
                *finished += u64::from(*finishes && finish(frame));
                frames.push(arena.copy(frame));
            });
        }
        self.next = (self.next + 1) % queues.len();
        Ok(())
    }

    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        if let Some(transmit) = &mut self.transmit {
            return transmit.send(batch, &mut self.drops);
        }
        let longest = self.longest;
        while !batch.is_empty() {
            let fitting = batch.iter().take_while(|frame| frame.len() <= longest);
            let fitting = fitting.count();
            if fitting == 0 {
                self.drops.add(PortDrop::TransmitRefused, 1);
                batch.sent(1);
                continue;
            }
            let put = self.queues[0].put(batch.iter().take(fitting));
            batch.sent(put);
            self.writes += put as u64;
            if !self.kick(now)? {
                // What is in the ring leaves when the interface is up again.
                self.drops.add(PortDrop::LinkDown, batch.len() as u64);
                batch.sent(batch.len());
            }
            if put == 0 {
                break;
            }
        }
        self.wait_for_room(!batch.is_empty())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        let any = self.any.as_ref().map(Any::fd);
        Some(any.unwrap_or_else(|| self.queues[0].fd()))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.again
    }

    fn link(&self) -> &LinkInfo {
        self.watched.link()
    }

    fn counters(&self, sink: &mut dyn CounterSink) {
        let by_socket = self.transmit.as_ref().map_or(0, Transmit::writes);
        sink.counter("port.writes", self.writes + by_socket);
        sink.counter("port.arena.chunks", self.arena.allocated());
        let wakeups = self.queues.iter().map(Queue::wakeups).sum();
        sink.counter("port.xdp.wakeups", wakeups);
        sink.counter("port.xdp.checksums_finished", self.finished);
        sink.counter("port.xdp.queues", self.queues.len() as u64);
        sink.counter("port.xdp.native", u64::from(self.mode == Mode::Native));
        sink.counter("port.xdp.zero_copy", u64::from(self.is_zero_copy()));
        if let Some(steering) = &self.steering {
            sink.counter("port.xdp.redirected", steering.redirected());
            sink.counter("port.xdp.passed", steering.passed());
        }
        tell_drops(&self.drops(), sink);
    }
}

/// The MTU, an Ethernet header and a VLAN tag, bytes.
fn longest_frame(link: &LinkInfo) -> usize {
    usize::from(link.mtu) + LINK_OVERHEAD
}

/// Whether the interface's frames fit into a chunk each.
fn check_mtu(link: &LinkInfo) -> Result<(), XdpError> {
    match longest_frame(link) + HEADROOM <= LARGEST_CHUNK {
        true => Ok(()),
        false => Err(XdpError::Mtu {
            name: link.name.clone(),
            mtu: link.mtu,
            most: (LARGEST_CHUNK - HEADROOM - LINK_OVERHEAD) as u16,
        }),
    }
}

/// Whether frames may come from memory rather than from a wire: there nobody computes checksums, and nobody cuts.
fn is_virtual(name: &str) -> Result<bool, InterfaceError> {
    let driver = Driver::of(name)?;
    // A device of a virtual machine has a place on a bus, too.
    let is_guest = matches!(&*driver.name, "virtio_net" | "vif");
    Ok(is_guest || matches!(&*driver.bus, "" | "N/A" | "tun" | "tap"))
}

/// Binds a socket to its queue, which may take a moment to get free.
fn bind(
    queue: &mut Queue,
    name: &str,
    interface: u32,
    number: u32,
    copies: bool,
) -> Result<(), XdpError> {
    let start = Instant::now();
    loop {
        match queue.bind(interface, number, copies) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                if start.elapsed() > LONGEST_BIND {
                    return Err(XdpError::QueueTaken {
                        name: name.to_owned(),
                        queue: number,
                    });
                }
                thread::sleep(BIND_AGAIN);
            }
            outcome => return outcome.map_err(XdpError::of("bind an AF_XDP socket")),
        }
    }
}
