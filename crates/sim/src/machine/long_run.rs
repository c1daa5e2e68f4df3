//! Computes the estimates for the long run from a run's marks.

use super::Machine;
use super::marks::Mark;
use super::measure::Started;
use super::response_time::{is_saturated, response_time};
use crate::results::{LongRun, NicCacheResults, NotSteady, Sample};
use baton_stats::{Batch, Estimate, Mix, batches, is_drifting, is_trending, warm_up};

/// Number of points at which the warm-up may end. MSER-5 takes means of several observations.
const POINTS: usize = 100;
/// Relative deviation of the mean size of served responses from the log's beyond which a run is not steady.
const OTHER_SIZES: f64 = 0.1;
/// A run is not steady if the number of connections or of waiting packets changes by this share of the clients, or the number of lost
/// frames by this share of the responses.
const SETTLING: f64 = 0.02;

impl Machine {
    /// Returns a mark with the current progress of the run.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            at: self.now,
            responses: self.clients.measured.responses,
            bytes: self.clients.measured.content_bytes(),
            opened: self.clients.measured.opened,
            ended: self.clients.measured.ended(),
            bus_bytes: self.server.accounting().to_nic.bytes.content,
            host_busy: self.host.busy(self.now),
        }
    }

    /// Estimates the long run from the measurements since `started`.
    pub(super) fn long_run(&self, started: Started) -> LongRun {
        let measured = &self.clients.measured;
        let log = self.clients.log;
        let served = mean(measured.served_bytes, measured.responses);
        let ends = measured.opened + measured.ended();
        let mix = log.map_or_else(
            || Mix {
                bytes: served,
                connections: mean(ends, measured.responses) / 2.0,
            },
            |log| Mix {
                bytes: mean(log.bytes, log.requests),
                connections: mean(log.connections, log.requests),
            },
        );
        let mut found = LongRun {
            mean_response_bytes: mix.bytes,
            served_response_bytes: served,
            passes: log.map(|log| self.responses() as f64 / log.requests as f64),
            ..LongRun::default()
        };
        if self.clients.all_started > started.at {
            found.not_steady.push(NotSteady::ClientsStarting);
        }
        if started.caches_filling {
            found.not_steady.push(NotSteady::CachesFilling);
        }
        self.estimate(&mut found, mix);
        if self.is_settling(started) {
            found.not_steady.push(NotSteady::Settling);
        }
        let ratio = found.served_response_bytes / found.mean_response_bytes;
        if !(1.0 - OTHER_SIZES..=1.0 + OTHER_SIZES).contains(&ratio) {
            found.not_steady.push(NotSteady::OtherSizes);
        }
        if self.caches().next().is_some()
            && let Some(kept) = &mut found.content_kept_off_bus_percent
        {
            // Batches do not show how much more caches will find once they are full, nor how often they will find large responses that were
            // not served yet: never, or up to as often as other content.
            let half = kept.half_width.filter(|_| !started.caches_filling);
            kept.half_width = half.map(|half| half + (1.0 - ratio).abs() * kept.mean.abs());
        }
        self.estimate_response_time(&mut found, started);
        found
    }

    /// Reports whether the machine was still settling into another state during the measured part.
    fn is_settling(&self, started: Started) -> bool {
        let samples = self.samples_since(started);
        let clients = self.experiment.clients.connections;
        let drifts = |of: fn(&Sample) -> u32| {
            let series: Vec<f64> = samples.iter().map(|sample| of(sample).into()).collect();
            is_drifting(&series, SETTLING * f64::from(clients))
        };
        let between = |of: fn(&Sample) -> u64| -> Vec<f64> {
            let pairs = samples.windows(2);
            pairs
                .map(|pair| (of(&pair[1]) - of(&pair[0])) as f64)
                .collect()
        };
        let responses = between(|sample| sample.responses);
        let each = responses.iter().sum::<f64>() / responses.len().max(1) as f64;
        drifts(|sample| sample.open)
            || drifts(|sample| sample.connections)
            || drifts(|sample| sample.qlen)
            || is_drifting(&between(|sample| sample.drops), SETTLING * each)
    }

    /// Returns the samples of the measured part.
    fn samples_since(&self, started: Started) -> &[Sample] {
        let from_us = started.at.as_ps() / 1_000_000;
        let before = |sample: &Sample| sample.time_us < from_us;
        &self.series[self.series.partition_point(before)..]
    }

    /// Reports whether NICs' caches have free space during the first pass over a log.
    pub(super) fn caches_are_filling(&self) -> bool {
        let is_first_pass = self
            .clients
            .log
            .is_some_and(|log| self.responses() < log.requests);
        is_first_pass && self.caches().any(|cache| cache.blocks.0 < cache.blocks.1)
    }

    fn caches(&self) -> impl Iterator<Item = NicCacheResults> {
        (0..self.ports.len()).filter_map(|nic| self.server.nic_cache(nic))
    }

    /// Estimates the response time of an open loop.
    fn estimate_response_time(&self, found: &mut LongRun, started: Started) {
        let Some(arrived) = self.clients.arrived() else {
            return;
        };
        if is_saturated(arrived, self.samples_since(started)) {
            found.not_steady.push(NotSteady::Saturated);
            return;
        }
        let (time, doubts) = response_time(arrived.sections.full());
        found.response_ms = time;
        for doubt in doubts {
            if !found.not_steady.contains(&doubt) {
                found.not_steady.push(doubt);
            }
        }
    }

    fn estimate(&self, found: &mut LongRun, mix: Mix) {
        let bytes = mix.bytes;
        let seconds = self.marks.seconds();
        let Some(cut) = warm_up_of(&seconds, mix) else {
            found.not_steady.push(NotSteady::TooShort);
            return;
        };
        let Some((each, independent)) = batches(&seconds[cut..], mix) else {
            found.not_steady.push(NotSteady::TooShort);
            return;
        };
        if 2 * cut >= seconds.len() - seconds.len() / POINTS {
            found.not_steady.push(NotSteady::StillWarmingUp);
        }
        if is_trending(&each.residuals) {
            found.not_steady.push(NotSteady::Trend);
        }
        if !independent {
            found.not_steady.push(NotSteady::BatchesDepend);
        }
        found.cut_percent = 100.0 * cut as f64 / seconds.len() as f64;
        found.batches = each.residuals.len() as u32;
        let rate = inverse(each.mean);
        found.request_rate = Some(rate);
        found.content_mbps = Some(rate.times(bytes * 8e-6));
        let busy = batches(&self.marks.host_seconds()[cut..], mix);
        found.host_us_per_request = busy.map(|(busy, _)| busy.mean.times(1e6));
        let crossed = batches(&self.marks.bus_bytes()[cut..], mix);
        found.content_kept_off_bus_percent = crossed.filter(|_| bytes > 0.0).map(|(crossed, _)| {
            let share = crossed.mean.times(100.0 / bytes);
            Estimate {
                mean: 100.0 - share.mean,
                ..share
            }
        });
    }
}

/// Returns how many parts at the start are warm-up, judged by the time per request of the long run's mix, or `None` if there are too few
/// parts.
fn warm_up_of(parts: &[Batch], mix: Mix) -> Option<usize> {
    let (fitted, _) = batches(parts, mix)?;
    let points = POINTS.min(parts.len());
    let edge = |point: usize| point * parts.len() / points;
    let series: Vec<f64> = (0..points)
        .map(|point| {
            let part = Batch::sum(&parts[edge(point)..edge(point + 1)]);
            fitted.as_in_the_long_run(&part)
        })
        .collect();
    Some(edge(warm_up(&series)))
}

/// Converts the estimate of a time per item to the rate per second.
fn inverse(each: Estimate) -> Estimate {
    let rate = 1.0 / each.mean;
    Estimate {
        mean: rate,
        half_width: each.half_width.map(|half| half * rate * rate),
    }
}

fn mean(sum: u64, count: u64) -> f64 {
    sum as f64 / count.max(1) as f64
}
