//! Queue of responses to the host.

use super::stats::SessionStats;
use baton_bus::descriptor::{Opcode, Outcome, Response, Status};
use baton_bus::{
    Batching, BatchingError, BatchingPolicy, BatchingRule, Descriptor, DescriptorQueue, Urgency,
};
use baton_wire::Time;
use std::collections::VecDeque;

/// Responses of one session. Their number is bounded by the unanswered requests plus two notifications per socket, because no request is
/// taken while a response waits outside of the queue.
#[derive(Debug)]
pub(super) struct Responses {
    queue: DescriptorQueue,
    /// Whole entries for which the queue had no space.
    outside: VecDeque<Descriptor>,
    /// Whether responses that carry or announce data are sent immediately.
    data_at_once: bool,
}

impl Responses {
    pub(super) fn new(
        batching: &Batching,
        depth: u32,
        data_at_once: bool,
    ) -> Result<Self, BatchingError> {
        Ok(Self {
            queue: DescriptorQueue::new(batching, depth)?,
            outside: VecDeque::new(),
            // Adaptive batching itself bounds the delay of awaited responses.
            data_at_once: data_at_once && batching.policy == BatchingPolicy::Fixed,
        })
    }

    /// Replaces batching by the caller's own rule, which itself bounds all delays.
    pub(super) fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        self.queue.set_batching(rule);
        self.data_at_once = false;
    }

    /// Returns the queue of responses to be transferred.
    pub(super) fn queue(&self) -> &DescriptorQueue {
        &self.queue
    }

    /// Returns the number of descriptors outside of the queue.
    pub(super) fn outside(&self) -> usize {
        self.outside.len()
    }

    /// Returns the number of requests that may be taken: as many as can be answered immediately.
    pub(super) fn room(&self) -> usize {
        match self.outside.is_empty() {
            true => self.queue.room(),
            false => 0,
        }
    }

    /// Appends a response of one descriptor. `urgency` overrides the urgency of the response.
    #[inline]
    pub(super) fn push(
        &mut self,
        now: Time,
        stats: &mut SessionStats,
        response: &Response,
        urgency: Option<Urgency>,
    ) {
        let urgency = urgency.unwrap_or_else(|| self.urgency(response));
        self.push_as(now, stats, response, &[response.encode()], urgency);
    }

    /// Appends a response with its continuations, as a whole entry.
    pub(super) fn push_entry(
        &mut self,
        now: Time,
        stats: &mut SessionStats,
        response: &Response,
        entry: &[Descriptor],
    ) {
        let urgency = self.urgency(response);
        self.push_as(now, stats, response, entry, urgency);
    }

    #[inline]
    fn push_as(
        &mut self,
        now: Time,
        stats: &mut SessionStats,
        response: &Response,
        entry: &[Descriptor],
        urgency: Urgency,
    ) {
        stats.responses += 1;
        stats.by_status.count(response.status);
        if self.outside.is_empty() && self.queue.room() >= entry.len() {
            let pushed = self.queue.push(now, entry, data_bytes(response), urgency);
            debug_assert!(pushed, "there is room");
        } else {
            self.outside.extend(entry);
            // Waiting for more responses gains nothing.
            self.queue.flush();
        }
    }

    /// Returns the urgency of a response. Completions that only free something can be late; errors and data should not.
    fn urgency(&self, response: &Response) -> Urgency {
        match (response.status, response.outcome) {
            (
                Status::Ok,
                Outcome::Sent { .. } | Outcome::Done(Opcode::Close | Opcode::CacheInsert),
            )
            | (Status::Cancelled, _) => Urgency::Lazy,
            (Status::Ok, Outcome::Received(_)) if self.data_at_once => Urgency::AtOnce,
            (Status::Ok | Status::Partial | Status::EndOfStream, _) => Urgency::Awaited,
            _ => Urgency::AtOnce,
        }
    }

    /// Returns the responses to transfer next, and whether the application waits for them. Empty if none are due.
    #[inline]
    pub(super) fn next_transfer(&mut self, now: Time) -> (&[Descriptor], bool) {
        let is_awaited = self.queue.is_awaited();
        (self.queue.next_transfer(now), is_awaited)
    }

    /// Records that the link has taken `taken` of `offered` descriptors.
    #[inline]
    pub(super) fn transferred(&mut self, now: Time, taken: usize, offered: usize) {
        self.queue.transferred(taken, offered);
        while let Some(head) = self.outside.front() {
            let len = 1 + head.continuations();
            if self.queue.room() < len {
                self.queue.flush();
                break;
            }
            let (first, second) = self.outside.as_slices();
            // Entries that had to wait for space go with the next transfer.
            let pushed = if first.len() >= len {
                self.queue.push(now, &first[..len], 0, Urgency::AtOnce)
            } else {
                let entry: Vec<_> = first.iter().chain(second).take(len).copied().collect();
                self.queue.push(now, &entry, 0, Urgency::AtOnce)
            };
            debug_assert!(pushed, "there is room");
            self.outside.drain(..len);
        }
    }

    /// Returns when further responses become due. Responses that the link could not take wait only for the link.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self.queue.is_held_up() {
            true => None,
            false => self.queue.poll_timeout(),
        }
    }
}

/// Returns the number of data bytes that count towards batching. Completions of as many bytes as one transfer moves do not wait for others,
/// like SENDs of that many bytes.
fn data_bytes(response: &Response) -> u32 {
    match response.outcome {
        Outcome::Sent { len, .. } => len,
        _ => 0,
    }
}
