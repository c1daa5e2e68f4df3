//! The ten tests of the report.

use crate::frame::{Carried, LinkRate};
use serde::{Deserialize, Serialize};

baton_named::named! {
    /// A test of one NIC, the one under test. The report numbers them from 1, in this order (section 3.3).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Test {
        /// Datagrams of 1472 bytes to a partner.
        UdpSend1472 => "udp-send-1472",
        /// Datagrams of 1472 bytes from a partner.
        UdpReceive1472 => "udp-receive-1472",
        /// Datagrams of 1472 bytes from one partner, and as many to another at the same time.
        UdpThreeWay1472 => "udp-three-way-1472",
        /// Datagrams of 18 bytes to a partner.
        UdpSend18 => "udp-send-18",
        /// Datagrams of 18 bytes from a partner.
        UdpReceive18 => "udp-receive-18",
        /// Datagrams of 18 bytes from one partner, and as many to another at the same time.
        UdpThreeWay18 => "udp-three-way-18",
        /// Segments of 1460 bytes to a partner over several TCP connections.
        TcpSend => "tcp-send",
        /// Segments of 1460 bytes from a partner over several TCP connections.
        TcpReceive => "tcp-receive",
        /// TCP connections that a partner opens and closes.
        Accept => "accept",
        /// TCP connections that the NIC under test opens to a partner and closes.
        Initiate => "initiate",
    }
}

/// Unit of a test's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Rate of data, in Mb/s.
    PayloadMbps,
    /// Connections opened and closed per millisecond.
    ConnectionsPerMs,
}

impl Test {
    /// Returns the test's number in the report.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the payload of the test's frames; those of connections are empty.
    pub fn carried(self) -> Carried {
        match self {
            Self::UdpSend1472 | Self::UdpReceive1472 | Self::UdpThreeWay1472 => Carried::Udp(1_472),
            Self::UdpSend18 | Self::UdpReceive18 | Self::UdpThreeWay18 => Carried::Udp(18),
            Self::TcpSend | Self::TcpReceive => Carried::Tcp(1_460),
            Self::Accept | Self::Initiate => Carried::Tcp(0),
        }
    }

    /// Returns the unit of the test's result.
    pub fn unit(self) -> Unit {
        match self {
            Self::Accept | Self::Initiate => Unit::ConnectionsPerMs,
            _ => Unit::PayloadMbps,
        }
    }

    /// Returns whether the NIC under test sends datagrams.
    pub fn sends_datagrams(self) -> bool {
        matches!(self, Self::UdpSend1472 | Self::UdpSend18) || self.is_three_way()
    }

    /// Returns whether the NIC under test receives datagrams.
    pub fn receives_datagrams(self) -> bool {
        matches!(self, Self::UdpReceive1472 | Self::UdpReceive18) || self.is_three_way()
    }

    /// Returns whether there are two partners, one that sends and one that receives.
    pub fn is_three_way(self) -> bool {
        matches!(self, Self::UdpThreeWay1472 | Self::UdpThreeWay18)
    }

    /// Returns whether the test varies the number of connections instead of a rate.
    pub fn has_connections(self) -> bool {
        matches!(self, Self::TcpSend | Self::TcpReceive)
    }

    /// Returns the highest rate that can be offered on a link, in frames per second each way or connections per second.
    pub fn line_rate(self, link: LinkRate) -> f64 {
        match self.unit() {
            Unit::PayloadMbps => {
                let line_bits = 8.0 * self.carried().line_len() as f64;
                link.bits_per_second() as f64 / line_bits
            }
            Unit::ConnectionsPerMs => crate::frame::connections_per_ms(link) as f64 * 1e3,
        }
    }

    /// Returns the highest result that a link allows, in [`unit`](Self::unit).
    pub fn limit(self, link: LinkRate) -> u64 {
        match self {
            Self::Accept | Self::Initiate => crate::frame::connections_per_ms(link),
            _ if self.is_three_way() => self.carried().payload_mbps_both_ways(link),
            _ => self.carried().payload_mbps(link),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_report() {
        let limits = Test::ALL.map(|test| test.limit(LinkRate::GIGABIT));
        assert_eq!(limits, [957, 957, 1_914, 214, 214, 428, 949, 949, 372, 372]);
        assert!(
            (1..)
                .zip(Test::ALL)
                .all(|(number, test)| test.number() == number)
        );
    }
}
