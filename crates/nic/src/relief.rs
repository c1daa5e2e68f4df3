//! Active relief: which connections the host should take back to end an overload sooner (handoff-policies 3.2 names the
//! idea and leaves the mechanism open).

use crate::connections::Connections;
use crate::queues::Stamp;
use baton_bus::handoff::Handle;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Packets of all connections after which every connection's recent count is halved.
const HALF_LIFE_PACKETS: u32 = 8192;

/// Counts the packets of all connections to tell when recent counts are due to be halved. Measuring age in packets needs no
/// clock and compares connections over the same stretch of traffic, fast or slow.
#[derive(Debug, Default)]
pub(crate) struct ActivityClock {
    packets: u32,
    epoch: u32,
}

impl ActivityClock {
    pub(crate) fn count(&mut self, activity: &mut Activity) {
        self.packets += 1;
        if self.packets == HALF_LIFE_PACKETS {
            self.packets = 0;
            self.epoch = self.epoch.wrapping_add(1);
        }
        activity.packets = activity.recent_packets(self) + 1;
        activity.epoch = self.epoch;
    }
}

/// Recent packets of one connection; halved as the [`ActivityClock`] moves on, but only when looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    packets: u32,
    epoch: u32,
}

impl Activity {
    /// Packets lately, older ones counting for less.
    pub(crate) fn recent_packets(&self, clock: &ActivityClock) -> u32 {
        self.packets
            .checked_shr(clock.epoch.wrapping_sub(self.epoch))
            .unwrap_or(0)
    }
}

/// Connections that the host is to be asked for, busiest first.
#[derive(Debug, Default)]
pub(crate) struct ReliefRequests {
    waiting: VecDeque<Handle>,
    since: Stamp,
    candidates: Vec<(Reverse<u32>, Handle)>,
}

impl ReliefRequests {
    /// When the overload came that the oldest waiting request is about.
    pub(crate) fn head(&self) -> Option<Stamp> {
        (!self.waiting.is_empty()).then_some(self.since)
    }

    pub(crate) fn pop(&mut self) -> Option<Handle> {
        self.waiting.pop_front()
    }

    /// Lines up the busiest connections so that `surplus` in all have been asked for. None is asked for twice.
    pub(crate) fn request(
        &mut self,
        surplus: u32,
        connections: &mut Connections,
        clock: &ActivityClock,
        now: Stamp,
    ) {
        let asked = connections.relief_asked();
        if surplus <= asked {
            return;
        }
        self.candidates.clear();
        for (handle, offloaded) in connections.iter_active() {
            if !connections.is_relief_asked(handle) {
                let packets = offloaded.activity.recent_packets(clock);
                self.candidates.push((Reverse(packets), handle));
            }
        }
        let wanted = ((surplus - asked) as usize).min(self.candidates.len());
        if wanted == 0 {
            return;
        }
        self.candidates.select_nth_unstable(wanted - 1);
        self.candidates[..wanted].sort_unstable();
        if self.waiting.is_empty() {
            self.since = now;
        }
        for (_, handle) in &self.candidates[..wanted] {
            self.waiting.push_back(*handle);
            connections.set_relief_asked(*handle, true);
        }
    }

    /// Takes back what has not been asked yet: the overload is over.
    pub(crate) fn withdraw(&mut self, connections: &mut Connections) {
        for handle in self.waiting.drain(..) {
            connections.set_relief_asked(handle, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_tcp::ConnId;

    fn busy(packets: &[u32], clock: &mut ActivityClock) -> Connections {
        let mut connections = Connections::default();
        for (n, count) in (0..).zip(packets) {
            connections.insert(Handle(n), ConnId(n), false, Default::default());
            for _ in 0..*count {
                clock.count(
                    &mut connections
                        .get_mut(Handle(n))
                        .expect("just inserted")
                        .activity,
                );
            }
        }
        connections
    }

    fn drain(requests: &mut ReliefRequests) -> Vec<u32> {
        std::iter::from_fn(|| requests.pop())
            .map(|handle| handle.0)
            .collect()
    }

    #[test]
    fn the_busiest_are_asked_for_once() {
        let mut clock = ActivityClock::default();
        let mut connections = busy(&[3, 9, 1, 9, 7], &mut clock);
        let mut requests = ReliefRequests::default();
        requests.request(3, &mut connections, &clock, Stamp::default());
        connections.check();
        assert_eq!(drain(&mut requests), [1, 3, 4]);
        // The three asked for are still there and count towards the surplus.
        requests.request(3, &mut connections, &clock, Stamp::default());
        assert_eq!(drain(&mut requests), Vec::<u32>::new());
        requests.request(4, &mut connections, &clock, Stamp::default());
        assert_eq!(drain(&mut requests), [0]);
        requests.request(100, &mut connections, &clock, Stamp::default());
        assert_eq!(drain(&mut requests), [2]);
    }

    #[test]
    fn withdrawn_requests_may_be_made_again() {
        let mut clock = ActivityClock::default();
        let mut connections = busy(&[1, 2], &mut clock);
        let mut requests = ReliefRequests::default();
        requests.request(1, &mut connections, &clock, Stamp::default());
        requests.withdraw(&mut connections);
        assert_eq!(requests.head(), None);
        requests.request(1, &mut connections, &clock, Stamp::default());
        assert_eq!(drain(&mut requests), [1]);
    }

    #[test]
    fn counts_halve_with_age() {
        let mut clock = ActivityClock::default();
        let mut old = Activity::default();
        for _ in 0..100 {
            clock.count(&mut old);
        }
        assert_eq!(old.recent_packets(&clock), 100);
        let mut other = Activity::default();
        for _ in 0..HALF_LIFE_PACKETS {
            clock.count(&mut other);
        }
        assert_eq!(old.recent_packets(&clock), 50);
        clock.count(&mut old);
        assert_eq!(old.recent_packets(&clock), 51);
        for _ in 0..HALF_LIFE_PACKETS * 40 {
            clock.count(&mut other);
        }
        assert_eq!(old.recent_packets(&clock), 0);
    }
}
