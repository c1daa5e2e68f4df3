//! Numbers that outsiders must not guess: initial sequence numbers and timestamp offsets.

use baton_wire::{Endpoint, Flow, SeqNr, Span, Time};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::IpAddr;

/// The clock of initial sequence numbers ticks every 4 microseconds (RFC 9293 3.4.1).
const SEQUENCE_TICK: Span = Span::from_us(4);

/// A keyed hash of four-tuples (RFC 6528 3).
#[derive(Clone, Debug)]
pub(crate) struct Secret {
    key: (u64, u64),
}

impl Secret {
    pub(crate) fn new(secret: u64) -> Self {
        Self {
            key: (secret, secret.rotate_left(32) ^ 0xa076_1d64_78bd_642f),
        }
    }

    /// ISN = M + F(four-tuple, secret) (RFC 6528 3).
    pub(crate) fn sequence(&self, now: Time, flow: &Flow) -> SeqNr {
        SeqNr((now.as_ps() / SEQUENCE_TICK.as_ps()) as u32) + self.hash(flow, 0)
    }

    /// Initial value of a connection's timestamp clock (RFC 7323 7.1). It depends only on the four-tuple, so that the timestamps of
    /// a new incarnation continue those of the last one.
    pub(crate) fn timestamp_offset(&self, flow: &Flow) -> u32 {
        self.hash(flow, 1)
    }

    /// Hash that makes SYN cookies unguessable: of the four-tuple alone, or also of the counter and the peer's sequence number
    /// (RFC 4987 3.6).
    pub(crate) fn cookie(&self, flow: &Flow, varying: Option<(u32, SeqNr)>) -> u32 {
        let mut hasher = self.hasher(flow);
        match varying {
            None => hasher.write_u8(3),
            Some((count, irs)) => {
                hasher.write_u8(4);
                hasher.write_u32(count);
                hasher.write_u32(irs.0);
            }
        }
        hasher.finish() as u32
    }

    /// A key for hash tables.
    pub(crate) fn table_key(&self) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write_u8(2);
        hasher.finish()
    }

    /// A key for flow labels, which are public.
    pub(crate) fn flow_label_key(&self) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write_u8(7);
        hasher.finish()
    }

    /// Default key of Fast Open cookies.
    pub(crate) fn fast_open_key(&self) -> [u8; 16] {
        let half = |use_of| {
            let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
            hasher.write_u8(use_of);
            hasher.finish().to_le_bytes()
        };
        let mut key = [0; 16];
        key[..8].copy_from_slice(&half(5));
        key[8..].copy_from_slice(&half(6));
        key
    }

    fn hash(&self, flow: &Flow, use_of: u8) -> u32 {
        let mut hasher = self.hasher(flow);
        hasher.write_u8(use_of);
        hasher.finish() as u32
    }

    fn hasher(&self, flow: &Flow) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        write_endpoint(&mut hasher, flow.local);
        write_endpoint(&mut hasher, flow.remote);
        hasher
    }
}

fn write_endpoint(hasher: &mut SipHasher24, end: Endpoint) {
    match end.addr {
        IpAddr::V4(addr) => hasher.write_u32(addr.to_bits()),
        IpAddr::V6(addr) => hasher.write_u128(addr.to_bits()),
    }
    hasher.write_u16(end.port);
}
