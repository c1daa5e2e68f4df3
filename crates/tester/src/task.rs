//! What an interface is to do in a trial, and what came of it. Both cross the wire where the partner is another machine.

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
    /// Sender and receiver read the same clock.
    pub same_clock: bool,
    /// The work.
    pub work: Work,
}

/// A kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Datagrams are sent, received, or both.
    Datagrams {
        /// Bytes of data in each.
        payload_len: u16,
        /// What is sent.
        send: Option<(StreamEnds, Sending)>,
        /// What is received.
        receive: Option<StreamEnds>,
    },
    /// A host with TCP.
    Tcp(TcpTask),
}

/// A stream, and where its frames come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnds {
    /// Its number: 0 comes from the NIC under test, 1 goes to it.
    pub stream: u8,
    /// Addresses.
    pub ends: Ends,
}

/// How much is sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sending {
    /// Frames a second; `None` sends them one behind the other.
    pub rate: Option<f64>,
    /// All frames.
    pub frames: u64,
    /// How long it is offered; frames that were not sent then are the sender's loss.
    pub duration_ns: u64,
}

/// A host's part in a test with TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpTask {
    /// This host's address.
    pub own: [u8; 4],
    /// That of the other.
    pub other: [u8; 4],
    /// What it does.
    pub role: TcpRole,
    /// Before anything is counted.
    pub warm_up_ns: u64,
    /// What is counted.
    pub duration_ns: u64,
}

/// What a host with TCP does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpRole {
    /// Sends as fast as it may over so many connections, which it opens.
    Send {
        /// How many.
        connections: u32,
    },
    /// Accepts connections and reads all that comes.
    Read,
    /// Opens connections at a rate, and closes each once it is open.
    Open {
        /// Connections a second.
        rate: f64,
    },
    /// Accepts connections and closes each when the other end has.
    Accept,
}

/// What came of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was sent.
    pub departures: Option<Departures>,
    /// What was received.
    pub arrivals: Option<Arrivals>,
    /// What TCP did.
    pub tcp: Option<TcpCounts>,
    /// What interface, driver and port have counted meanwhile.
    pub counts: Counts,
    /// Share of the time in which there was nothing to do, 0 to 1.
    pub idle: f64,
}

/// A stream that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Departures {
    /// Frames that were asked for.
    pub offered: u64,
    /// Frames that the driver took.
    pub handed: u64,
    /// Frames that were not sent at the end, because the driver took no more.
    pub refused: u64,
    /// Frames that were not sent at the end, because the sender had no time for them.
    pub late: u64,
    /// Calls at which the driver did not take all.
    pub refusals: u64,
    /// Frames that were given at once, unless more were due.
    pub frames_at_once: u64,
    /// From one call to the next, µs.
    pub gaps_us: Quantiles,
    /// From when a call's first frame was due until it was given to the driver, µs.
    pub lateness_us: Quantiles,
    /// Standard deviation of the time from one call to the next, µs.
    pub jitter_us: f64,
}

/// What of a distribution is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half is no more.
    pub p50: f64,
    /// 99 % is no more.
    pub p99: f64,
    /// All is no more.
    pub max: f64,
}

/// A stream that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Frames that came, each once.
    pub delivered: u64,
    /// Those of them that came after a later one.
    pub reordered: u64,
    /// Frames that came again.
    pub copies: u64,
    /// Frames that are not as they were sent.
    pub wrong: u64,
    /// Frames of earlier trials.
    pub stale: u64,
    /// Frames of others.
    pub foreign: u64,
    /// From driver to program, where both ends have one clock.
    pub latency: Option<Latency>,
}

/// What a host with TCP counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpCounts {
    /// Bytes that came in order while it was counted.
    pub bytes: u64,
    /// Connections that should have been opened.
    pub offered: u64,
    /// Connections that were opened and closed at both ends.
    pub completed: u64,
    /// Connections that ended in another way.
    pub failed: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
}
