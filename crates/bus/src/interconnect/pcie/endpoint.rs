//! A device at the end of a link: decides what it sends, and in which order.

use std::collections::VecDeque;

use baton_wire::Time;

use super::config::PciExpressConfig;
use super::credits::Credits;
use super::tlp::{Packets, Train};
use crate::interconnect::Operation;
use crate::interconnect::job::Job;

/// Transfers of a device. Writes and messages are in order and may pass reads that have to wait; a read never passes a write (PCIe 2.4.1).
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    posted: VecDeque<Queued>,
    reads: VecDeque<Queued>,
    /// Bytes of the first read that have been requested.
    requested: u64,
    /// Reads that wait for data, in order. The first of `reads` may be among them if only part of it was requested.
    waiting: VecDeque<Job>,
    submitted: u64,
    tags: Credits,
    /// Credits for completions.
    room: Credits,
}

/// A transfer with its position in the order of all transfers of the device.
#[derive(Clone, Debug)]
struct Queued {
    order: u64,
    job: Job,
}

/// A read request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Number of bytes requested.
    pub(super) bytes: u64,
    /// Whether these are the last bytes of the transfer.
    pub(super) last: bool,
    /// Whether the completion of the transfer is reported.
    pub(super) reported: bool,
}

/// Traffic that must cross a link before a read completes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// Minimum number of requests.
    pub(super) requests: u64,
    /// Bytes of the read's own completions that have not been requested.
    pub(super) own_line: u64,
    /// Number of trains in which the completions arrive.
    pub(super) trains: u64,
}

/// The next packet that an endpoint sends.
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

    pub(super) fn submit(&mut self, job: Job) {
        let is_read = job.transfer.operation == Operation::DmaRead;
        let queued = Queued {
            order: self.submitted,
            job,
        };
        self.submitted += 1;
        if is_read {
            self.reads.push_back(queued);
        } else {
            self.posted.push_back(queued);
        }
    }

    /// Returns whether nothing waits to be sent.
    pub(super) fn is_at_rest(&self) -> bool {
        self.posted.is_empty() && self.reads.is_empty()
    }

    /// Returns whether tags and credits suffice for this many requests at `at`.
    pub(super) fn can_ask(&self, at: Time, requests: u32) -> bool {
        self.room.are_infinite() && self.tags.are_available(at, requests, 0)
    }

    /// Takes the tags of this many requests.
    pub(super) fn ask(&mut self, at: Time, requests: u32) {
        self.tags.take(at, requests, 0);
    }

    /// Returns the tags of this many requests, whose data arrive at `at`.
    pub(super) fn answered(&mut self, at: Time, requests: u32) {
        self.tags.give_back(at, requests, 0);
    }

    pub(super) fn first_write(&self) -> Option<&Job> {
        self.posted.front().map(|queued| &queued.job)
    }

    /// Returns the bytes on the link of all writes up to the first reported one, and the number of their packets.
    pub(super) fn first_reported_write(&self, packets: &Packets) -> Option<(u64, u64)> {
        let (mut line, mut count) = (0, 0);
        let reported = |queued: &Queued| {
            let train = packets.writes(queued.job.left_bytes());
            line += train.line_bytes;
            count += u64::from(train.packets);
            queued.job.transfer.reported
        };
        self.posted.iter().any(reported).then_some((line, count))
    }

    /// Returns the traffic before the end of the first reported read that has not been requested completely.
    pub(super) fn first_reported_read(&self, packets: &Packets) -> Option<Ahead> {
        let place = self
            .reads
            .iter()
            .position(|queued| queued.job.transfer.reported)?;
        let requested = if place == 0 { self.requested } else { 0 };
        let left = self.reads[place].job.left_bytes() - requested;
        Some(Ahead {
            requests: 1 + place as u64,
            own_line: packets.all_completion_bytes(left),
            trains: packets.requests(left),
        })
    }

    /// Returns the next packet and its time, on a link that is free from `free_at` on.
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

    /// Returns when there are credits for the completions of the next read request.
    fn room_at(&self, packets: &Packets) -> Option<Time> {
        if self.room.are_infinite() {
            return Some(Time::ZERO);
        }
        let train = packets.completions(self.next_request(packets)?);
        self.room.available_at(train.packets, train.data_credits)
    }

    /// Returns the number of bytes that the next read request asks for.
    fn next_request(&self, packets: &Packets) -> Option<u64> {
        let job = &self.reads.front()?.job;
        Some(packets.first_read(job.left_bytes() - self.requested))
    }

    /// Sends packets of the first write. Returns the bytes, and the transfer if these are its last bytes.
    pub(super) fn write(&mut self, train: &Train) -> Option<(crate::BytesByCategory, Option<Job>)> {
        let job = &mut self.posted.front_mut()?.job;
        let moved = job.take(train.payload);
        let over = job.left_bytes() == 0;
        let job = if over { self.posted.pop_front() } else { None };
        Some((moved, job.map(|queued| queued.job)))
    }

    /// Sends the next read request.
    pub(super) fn request(&mut self, now: Time, packets: &Packets) -> Option<Request> {
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
        let request = Request {
            bytes,
            last: self.requested == job.left_bytes(),
            reported: job.transfer.reported,
        };
        if request.last {
            self.reads.pop_front();
            self.requested = 0;
        }
        Some(request)
    }

    /// Receives data of the first waiting read at `at`. Returns the bytes, and the transfer if these are its last bytes.
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
