//! AF_XDP sockets on an interface, one for each of its receive queues.
//!
//! Of the crates with such sockets, `xdpilone` is licensed under the EUPL only and `xsk-rs` builds C libraries. `xdp` knows neither when
//! the kernel needs a wakeup nor whether it copies, and its packets are pointers that are `unsafe` to receive and to send. `rustix`
//! provides the system calls and structures; this module implements the four rings.

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
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Length of the Ethernet header and a VLAN tag, which are added to the MTU, bytes.
const LINK_OVERHEAD: usize = 14 + 4;
/// Space that the kernel reserves for programs before each frame, bytes (XDP_PACKET_HEADROOM).
const HEADROOM: usize = 256;
/// Possible sizes of a chunk, bytes.
const CHUNKS: [usize; 2] = [2048, LARGEST_CHUNK];
const LARGEST_CHUNK: usize = 4096;

/// How long binding is retried: a queue stays busy for a moment after its socket was closed.
const LONGEST_BIND: Duration = Duration::from_secs(3);
const BIND_AGAIN: Duration = Duration::from_millis(10);

/// Time after which a device that had no space is asked again.
const KICK_AGAIN: Span = Span::from_us(100);

/// Configuration of AF_XDP sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdpConfig {
    /// Mode of the program that takes all frames; `None` selects native mode where the driver supports it.
    pub mode: Option<Mode>,
    /// Whether frames are copied even if the driver supports zero copy.
    pub copies: bool,
    /// Number of received frames for which each queue has space; a power of two.
    pub receive_frames: u32,
    /// Number of frames to send for which each queue has space; a power of two.
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

/// AF_XDP sockets. They receive frames before the kernel's stack, which never sees these frames.
///
/// Frames are sent one by one, on the first queue. If the kernel keeps using the interface and has to copy frames, but the interface
/// supports segmentation offload, a packet socket sends instead: it passes runs of segments to the kernel as one packet.
#[derive(Debug)]
pub struct AfXdp {
    /// The program that takes all frames; `None` if a [`Lookup`] takes some of them.
    steering: Option<Arc<Steering>>,
    queues: Vec<Queue>,
    /// The packet socket that sends instead of the queues.
    transmit: Option<Transmit>,
    /// Ready when any of several queues is.
    any: Option<Any>,
    /// The queue from which frames are received first.
    next: usize,
    watched: Watched,
    longest: usize,
    mode: Mode,
    arena: Arena,
    drops: PortDrops,
    /// Whether checksums may have been left to hardware that does not exist.
    finishes: bool,
    /// Number of frames whose checksum was computed here.
    finished: u64,
    /// Number of frames that were passed to the kernel.
    writes: u64,
    /// When to wake up the device again, which had no space for frames in the ring.
    again: Option<Time>,
}

type SetSocket<'a> = dyn Fn(u32, BorrowedFd<'_>) -> io::Result<()> + 'a;

/// The programs that direct frames to the sockets.
struct Taps<'a> {
    mode: Mode,
    queues: u32,
    /// Directs the frames of a queue to a socket from now on.
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
    /// Takes all frames that the interface `name` in this thread's network namespace receives: the kernel receives none of them any more.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn open(name: &str, config: &AfXdpConfig) -> Result<Self, XdpError> {
        // Refuse an unsuitable interface before changing anything.
        check_mtu(&interface::link_info(name)?)?;
        let steering = Steering::of_everything(name, config.mode)?;
        let mut port = Self::from_taps(name, config, &Taps::of(&steering))?;
        port.steering = Some(Arc::new(steering));
        Ok(port)
    }

    /// Takes all frames by `count` ports, each of which has an equal part of the interface's queues.
    ///
    /// # Errors
    /// See [`XdpError`]. The interface has fewer queues than that.
    pub fn open_several(
        name: &str,
        config: &AfXdpConfig,
        count: usize,
    ) -> Result<Vec<Self>, XdpError> {
        let mut whole = Self::open(name, config)?;
        let queues = std::mem::take(&mut whole.queues);
        if queues.len() < count {
            return Err(XdpError::FewQueues {
                name: name.to_owned(),
                queues: queues.len(),
                wanted: count,
            });
        }
        let mut parts: Vec<Vec<Queue>> = (0..count).map(|_| Vec::new()).collect();
        for (number, queue) in queues.into_iter().enumerate() {
            parts[number % count].push(queue);
        }
        let part = |queues: Vec<Queue>| {
            let any = Any::of(queues.iter().map(Queue::fd));
            Ok(Self {
                steering: whole.steering.clone(),
                any: any.map_err(XdpError::of("wait for several queues"))?,
                queues,
                transmit: None,
                next: 0,
                watched: Watched::new(whole.watched.link().clone())?,
                longest: whole.longest,
                mode: whole.mode,
                arena: Arena::default(),
                drops: PortDrops::default(),
                finishes: whole.finishes,
                finished: 0,
                writes: 0,
                again: None,
            })
        };
        parts.into_iter().map(part).collect()
    }

    /// Takes the frames of the interface `name` that a lookup on it assigns to the adapter.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn with_lookup(
        name: &str,
        config: &AfXdpConfig,
        lookup: &Lookup,
    ) -> Result<Self, XdpError> {
        interface::link_info(name)?;
        Self::from_taps(name, config, &Taps::of(lookup.steering()))?.beside_kernel(name)
    }

    /// Takes the frames that the lookup of a broker assigns to the adapter.
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

    /// Checks that the port can receive every frame that the kernel may receive on the interface, and selects how frames are sent.
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

    fn from_taps(name: &str, config: &AfXdpConfig, taps: &Taps<'_>) -> Result<Self, XdpError> {
        let (link, _) = interface::link_info_or_loopback(name)?;
        let interface = interface::index(name)?;
        let fits = |chunk: &usize| longest_frame(&link) + HEADROOM <= *chunk;
        let chunk = CHUNKS.into_iter().find(fits);
        // A driver supports zero copy only if its own code runs the program.
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

    /// Returns duplicates of the sockets, by queue.
    ///
    /// # Errors
    /// There are no free descriptors.
    pub(crate) fn copy_sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let copy = |queue: &Queue| queue.fd().try_clone_to_owned();
        self.queues.iter().map(copy).collect()
    }

    /// Returns the mode of the program that takes the frames.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns whether all queues use zero copy: the driver accesses the sockets' memory, and the kernel copies no frame.
    pub fn is_zero_copy(&self) -> bool {
        self.queues.iter().all(Queue::is_zero_copy)
    }

    /// Returns the number of sockets, one for each receive queue.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Sets whether [`Port::fd`] also becomes ready when there is space to send.
    fn wait_for_room(&mut self, waits: bool) -> io::Result<()> {
        match &mut self.any {
            Some(any) => any.wait_for_room(self.queues[0].fd(), waits),
            None => Ok(()),
        }
    }

    /// Wakes up the kernel to send the frames in the ring; returns false if the interface is down.
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
            // A frame is dropped because no chunk is free, or because it is longer than a chunk and may not be split over several. If the
            // first chunk is missing, the fill ring counts this as well; if a later one is missing, nothing else counts it.
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

    fn completes_checksums(&self) -> bool {
        self.transmit
            .as_ref()
            .is_some_and(Transmit::has_virtual_headers)
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
                // Frames in the ring are sent when the interface is up again.
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
        sink.counter("port.arena.alone", self.arena.alone());
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

/// Returns the sum of the MTU, an Ethernet header and a VLAN tag, bytes.
fn longest_frame(link: &LinkInfo) -> usize {
    usize::from(link.mtu) + LINK_OVERHEAD
}

/// Checks that each of the interface's frames fits into a chunk.
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

/// Returns whether frames may come from memory rather than from a wire: then their checksums may be missing, and they may be
/// super-segments.
fn is_virtual(name: &str) -> Result<bool, InterfaceError> {
    let driver = Driver::of(name)?;
    // Devices of virtual machines report a bus address too.
    let is_guest = matches!(&*driver.name, "virtio_net" | "vif");
    Ok(is_guest || matches!(&*driver.bus, "" | "N/A" | "tun" | "tap"))
}

/// Binds a socket to its queue, which may stay busy for a moment.
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
