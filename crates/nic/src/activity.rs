//! Measures how busy connections are. Active relief asks the host to take the busiest connections back, which ends an overload sooner
//! (handoff-policies 3.2 mentions the idea and leaves the mechanism open).

/// Number of packets, over all connections, after which the recent count of every connection is halved.
const HALF_LIFE_PACKETS: u32 = 8192;

/// Counts the packets of all connections to determine when recent counts must be halved. Measuring age in packets needs no clock and
/// compares all connections over the same stretch of traffic, fast or slow.
#[derive(Debug, Default)]
pub(crate) struct ActivityClock {
    packets: u32,
    epoch: u32,
    total: u64,
}

impl ActivityClock {
    /// Returns the number of packets of all connections since the start.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn count(&mut self, activity: &mut Activity) {
        self.total += 1;
        self.packets += 1;
        if self.packets == HALF_LIFE_PACKETS {
            self.packets = 0;
            self.epoch = self.epoch.wrapping_add(1);
        }
        activity.packets = activity.recent_packets(self) + 1;
        activity.epoch = self.epoch;
    }
}

/// Recent packets of one connection. The count is halved as the [`ActivityClock`] advances, but only when it is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    packets: u32,
    epoch: u32,
}

impl Activity {
    /// Returns the number of recent packets, in which older packets count for less.
    pub(crate) fn recent_packets(&self, clock: &ActivityClock) -> u32 {
        self.packets
            .checked_shr(clock.epoch.wrapping_sub(self.epoch))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_counts_halve_with_age() {
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
