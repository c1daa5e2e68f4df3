//! Ports receive and send frames: on real interfaces ([`Tap`], [`PacketSocket`], [`AfXdp`]), in memory ([`memory_pair`]), and through
//! middleware that wraps any of them ([`Faults`], [`Counted`]).

mod af_xdp;
mod any;
mod batch;
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
mod overheard;
mod packet;
mod sys;
mod tap;
mod watched;

pub use af_xdp::{AfXdp, AfXdpConfig};
pub use batch::Batch;
pub use baton_iolib::Arena;
pub(crate) use choice::boxed;
pub use choice::{Opened, PortConfig};
pub use counted::{Counted, Traffic};
pub use driver::{Driver, DriverCounter};
pub use ether::EtherSocket;
pub(crate) use ethtool::receive_queues;
pub use ethtool::{Offload, Offloads};
pub use faults::{FaultCounts, FaultKind, FaultProfile, FaultSpec, FaultSpecError, Faults};
pub use interface::{InterfaceError, bring, interface_exists, ipv4_address};
pub(crate) use interface::{index as interface_index, link_info_or_loopback};
pub use link_state::{LinkCounters, LinkState, LinkWatch};
pub(crate) use mapping::Mapping;
pub use memory::{MemoryPort, memory_pair};
pub use overheard::Overheard;
pub use packet::{PacketConfig, PacketSocket, RingKind};
pub use sys::Stamped;
pub(crate) use sys::{check, set_option};
pub use tap::Tap;

use baton_wire::Time;
use bytes::Bytes;
use std::io;
use std::os::fd::BorrowedFd;

/// Maximum number of frames that one call of [`Port::receive`] returns.
pub const RECEIVE_BATCH: usize = 64;

/// Properties of the link that a port is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Name of the interface.
    pub name: String,
    /// Ethernet address that the engine uses on the interface.
    pub mac: [u8; 6],
    /// Maximum length of an IP packet, bytes.
    pub mtu: u16,
}

baton_named::named! {
    /// The reason why a port dropped a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum PortDrop {
        /// The interface was down.
        LinkDown => "link_down",
        /// The frame was larger than the link allows: a super-frame of segmentation offload. `ethtool -K PEER tx off` avoids this.
        SuperFrame => "super_frame",
        /// The frame's checksum was left to hardware that does not exist. `ethtool -K PEER tx off` avoids this.
        ChecksumNotReady => "checksum_not_ready",
        /// The kernel had no space in the receive ring.
        ReceiveRingFull => "receive_ring_full",
        /// The kernel refused to send the frame.
        TransmitRefused => "transmit_refused",
    }
}

/// Frames dropped by a port, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDrops([u64; PortDrop::ALL.len()]);

impl PortDrops {
    /// Adds `count` to the counter of `reason`.
    pub fn add(&mut self, reason: PortDrop, count: u64) {
        self.0[reason as usize] += count;
    }

    /// Returns the number of frames dropped for this reason.
    pub fn get(&self, reason: PortDrop) -> u64 {
        self.0[reason as usize]
    }
}

/// Receives names and values of counters; a name starts with the layer, as in `port.dropped.link_down`.
pub trait CounterSink {
    /// Receives one counter.
    fn counter(&mut self, name: &str, value: u64);
}

impl<F: FnMut(&str, u64)> CounterSink for F {
    fn counter(&mut self, name: &str, value: u64) {
        self(name, value);
    }
}

/// Receives and sends frames: Ethernet frames without frame check sequence.
///
/// Call [`Port::receive`] and [`Port::send`] whenever there may be something to do, at the latest when [`Port::fd`] is ready or the time of
/// [`Port::poll_timeout`] has come. `now` must not go back.
pub trait Port {
    /// Appends at most [`RECEIVE_BATCH`] received frames; appends none if no frames are available now.
    ///
    /// # Errors
    /// The interface is gone.
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()>;

    /// Sends frames from the front of `batch`. Frames that do not fit remain in `batch` and are to be sent again later.
    ///
    /// # Errors
    /// The interface is gone.
    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()>;

    /// Returns the descriptor that becomes readable when frames arrive, and writable when there is space; `None` for ports in memory.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Returns when the next frame that the port itself holds back is due, if any.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// Returns the properties of the link.
    fn link(&self) -> &LinkInfo;

    /// Returns whether the link completes the checksums of TCP segments whose checksum field has the sum of the pseudo-header.
    fn completes_checksums(&self) -> bool {
        false
    }

    /// Reports the counters of the port and of the ports that it wraps.
    fn counters(&self, sink: &mut dyn CounterSink);
}

/// Implements [`Port`] for references and boxes.
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
    fn completes_checksums(&self) -> bool {
        (**self).completes_checksums()
    }
    fn counters(&self, sink: &mut dyn CounterSink) {
        (**self).counters(sink);
    }
}
    )*};
}

forward!(Box<T>, &mut T);

/// Reports the drops of a port with the prefix `port.dropped.`.
fn tell_drops(drops: &PortDrops, sink: &mut dyn CounterSink) {
    for reason in PortDrop::ALL {
        sink.counter(
            &format!("port.dropped.{}", reason.name()),
            drops.get(reason),
        );
    }
}
