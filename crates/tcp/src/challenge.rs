//! Challenge ACKs, limited for the whole stack (RFC 5961 7).

use baton_wire::{Span, Time};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// Limits the challenge ACKs that a stack sends in one second.
#[derive(Debug)]
pub(crate) struct ChallengeLimit {
    key: u64,
    second: u64,
    left: u32,
}

impl ChallengeLimit {
    pub(crate) fn new(key: u64) -> Self {
        Self {
            key,
            second: u64::MAX,
            left: 0,
        }
    }

    /// Reports whether another challenge ACK may be sent. About `per_second` are allowed in each second (0: no limit). The exact limit is random:
    /// from a known limit that all connections share, an attacker could infer how often other connections are challenged.
    pub(crate) fn take(&mut self, now: Time, per_second: u32) -> bool {
        if per_second == 0 {
            return true;
        }
        let second = now.as_ps() / Span::from_secs(1).as_ps();
        if second != self.second {
            self.second = second;
            let mut hasher = SipHasher24::new_with_keys(self.key, second);
            hasher.write_u8(0);
            self.left = per_second.div_ceil(2) + (hasher.finish() % u64::from(per_second)) as u32;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_as_many_as_allowed_pass_in_each_second() {
        let mut limit = ChallengeLimit::new(7);
        let mut counts = Vec::new();
        for second in 0..20 {
            let now = Time::ZERO + Span::from_secs(second);
            counts.push((0..1000).filter(|_| limit.take(now, 100)).count());
        }
        assert!(
            counts.iter().all(|count| (50..150).contains(count)),
            "{counts:?}"
        );
        assert!(
            counts.windows(2).any(|pair| pair[0] != pair[1]),
            "{counts:?}"
        );
    }

    #[test]
    fn zero_is_no_limit() {
        let mut limit = ChallengeLimit::new(7);
        assert!((0..10_000).all(|_| limit.take(Time::ZERO, 0)));
    }
}
