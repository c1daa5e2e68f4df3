//! Lower bounds of the completion times of transfers.

use baton_wire::{Span, Time};

use super::Link;
use crate::interconnect::pcie::endpoint::Endpoint;

impl Link {
    /// Returns a lower bound of the completion times of all transfers whose completion time is not known yet. Packets not sent before `now`
    /// are sent later.
    pub(in crate::interconnect::pcie) fn earliest_done(&self, now: Time) -> Option<Time> {
        if self.idle_until == Time::NEVER {
            return None;
        }
        let down_free_at = self.to_device.free_at.max(now);
        if self.has_only_completions() {
            return self.completions_done(now);
        }
        let up_free_at = self.to_host.free_at.max(now);
        let writes = self.endpoints.iter().filter_map(|endpoint| {
            let (line, packets) = endpoint.first_reported_write(&self.packets)?;
            let sent = up_free_at + self.at_least(line, packets);
            Some(sent + self.latencies.link + self.latencies.write)
        });
        let reads = self.endpoints.iter().filter_map(|endpoint| {
            let ahead = endpoint.first_reported_read(&self.packets)?;
            let requests = ahead.requests * self.packets.request_bytes();
            let asked = up_free_at + self.at_least(requests, ahead.requests);
            let ready = asked + self.latencies.link + self.latencies.read;
            let sent = down_free_at.max(ready) + self.at_least(ahead.own_line, ahead.trains);
            Some(sent + self.latencies.link)
        });
        writes
            .chain(reads)
            .chain(self.completions_done(now))
            .chain(self.access_done(down_free_at))
            .chain(self.answer_done(up_free_at))
            .min()
    }

    /// Returns whether nothing is in progress except data for reads.
    fn has_only_completions(&self) -> bool {
        self.accesses.is_empty()
            && self.answers.is_empty()
            && self.endpoints.iter().all(Endpoint::is_at_rest)
    }

    /// Returns the minimum duration of `line` bytes that are sent in up to `parts` parts, each of which is rounded.
    fn at_least(&self, line: u64, parts: u64) -> Span {
        let rounded = Span::from_ps(parts.saturating_sub(1));
        self.packet_rate.span(line).saturating_sub(rounded)
    }

    /// Returns when the first reported read can complete all of whose data are on their way.
    fn completions_done(&self, now: Time) -> Option<Time> {
        let first = self.completions.front()?;
        if first.ends_reported() && first.earliest > now {
            return Some(first.earliest);
        }
        let (mut line, mut trains) = (0, 0);
        let last = self.completions.iter().find(|data| {
            line += data.line_bytes;
            trains += 1;
            data.ends_reported()
        })?;
        let free_at = self.to_device.free_at.max(now);
        let own = last.line_bytes;
        let behind_others = free_at.max(first.ready_at) + self.at_least(line, trains);
        let alone = free_at.max(last.ready_at) + self.packet_rate.span(own);
        Some(behind_others.max(alone) + self.latencies.link)
    }

    fn access_done(&self, free_at: Time) -> Option<Time> {
        self.accesses.iter().find(|job| job.transfer.reported)?;
        let request = self.packet_rate.span(self.packets.request_bytes());
        Some(free_at + request + self.latencies.link)
    }

    fn answer_done(&self, free_at: Time) -> Option<Time> {
        let answer = self
            .answers
            .iter()
            .find(|answer| answer.job.transfer.reported)?;
        let line = self.packets.completions(answer.job.left_bytes()).line_bytes;
        let sent = free_at.max(answer.ready_at) + self.packet_rate.span(line);
        Some(sent + self.latencies.link)
    }
}
