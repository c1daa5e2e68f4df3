//! Reports to senders with MSG_ZEROCOPY that the kernel has released their buffers. The data is copied nevertheless.
//!
//! Calls are numbered; when all bytes of a call are acknowledged, its number is reported through the error queue, with
//! consecutive numbers in one report (Linux, networking/msg_zerocopy).

use std::collections::VecDeque;

/// Report that calls `first` to `last` are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The first call.
    pub first: u32,
    /// The last call.
    pub last: u32,
    /// The data was copied, because it was sent through an interface that copies. Otherwise the call's buffers were released unsent.
    pub copied: bool,
}

/// Calls of one socket and the reports about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZeroCopy {
    next: u32,
    /// Calls whose bytes are not all acknowledged: number and bytes up to their end, counted from the oldest
    /// unacknowledged byte.
    pending: VecDeque<(u32, u64)>,
    reports: VecDeque<Completion>,
}

impl ZeroCopy {
    /// Adds a call; `queued` bytes, including its own, are unacknowledged now.
    pub(crate) fn written(&mut self, queued: u64) {
        self.pending.push_back((self.next, queued));
        self.next = self.next.wrapping_add(1);
    }

    /// Ends the connection, with `sent` bytes sent and unacknowledged. Returns true if a call is complete.
    pub(crate) fn ended(&mut self, sent: u64) -> bool {
        self.done_with(u64::MAX, sent) > 0
    }

    /// Records that the peer acknowledged `len` bytes. Returns true if a call is complete.
    pub(crate) fn acknowledged(&mut self, len: u64) -> bool {
        self.done_with(len, u64::MAX) > 0
    }

    /// Completes calls whose bytes are acknowledged, and returns their number. Calls that start within the first `sent` bytes were sent.
    fn done_with(&mut self, len: u64, sent: u64) -> usize {
        let starts: Vec<u64> = std::iter::once(0)
            .chain(self.pending.iter().map(|(_, end)| *end))
            .collect();
        for (_, end) in &mut self.pending {
            *end = end.saturating_sub(len);
        }
        let done = self.pending.iter().take_while(|(_, end)| *end == 0).count();
        for ((number, _), start) in self.pending.drain(..done).zip(starts) {
            let copied = start < sent;
            match self.reports.back_mut() {
                Some(report)
                    if report.last.wrapping_add(1) == number && report.copied == copied =>
                {
                    report.last = number;
                }
                _ => self.reports.push_back(Completion {
                    first: number,
                    last: number,
                    copied,
                }),
            }
        }
        done
    }

    /// Reports whether a report waits to be read.
    pub(crate) fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Takes the oldest report.
    pub(crate) fn take_report(&mut self) -> Option<Completion> {
        self.reports.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_reported_in_runs_when_their_bytes_are_acknowledged() {
        let mut calls = ZeroCopy::default();
        calls.written(1000);
        calls.written(3000);
        calls.written(3500);
        assert!(!calls.acknowledged(999));
        assert!(calls.acknowledged(2001));
        let copied = |first, last| Completion {
            first,
            last,
            copied: true,
        };
        assert_eq!(calls.take_report(), Some(copied(0, 1)));
        assert!(!calls.has_report());
        assert!(calls.acknowledged(500));
        assert_eq!(calls.take_report(), Some(copied(2, 2)));
    }

    #[test]
    fn unsent_data_was_not_copied() {
        let mut calls = ZeroCopy::default();
        calls.written(1000);
        calls.written(3000);
        assert!(calls.ended(1000));
        let reports = [calls.take_report(), calls.take_report()];
        assert_eq!(
            reports.map(|it| it.map(|it| it.copied)),
            [Some(true), Some(false)]
        );
    }
}
