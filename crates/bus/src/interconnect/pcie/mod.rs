//! PCI Express: links of packets, in both directions at the same time.

mod config;
mod credits;
mod endpoint;
mod link;
mod rate;
#[cfg(test)]
mod tests;
mod tlp;

pub use config::{CreditConfig, PciExpressConfig};

use baton_wire::{Span, Time};

use super::done::DoneQueue;
use super::{DeviceId, Done, Interconnect, Piece, Transfer, Usage};
use link::Link;

/// The links of a root complex.
#[derive(Clone, Debug)]
pub struct PciExpress {
    /// One link for each device, or one for all.
    links: Box<[Link]>,
    devices: usize,
    /// Lower bound of the time of the next packet on any link.
    idle_until: Time,
    done: DoneQueue,
    since: Time,
}

impl PciExpress {
    /// Creates links for this number of devices. The configuration must be valid.
    pub fn new(config: &PciExpressConfig, devices: usize) -> Self {
        let link = |first: usize, count| Link::new(config, first as u8, count, devices);
        let links = if config.shared_link {
            vec![link(0, devices)]
        } else {
            (0..devices).map(|device| link(device, 1)).collect()
        };
        Self {
            links: links.into(),
            devices,
            idle_until: Time::NEVER,
            done: DoneQueue::default(),
            since: Time::ZERO,
        }
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        self.done.advance(now);
        if self.idle_until < now {
            self.send_before(now);
        }
    }

    #[inline(never)]
    fn send_before(&mut self, now: Time) {
        self.idle_until = Time::NEVER;
        for link in &mut self.links {
            link.advance(now, &mut self.done);
            self.idle_until = self.idle_until.min(link.idle_until());
        }
    }

    /// Returns a lower bound of the completion times of all transfers whose completion time is not known yet; [`Time::NEVER`] if there are
    /// none.
    #[inline(never)]
    fn earliest_done(&self) -> Time {
        let now = self.done.now();
        self.links.iter().fold(Time::NEVER, |first, link| {
            first.min(link.earliest_done(now).unwrap_or(Time::NEVER))
        })
    }

    /// Returns the link of a device.
    fn link_of(&self, device: DeviceId) -> usize {
        let devices = self.devices;
        assert!(
            device.index() < devices,
            "{device:?} of {devices}: no such device"
        );
        device.index().min(self.links.len() - 1)
    }
}

impl Interconnect for PciExpress {
    fn submit(&mut self, now: Time, transfer: Transfer) {
        let link = self.link_of(transfer.device);
        self.advance(now);
        let link = &mut self.links[link];
        link.submit(now, &transfer, &mut self.done);
        self.idle_until = self.idle_until.min(link.idle_until());
    }

    fn submit_reads(&mut self, now: Time, device: DeviceId, pieces: &[Piece], tag: u64) {
        let link = self.link_of(device);
        self.advance(now);
        let link = &mut self.links[link];
        link.submit_reads(now, (device, tag), pieces, &mut self.done);
        self.idle_until = self.idle_until.min(link.idle_until());
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.done.next_at(|| self.earliest_done())
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.done.pop()
    }

    fn usage(&self, now: Time) -> Usage {
        let elapsed: Span = now.saturating_since(self.since);
        let links = self.links.iter().enumerate();
        Usage {
            elapsed,
            channels: links
                .flat_map(|(place, link)| link.usage(now, place as u8))
                .collect(),
        }
    }

    fn restart_counts(&mut self, now: Time) {
        self.since = now;
        for link in &mut self.links {
            link.restart_counts(now);
        }
    }
}
