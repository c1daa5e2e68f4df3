//! The invariants of the host's half.

use super::OsLayer;
use super::socket::{Operation, Phase, Socket};
use baton_bus::descriptor::FilePlace;
use baton_bus::link::Inline;

impl<P: Inline> OsLayer<P> {
    /// Asserts the invariants.
    pub fn check(&self) {
        let is_free = |number: u32| {
            let entry = self.sockets.get(number as usize);
            entry.is_none_or(|entry| entry.phase == Phase::Free)
        };
        self.numbers.check(is_free);
        let mut found = Found::default();
        for (number, entry) in (0..).zip(&self.sockets) {
            self.check_socket(number, entry);
            self.count(entry, &mut found);
        }
        let (of_cache, inserts) = self.check_cache();
        found.requests += of_cache;
        found.placed += inserts;
        found.releasing += inserts;
        assert_eq!(found.requests, self.requests.len(), "requests are not lost");
        assert_eq!(found.pieces, self.pieces.len(), "data is not lost");
        assert_eq!(
            (found.placed, found.posted, found.pledged, found.in_use),
            (self.placed, self.posted, self.pledged, self.in_use)
        );
        assert_eq!(found.releasing, self.releasing);
        assert_eq!(
            found.carrying, self.carrying,
            "buffers with states are counted"
        );
        for &number in self.carried.keys() {
            let entry = self.socket(number);
            let is_moving = matches!(entry.phase, Phase::Importing | Phase::Exported);
            assert!(is_moving || entry.exporting, "a state belongs to somebody");
        }
        self.check_queues();
        self.check_listeners(found.reserved);
    }

    fn check_socket(&self, number: u32, entry: &Socket) {
        for chain in [&entry.sends, &entry.receives, &entry.control] {
            self.requests.check(chain);
            for tag in self.requests.numbers(chain) {
                let request = self.requests.get(tag);
                assert!(request.is_some_and(|request| request.socket == number));
            }
        }
        let (most_sends, most_receives) = match entry.phase {
            Phase::Packets => (self.config.packet_sends(), self.config.packet_buffers),
            _ => (self.most_sends, self.config.receive_buffers),
        };
        if entry.phase != Phase::Closing {
            assert!(entry.sends.len() <= most_sends);
            assert!(entry.receives.len() <= most_receives);
        }
        assert_eq!(entry.pledged, entry.is_owed_a_buffer());
        let len = |chain| -> usize {
            let pieces = self.pieces.numbers(chain);
            pieces
                .filter_map(|node| self.pieces.get(node))
                .map(P::len)
                .sum()
        };
        assert_eq!(len(&entry.held), entry.held_len as usize);
        self.check_sequence(entry);
        let sends = self.requests.iter(&entry.sends);
        let lent = sends.map(|request| lent_bytes(request.operation));
        assert_eq!(lent.sum::<u32>(), entry.lent);
        assert_eq!(len(&entry.received), entry.received_len);
        assert!(entry.held_len <= self.config.batching.max_transfer_bytes);
        if entry.phase == Phase::Free {
            assert_eq!(entry.operation_of(), 0);
            assert!(entry.intents.is_empty() && !entry.readable && !entry.writable);
        }
        if entry.cork_deadline.is_some() {
            assert!(!entry.held.is_empty(), "a cork holds something back");
        }
    }

    /// Asserts that SENDs and held data are numbered in order, up to the end of the socket's data.
    fn check_sequence(&self, entry: &Socket) {
        let mut at = None;
        for request in self.requests.iter(&entry.sends) {
            let Operation::Send { len, end, .. } = request.operation else {
                continue;
            };
            assert!(at.is_none_or(|before| (end - len).at_or_after(before)));
            at = Some(end);
        }
        let held_from = entry.given - entry.held_len;
        assert!(at.is_none_or(|before| held_from.at_or_after(before)));
    }

    fn count(&self, entry: &Socket, found: &mut Found) {
        found.in_use += usize::from(entry.phase != Phase::Free);
        found.reserved += usize::from(entry.phase == Phase::Reserved);
        found.pledged += usize::from(entry.pledged);
        found.posted += entry.receives.len() as usize;
        found.requests += entry.operation_of();
        found.pieces += (entry.held.len() + entry.received.len()) as usize;
        for chain in [&entry.sends, &entry.control] {
            let operation = self.requests.iter(chain).map(|request| request.operation);
            for operation in operation {
                found.releasing += usize::from(operation.is_releasing());
                let is_carrying = matches!(
                    operation,
                    Operation::Import { .. } | Operation::Export { .. }
                );
                found.carrying += usize::from(is_carrying);
            }
        }
        found.placed += self
            .requests
            .iter(&entry.sends)
            .chain(self.requests.iter(&entry.control))
            .filter(|request| {
                let operation = request.operation;
                lent_bytes(operation) == 0
                    && matches!(
                        operation,
                        Operation::Send {
                            address: Some(_),
                            ..
                        } | Operation::Forward { .. }
                    )
            })
            .count();
    }

    fn check_queues(&self) {
        for (number, entry) in (0..).zip(&self.sockets) {
            let times = |queue: &std::collections::VecDeque<u32>| {
                queue.iter().filter(|&&other| other == number).count()
            };
            assert_eq!(times(&self.ready), usize::from(entry.queued.ready));
            assert_eq!(
                times(&self.submitting),
                usize::from(entry.queued.submitting)
            );
            assert_eq!(times(&self.waiting), usize::from(entry.queued.waiting));
            assert_eq!(times(&self.fetching), usize::from(entry.queued.fetching));
            assert!(self.config.reports_unread || !entry.on_demand);
            assert_eq!(times(&self.done_with), usize::from(entry.queued.done_with));
            assert!(entry.queued.ready || !(entry.readable || entry.writable));
            if let Some(deadline) = entry.cork_deadline {
                assert!(self.corks.iter().any(|cork| cork == (deadline, number)));
            }
        }
        assert!(self.opening.iter().all(|&number| {
            self.socket(number).phase == Phase::Opening && !self.socket(number).pledged
        }));
    }

    fn check_listeners(&self, reserved: usize) {
        let mut expected = 0;
        for listener in &self.listeners {
            assert_eq!(self.socket(listener.number).phase, Phase::Listening);
            expected += listener.reserved;
            for &number in &listener.untaken {
                let entry = self.socket(number);
                assert!(entry.phase == Phase::Open && entry.untaken);
            }
        }
        // ACCEPTs of a closed listener are answered later.
        assert!(reserved >= expected);
    }
}

/// Returns how many bytes in a file a request sends.
fn lent_bytes(operation: Operation) -> u32 {
    match operation {
        Operation::Send {
            address: Some(address),
            len,
            ..
        } if FilePlace::at(address).is_some() => len,
        _ => 0,
    }
}

/// Counts collected from the sockets.
#[derive(Default)]
struct Found {
    in_use: usize,
    reserved: usize,
    pledged: usize,
    placed: usize,
    releasing: usize,
    carrying: usize,
    posted: usize,
    requests: usize,
    pieces: usize,
}
