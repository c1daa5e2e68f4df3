//! The best partners: the NICs that send and receive most with all others.

use super::{Point, Results};
use crate::test::Test;

/// The NICs that are the best partners, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partners {
    /// To receive large frames.
    pub large_receiver: usize,
    /// To send large frames.
    pub large_sender: usize,
    /// To receive small frames.
    pub small_receiver: usize,
    /// To send small frames.
    pub small_sender: usize,
    /// To accept connections.
    pub acceptor: usize,
    /// To initiate connections.
    pub initiator: usize,
}

/// What must be measured to find the best partners of so many NICs: each with each.
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
    /// Those of so many NICs, from the results of [`pairs`]: who sends or receives most with all others together. With large frames this is
    /// told by TCP, since all of them send datagrams as fast as the wire lets them. Of equals the first is taken.
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
