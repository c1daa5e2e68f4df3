//! The best partners: the NICs that send and receive most, summed over all partners.

use super::{Point, Results};
use crate::test::Test;

/// Indices of the NICs that are the best partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partners {
    /// Best receiver of large frames.
    pub large_receiver: usize,
    /// Best sender of large frames.
    pub large_sender: usize,
    /// Best receiver of small frames.
    pub small_receiver: usize,
    /// Best sender of small frames.
    pub small_sender: usize,
    /// Best acceptor of connections.
    pub acceptor: usize,
    /// Best initiator of connections.
    pub initiator: usize,
}

/// Returns the points to measure to find the best partners among this many NICs: all pairs of NICs.
pub fn pairs(nics: usize) -> Vec<Point> {
    const TESTS: [Test; 4] = [
        Test::TcpSend,
        Test::UdpSend18,
        Test::UdpReceive18,
        Test::Initiate,
    ];
    let pair = move |test| {
        (0..nics).flat_map(move |one| (0..nics).map(move |other| Point::of(test, one, other)))
    };
    TESTS.into_iter().flat_map(pair).collect()
}

impl Partners {
    /// Finds the best partners among this many NICs from the results of [`pairs`]: those that send or receive most, summed over all
    /// partners. For large frames, TCP decides, since all NICs send datagrams at line rate. Among equals, the first wins.
    ///
    /// # Panics
    /// When a pair was not measured.
    pub fn find(nics: usize, results: &Results) -> Self {
        let best = |test| {
            let sum = |nic| -> f64 {
                let points = (0..nics).map(|partner| Point::of(test, nic, partner));
                points.map(|point| results.best(&point)).sum()
            };
            let better = |best, one| if sum(one) > sum(best) { one } else { best };
            (1..nics).fold(0, better)
        };
        Self {
            large_receiver: best(Test::TcpReceive),
            large_sender: best(Test::TcpSend),
            small_receiver: best(Test::UdpReceive18),
            small_sender: best(Test::UdpSend18),
            acceptor: best(Test::Accept),
            initiator: best(Test::Initiate),
        }
    }
}
