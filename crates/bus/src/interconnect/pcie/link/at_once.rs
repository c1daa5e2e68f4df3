//! Sends transfers as soon as they are submitted, as is usual on a link that is not saturated.

use baton_wire::Time;

use super::{Data, Link};
use crate::interconnect::done::DoneQueue;
use crate::interconnect::pcie::tlp::Reads;
use crate::interconnect::{Operation, Transfer};

impl Link {
    /// Sends a transfer immediately if nothing else can come before it, as is usual on a link that is not saturated. Returns false if the
    /// transfer has to wait. A read is sent as a whole, and so are all reads of a scatter list: a register write of the processor comes
    /// before or after all their data, not between them.
    pub(super) fn send_at_once(
        &mut self,
        now: Time,
        transfer: &Transfer,
        done: &mut DoneQueue,
    ) -> bool {
        match transfer.operation {
            Operation::RegisterRead => false,
            Operation::RegisterWrite => {
                let data = self.completions.front();
                let goes_first = data.is_none_or(|data| data.ready_at >= now);
                if !goes_first || !self.accesses.is_empty() {
                    return false;
                }
                let at = self.to_device.free_at.max(now);
                self.send_register_write(at, transfer, done);
                true
            }
            _ if !self.is_way_free() => false,
            Operation::DmaRead => {
                let at = self.to_host.free_at.max(now);
                let reads = self.packets.read(transfer.bytes.total());
                let can = self.can_send_reads(at, &reads);
                if can {
                    self.send_reads(at, transfer, reads, done);
                }
                can
            }
            Operation::DmaWrite | Operation::Interrupt => {
                let at = self.to_host.free_at.max(now);
                self.send_whole_write(at, transfer, done)
            }
        }
    }

    /// Returns whether the only device could send to the host as soon as that direction is free.
    pub(super) fn is_way_free(&self) -> bool {
        self.endpoints.len() == 1 && self.endpoints[0].is_at_rest() && self.answers.is_empty()
    }

    /// Returns whether tags and credits suffice for all requests of the reads.
    pub(super) fn can_send_reads(&self, at: Time, reads: &Reads) -> bool {
        self.endpoints[0].can_ask(at, reads.requests)
            && self.non_posted.are_available(at, reads.requests, 0)
    }

    /// Sends all requests of `reads`. Their data arrive without gaps, because a request takes less time than its data.
    pub(super) fn send_reads(
        &mut self,
        at: Time,
        transfer: &Transfer,
        reads: Reads,
        done: &mut DoneQueue,
    ) {
        let requests = reads.requests;
        self.endpoints[0].ask(at, requests);
        let request = self.packets.request_bytes();
        let end = at + self.packet_rate.span(u64::from(requests) * request);
        self.to_host.free_at = end;
        self.to_host.meter.occupied(transfer.device, at, end);
        self.non_posted.take(at, requests, 0);
        let returned_at = end + self.latencies.credit_return;
        self.non_posted.give_back(returned_at, requests, 0);
        let asked = at + self.packet_rate.span(request) + self.latencies.link;
        let ready_at = asked + self.latencies.read;
        let data = Data::Whole {
            transfer: *transfer,
            reads: reads.count,
            requests,
        };
        let earliest = self.expect_completions(0, ready_at, reads.line_bytes, data);
        if transfer.reported {
            done.expect(earliest);
        }
        self.idle_until = self.idle_until.min(self.next_to_device());
    }

    fn send_whole_write(&mut self, at: Time, transfer: &Transfer, done: &mut DoneQueue) -> bool {
        let train = self.packets.writes(transfer.bytes.total());
        if !(self.posted).are_available(at, train.packets, train.data_credits) {
            return false;
        }
        let end = self.send_posted(at, &train);
        let meter = &mut self.to_host.meter;
        meter.moved(transfer.device, &transfer.bytes, at, end);
        meter.done(transfer.device, transfer.operation, 1);
        done.push(transfer, end + self.latencies.link + self.latencies.write);
        true
    }
}
