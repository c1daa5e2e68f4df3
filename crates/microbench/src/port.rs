//! Ports: the simulated NIC or real interface on which a test runs.

use crate::frame::LinkRate;
use crate::test::{Test, Unit};
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// A NIC under test with its partners. Trials run on the port one after the other.
pub trait Port {
    /// Reason why a trial could not be made.
    type Error;

    /// Returns the rate of the link that frames pass.
    fn link_rate(&self) -> LinkRate;

    /// Offers a load for some time, and returns what happened to it.
    ///
    /// # Errors
    /// The trial could not be made, so its result would not say anything about the NIC.
    fn trial(&mut self, request: &Request) -> Result<Trial, Self::Error>;
}

/// Load that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Frames per second in each direction, or connections per second.
    Rate(f64),
    /// This many TCP connections that send as fast as they can.
    Connections(u32),
    /// This many frames back to back (RFC 2544, 26.4).
    Burst(u64),
}

/// A trial to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The test.
    pub test: Test,
    /// The load to offer.
    pub load: Load,
    /// How long to offer the load before counting starts.
    pub warm_up: Span,
    /// How long to count. A burst is counted until no more of its frames arrive.
    pub duration: Span,
}

baton_named::named! {
    /// Place where a frame was lost, ordered from sender to receiver.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Place {
        /// The frame was never given to the driver: the sender's processor had no time.
        Sender => "sender",
        /// The driver refused the frame because its ring had no free descriptor.
        DriverRing => "driver ring",
        /// The driver refused the frame because the partner had paused the sender.
        Pause => "pause",
        /// The sending NIC's buffer was full.
        TransmitBuffer => "transmit buffer",
        /// The frame was lost on the wire.
        Wire => "wire",
        /// The switch, or a router in its place, had no buffer for the frame.
        Switch => "switch",
        /// The frame arrived with a wrong check sequence.
        Crc => "CRC",
        /// The receiving NIC's buffer was full.
        ReceiveFifo => "receive FIFO",
        /// The receiving NIC's buffer was full because the driver had not given it descriptors for the frames in it.
        NoDescriptor => "no descriptor",
        /// A queue of the receiving adapter's firmware was full.
        AdapterQueue => "adapter queue",
        /// The receiving kernel's queue between driver and protocols was full.
        KernelQueue => "kernel queue",
        /// The receiving program's socket was full because its processor had no time.
        Socket => "socket",
        /// The place is unknown: nothing counted the loss.
        Unplaced => "unplaced",
    }
}

impl Place {
    /// Returns whether the frame never left its sender.
    pub fn is_at_sender(self) -> bool {
        self <= Self::TransmitBuffer
    }
}

/// Frames lost, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses([u64; Place::ALL.len()]);

impl Losses {
    /// Adds `frames` lost at `place`.
    pub fn add(&mut self, place: Place, frames: u64) {
        self.0[place as usize] += frames;
    }

    /// Adds all losses of `others`.
    pub(crate) fn add_all(&mut self, others: &Self) {
        for (sum, frames) in self.0.iter_mut().zip(others.0) {
            *sum += frames;
        }
    }

    /// Returns the number of frames lost at `place`.
    pub fn at(&self, place: Place) -> u64 {
        self.0[place as usize]
    }

    /// Iterates over the places with losses.
    pub fn iter(&self) -> impl Iterator<Item = (Place, u64)> + '_ {
        Place::ALL
            .into_iter()
            .map(|place| (place, self.at(place)))
            .filter(|(_, frames)| *frames > 0)
    }

    /// Returns the total number of frames lost.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the losses since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = *self;
        for (now, then) in since.0.iter_mut().zip(before.0) {
            *now -= then;
        }
        since
    }
}

/// Counts of the frames of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stream {
    /// Frames that the test asked for.
    pub offered: u64,
    /// Frames that were put on the wire.
    pub sent: u64,
    /// Frames that reached the memory of the receiver's host.
    pub delivered: u64,
    /// Frames that were not delivered, as far as a counter recorded their loss.
    pub losses: Losses,
}

baton_named::named! {
    /// Resource that a load may use up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Resource {
        /// The host's processor.
        Host => "host",
        /// The I/O bus.
        Bus => "bus",
        /// The busiest processor or state machine of the NIC.
        NicProcessor => "NIC processor",
        /// The unit that starts the NIC's DMA.
        NicDma => "DMA start",
        /// The bandwidth of the NIC's packet memory.
        NicMemory => "NIC memory",
        /// The wire that leaves the NIC.
        Wire => "wire",
    }
}

/// A machine of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// The machine with the NIC under test.
    UnderTest,
    /// The partner that sends, or the only partner.
    Partner,
    /// The partner that receives, in tests with two.
    Receiver,
}

/// Utilisation of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Use {
    /// The machine that has the resource.
    pub machine: Machine,
    /// The resource.
    pub resource: Resource,
    /// Share of the time in which the resource was busy, 0 to 1.
    pub share: f64,
}

impl Use {
    /// Share from which on a resource counts as fully used.
    const FULL: f64 = 0.97;

    /// Returns whether the resource was fully used.
    pub fn is_full(&self) -> bool {
        self.share >= Self::FULL
    }
}

/// Time from the driver that sends a frame to the memory of the host that receives it, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Latency of the fastest frame.
    pub least_us: f64,
    /// Mean latency.
    pub mean_us: f64,
    /// Latency of the slowest frame.
    pub most_us: f64,
}

/// Result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The test.
    pub test: Test,
    /// The load that was offered.
    pub load: Load,
    /// Length of the counted part, in seconds.
    pub seconds: f64,
    /// Frames that the NIC under test sent to its partner.
    pub sent: Stream,
    /// Frames that a partner sent to the NIC under test.
    pub received: Stream,
    /// Bytes that TCP delivered in order.
    pub goodput_bytes: u64,
    /// Connections that were opened and closed.
    pub connections: u64,
    /// Latency of datagrams; `None` if it is not known.
    pub latency: Option<Latency>,
    /// Interrupts at the machine under test.
    pub interrupts: u64,
    /// How busy each resource was.
    pub uses: Vec<Use>,
    /// How far the numbers of offered and counted frames may differ without a loss, because queue lengths vary.
    pub tolerance: u64,
}

impl Trial {
    /// Returns the count that the test measures: datagrams that the NIC under test sent and received, or connections.
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

    /// Returns what [`counted`](Self::counted) would have been without losses.
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

    /// Returns the share that was lost of the frames or connections that the test measures, 0 to 1. If more was offered than counted, the
    /// difference counts as lost even if nothing was dropped yet: queues grow, and will overflow sooner or later.
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

    /// Returns the recorded losses in the directions that the test measures.
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

    /// Returns the frames or connections counted per second, for each direction that frames go.
    pub fn forwarding_rate(&self) -> f64 {
        let ways = if self.test.is_three_way() { 2.0 } else { 1.0 };
        self.counted() as f64 / self.seconds / ways
    }

    /// Returns the result in the test's unit: Mb/s of data, or connections per millisecond.
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

    /// Returns the resources that were fully used, busiest first.
    pub fn full(&self) -> Vec<Use> {
        let mut full: Vec<Use> = self.uses.iter().copied().filter(Use::is_full).collect();
        full.sort_by(|a, b| b.share.total_cmp(&a.share));
        full
    }

    /// Returns the share of the time in which the processor of the machine under test was idle, 0 to 1.
    pub fn host_idle(&self) -> Option<f64> {
        let of_host =
            |one: &&Use| (one.machine, one.resource) == (Machine::UnderTest, Resource::Host);
        self.uses.iter().find(of_host).map(|host| 1.0 - host.share)
    }
}
