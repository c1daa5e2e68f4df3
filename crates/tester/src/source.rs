//! Sends a stream at a given rate.

use crate::stamp::Template;
use crate::task::{Departures, Quantiles, Sending};
use baton_live::port::{Batch, Port};
use baton_wire::Time;
use hdrhistogram::Histogram;
use std::io;

/// Maximum number of frames given to the driver in one call.
const MOST_AT_ONCE: u64 = 64;
/// At low rates, each frame is sent separately; at higher rates, all frames due within this time are sent together.
const BATCH_NS: f64 = 20_000.0;
/// How long after the end of a trial overdue frames may still be sent: a share of the trial's length, within limits.
const GRACE: f64 = 0.002;
const LEAST_GRACE_NS: u64 = 1_000_000;
const MOST_GRACE_NS: u64 = 20_000_000;
/// Longest time that histograms can record.
const LONGEST_NS: u64 = 100_000_000_000;

/// Next action of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The sender has sent frames, and may have more to send immediately.
    Sent,
    /// Nothing is due before this time in ns.
    Wait(u64),
    /// The sender is done.
    Done,
}

/// A stream that is being sent.
#[derive(Debug)]
pub struct Source {
    template: Template,
    /// Prepared frames, as many as can be sent at once.
    batch: Batch,
    sending: Sending,
    /// Number of frames that the driver accepted.
    handed: u64,
    /// Number of calls in which the driver did not accept all frames.
    refusals: u64,
    /// Whether the driver did not accept all frames in the last call.
    is_full: bool,
    /// Number of frames per call.
    group: u64,
    start_ns: u64,
    end_ns: u64,
    limit_ns: u64,
    last_ns: Option<u64>,
    gaps: Histogram<u64>,
    lateness: Histogram<u64>,
}

impl Source {
    /// Creates a source that sends from `start_ns` on.
    pub fn new(template: Template, sending: Sending, start_ns: u64) -> Self {
        let mut batch = Batch::default();
        (0..MOST_AT_ONCE).for_each(|_| batch.push(template.blank()));
        batch.sent(MOST_AT_ONCE as usize);
        let length = sending.duration_ns;
        let grace = (length as f64 * GRACE) as u64;
        let histogram = || Histogram::new_with_max(LONGEST_NS, 3).expect("bounds are right");
        let due_together = sending.rate.map_or(f64::MAX, |rate| rate * BATCH_NS / 1e9);
        Self {
            template,
            batch,
            handed: 0,
            refusals: 0,
            is_full: false,
            group: (due_together as u64).clamp(1, MOST_AT_ONCE),
            start_ns,
            end_ns: start_ns + length,
            limit_ns: start_ns + length + grace.clamp(LEAST_GRACE_NS, MOST_GRACE_NS),
            last_ns: None,
            gaps: histogram(),
            lateness: histogram(),
            sending,
        }
    }

    /// Returns the number of frames that the driver accepted.
    pub fn handed(&self) -> u64 {
        self.handed
    }

    /// Sends frames that are due, at most one batch.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn turn(&mut self, now_ns: u64, port: &mut dyn Port) -> io::Result<Next> {
        if self.handed == self.sending.frames || now_ns >= self.limit_ns {
            return Ok(Next::Done);
        }
        let due = self.due(now_ns);
        let waiting = due.saturating_sub(self.handed);
        let is_last = due == self.sending.frames;
        if waiting < self.group && !is_last {
            let group = (self.handed + self.group).min(self.sending.frames);
            return Ok(Next::Wait(self.time_of(group).min(self.end_ns)));
        }
        self.send(now_ns, waiting.min(MOST_AT_ONCE), port)?;
        Ok(Next::Sent)
    }

    /// Returns the number of frames due by `now_ns`.
    fn due(&self, now_ns: u64) -> u64 {
        match self.sending.rate {
            Some(rate) if now_ns < self.end_ns => {
                let since = now_ns.saturating_sub(self.start_ns) as f64 / 1e9;
                ((since * rate) as u64).min(self.sending.frames)
            }
            _ => self.sending.frames,
        }
    }

    /// Returns when this many frames are due.
    fn time_of(&self, frames: u64) -> u64 {
        let after = self.sending.rate.map_or(0.0, |rate| frames as f64 / rate);
        // One nanosecond more, to compensate for rounding.
        self.start_ns + (after * 1e9) as u64 + 1
    }

    fn send(&mut self, now_ns: u64, count: u64, port: &mut dyn Port) -> io::Result<()> {
        let Self {
            template, batch, ..
        } = self;
        let mut sequence = self.handed;
        batch.replay(count as usize, |frame| {
            template.stamp(frame, sequence, now_ns);
            sequence += 1;
        });
        port.send(Time::from_ps(now_ns * 1_000), batch)?;
        let refused = batch.len();
        // Refused frames get new numbers when they are sent later.
        batch.sent(refused);
        self.note(now_ns);
        self.handed += count - refused as u64;
        self.is_full = refused > 0;
        self.refusals += u64::from(self.is_full);
        Ok(())
    }

    /// Records the time of a call to the driver.
    fn note(&mut self, now_ns: u64) {
        if let Some(last_ns) = self.last_ns.replace(now_ns) {
            self.gaps.saturating_record(now_ns - last_ns);
        }
        if self.sending.rate.is_some() {
            let due_ns = self.time_of(self.handed + 1);
            self.lateness
                .saturating_record(now_ns.saturating_sub(due_ns));
        }
    }

    /// Returns the counts of departures.
    pub fn into_departures(self) -> Departures {
        let left = self.sending.frames - self.handed;
        Departures {
            offered: self.sending.frames,
            handed: self.handed,
            refused: if self.is_full { left } else { 0 },
            late: if self.is_full { 0 } else { left },
            refusals: self.refusals,
            frames_at_once: self.group,
            gaps_us: quantiles(&self.gaps),
            lateness_us: quantiles(&self.lateness),
            jitter_us: self.gaps.stdev() / 1e3,
        }
    }
}

fn quantiles(histogram: &Histogram<u64>) -> Quantiles {
    let us = |ns: u64| ns as f64 / 1e3;
    Quantiles {
        p50: us(histogram.value_at_quantile(0.5)),
        p99: us(histogram.value_at_quantile(0.99)),
        max: us(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_live::port::memory_pair;
    use baton_microbench::frame::Ends;

    const ENDS: Ends = Ends {
        ethernet: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
        ip: [[198, 18, 0, 1], [198, 18, 0, 2]],
        ports: [9_000, 9_001],
    };

    fn source(rate: Option<f64>, frames: u64) -> Source {
        let sending = Sending {
            rate,
            frames,
            duration_ns: 1_000_000,
        };
        Source::new(Template::new(&ENDS, 18, 0, 0), sending, 500)
    }

    #[test]
    fn frames_leave_when_they_are_due() {
        // One frame every 25 us.
        let mut source = source(Some(4e4), 40);
        let (mut port, mut other) = memory_pair(ENDS.ethernet, 1_500);
        let mut arrived = Vec::new();
        let (mut now, mut sent) = (500, 0);
        loop {
            match source.turn(now, &mut port).expect("memory") {
                Next::Wait(until) => {
                    assert!(until > now, "time passes");
                    now = until;
                }
                Next::Sent => {
                    sent += 1;
                    assert_eq!(source.handed(), sent, "one by one");
                    assert!(now >= 500 + sent * 25_000 || now >= 1_000_500);
                }
                Next::Done => break,
            }
            other.receive(Time::ZERO, &mut arrived).expect("memory");
        }
        assert_eq!(arrived.len(), 40);
        let departures = source.into_departures();
        assert_eq!((departures.handed, departures.late), (40, 0));
        assert!(departures.lateness_us.max < 0.1, "{departures:?}");
    }

    #[test]
    fn frames_sent_too_late_count_as_losses_of_the_sender() {
        let mut source = source(Some(1e6), 1_000);
        let (mut port, _other) = memory_pair(ENDS.ethernet, 1_500);
        assert_eq!(source.turn(200_500, &mut port).expect("memory"), Next::Sent);
        let late = 500 + 1_000_000 + MOST_GRACE_NS;
        assert_eq!(source.turn(late, &mut port).expect("memory"), Next::Done);
        let departures = source.into_departures();
        assert_eq!((departures.handed, departures.late), (64, 936));
        assert!(departures.lateness_us.max > 198.0, "{departures:?}");
    }
}
