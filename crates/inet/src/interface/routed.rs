//! An interface as one of a router's: whose packets it sends, and what it leaves to the router.

use super::{Interface, MOST_OUTBOX};
use crate::config::{ConfigError, InterfaceConfig, Medium, is_link_local};
use crate::neighbours::Resolution;
use baton_wire::Time;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::IpAddr;

/// What waits for the router.
#[derive(Clone, Debug, Default)]
pub(super) struct Routed {
    /// Echo replies and errors, which may have to leave by another interface.
    answers: VecDeque<(IpAddr, Vec<u8>)>,
    /// Packets whose neighbour did not answer.
    pub(super) undelivered: VecDeque<Vec<u8>>,
}

impl Interface {
    /// A router's interface.
    pub(crate) fn of_router(config: InterfaceConfig) -> Result<Self, ConfigError> {
        let mut interface = Self::new(config)?;
        interface.routed = Some(Box::default());
        Ok(interface)
    }

    /// How to reach a neighbour for a packet that goes now.
    pub(crate) fn resolve(&mut self, now: Time, next_hop: IpAddr) -> Resolution {
        self.neighbours.resolve(now, next_hop, &mut self.stats)
    }

    /// Sends a packet to a neighbour, as soon as its Ethernet address is known.
    pub(crate) fn forward_own(&mut self, now: Time, next_hop: IpAddr, packet: Vec<u8>) {
        match self.resolve(now, next_hop) {
            Resolution::Known(mac) => self.push_packet(mac, &packet),
            Resolution::Asked => self.neighbours.wait(next_hop, packet, &mut self.stats),
            Resolution::Failed => self.stats.waiting_failed += 1,
        }
    }

    /// Takes in a packet to one of its addresses that came by another of the router's interfaces.
    pub(crate) fn handle_packet(&mut self, now: Time, packet: Bytes) {
        self.receive_as(now, Medium::Ip, packet, &mut super::empty_segment());
    }

    /// Sends an answer: its way is looked up by the router, if there is one and the address means something to it.
    pub(super) fn answer(&mut self, now: Time, dst: IpAddr, packet: Vec<u8>) {
        match &mut self.routed {
            Some(routed) if !is_link_local(dst) && routed.answers.len() < MOST_OUTBOX => {
                routed.answers.push_back((dst, packet));
            }
            _ => self.send_own(now, dst, packet),
        }
    }

    /// The next answer, and to whom it goes.
    pub(crate) fn take_answer(&mut self) -> Option<(IpAddr, Vec<u8>)> {
        self.routed.as_mut()?.answers.pop_front()
    }

    /// The next packet whose neighbour did not answer.
    pub(crate) fn take_undelivered(&mut self) -> Option<Vec<u8>> {
        self.routed.as_mut()?.undelivered.pop_front()
    }

    /// True when an ICMP error may go now; it counts as sent.
    pub(crate) fn allows_error(&mut self, now: Time) -> bool {
        let allowed = self.icmp_limit.allow(now);
        self.stats.icmp_errors_sent += u64::from(allowed);
        self.stats.icmp_errors_limited += u64::from(!allowed);
        allowed
    }

    /// Its address to speak from to somebody who may be anywhere.
    pub(crate) fn address_towards(&self, remote: IpAddr) -> Option<IpAddr> {
        self.addresses.source_for(remote, remote)
    }
}
