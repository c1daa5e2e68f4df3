//! Path MTUs reported by ICMP, which apply to all connections to a destination (RFC 1191 6.2 and 6.3, RFC 8201 5.2).

use crate::remembered::Remembered;
use baton_wire::{Span, Time};
use std::net::IpAddr;

/// Lifetime of an entry, after which the path may have a larger MTU (RFC 8201 4 recommends ten minutes, and at least five).
const LIFETIME: Span = Span::from_secs(600);

/// Least MTU that applies to other connections too. No link in use has a smaller one, and an attacker who sees one connection must not
/// slow down all others to its peer by more (min_pmtu of Linux).
const LEAST: u16 = 552;

/// MTUs of paths by destination.
#[derive(Debug, Default)]
pub(crate) struct PathMtus {
    known: Remembered<IpAddr, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    mtu: u16,
    until: Time,
}

impl PathMtus {
    /// The known MTU of the path to `remote`, if any that has not expired.
    pub(crate) fn get(&mut self, now: Time, remote: IpAddr) -> Option<u16> {
        if self.known.is_empty() {
            return None;
        }
        let known = *self.known.get(&remote)?;
        if now >= known.until {
            self.forget(remote);
            return None;
        }
        Some(known.mtu)
    }

    /// Records that the path to `remote` carries no packets larger than `mtu`.
    pub(crate) fn learn(&mut self, now: Time, remote: IpAddr, mtu: u16) {
        let before = self.get(now, remote).unwrap_or(u16::MAX);
        *self.known.entry(remote) = Some(Known {
            mtu: mtu.max(LEAST).min(before),
            until: now + LIFETIME,
        });
    }

    /// Forgets the MTU after the route to `remote` changed.
    pub(crate) fn forget(&mut self, remote: IpAddr) {
        self.known.forget(&remote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembered::MOST;

    fn host(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn the_least_reported_mtu_is_kept_for_ten_minutes() {
        let (mut paths, start) = (PathMtus::default(), Time::ZERO);
        let at = |seconds| start + Span::from_secs(seconds);
        paths.learn(start, host(1), 1400);
        paths.learn(at(10), host(1), 1200);
        paths.learn(at(20), host(1), 1300);
        assert_eq!(paths.get(at(619), host(1)), Some(1200));
        assert_eq!(paths.get(at(620), host(1)), None);
        paths.learn(at(621), host(1), 1300);
        assert_eq!(paths.get(at(621), host(1)), Some(1300));
        assert_eq!(paths.get(at(621), host(2)), None);
        paths.forget(host(1));
        assert_eq!(paths.get(at(621), host(1)), None);
    }

    #[test]
    fn a_tiny_mtu_is_raised_to_the_least() {
        let mut paths = PathMtus::default();
        paths.learn(Time::ZERO, host(1), 68);
        assert_eq!(paths.get(Time::ZERO, host(1)), Some(LEAST));
    }

    #[test]
    fn the_number_of_known_paths_is_limited() {
        let mut paths = PathMtus::default();
        for number in 0..2 * MOST as u32 {
            paths.learn(Time::ZERO, host(number), 1400);
        }
        assert_eq!(paths.known.len(), MOST);
        assert_eq!(paths.get(Time::ZERO, host(0)), None);
    }
}
