//! Where frames come from and go to: real interfaces ([`Tap`], [`PacketSocket`], [`AfXdp`]), one in memory ([`memory_pair`]), and
//! middleware that wraps any of them ([`Capture`], [`Faults`], [`Counted`]).

mod af_xdp;
mod any;
mod batch;
mod capture;
mod choice;
mod counted;
mod driver;
mod ether;
mod ethtool;
mod faults;
mod interface;
mod link_state;
mod mapping;
mod memory;
mod merge;
mod packet;
mod sys;
mod tap;
mod watched;

pub use af_xdp::{AfXdp, AfXdpConfig};
pub use batch::Batch;
pub use baton_iolib::Arena;
pub use capture::Capture;
pub use choice::{Opened, PortConfig};
pub use counted::{Counted, Traffic};
pub use driver::{Driver, DriverCounter};
pub use ether::EtherSocket;
pub(crate) use ethtool::receive_queues;
pub use ethtool::{Offload, Offloads};
pub use faults::{
    BurstLoss, FaultCounts, FaultKind, FaultProfile, FaultSpec, FaultSpecError, Faults, Share,
};
pub use interface::{InterfaceError, bring, interface_exists, ipv4_address};
pub(crate) use interface::{index as interface_index, link_info};
pub use link_state::{LinkCounters, LinkState, LinkWatch};
pub(crate) use mapping::Mapping;
pub use memory::{MemoryPort, memory_pair};
pub use packet::{PacketConfig, PacketSocket, RingKind};
pub(crate) use sys::{check, set_option};
pub use tap::Tap;

use baton_wire::Time;
use bytes::Bytes;
use std::io;
use std::os::fd::BorrowedFd;

/// Frames that a port gives at most at one call of [`Port::receive`].
pub const RECEIVE_BATCH: usize = 64;

/// What a port is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Name of the interface.
    pub name: String,
    /// Ethernet address that the engine uses on it.
    pub mac: [u8; 6],
    /// Largest IP packet, bytes.
    pub mtu: u16,
}

/// Why a port did not pass a frame on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PortDrop {
    /// The interface was down.
    LinkDown,
    /// Larger than the link allows: a super-frame of segmentation offload. `ethtool -K PEER tx off` ends them.
    SuperFrame,
    /// Its checksum was left to hardware that does not exist. `ethtool -K PEER tx off` ends them.
    ChecksumNotReady,
    /// The kernel had no room left in the receive ring.
    ReceiveRingFull,
    /// The kernel refused to send it.
    TransmitRefused,
}

impl PortDrop {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::LinkDown,
        Self::SuperFrame,
        Self::ChecksumNotReady,
        Self::ReceiveRingFull,
        Self::TransmitRefused,
    ];

    /// Its name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinkDown => "link_down",
            Self::SuperFrame => "super_frame",
            Self::ChecksumNotReady => "checksum_not_ready",
            Self::ReceiveRingFull => "receive_ring_full",
            Self::TransmitRefused => "transmit_refused",
        }
    }
}

/// Frames dropped by a port, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDrops([u64; PortDrop::ALL.len()]);

impl PortDrops {
    /// Counts `count` more.
    pub fn add(&mut self, reason: PortDrop, count: u64) {
        self.0[reason as usize] += count;
    }

    /// Frames dropped for this reason.
    pub fn get(&self, reason: PortDrop) -> u64 {
        self.0[reason as usize]
    }
}

/// Takes names and values of counters; the name tells the layer first, as in `port.dropped.link_down`.
pub trait CounterSink {
    /// One counter.
    fn counter(&mut self, name: &str, value: u64);
}

impl<F: FnMut(&str, u64)> CounterSink for F {
    fn counter(&mut self, name: &str, value: u64) {
        self(name, value);
    }
}

/// A place that frames come from and go to. Frames are Ethernet frames without check sequence.
///
/// Calling order: [`Port::receive`] and [`Port::send`] whenever there may be something to do, at the latest when
/// [`Port::fd`] is ready or the moment of [`Port::poll_timeout`] has come. `now` never goes back.
pub trait Port {
    /// Appends frames that have arrived, at most [`RECEIVE_BATCH`]; none means that there are none now.
    ///
    /// # Errors
    /// The interface is gone.
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()>;

    /// Sends from the front of `batch`. What stays in it found no room: it is to be tried again.
    ///
    /// # Errors
    /// The interface is gone.
    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()>;

    /// What becomes readable when frames arrive, and writable when there is room; none in memory.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// When frames become due that the port itself holds back, if it does.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// What it is attached to.
    fn link(&self) -> &LinkInfo;

    /// Tells what it has counted, and what the ports inside it have.
    fn counters(&self, sink: &mut dyn CounterSink);

    /// Writes out what it keeps for others, such as a capture file.
    ///
    /// # Errors
    /// It cannot be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A port that is lent, or that stands elsewhere.
macro_rules! forward {
    ($($port:ty),*) => {$(
impl<T: Port + ?Sized> Port for $port {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        (**self).receive(now, frames)
    }
    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        (**self).send(now, batch)
    }
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        (**self).fd()
    }
    fn poll_timeout(&self) -> Option<Time> {
        (**self).poll_timeout()
    }
    fn link(&self) -> &LinkInfo {
        (**self).link()
    }
    fn counters(&self, sink: &mut dyn CounterSink) {
        (**self).counters(sink);
    }
    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }
}
    )*};
}

forward!(Box<T>, &mut T);

/// Tells the drops of a port under `port.dropped.`.
fn tell_drops(drops: &PortDrops, sink: &mut dyn CounterSink) {
    for reason in PortDrop::ALL {
        sink.counter(
            &format!("port.dropped.{}", reason.name()),
            drops.get(reason),
        );
    }
}
