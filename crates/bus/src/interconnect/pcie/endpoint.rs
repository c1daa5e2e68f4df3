//! A device at the end of a link: what it sends, in which order.

use std::collections::VecDeque;

use baton_wire::Time;

use super::config::PciExpressConfig;
use super::credits::Credits;
use super::tlp::{Packets, Train};
use crate::interconnect::job::Job;
use crate::interconnect::{Operation, Transfer};

/// Transfers of a device. Writes and messages go in order and may pass reads that have to wait; a read never passes a write
/// (PCIe 2.4.1).
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    posted: VecDeque<Queued>,
    reads: VecDeque<Queued>,
    /// Bytes of the first read that have been asked for.
    requested: u64,
    /// Reads that wait for data, in order. The first of `reads` may be among them when it is asked for in part.
    waiting: VecDeque<Job>,
    submitted: u64,
    tags: Credits,
    /// Room for completions.
    room: Credits,
}

/// A transfer with its place in the order of all transfers of the device.
#[derive(Clone, Debug)]
struct Queued {
    order: u64,
    job: Job,
}

/// What an endpoint would send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A packet of its first write.
    Write,
    /// A request of its first read.
    Request,
}

impl Endpoint {
    pub(super) fn new(config: &PciExpressConfig) -> Self {
        let credits = &config.credits;
        Self {
            posted: VecDeque::new(),
            reads: VecDeque::new(),
            requested: 0,
            waiting: VecDeque::new(),
            submitted: 0,
            tags: Credits::new(config.tags, 0),
            room: Credits::new(credits.completion_headers, credits.completion_data),
        }
    }

    pub(super) fn submit(&mut self, now: Time, transfer: &Transfer) {
        let queued = Queued {
            order: self.submitted,
            job: Job::new(now, transfer),
        };
        self.submitted += 1;
        if transfer.operation == Operation::DmaRead {
            self.reads.push_back(queued);
        } else {
            self.posted.push_back(queued);
        }
    }

    pub(super) fn first_write(&self) -> Option<&Job> {
        self.posted.front().map(|queued| &queued.job)
    }

    /// The first read and the bytes of it that are not asked for yet.
    pub(super) fn first_read(&self) -> Option<(&Job, u64)> {
        let job = &self.reads.front()?.job;
        Some((job, job.left_bytes() - self.requested))
    }

    /// What it sends next and when, on a link that is free from `free_at` on.
    pub(super) fn next(
        &self,
        free_at: Time,
        packets: &Packets,
        posted: &Credits,
        non_posted: &Credits,
    ) -> Option<(Time, Next)> {
        let write = self.posted.front();
        let write_at = write.and_then(|write| {
            let train = packets.first_write(write.job.left_bytes());
            let credit_at = posted.available_at(train.packets, train.data_credits)?;
            Some(write.job.arrival.max(credit_at).max(free_at))
        });
        let read_at = self
            .reads
            .front()
            .filter(|read| write.is_none_or(|write| read.order < write.order))
            .and_then(|read| {
                let tag_at = self.tags.available_at(1, 0)?;
                let credit_at = non_posted.available_at(1, 0)?;
                let ready_at = tag_at.max(credit_at).max(self.room_at(packets)?);
                Some(read.job.arrival.max(ready_at).max(free_at))
            });
        match (write_at, read_at) {
            (Some(write_at), Some(read_at)) if write_at < read_at => Some((write_at, Next::Write)),
            (_, Some(read_at)) => Some((read_at, Next::Request)),
            (Some(write_at), None) => Some((write_at, Next::Write)),
            (None, None) => None,
        }
    }

    /// When there is room for the completions of the next read request.
    fn room_at(&self, packets: &Packets) -> Option<Time> {
        if self.room.are_infinite() {
            return Some(Time::ZERO);
        }
        let train = packets.completions(self.next_request(packets)?);
        self.room.available_at(train.packets, train.data_credits)
    }

    /// Bytes that its next read request asks for.
    fn next_request(&self, packets: &Packets) -> Option<u64> {
        self.first_read().map(|(_, left)| packets.first_read(left))
    }

    /// Sends packets of the first write; gives the bytes, and the transfer when they are its last.
    pub(super) fn write(&mut self, train: &Train) -> Option<(crate::BytesByCategory, Option<Job>)> {
        let job = &mut self.posted.front_mut()?.job;
        let moved = job.take(train.payload);
        let over = job.left_bytes() == 0;
        let job = if over { self.posted.pop_front() } else { None };
        Some((moved, job.map(|queued| queued.job)))
    }

    /// Sends the next read request; gives the bytes that it asks for, and whether they are the last of the transfer.
    pub(super) fn request(&mut self, now: Time, packets: &Packets) -> Option<(u64, bool)> {
        let bytes = self.next_request(packets)?;
        self.tags.take(now, 1, 0);
        if !self.room.are_infinite() {
            let train = packets.completions(bytes);
            self.room.take(now, train.packets, train.data_credits);
        }
        let job = &self.reads.front()?.job;
        if self.requested == 0 {
            self.waiting.push_back(job.clone());
        }
        self.requested += bytes;
        let last = self.requested == job.left_bytes();
        if last {
            self.reads.pop_front();
            self.requested = 0;
        }
        Some((bytes, last))
    }

    /// Data of the first waiting read arrive at `at`; gives the bytes, and the transfer when they are its last.
    pub(super) fn receive(
        &mut self,
        at: Time,
        train: &Train,
        last: bool,
    ) -> Option<(crate::BytesByCategory, Option<Job>)> {
        self.tags.give_back(at, 1, 0);
        self.room.give_back(at, train.packets, train.data_credits);
        let moved = self.waiting.front_mut()?.take(train.payload);
        let job = if last { self.waiting.pop_front() } else { None };
        Some((moved, job))
    }
}
