//! A router's interface: packets that the router sends through it, and work that it leaves to the router.

use super::{Interface, MOST_OUTBOX};
use crate::config::{ConfigError, InterfaceConfig, Medium, is_link_local};
use crate::neighbours::Resolution;
use baton_wire::Time;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Packets that wait for the router.
#[derive(Clone, Debug, Default)]
pub(super) struct Routed {
    /// Echo replies and errors, which may have to leave through another interface.
    answers: VecDeque<(IpAddr, Vec<u8>)>,
    /// Packets whose neighbour did not answer.
    pub(super) undelivered: VecDeque<Vec<u8>>,
}

impl Interface {
    /// Creates a router's interface.
    pub(crate) fn of_router(config: InterfaceConfig) -> Result<Self, ConfigError> {
        let mut interface = Self::new(config)?;
        interface.routed = Some(Box::default());
        Ok(interface)
    }

    /// Resolves the Ethernet address of a neighbour for a packet that is sent now.
    pub(crate) fn resolve(&mut self, now: Time, next_hop: IpAddr) -> Resolution {
        match self.config.is_loopback {
            true => Resolution::Known([0; 6]),
            false => self.neighbours.resolve(now, next_hop, &mut self.stats),
        }
    }

    /// Sends a packet to a neighbour, as soon as its Ethernet address is known.
    pub(crate) fn forward_own(&mut self, now: Time, next_hop: IpAddr, packet: Vec<u8>) {
        match self.resolve(now, next_hop) {
            Resolution::Known(mac) => self.push_packet(mac, &packet),
            Resolution::Asked => self.neighbours.wait(next_hop, packet, &mut self.stats),
            Resolution::Failed => self.stats.waiting_failed += 1,
        }
    }

    /// Processes a packet to one of the interface's addresses that arrived through another interface of the router.
    pub(crate) fn handle_packet(&mut self, now: Time, packet: Bytes) {
        self.receive_as(now, Medium::Ip, packet, &mut super::empty_segment());
    }

    /// Sends an answer, if the interface answers. The router looks up its route, if there is a router and the address is not link-local.
    pub(super) fn answer(&mut self, now: Time, dst: IpAddr, packet: Vec<u8>) {
        match &mut self.routed {
            _ if !self.config.answers => {}
            Some(routed) if !is_link_local(dst) && routed.answers.len() < MOST_OUTBOX => {
                routed.answers.push_back((dst, packet));
            }
            _ => self.send_own(now, dst, packet),
        }
    }

    /// Takes the next answer and its destination.
    pub(crate) fn take_answer(&mut self) -> Option<(IpAddr, Vec<u8>)> {
        self.routed.as_mut()?.answers.pop_front()
    }

    /// Takes the next packet whose neighbour did not answer.
    pub(crate) fn take_undelivered(&mut self) -> Option<Vec<u8>> {
        self.routed.as_mut()?.undelivered.pop_front()
    }

    /// Reports whether an ICMP error may be sent now, and if so counts it as sent.
    pub(crate) fn allows_error(&mut self, now: Time) -> bool {
        let allowed = self.icmp_limit.allow(now);
        self.stats.icmp_errors_sent += u64::from(allowed);
        self.stats.icmp_errors_limited += u64::from(!allowed);
        allowed
    }

    /// The source address for packets to `remote`, on the link or not.
    pub(crate) fn address_towards(&self, remote: IpAddr) -> Option<IpAddr> {
        self.addresses.source_for(remote, remote)
    }
}
