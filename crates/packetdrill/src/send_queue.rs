//! Buffers of Linux's send queue, and the written bytes that share one. They are visible in three ways: by PSH, by the ends of
//! super-segments, and by the kernel memory that a socket uses (which decides whether it is writable).

use baton_wire::{SeqNr, Time};
use std::collections::VecDeque;

/// Kernel memory that one buffer takes besides its data, bytes: structure, header space and shared info.
pub(crate) const BUFFER_OVERHEAD: u32 = 1280;

/// Bytes that were written and not sent yet, in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unsent {
    len: u32,
    push: bool,
    end_of_record: bool,
}

/// Bytes that were sent as one packet and are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    end: SeqNr,
    len: u32,
    push: bool,
    /// When the packet was last sent.
    at: Time,
}

/// The next buffer to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// Bytes in the buffer.
    pub(crate) len: u32,
    /// Further written data goes into this buffer.
    pub(crate) takes_more: bool,
    /// There is no other buffer after it.
    pub(crate) is_last: bool,
}

/// Properties of the end of a run that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunEnd {
    /// The segment that ends here carries PSH.
    pub(crate) push: bool,
    /// The following data is in another buffer.
    pub(crate) boundary: bool,
}

/// The send queue of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendQueue {
    unsent: VecDeque<Unsent>,
    sent: VecDeque<Sent>,
    unsent_len: u32,
    sent_len: u32,
    /// Bytes written since PSH was last marked.
    unpushed: u32,
}

impl SendQueue {
    /// Kernel memory taken, bytes (sk_wmem_queued).
    pub(crate) fn memory(&self) -> u32 {
        let buffers = (self.unsent.len() + self.sent.len()) as u32;
        self.unsent_len + self.sent_len + buffers * BUFFER_OVERHEAD
    }

    /// Bytes written and never sent.
    pub(crate) fn unsent_len(&self) -> u32 {
        self.unsent_len
    }

    /// Bytes sent and not acknowledged.
    pub(crate) fn sent_len(&self) -> u32 {
        self.sent_len
    }

    /// Reports whether nothing is to be sent or acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.unsent_len == 0 && self.sent_len == 0
    }

    /// The next buffer to send.
    pub(crate) fn next(&self) -> Option<Next> {
        self.unsent.front().map(|first| Next {
            len: first.len,
            takes_more: !first.end_of_record,
            is_last: self.unsent.len() == 1,
        })
    }

    /// When the first unacknowledged packet was last sent.
    pub(crate) fn oldest_sent(&self) -> Option<Time> {
        self.sent.front().map(|sent| sent.at)
    }

    /// Bytes that still fit into the last buffer if buffers hold `goal`; 0 if a new one is needed.
    pub(crate) fn room_in_last(&self, goal: u32) -> u32 {
        match self.unsent.back() {
            Some(last) if !last.end_of_record => goal.saturating_sub(last.len),
            _ => 0,
        }
    }

    /// Records `len` written bytes, in the last buffer or a new one.
    pub(crate) fn append(&mut self, len: u32, new_buffer: bool) {
        match self.unsent.back_mut() {
            Some(last) if !new_buffer => last.len += len,
            _ => self.unsent.push_back(Unsent {
                len,
                push: false,
                end_of_record: false,
            }),
        }
        self.unsent_len += len;
        self.unpushed += len;
    }

    /// Ends a record: later data does not share a buffer with the present data (MSG_EOR).
    pub(crate) fn end_record(&mut self) {
        if let Some(last) = self.unsent.back_mut() {
            last.end_of_record = true;
        }
    }

    /// Marks the last buffer with PSH.
    pub(crate) fn push(&mut self) {
        if let Some(last) = self.unsent.back_mut() {
            last.push = true;
        }
        self.unpushed = 0;
    }

    /// Marks the last buffer with PSH whenever more than half of the largest window ever offered was written.
    pub(crate) fn push_if_much(&mut self, largest_window: u32) {
        if self.unpushed > largest_window / 2 {
            self.push();
        }
    }

    /// Records that the next `len` unsent bytes leave `now`, up to `end`; `joins` says that they share a packet with the bytes
    /// before them. A `partial` segment that is the last to be sent is pushed, even if more was announced (RFC 9293 3.9.1.2).
    pub(crate) fn send(
        &mut self,
        now: Time,
        len: u32,
        end: SeqNr,
        joins: bool,
        partial: bool,
    ) -> RunEnd {
        let mut rest = len;
        let mut run = RunEnd::default();
        while rest > 0 {
            let Some(first) = self.unsent.front_mut() else {
                debug_assert!(false, "what is sent was written");
                break;
            };
            let taken = rest.min(first.len);
            first.len -= taken;
            rest -= taken;
            run = RunEnd {
                push: first.len == 0 && first.push,
                boundary: first.len == 0,
            };
            if first.len == 0 {
                self.unsent.pop_front();
            }
        }
        self.unsent_len -= len - rest;
        self.sent_len += len - rest;
        run.push |= partial && self.unsent_len == 0;
        match self.sent.back_mut() {
            Some(last) if joins => {
                last.end = end;
                last.len += len;
                last.push = run.push;
            }
            _ => self.sent.push_back(Sent {
                end,
                len,
                push: run.push,
                at: now,
            }),
        }
        run
    }

    /// Records that a run is sent again `now`, and returns the properties of its end.
    pub(crate) fn sent_again(&mut self, now: Time, end: SeqNr) -> RunEnd {
        let mut holders = self.sent.iter_mut();
        let holder = holders.find(|sent| sent.end.at_or_after(end));
        let holder = holder.map(|sent| {
            sent.at = now;
            *sent
        });
        match holder {
            Some(sent) if sent.end == end => RunEnd {
                push: sent.push,
                boundary: true,
            },
            Some(_) => RunEnd::default(),
            None => RunEnd {
                push: false,
                boundary: true,
            },
        }
    }

    /// Removes the first `len` bytes, which were acknowledged.
    pub(crate) fn acknowledged(&mut self, mut len: u32) {
        self.sent_len = self.sent_len.saturating_sub(len);
        while len > 0 {
            let Some(first) = self.sent.front_mut() else {
                break;
            };
            let taken = len.min(first.len);
            first.len -= taken;
            len -= taken;
            if first.len == 0 {
                self.sent.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_share_a_buffer_up_to_the_goal() {
        let mut queue = SendQueue::default();
        assert_eq!(queue.room_in_last(4000), 0, "there is none yet");
        queue.append(1000, true);
        assert_eq!(queue.room_in_last(4000), 3000);
        queue.append(500, false);
        assert_eq!(queue.memory(), 1500 + BUFFER_OVERHEAD);
        queue.end_record();
        assert_eq!(queue.room_in_last(4000), 0, "a record ended");
    }

    #[test]
    fn push_is_set_at_the_end_of_a_buffer() {
        let mut queue = SendQueue::default();
        queue.append(3000, true);
        queue.push();
        let middle = queue.send(Time::ZERO, 1000, SeqNr(1001), false, false);
        assert_eq!(middle, RunEnd::default());
        let end = queue.send(Time::ZERO, 2000, SeqNr(3001), false, false);
        assert_eq!((end.push, end.boundary), (true, true));
        assert_eq!(
            queue.sent_again(Time::ZERO, SeqNr(1001)),
            RunEnd {
                push: false,
                boundary: true
            }
        );
        assert_eq!(queue.sent_again(Time::ZERO, SeqNr(2001)), RunEnd::default());
        assert!(queue.sent_again(Time::ZERO, SeqNr(3001)).push);
    }

    #[test]
    fn acknowledged_buffers_release_their_memory() {
        let mut queue = SendQueue::default();
        queue.append(3000, true);
        queue.send(Time::ZERO, 1000, SeqNr(1001), false, false);
        queue.send(Time::ZERO, 1000, SeqNr(2001), true, false);
        assert_eq!(queue.memory(), 3000 + 2 * BUFFER_OVERHEAD);
        queue.acknowledged(1500);
        assert_eq!(queue.memory(), 1500 + 2 * BUFFER_OVERHEAD);
        queue.acknowledged(500);
        assert_eq!(
            (queue.memory(), queue.unsent_len()),
            (1000 + BUFFER_OVERHEAD, 1000)
        );
    }
}
