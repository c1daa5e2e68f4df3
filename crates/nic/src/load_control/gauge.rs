//! Measures of the load on the NIC (handoff-policies 3.2).

use crate::config::{LoadControl, LoadMeasure};
use baton_wire::{Span, Time};

/// The load on a NIC. Counts are totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Time of the measurement.
    pub now: Time,
    /// Qlen: number of NIC packets that wait.
    pub qlen: u32,
    /// Packets of connections on hosts, in both directions.
    pub host_packets: u64,
    /// Events of connections on the NIC. A received packet causes about two: its data and an acknowledgment.
    pub nic_packets: u64,
    /// Time for which the NIC's processor has worked, if known.
    pub busy: Option<Span>,
}

impl Load {
    /// Returns the load of a NIC whose only known value is its queue length.
    pub fn of_queue(qlen: u32) -> Self {
        Self {
            qlen,
            ..Self::default()
        }
    }
}

/// Position of the measured value relative to Hiwat and Lowat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Under,
    /// Between the marks, or not measured.
    Between,
    Over,
}

/// Measures load.
#[derive(Clone, Debug)]
pub(super) struct Gauge {
    measure: LoadMeasure,
    marks: (u64, u64),
    interval: Span,
    /// Load at the start of the current interval.
    since: Option<Load>,
}

impl Gauge {
    pub(super) fn new(config: &LoadControl) -> Self {
        let [(_, low), (_, high)] = config.marks();
        Self {
            measure: config.measure.clone(),
            marks: (low.into(), high.into()),
            interval: Span::from_us(config.measure_us.into()),
            since: None,
        }
    }

    /// Starts a new interval.
    pub(super) fn restart(&mut self, load: &Load) {
        self.since = Some(*load);
    }

    /// Returns the current level. A queue has one at any time, a rate only at the end of each interval.
    pub(super) fn level(&mut self, load: &Load) -> Level {
        let measured = match self.measure {
            LoadMeasure::Queue => Some(load.qlen.into()),
            _ => self.rate(load),
        };
        let (low, high) = self.marks;
        match measured {
            Some(value) if value > high => Level::Over,
            Some(value) if value < low => Level::Under,
            Some(_) | None => Level::Between,
        }
    }

    fn rate(&mut self, load: &Load) -> Option<u64> {
        let since = *self.since.get_or_insert(*load);
        let passed = load.now.saturating_since(since.now);
        if passed < self.interval {
            return None;
        }
        self.since = Some(*load);
        let part = |of: u64, whole: u64| {
            let value = u128::from(of) * u128::from(whole) / u128::from(passed.as_ps().max(1));
            u64::try_from(value).unwrap_or(u64::MAX)
        };
        match self.measure {
            LoadMeasure::Queue => None,
            LoadMeasure::Busy { .. } => {
                // The processor's count may have started again from zero.
                let worked = load.busy?.as_ps().checked_sub(since.busy?.as_ps())?;
                Some(part(worked, 100))
            }
            LoadMeasure::PacketRate {
                host_weight,
                nic_weight,
                ..
            } => {
                let host = load.host_packets.saturating_sub(since.host_packets);
                let nic = load.nic_packets.saturating_sub(since.nic_packets);
                let packets = host * u64::from(host_weight) + nic * u64::from(nic_weight);
                Some(part(packets, Span::from_secs(1).as_ps()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Level::{Between, Over, Under};
    use super::*;

    fn gauge(measure: LoadMeasure) -> Gauge {
        Gauge::new(&LoadControl {
            measure,
            measure_us: 1_000,
            ..LoadControl::default()
        })
    }

    fn after(us: u64, packets: (u64, u64), busy_us: u64) -> Load {
        Load {
            now: Time::ZERO + Span::from_us(us),
            host_packets: packets.0,
            nic_packets: packets.1,
            busy: Some(Span::from_us(busy_us)),
            ..Load::default()
        }
    }

    #[test]
    fn time_worked_is_measured_by_intervals() {
        let mut gauge = gauge(LoadMeasure::Busy {
            high_percent: 90,
            low_percent: 70,
        });
        let loads = [
            (0, 0),
            (999, 999),
            (1_000, 950),
            (1_500, 950),
            (2_000, 1_750),
            (3_000, 2_400),
        ];
        let levels = loads.map(|(now, busy)| gauge.level(&after(now, (0, 0), busy)));
        assert_eq!(levels, [Between, Between, Over, Between, Between, Under]);
        let again = [(4_000, 10), (5_000, 990)];
        let levels = again.map(|(now, busy)| gauge.level(&after(now, (0, 0), busy)));
        assert_eq!(levels, [Between, Over], "counted from zero again");
        let unknown = Load {
            busy: None,
            ..after(6_000, (0, 0), 0)
        };
        assert_eq!(gauge.level(&unknown), Between);
    }

    #[test]
    fn packets_have_weights() {
        let mut gauge = gauge(LoadMeasure::PacketRate {
            high_per_s: 100_000,
            low_per_s: 50_000,
            host_weight: 1,
            nic_weight: 4,
        });
        let loads = [
            (0, (0, 0)),
            (1_000, (10, 10)),
            (2_000, (20, 34)),
            (3_000, (120, 34)),
            (4_000, (120, 34)),
        ];
        let levels = loads.map(|(now, packets)| gauge.level(&after(now, packets, 0)));
        assert_eq!(levels, [Between, Between, Over, Between, Under]);
    }

    #[test]
    fn a_restart_discards_earlier_measurements() {
        let mut gauge = gauge(LoadMeasure::Busy {
            high_percent: 90,
            low_percent: 70,
        });
        gauge.level(&after(0, (0, 0), 0));
        gauge.restart(&after(600, (0, 0), 600));
        assert_eq!(gauge.level(&after(1_000, (0, 0), 1_000)), Between);
        assert_eq!(gauge.level(&after(1_600, (0, 0), 1_100)), Under);
    }
}
