//! One link: two directions, each of which sends one packet, or train of packets, after another.

mod at_once;
mod bound;

use std::collections::VecDeque;

use baton_wire::{Span, Time};

use super::config::PciExpressConfig;
use super::credits::Credits;
use super::endpoint::{Endpoint, Next};
use super::rate::{self, PerByte};
use super::tlp::{Packets, Train};
use crate::interconnect::done::DoneQueue;
use crate::interconnect::job::Job;
use crate::interconnect::usage::Meter;
use crate::interconnect::{ChannelUsage, DeviceId, Operation, Piece, Transfer, Way};

/// A link between the root complex and one device, or several ports of one device.
#[derive(Clone, Debug)]
pub(super) struct Link {
    first_device: u8,
    endpoints: Box<[Endpoint]>,
    /// The last sender to the host: an endpoint, or the number of endpoints for answers to register reads.
    last_sender: usize,
    to_host: Lane,
    to_device: Lane,
    /// Register accesses of the processor, in order.
    accesses: VecDeque<Job>,
    /// Answers to register reads, in the order in which the device has them.
    answers: VecDeque<Answer>,
    /// Data for read requests, in the order in which the root complex has them.
    completions: VecDeque<Completion>,
    /// Lower bound of the time at which all completions have been sent.
    completions_until: Time,
    posted: Credits,
    non_posted: Credits,
    packets: Packets,
    packet_rate: PerByte,
    raw_rate: PerByte,
    latencies: Latencies,
    /// Lower bound of the time of the next packet.
    idle_until: Time,
}

/// One direction of a link.
#[derive(Clone, Debug)]
struct Lane {
    free_at: Time,
    meter: Meter,
}

#[derive(Clone, Debug)]
struct Completion {
    endpoint: usize,
    ready_at: Time,
    /// Bytes on the link.
    line_bytes: u64,
    /// Lower bound of the arrival. It is later if the processor uses the link before the data are sent.
    earliest: Time,
    data: Data,
}

/// Contents of completions.
#[derive(Clone, Debug)]
enum Data {
    /// The data of one request of the endpoint's first waiting read.
    Part {
        train: Train,
        /// Whether this completes the transfer.
        last: bool,
        /// Whether the completion of the transfer is reported.
        reported: bool,
    },
    /// All data of one or more reads that were requested by `requests` requests.
    Whole {
        transfer: Transfer,
        reads: u32,
        requests: u32,
    },
}

impl Completion {
    /// Returns whether this completes a reported transfer.
    fn ends_reported(&self) -> bool {
        match &self.data {
            Data::Part { last, reported, .. } => *last && *reported,
            Data::Whole { transfer, .. } => transfer.reported,
        }
    }
}

#[derive(Clone, Debug)]
struct Answer {
    ready_at: Time,
    job: Job,
}

#[derive(Clone, Copy, Debug)]
struct Latencies {
    link: Span,
    read: Span,
    write: Span,
    register_read: Span,
    credit_return: Span,
}

/// A sender to the host.
#[derive(Clone, Copy, Debug)]
enum Sender {
    Endpoint(usize, Next),
    Answer,
}

impl Link {
    /// Creates a link of the devices from `first_device` on. The meters have a row for each of `all_devices`.
    pub(super) fn new(
        config: &PciExpressConfig,
        first_device: u8,
        devices: usize,
        all_devices: usize,
    ) -> Self {
        let lane = Lane {
            free_at: Time::ZERO,
            meter: Meter::new(all_devices),
        };
        let credits = &config.credits;
        let ns = |ns: u32| Span::from_ns(ns.into());
        Self {
            first_device,
            endpoints: vec![Endpoint::new(config); devices].into(),
            last_sender: devices,
            to_host: lane.clone(),
            to_device: lane,
            accesses: VecDeque::new(),
            answers: VecDeque::new(),
            completions: VecDeque::new(),
            completions_until: Time::ZERO,
            posted: Credits::new(credits.posted_headers, credits.posted_data),
            non_posted: Credits::new(non_posted_headers(config, devices), 0),
            packets: Packets::new(config),
            packet_rate: rate::packets(config),
            raw_rate: rate::raw(config),
            latencies: Latencies {
                link: ns(config.link_latency_ns),
                read: ns(config.read_latency_ns),
                write: ns(config.write_latency_ns),
                register_read: ns(config.register_read_latency_ns),
                credit_return: ns(config.credit_return_ns),
            },
            idle_until: Time::NEVER,
        }
    }

    pub(super) fn submit(&mut self, now: Time, transfer: &Transfer, done: &mut DoneQueue) {
        if self.send_at_once(now, transfer, done) {
            return;
        }
        self.idle_until = now;
        if transfer.reported {
            done.changed();
        }
        let job = Job::new(now, *transfer);
        if job.transfer.operation.is_register_access() {
            self.accesses.push_back(job);
        } else {
            let endpoint = job.transfer.device.index() - usize::from(self.first_device);
            self.endpoints[endpoint].submit(job);
        }
    }

    /// Queues reads of one device.
    pub(super) fn submit_reads(
        &mut self,
        now: Time,
        (device, tag): (DeviceId, u64),
        pieces: &[Piece],
        done: &mut DoneQueue,
    ) {
        if self.is_way_free() {
            let at = self.to_host.free_at.max(now);
            let reads = self.packets.reads(pieces);
            if self.can_send_reads(at, &reads) {
                let all = Piece::read_all(pieces, device, tag);
                self.send_reads(at, &all, reads, done);
                return;
            }
        }
        for (place, piece) in (1..).zip(pieces) {
            let last = place == pieces.len();
            self.submit(now, &piece.read_by(device, tag, last), done);
        }
    }

    /// Queues data that the root complex will have at `ready_at`. Returns a lower bound of their arrival.
    fn expect_completions(
        &mut self,
        endpoint: usize,
        ready_at: Time,
        line_bytes: u64,
        data: Data,
    ) -> Time {
        let from = ready_at
            .max(self.completions_until)
            .max(self.to_device.free_at);
        self.completions_until = from + self.packet_rate.span(line_bytes);
        let earliest = self.completions_until + self.latencies.link;
        self.completions.push_back(Completion {
            endpoint,
            ready_at,
            line_bytes,
            earliest,
            data,
        });
        earliest
    }

    /// Sends posted packets to the host, for which there must be credits. Returns the end.
    fn send_posted(&mut self, at: Time, train: &Train) -> Time {
        let end = at + self.packet_rate.span(train.line_bytes);
        self.to_host.free_at = end;
        self.posted.take(at, train.packets, train.data_credits);
        let returned_at = end + self.latencies.credit_return;
        self.posted
            .give_back(returned_at, train.packets, train.data_credits);
        end
    }

    /// Computes what is sent before `now`. Decisions at `now` itself wait for the next call, so that they do not depend on the order of
    /// calls at the same time.
    #[inline]
    pub(super) fn advance(&mut self, now: Time, done: &mut DoneQueue) {
        if self.idle_until < now {
            self.send_all_before(now, done);
        }
    }

    fn send_all_before(&mut self, now: Time, done: &mut DoneQueue) {
        let mut to_host = self.next_to_host();
        loop {
            let to_device = self.next_to_device();
            match to_host {
                Some((at, sender)) if at < now && at <= to_device => {
                    self.send_to_host(at, sender, done);
                    to_host = self.next_to_host();
                }
                _ if to_device < now => {
                    self.send_to_device(to_device, done);
                    if !self.is_sole_request(to_host) {
                        to_host = self.next_to_host();
                    }
                }
                _ => {
                    let to_host = to_host.map_or(Time::NEVER, |(at, _)| at);
                    self.idle_until = to_host.min(to_device);
                    return;
                }
            }
        }
    }

    /// Returns a lower bound of the time of the next packet.
    pub(super) fn idle_until(&self) -> Time {
        self.idle_until
    }

    /// Returns whether nothing in the other direction can change what is sent to the host next: the only device sends a read request, and
    /// has a tag for it.
    fn is_sole_request(&self, next: Option<(Time, Sender)>) -> bool {
        self.endpoints.len() == 1
            && self.answers.is_empty()
            && matches!(next, Some((_, Sender::Endpoint(_, Next::Request))))
    }

    fn device(&self, endpoint: usize) -> DeviceId {
        DeviceId(self.first_device + endpoint as u8)
    }

    /// Returns the next packet to the host and its time, or `None` if nothing waits, as is usual.
    #[inline]
    fn next_to_host(&self) -> Option<(Time, Sender)> {
        let at_rest = self.answers.is_empty() && self.endpoints.iter().all(Endpoint::is_at_rest);
        if at_rest { None } else { self.next_sender() }
    }

    /// Selects, in round-robin order, one of the senders that could send to the host at the earliest time.
    #[inline(never)]
    fn next_sender(&self) -> Option<(Time, Sender)> {
        let senders = self.endpoints.len() + 1;
        let mut first: Option<(Time, Sender)> = None;
        let mut place = self.last_sender;
        for _ in 0..senders {
            place = if place + 1 == senders { 0 } else { place + 1 };
            // Of equal senders the first one wins. All times are at least that at which the lane is free.
            if let Some(sender) = self.sender(place)
                && first.is_none_or(|first| sender.0 < first.0)
            {
                first = Some(sender);
            }
        }
        first
    }

    fn sender(&self, place: usize) -> Option<(Time, Sender)> {
        let free_at = self.to_host.free_at;
        let Some(endpoint) = self.endpoints.get(place) else {
            return self.answer_at().map(|at| (at.max(free_at), Sender::Answer));
        };
        let (at, next) = endpoint.next(free_at, &self.packets, &self.posted, &self.non_posted)?;
        Some((at, Sender::Endpoint(place, next)))
    }

    /// Returns when the first answer to a register read can be sent: never before writes that the device made earlier (PCIe 2.4.1).
    fn answer_at(&self) -> Option<Time> {
        let answer = self.answers.front()?;
        let endpoint = answer.job.transfer.device.index() - usize::from(self.first_device);
        let earlier = self.endpoints[endpoint]
            .first_write()
            .is_some_and(|write| write.arrival <= answer.ready_at);
        (!earlier).then_some(answer.ready_at)
    }

    /// Returns when the next packet to a device is sent; [`Time::NEVER`] if none waits.
    fn next_to_device(&self) -> Time {
        let access = self.accesses.front().map_or(Time::NEVER, |job| job.arrival);
        let data = self
            .completions
            .front()
            .map_or(Time::NEVER, |data| data.ready_at);
        access.min(data).max(self.to_device.free_at)
    }

    fn send_to_host(&mut self, at: Time, sender: Sender, done: &mut DoneQueue) {
        match sender {
            Sender::Endpoint(endpoint, Next::Write) => {
                self.last_sender = endpoint;
                self.send_write(at, endpoint, done);
            }
            Sender::Endpoint(endpoint, Next::Request) => {
                self.last_sender = endpoint;
                self.send_request(at, endpoint);
            }
            Sender::Answer => {
                self.last_sender = self.endpoints.len();
                self.send_answer(at, done);
            }
        }
    }

    fn send_write(&mut self, at: Time, endpoint: usize, done: &mut DoneQueue) {
        let Some(left) = self.endpoints[endpoint].first_write().map(Job::left_bytes) else {
            return;
        };
        // With one device, nothing can come between the packets of a transfer, so they are sent together.
        let all = self.packets.writes(left);
        let have_credits = |credits: &Credits| {
            credits
                .available_at(all.packets, all.data_credits)
                .is_some_and(|available_at| available_at <= at)
        };
        let train = if self.endpoints.len() == 1 && have_credits(&self.posted) {
            all
        } else {
            self.packets.first_write(left)
        };
        let end = self.send_posted(at, &train);
        let device = self.device(endpoint);
        if let Some((moved, job)) = self.endpoints[endpoint].write(&train) {
            self.to_host.meter.moved(device, &moved, at, end);
            if let Some(job) = job {
                let in_memory = end + self.latencies.link + self.latencies.write;
                complete(&mut self.to_host.meter, &job, in_memory, done);
            }
        }
    }

    fn send_request(&mut self, at: Time, endpoint: usize) {
        let Some(request) = self.endpoints[endpoint].request(at, &self.packets) else {
            return;
        };
        let train = self.packets.completions(request.bytes);
        let end = at + self.packet_rate.span(self.packets.request_bytes());
        self.to_host.free_at = end;
        let device = self.device(endpoint);
        self.to_host.meter.occupied(device, at, end);
        self.non_posted.take(at, 1, 0);
        self.non_posted
            .give_back(end + self.latencies.credit_return, 1, 0);
        let ready_at = end + self.latencies.link + self.latencies.read;
        let data = Data::Part {
            train,
            last: request.last,
            reported: request.reported,
        };
        self.expect_completions(endpoint, ready_at, train.line_bytes, data);
    }

    fn send_answer(&mut self, at: Time, done: &mut DoneQueue) {
        let Some(Answer { mut job, .. }) = self.answers.pop_front() else {
            return;
        };
        let train = self.packets.completions(job.left_bytes());
        let end = at + self.packet_rate.span(train.line_bytes);
        self.to_host.free_at = end;
        let moved = job.take(train.payload);
        self.to_host
            .meter
            .moved(job.transfer.device, &moved, at, end);
        let meter = &mut self.to_host.meter;
        complete(meter, &job, end + self.latencies.link, done);
    }

    fn send_to_device(&mut self, at: Time, done: &mut DoneQueue) {
        let access_first = match (self.accesses.front(), self.completions.front()) {
            (Some(access), Some(data)) => access.arrival <= data.ready_at,
            (access, _) => access.is_some(),
        };
        if access_first {
            self.send_access(at, done);
        } else {
            self.send_completions(at, done);
        }
    }

    fn send_access(&mut self, at: Time, done: &mut DoneQueue) {
        let Some(job) = self.accesses.pop_front() else {
            return;
        };
        let lane = &mut self.to_device;
        if job.transfer.operation == Operation::RegisterRead {
            let end = at + self.packet_rate.span(self.packets.request_bytes());
            lane.free_at = end;
            lane.meter.occupied(job.transfer.device, at, end);
            let ready_at = end + self.latencies.link + self.latencies.register_read;
            self.answers.push_back(Answer { ready_at, job });
            return;
        }
        self.send_register_write(at, &job.transfer, done);
    }

    fn send_register_write(&mut self, at: Time, transfer: &Transfer, done: &mut DoneQueue) {
        let lane = &mut self.to_device;
        let train = self.packets.writes(transfer.bytes.total());
        let end = at + self.packet_rate.span(train.line_bytes);
        lane.free_at = end;
        lane.meter.moved(transfer.device, &transfer.bytes, at, end);
        lane.meter.done(transfer.device, transfer.operation, 1);
        done.push(transfer, end + self.latencies.link);
    }

    /// Sends the completions of one read request, or of a whole read: the root complex has all of its data.
    fn send_completions(&mut self, at: Time, done: &mut DoneQueue) {
        let Some(data) = self.completions.front() else {
            return;
        };
        let end = at + self.packet_rate.span(data.line_bytes);
        self.to_device.free_at = end;
        let arrival = end + self.latencies.link;
        let endpoint = &mut self.endpoints[data.endpoint];
        let meter = &mut self.to_device.meter;
        match &data.data {
            Data::Part { train, last, .. } => {
                let device = DeviceId(self.first_device + data.endpoint as u8);
                let Some((moved, job)) = endpoint.receive(arrival, train, *last) else {
                    return;
                };
                meter.moved(device, &moved, at, end);
                if let Some(job) = job {
                    complete(meter, &job, arrival, done);
                }
            }
            Data::Whole {
                transfer,
                reads,
                requests,
            } => {
                endpoint.answered(arrival, *requests);
                meter.moved(transfer.device, &transfer.bytes, at, end);
                meter.done(transfer.device, Operation::DmaRead, *reads);
                done.push(transfer, arrival);
            }
        }
        self.completions.pop_front();
    }

    /// Returns the usage of both directions.
    pub(super) fn usage(&self, now: Time, link: u8) -> [ChannelUsage; 2] {
        let raw = |bytes| self.raw_rate.span(bytes);
        let (down, up) = (&self.to_device.meter, &self.to_host.meter);
        [
            down.channel(now, link, Way::ToDevice, raw),
            up.channel(now, link, Way::ToHost, raw),
        ]
    }

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.to_host.meter.restart(now);
        self.to_device.meter.restart(now);
    }
}

/// Returns the credits that the root complex grants for read requests, or 0 for infinite if tags always run out first: if it grants at
/// least as many, and the credit of a request always returns before its tag.
fn non_posted_headers(config: &PciExpressConfig, devices: usize) -> u32 {
    let back_first = config.credit_return_ns <= 2 * config.link_latency_ns + config.read_latency_ns;
    let enough =
        u64::from(config.tags) * devices as u64 <= config.credits.non_posted_headers.into();
    if back_first && enough {
        0
    } else {
        config.credits.non_posted_headers
    }
}

fn complete(meter: &mut Meter, job: &Job, at: Time, done: &mut DoneQueue) {
    meter.done(job.transfer.device, job.transfer.operation, 1);
    done.push(&job.transfer, at);
}
