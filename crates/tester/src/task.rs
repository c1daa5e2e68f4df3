//! Tasks of interfaces in a trial, and their outcomes. Both are sent over the network if the partner is another machine.

use crate::counts::Counts;
use baton_microbench::Latency;
use baton_microbench::frame::Ends;
use serde::{Deserialize, Serialize};

/// A stream from the NIC under test.
pub const FROM_NIC: u8 = 0;
/// A stream to the NIC under test.
pub const TO_NIC: u8 = 1;

/// What one interface does in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The trial's number, modulo 256.
    pub trial: u8,
    /// Whether sender and receiver use the same clock.
    pub same_clock: bool,
    /// The work.
    pub work: Work,
}

/// Kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Sends datagrams, receives datagrams, or both.
    Datagrams {
        /// Bytes of data in each datagram.
        payload_len: u16,
        /// The stream to send.
        send: Option<(StreamEnds, Sending)>,
        /// The stream to receive.
        receive: Option<StreamEnds>,
    },
    /// Runs a host with TCP.
    Tcp(TcpTask),
}

/// A stream, and the addresses of its sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnds {
    /// Number of the stream: 0 is sent by the NIC under test, 1 is sent to it.
    pub stream: u8,
    /// Addresses of sender and receiver.
    pub ends: Ends,
}

/// How many frames to send, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sending {
    /// Frames per second; `None` sends them back to back.
    pub rate: Option<f64>,
    /// Total number of frames.
    pub frames: u64,
    /// Duration of the load. Frames that are not sent by then count as lost at the sender.
    pub duration_ns: u64,
}

/// A host's part in a test with TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpTask {
    /// Address of this host.
    pub own: [u8; 4],
    /// Address of the other host.
    pub other: [u8; 4],
    /// Role of this host.
    pub role: TcpRole,
    /// Time before counting starts.
    pub warm_up_ns: u64,
    /// Time during which data or connections are counted.
    pub duration_ns: u64,
}

/// Role of a host with TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpRole {
    /// Opens connections and sends over them as fast as possible.
    Send {
        /// Number of connections.
        connections: u32,
    },
    /// Accepts connections and reads all data.
    Read,
    /// Opens connections at a rate, and closes each once it is open.
    Open {
        /// Connections per second.
        rate: f64,
    },
    /// Accepts connections, and closes each after the peer has closed it.
    Accept,
}

/// Outcome of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Counts of the stream that was sent.
    pub departures: Option<Departures>,
    /// Counts of the stream that was received.
    pub arrivals: Option<Arrivals>,
    /// Counts of TCP.
    pub tcp: Option<TcpCounts>,
    /// Changes of the counters of interface, driver and port.
    pub counts: Counts,
    /// Share of the time in which the host was idle, 0 to 1.
    pub idle: f64,
}

/// Counts of a stream that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Departures {
    /// Frames that were to be sent.
    pub offered: u64,
    /// Frames that the driver accepted.
    pub handed: u64,
    /// Frames not sent by the end because the driver did not accept them.
    pub refused: u64,
    /// Frames not sent by the end because the sender was too slow.
    pub late: u64,
    /// Calls in which the driver did not accept all frames.
    pub refusals: u64,
    /// Frames per call, unless more were due.
    pub frames_at_once: u64,
    /// Time between calls, in µs.
    pub gaps_us: Quantiles,
    /// Time from when the first frame of a call was due until it was given to the driver, in µs.
    pub lateness_us: Quantiles,
    /// Standard deviation of the time between calls, in µs.
    pub jitter_us: f64,
}

/// Quantiles of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// Counts of a stream that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Distinct frames that arrived.
    pub delivered: u64,
    /// Distinct frames that arrived after a later one.
    pub reordered: u64,
    /// Duplicates.
    pub copies: u64,
    /// Frames that were modified on the way.
    pub wrong: u64,
    /// Frames of earlier trials.
    pub stale: u64,
    /// Frames of other traffic.
    pub foreign: u64,
    /// Latency from driver to program, if both ends use the same clock.
    pub latency: Option<Latency>,
}

/// Counts of a host with TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpCounts {
    /// Bytes received in order while counting.
    pub bytes: u64,
    /// Connections that were to be opened.
    pub offered: u64,
    /// Connections that were opened, and then closed by both ends.
    pub completed: u64,
    /// Connections that ended in another way.
    pub failed: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
}
