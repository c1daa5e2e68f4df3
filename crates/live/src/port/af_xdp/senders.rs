//! Whose frames a port cannot take.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// More senders than this at a time are not noted; they are when they send again.
const MOST_SENDERS: usize = 64;

/// Senders of frames that no wire carries: their checksum, or to cut them to segments, was left to hardware. By the port and whoever is to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Senders(Arc<Mutex<Vec<IpAddr>>>);

impl Senders {
    /// Notes who sent this Ethernet frame.
    #[cold]
    pub(super) fn add(&self, frame: &[u8]) {
        let Some(sender) = sender_of(frame) else {
            return;
        };
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if senders.len() < MOST_SENDERS && !senders.contains(&sender) {
            senders.push(sender);
        }
    }

    /// Those since this was asked last.
    pub(crate) fn take(&self) -> Vec<IpAddr> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn sender_of(frame: &[u8]) -> Option<IpAddr> {
    match frame.get(12..14)? {
        [0x08, 0x00] => Some(Ipv4Addr::from(*frame.get(26..30)?.first_chunk::<4>()?).into()),
        [0x86, 0xdd] => Some(Ipv6Addr::from(*frame.get(22..38)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_is_noted_once_and_no_more_than_there_is_room_for() {
        let senders = Senders::default();
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        for number in (0..100).chain(0..100) {
            frame[26..30].copy_from_slice(&[10, 0, 0, number]);
            senders.add(&frame);
            senders.add(&frame[..28]);
        }
        let taken = senders.take();
        assert_eq!(taken.len(), MOST_SENDERS);
        assert_eq!(taken[7], Ipv4Addr::new(10, 0, 0, 7));
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        senders.add(&frame);
        assert_eq!(senders.take().len(), 1);
        assert!(senders.take().is_empty());
    }
}
