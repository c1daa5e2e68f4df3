//! Figures 5 to 11.

use super::{Pairing, Partners, Point};
use crate::test::Test;

baton_named::named! {
    /// One series of bars in a figure: a test, and a rule that chooses the partners.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Series {
        /// Figure 5: datagrams of 1472 bytes to a NIC of the same kind.
        LargeSend => "UDP send, 1472 bytes",
        /// Figure 5: datagrams of 1472 bytes from a NIC of the same kind.
        LargeReceive => "UDP receive, 1472 bytes",
        /// Figure 5: TCP between two NICs of the same kind.
        Tcp => "TCP",
        /// Figure 6: datagrams of 1472 bytes to the best receiver.
        LargeSendBest => "UDP send, 1472 bytes",
        /// Figure 6: datagrams of 1472 bytes from the best sender.
        LargeReceiveBest => "UDP receive, 1472 bytes",
        /// Figure 6: TCP to the best receiver.
        TcpSendBest => "TCP send",
        /// Figure 6: TCP from the best sender.
        TcpReceiveBest => "TCP receive",
        /// Figure 7: datagrams of 18 bytes to a NIC of the same kind.
        SmallSend => "UDP send, 18 bytes",
        /// Figure 7: datagrams of 18 bytes from a NIC of the same kind.
        SmallReceive => "UDP receive, 18 bytes",
        /// Figure 8: datagrams of 18 bytes to the best receiver.
        SmallSendBest => "UDP send, 18 bytes",
        /// Figure 8: datagrams of 18 bytes from the best sender.
        SmallReceiveBest => "UDP receive, 18 bytes",
        /// Figure 9: datagrams of 1472 bytes from the best sender and to the best receiver.
        LargeThreeWay => "UDP both ways, 1472 bytes",
        /// Figure 10: datagrams of 18 bytes from the best sender and to the best receiver.
        SmallThreeWay => "UDP both ways, 18 bytes",
        /// Figure 11: connections between two NICs of the same kind.
        Connections => "connections, same NIC",
        /// Figure 11: connections from the best initiator.
        AcceptBest => "connections accepted",
        /// Figure 11: connections to the best acceptor.
        InitiateBest => "connections initiated",
    }
}

impl Series {
    /// Returns the number of the figure that contains the series.
    pub fn figure(self) -> u8 {
        match self {
            Self::LargeSend | Self::LargeReceive | Self::Tcp => 5,
            Self::LargeSendBest
            | Self::LargeReceiveBest
            | Self::TcpSendBest
            | Self::TcpReceiveBest => 6,
            Self::SmallSend | Self::SmallReceive => 7,
            Self::SmallSendBest | Self::SmallReceiveBest => 8,
            Self::LargeThreeWay => 9,
            Self::SmallThreeWay => 10,
            Self::Connections | Self::AcceptBest | Self::InitiateBest => 11,
        }
    }

    /// Returns the point to measure for the NIC of index `nic`.
    pub fn point(self, nic: usize, partners: &Partners) -> Point {
        let alike = |test| Point::of(test, nic, nic);
        let with = |test, partner| Point::of(test, nic, partner);
        let three_way = |test, partner, receiver| Point {
            test,
            pairing: Pairing {
                under_test: nic,
                partner,
                receiver,
            },
        };
        match self {
            Self::LargeSend => alike(Test::UdpSend1472),
            Self::LargeReceive => alike(Test::UdpReceive1472),
            Self::Tcp => alike(Test::TcpSend),
            Self::LargeSendBest => with(Test::UdpSend1472, partners.large_receiver),
            Self::LargeReceiveBest => with(Test::UdpReceive1472, partners.large_sender),
            Self::TcpSendBest => with(Test::TcpSend, partners.large_receiver),
            Self::TcpReceiveBest => with(Test::TcpReceive, partners.large_sender),
            Self::SmallSend => alike(Test::UdpSend18),
            Self::SmallReceive => alike(Test::UdpReceive18),
            Self::SmallSendBest => with(Test::UdpSend18, partners.small_receiver),
            Self::SmallReceiveBest => with(Test::UdpReceive18, partners.small_sender),
            Self::LargeThreeWay => three_way(
                Test::UdpThreeWay1472,
                partners.large_sender,
                partners.large_receiver,
            ),
            Self::SmallThreeWay => three_way(
                Test::UdpThreeWay18,
                partners.small_sender,
                partners.small_receiver,
            ),
            Self::Connections => alike(Test::Initiate),
            Self::AcceptBest => with(Test::Accept, partners.initiator),
            Self::InitiateBest => with(Test::Initiate, partners.acceptor),
        }
    }
}

/// One bar: a series at one NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The series.
    pub series: Series,
    /// Index of the NIC.
    pub nic: usize,
    /// The point to measure.
    pub point: Point,
}

/// Returns all bars of all figures for this many NICs.
pub fn bars(nics: usize, partners: &Partners) -> Vec<Bar> {
    let of_series = |series: Series| {
        (0..nics).map(move |nic| Bar {
            series,
            nic,
            point: series.point(nic, partners),
        })
    };
    Series::ALL.into_iter().flat_map(of_series).collect()
}
