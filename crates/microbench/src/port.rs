//! Where a test is made: a simulated NIC, or an interface.

use crate::frame::LinkRate;
use crate::test::{Test, Unit};
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// A NIC under test with its partners. One trial after the other is made on it.
pub trait Port {
    /// Why a trial could not be made.
    type Error;

    /// How fast the link is that frames pass.
    fn link_rate(&self) -> LinkRate;

    /// Offers a load for a time, and says what became of it.
    ///
    /// # Errors
    /// The trial could not be made: what came of it says nothing of the NIC.
    fn trial(&mut self, request: &Request) -> Result<Trial, Self::Error>;
}

/// What is offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Frames a second each way, or connections a second.
    Rate(f64),
    /// So many TCP connections that send as fast as they may.
    Connections(u32),
    /// So many frames, one behind the other (RFC 2544, 26.4).
    Burst(u64),
}

/// A trial to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Which test.
    pub test: Test,
    /// What to offer.
    pub load: Load,
    /// How long to offer it before anything is counted.
    pub warm_up: Span,
    /// How long to count. A burst is counted until nothing more of it comes.
    pub duration: Span,
}

/// Where a frame was lost, from its sender to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// It was never given to the driver: the sender's processor had no time.
    Sender,
    /// The driver refused it: no free descriptor in its ring.
    DriverRing,
    /// The driver refused it, because the partner had paused the sender.
    Pause,
    /// The sending NIC's buffer was full.
    TransmitBuffer,
    /// The wire lost it.
    Wire,
    /// The switch had no room for it, or a router in its place.
    Switch,
    /// It came with a wrong check sequence.
    Crc,
    /// The receiving NIC's buffer was full.
    ReceiveFifo,
    /// The receiving NIC's buffer was full, because the driver had given it no descriptor for what waited there.
    NoDescriptor,
    /// The receiving kernel's queue between driver and protocols was full.
    KernelQueue,
    /// The receiving program's socket was full: its processor had no time.
    Socket,
    /// Nobody has counted it.
    Unplaced,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Sender,
        Self::DriverRing,
        Self::Pause,
        Self::TransmitBuffer,
        Self::Wire,
        Self::Switch,
        Self::Crc,
        Self::ReceiveFifo,
        Self::NoDescriptor,
        Self::KernelQueue,
        Self::Socket,
        Self::Unplaced,
    ];

    /// Whether the frame never left its sender.
    pub fn is_at_sender(self) -> bool {
        self <= Self::TransmitBuffer
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::DriverRing => "driver ring",
            Self::Pause => "pause",
            Self::TransmitBuffer => "transmit buffer",
            Self::Wire => "wire",
            Self::Switch => "switch",
            Self::Crc => "CRC",
            Self::ReceiveFifo => "receive FIFO",
            Self::NoDescriptor => "no descriptor",
            Self::KernelQueue => "kernel queue",
            Self::Socket => "socket",
            Self::Unplaced => "unplaced",
        }
    }
}

/// Frames lost, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses([u64; Place::ALL.len()]);

impl Losses {
    /// Adds `frames`.
    pub fn add(&mut self, place: Place, frames: u64) {
        self.0[place as usize] += frames;
    }

    /// Adds all that `others` has.
    pub(crate) fn add_all(&mut self, others: &Self) {
        for (sum, frames) in self.0.iter_mut().zip(others.0) {
            *sum += frames;
        }
    }

    /// How many were lost there.
    pub fn at(&self, place: Place) -> u64 {
        self.0[place as usize]
    }

    /// Places with losses.
    pub fn iter(&self) -> impl Iterator<Item = (Place, u64)> + '_ {
        Place::ALL
            .into_iter()
            .map(|place| (place, self.at(place)))
            .filter(|(_, frames)| *frames > 0)
    }

    /// All that were lost.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// What was lost since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = *self;
        for (now, then) in since.0.iter_mut().zip(before.0) {
            *now -= then;
        }
        since
    }
}

/// What became of the frames of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stream {
    /// Frames that the test asked for.
    pub offered: u64,
    /// Frames that were put on the wire.
    pub sent: u64,
    /// Frames that reached the memory of the receiver's host.
    pub delivered: u64,
    /// Those that did not, as far as they were counted somewhere.
    pub losses: Losses,
}

/// What may be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The host's processor.
    Host,
    /// The I/O bus.
    Bus,
    /// The processor or state machine of the NIC that was busiest.
    NicProcessor,
    /// What starts the NIC's DMA.
    NicDma,
    /// The NIC's packet memory: its bandwidth.
    NicMemory,
    /// The wire away from the NIC.
    Wire,
}

/// A machine of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// That of the NIC under test.
    UnderTest,
    /// The partner that sends, or the only one.
    Partner,
    /// The partner that receives where there are two.
    Receiver,
}

/// How much of the time something was busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Use {
    /// Whose it is.
    pub machine: Machine,
    /// What it is.
    pub resource: Resource,
    /// Share of the time, 0 to 1.
    pub share: f64,
}

impl Use {
    /// What is busy for so much of the time is full.
    const FULL: f64 = 0.97;

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.share >= Self::FULL
    }
}

/// Time from the driver that sends a frame to the memory of the host that receives it, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Of the fastest frame.
    pub least_us: f64,
    /// On average.
    pub mean_us: f64,
    /// Of the slowest frame.
    pub most_us: f64,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Which test.
    pub test: Test,
    /// What was offered.
    pub load: Load,
    /// How long was counted, seconds.
    pub seconds: f64,
    /// What the NIC under test sent to its partner.
    pub sent: Stream,
    /// What a partner sent to the NIC under test.
    pub received: Stream,
    /// Bytes that TCP delivered in order.
    pub goodput_bytes: u64,
    /// Connections that were opened and closed.
    pub connections: u64,
    /// From driver to host memory, of datagrams; `None` if that is not known.
    pub latency: Option<Latency>,
    /// Interrupts that the machine under test had.
    pub interrupts: u64,
    /// How busy what was.
    pub uses: Vec<Use>,
    /// More frames than offered and counted may differ by without a loss: what waits in queues comes and goes.
    pub tolerance: u64,
}

impl Trial {
    /// What the test is about: datagrams that the NIC under test put on the wire, and those that it delivered; connections.
    pub fn counted(&self) -> u64 {
        match self.test.unit() {
            Unit::ConnectionsPerMs => self.connections,
            Unit::PayloadMbps => {
                let sent = if self.test.sends_datagrams() {
                    self.sent.sent
                } else {
                    0
                };
                let received = if self.test.receives_datagrams() {
                    self.received.delivered
                } else {
                    0
                };
                sent + received
            }
        }
    }

    /// How many of them there would have been had nothing been lost.
    pub fn offered(&self) -> u64 {
        let sent = if self.test.receives_datagrams() && !self.test.is_three_way() {
            0
        } else {
            self.sent.offered
        };
        let received = if self.test.sends_datagrams() && !self.test.is_three_way() {
            0
        } else {
            self.received.offered
        };
        match self.test {
            Test::Accept => self.received.offered,
            Test::Initiate => self.sent.offered,
            _ => sent + received,
        }
    }

    /// The share that was lost of what the test is about, 0 to 1. Where more was offered than counted though nothing was lost yet,
    /// queues grow, and the rest is only a matter of time.
    pub fn loss_ratio(&self) -> f64 {
        let offered = self.offered();
        let missing = offered.saturating_sub(self.counted());
        let lost = if missing > self.tolerance {
            missing
        } else {
            self.named_losses().min(offered)
        };
        if offered == 0 {
            0.0
        } else {
            lost as f64 / offered as f64
        }
    }

    /// Losses that the test is about.
    fn named_losses(&self) -> u64 {
        let at_sender = |losses: &Losses| {
            let places = losses.iter().filter(|(place, _)| place.is_at_sender());
            places.map(|(_, frames)| frames).sum::<u64>()
        };
        match self.test.unit() {
            Unit::ConnectionsPerMs => {
                at_sender(&self.sent.losses) + at_sender(&self.received.losses)
            }
            Unit::PayloadMbps => {
                let sent = if self.test.sends_datagrams() {
                    at_sender(&self.sent.losses)
                } else {
                    0
                };
                let received = if self.test.receives_datagrams() {
                    self.received.losses.total()
                } else {
                    0
                };
                sent + received
            }
        }
    }

    /// Frames, or connections, counted a second, for each way that frames go.
    pub fn forwarding_rate(&self) -> f64 {
        let ways = if self.test.is_three_way() { 2.0 } else { 1.0 };
        self.counted() as f64 / self.seconds / ways
    }

    /// The result, in the test's unit: Mb/s of data, or connections a millisecond.
    pub fn result(&self) -> f64 {
        match self.test.unit() {
            Unit::ConnectionsPerMs => self.connections as f64 / self.seconds / 1e3,
            Unit::PayloadMbps if self.test.has_connections() => {
                self.goodput_bytes as f64 * 8.0 / self.seconds / 1e6
            }
            Unit::PayloadMbps => {
                let bits = self.test.carried().payload_len() as f64 * 8.0;
                self.counted() as f64 * bits / self.seconds / 1e6
            }
        }
    }

    /// What was full, busiest first.
    pub fn full(&self) -> Vec<Use> {
        let mut full: Vec<Use> = self.uses.iter().copied().filter(Use::is_full).collect();
        full.sort_by(|a, b| b.share.total_cmp(&a.share));
        full
    }

    /// How much of the time the processor of the machine under test had nothing to do, 0 to 1.
    pub fn host_idle(&self) -> Option<f64> {
        let of_host =
            |one: &&Use| (one.machine, one.resource) == (Machine::UnderTest, Resource::Host);
        self.uses.iter().find(of_host).map(|host| 1.0 - host.share)
    }
}
