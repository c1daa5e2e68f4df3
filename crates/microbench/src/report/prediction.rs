//! Predicts applications from the vector of a NIC's microbenchmarks (section 6 of the report; Saavedra and Smith; Seltzer et al.).
//!
//! An application is a count of operations for each request or packet, which follows from its log or trace. A NIC is a time for each
//! operation, which follows from its microbenchmarks. Their product is the time for a request or packet, as if the operations ran one after
//! the other. This ignores that operations overlap and that the host has work, too. One coefficient, the same for all NICs, accounts for
//! both.

use super::correlation::value;
use super::{
    ApplicationLaboratory, ApplicationResults, Partners, Results, Series, Workload, WorkloadOf,
};
use crate::applications::RouterTraffic;
use crate::frame::Carried;
use baton_apps::symbolic::{self, HEAD_BYTES};
use baton_wire::{Payload, frame_len};
use baton_workload::{Replay, Workload as _};

/// Bytes of IPv4 and TCP headers without options, and of the data of a full segment.
const HEADERS: usize = 40;
const SEGMENT: usize = 1_460;

/// Small frames in each direction that a connection costs in addition to its data: SYN, ACK, FIN.
const OF_CONNECTION: f64 = 3.0;

/// Frames for a request or packet. By its length, each counts partly as a small frame (64 bytes) and partly as a large one (1518 bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Frames sent: small, large.
    pub sent: [f64; 2],
    /// Frames received: small, large.
    pub received: [f64; 2],
}

impl Counts {
    /// Adds `frames` frames that carry `ip_len` bytes.
    fn add(sum: &mut [f64; 2], ip_len: usize, frames: f64) {
        let [small, large] = [Carried::Udp(18), Carried::Udp(1_472)].map(Carried::frame_len);
        let share = (frame_len(ip_len) - small) as f64 / (large - small) as f64;
        sum[0] += (1.0 - share) * frames;
        sum[1] += share * frames;
    }

    /// Returns the mean counts and the mean bytes of content of a request, over one pass of the log: the segments that TCP needs for
    /// requests and responses if nothing is lost, with an acknowledgment for every second segment.
    pub fn of_request(log: &Replay) -> (Self, f64) {
        let mut log = log.clone();
        let (mut counts, mut requests, mut content) = (Self::default(), 0.0, 0.0);
        let mut script = Vec::new();
        for _ in 0..log.connections() {
            log.next_connection(&mut script);
            let mut together = 0;
            for (number, spec) in script.iter().enumerate() {
                together += symbolic::request(spec.file, spec.bytes, None).len();
                let is_last = script.get(number + 1).is_none_or(|next| !next.pipelined);
                if is_last {
                    segments(&mut counts.received, together);
                    together = 0;
                }
                let response = HEAD_BYTES as usize + spec.bytes as usize;
                let sent = segments(&mut counts.sent, response);
                Self::add(&mut counts.received, HEADERS, (sent / 2.0).ceil());
                requests += 1.0;
                content += spec.bytes as f64;
            }
            Self::add(&mut counts.sent, HEADERS, OF_CONNECTION);
            Self::add(&mut counts.received, HEADERS, OF_CONNECTION);
        }
        let each = |sums: [f64; 2]| sums.map(|sum| sum / requests);
        let counts = Self {
            sent: each(counts.sent),
            received: each(counts.received),
        };
        (counts, content / requests)
    }

    /// Returns the mean counts of a packet on one of a router's two NICs, each of which receives half of the packets and sends the other
    /// half.
    pub fn of_packet(traffic: &RouterTraffic) -> Self {
        const ETHERNET: usize = 14;
        let mut sum = [0.0; 2];
        let frames = traffic.frames().iter().flat_map(|frames| frames.iter());
        let mut all = 0.0;
        for frame in frames {
            Self::add(&mut sum, frame.len() - ETHERNET, 1.0);
            all += 1.0;
        }
        let each = sum.map(|sum| sum / all / 2.0);
        Self {
            sent: each,
            received: each,
        }
    }

    /// Returns the sum of the times of all operations, in seconds.
    fn seconds(&self, times: &Times) -> f64 {
        let sum = |counts: [f64; 2], times: [f64; 2]| counts[0] * times[0] + counts[1] * times[1];
        sum(self.sent, times.send) + sum(self.received, times.receive)
    }
}

/// Adds the segments for `bytes` of data to the counts, and returns their number.
fn segments(sum: &mut [f64; 2], bytes: usize) -> f64 {
    let (full, rest) = (bytes / SEGMENT, bytes % SEGMENT);
    Counts::add(sum, HEADERS + SEGMENT, full as f64);
    if rest == 0 {
        return full as f64;
    }
    Counts::add(sum, HEADERS + rest, 1.0);
    full as f64 + 1.0
}

/// Times between two small and two large frames of a NIC that does nothing else, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    send: [f64; 2],
    receive: [f64; 2],
}

impl Times {
    fn of(results: &Results, partners: &Partners, nic: usize) -> Self {
        let time = |series: Series, carried: Carried| {
            let bits = carried.payload_len() as f64 * 8.0;
            bits / (value(results, partners, series, nic) * 1e6)
        };
        let (small, large) = (Carried::Udp(18), Carried::Udp(1_472));
        Self {
            send: [
                time(Series::SmallSendBest, small),
                time(Series::LargeSendBest, large),
            ],
            receive: [
                time(Series::SmallReceiveBest, small),
                time(Series::LargeReceiveBest, large),
            ],
        }
    }
}

/// Predictions for a workload on a NIC, in the unit of the measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Index of the NIC.
    pub nic: usize,
    /// The measured value.
    pub measured: f64,
    /// Prediction from counts and times alone.
    pub plain: f64,
    /// Prediction with a coefficient fitted on all other NICs.
    pub fitted: f64,
    /// Prediction without microbenchmarks: the mean of all other NICs.
    pub others: f64,
}

/// Predicts a workload on each of its NICs. Coefficients are fitted on the other NICs only; means are geometric.
///
/// # Panics
/// When a value was not measured.
pub fn predict(
    (results, partners): (&Results, &Partners),
    laboratory: &ApplicationLaboratory,
    applications: &ApplicationResults,
    workload: &Workload,
) -> Vec<Predicted> {
    let (counts, unit) = match workload.of {
        WorkloadOf::Web { log } => {
            let (counts, bytes) = Counts::of_request(&laboratory.logs[log].replay);
            (counts, bytes * 8.0 / 1e6)
        }
        WorkloadOf::Router { trace, .. } => (Counts::of_packet(&laboratory.traces[trace]), 1e-3),
    };
    let measured = applications.values(workload);
    let plain = workload.nics.iter().map(|nic| {
        let times = Times::of(results, partners, *nic);
        unit / counts.seconds(&times)
    });
    let plain: Vec<f64> = plain.collect();
    let logs = |values: &[f64], without: usize| {
        let others = values.iter().enumerate().filter(|(at, _)| *at != without);
        let sum: f64 = others.map(|(_, value)| value.ln()).sum();
        sum / (values.len() - 1).max(1) as f64
    };
    let predicted = |(at, nic): (usize, &usize)| {
        let others = logs(&measured, at);
        let coefficient = (others - logs(&plain, at)).exp();
        Predicted {
            nic: *nic,
            measured: measured[at],
            plain: plain[at],
            fitted: coefficient * plain[at],
            others: others.exp(),
        }
    };
    workload.nics.iter().enumerate().map(predicted).collect()
}

/// Returns the mean absolute error of predictions, as a share of the measured values.
pub fn mean_error(predicted: &[Predicted], of: impl Fn(&Predicted) -> f64) -> f64 {
    let errors = predicted
        .iter()
        .map(|one| (of(one) / one.measured - 1.0).abs());
    errors.sum::<f64>() / predicted.len() as f64
}
