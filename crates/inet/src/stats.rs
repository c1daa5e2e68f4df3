//! Counters, and the reasons for refusals.

use std::fmt;

/// Defines reasons and their counters.
macro_rules! reasons {
    (
        $(#[$reason_doc:meta])* $reason:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }
        $(#[$doc:meta])* $name:ident
    ) => {
        $(#[$reason_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $reason { $($(#[$variant_doc])* $variant,)+ }

        impl $reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
        }

        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name([u64; $reason::ALL.len()]);

        impl $name {
            /// Count for this reason.
            pub fn get(&self, reason: $reason) -> u64 {
                self.0[reason as usize]
            }

            /// Count for all reasons.
            pub fn total(&self) -> u64 {
                self.0.iter().sum()
            }

            /// The reasons that occurred, and how often.
            pub fn iter(&self) -> impl Iterator<Item = ($reason, u64)> + '_ {
                let counts = $reason::ALL.iter().zip(self.0);
                counts.filter(|&(_, count)| count > 0).map(|(&reason, count)| (reason, count))
            }

            pub(crate) fn count(&mut self, reason: $reason) {
                self.0[reason as usize] += 1;
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.iter()).finish()
            }
        }
    };
}

reasons! {
    /// Why a frame was refused.
    Refusal {
        /// The frame is shorter than an Ethernet header, or its source is a group.
        BadFrame,
        /// The frame is for another Ethernet address.
        OtherMac,
        /// The frame holds neither IPv4, IPv6 nor ARP.
        UnknownEtherType,
        /// The IP header or a length in it is malformed.
        BadIpHeader,
        /// The IPv4 header's checksum is wrong (RFC 1122 3.2.1.2).
        IpChecksum,
        /// The source address is one that no host has (RFC 1122 3.2.1.3, RFC 4291 2.5, 2.7).
        BadSource,
        /// The source address is one of the interface's own.
        OwnSource,
        /// The destination is another Internet address: a host does not forward (RFC 1122 3.3.1).
        OtherDestination,
        /// The destination is a broadcast or group address, in a unicast protocol (RFC 9293 3.9.2.3, RFC 1122 3.2.2.6).
        ToMany,
        /// The destination is a unicast Internet address, but the frame is a broadcast (RFC 1122 3.3.6).
        UnicastInBroadcast,
        /// A fragment.
        Fragment,
        /// The packet has a source route (RFC 1122 3.2.1.8, RFC 5095).
        SourceRoute,
        /// IPv6 extension headers that are too many, out of place or cut off.
        BadExtension,
        /// An IPv6 option that must not be skipped (RFC 8200 4.2).
        UnknownOption,
        /// A protocol that this host does not support.
        UnknownProtocol,
        /// UDP, for which there is no listener.
        NoUdpPort,
        /// The TCP header is malformed.
        BadTcpHeader,
        /// The TCP checksum is wrong (RFC 9293 3.1).
        TcpChecksum,
        /// An ICMP message that is cut off.
        BadIcmp,
        /// The ICMP checksum is wrong.
        IcmpChecksum,
        /// An ICMP message of a kind that is ignored: redirects, source quenches (RFC 6633), timestamps, replies, unknown ones.
        IcmpIgnored,
        /// An ICMP error that does not quote a TCP segment of this host.
        ForeignQuote,
        /// An ARP message about another kind of network, or cut off.
        BadArp,
        /// An ARP message for another host.
        OtherArpTarget,
        /// Another host claims an address of this host (RFC 5227 2.4).
        AddressConflict,
        /// Neighbour discovery that may come from beyond the link, or is invalid (RFC 4861 7.1, 6.1.2).
        BadDiscovery,
        /// Neighbour discovery for an address that is not this interface's.
        OtherDiscoveryTarget,
        /// The destination address may be in use by another host, or is known to be (RFC 4862 5.4).
        TentativeAddress,
    }
    /// Frames refused, by reason.
    Refused
}

reasons! {
    /// Why a segment was not sent.
    SendRefusal {
        /// No route to its destination.
        NoRoute,
        /// The source address is not the interface's (RFC 1122 3.2.1.3), or is not known to be unique.
        NotOwnSource,
        /// The packet is longer than the link's MTU.
        TooLong,
        /// The segment cannot be encoded: addresses of two IP versions, or too many options.
        Unencodable,
        /// The neighbour that is the next hop does not answer.
        NeighbourFailed,
    }
    /// Segments not sent, by reason.
    SendRefused
}

reasons! {
    /// Why a router does not forward a packet.
    ForwardRefusal {
        /// The header or a length in it is malformed.
        BadIpHeader,
        /// The IPv4 header's checksum is wrong (RFC 1812 5.2.2).
        IpChecksum,
        /// The source address cannot be a host's (RFC 1812 5.3.7).
        BadSource,
        /// The packet has a source route, which could bypass filters.
        SourceRoute,
        /// The table has no route to the destination.
        NoRoute,
        /// The time to live or hop limit is used up.
        HopsExceeded,
        /// The packet is too long for the next link, and may not be fragmented.
        TooLong,
        /// The neighbour that is the next hop does not answer.
        NeighbourFailed,
        /// The source address is not valid beyond its link (RFC 4291 2.5.6).
        BeyondScope,
    }
    /// Packets not forwarded, by reason.
    ForwardRefused
}

/// Totals of an interface since it was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames received by [`handle_frame`](crate::Interface::handle_frame).
    pub frames_received: u64,
    /// Bytes of the received frames.
    pub bytes_received: u64,
    /// Frames sent.
    pub frames_sent: u64,
    /// Bytes of the sent frames.
    pub bytes_sent: u64,
    /// Segments passed to the stack.
    pub segments_received: u64,
    /// Segments that had to wait for their neighbour.
    pub segments_waited: u64,
    /// Echo requests answered.
    pub echoes_answered: u64,
    /// ICMP errors sent.
    pub icmp_errors_sent: u64,
    /// ICMP errors that the rate limit suppressed.
    pub icmp_errors_limited: u64,
    /// ICMP errors received that quote a segment of this host.
    pub path_errors: u64,
    /// Requests for a neighbour's Ethernet address sent: ARP requests and neighbour solicitations.
    pub solicitations_sent: u64,
    /// Answers to requests for an Ethernet address of this host sent.
    pub advertisements_sent: u64,
    /// Neighbours that did not answer.
    pub neighbours_failed: u64,
    /// Neighbours that were dropped in favour of others.
    pub neighbours_evicted: u64,
    /// Packets dropped because too many waited for the same neighbour; the oldest is dropped first.
    pub waiting_dropped: u64,
    /// Packets dropped because the neighbour did not answer.
    pub waiting_failed: u64,
    /// Own frames dropped because too many waited to be polled.
    pub outbox_dropped: u64,
    /// Frames refused, by [`Refusal`].
    pub refused: Refused,
    /// Segments not sent, by [`SendRefusal`].
    pub send_refused: SendRefused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let mut refused = Refused::default();
        for (index, &reason) in Refusal::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index, "reasons are listed in order");
            refused.count(reason);
            assert_eq!(
                (refused.get(reason), refused.total()),
                (1, index as u64 + 1)
            );
        }
        for (index, &reason) in SendRefusal::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index, "reasons are listed in order");
        }
        let mut refused = Refused::default();
        refused.count(Refusal::Fragment);
        assert_eq!(format!("{refused:?}"), "{Fragment: 1}");
    }
}
