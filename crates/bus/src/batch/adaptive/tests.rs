use super::budget::SHARE;
use super::*;
use crate::{Batcher, Batching, BatchingPolicy};
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn us(us: u64) -> Span {
    Span::from_us(us)
}

/// A queue whose owner is always on time, with statistics of its entries.
struct Queue {
    batcher: Batcher,
    now: Time,
    waiting: Vec<(Time, Urgency)>,
    /// Sockets of the awaited entries, and the current step of their requests.
    held_up: Vec<(u32, usize)>,
    transfers: u64,
    gone: u64,
    /// Total waiting time of awaited entries.
    awaited: Span,
    longest_lazy: Span,
}

impl Queue {
    fn new() -> Self {
        let config = Batching {
            policy: BatchingPolicy::Adaptive,
            ..Batching::default()
        };
        Self {
            batcher: Batcher::new(&config, 128, 32).unwrap(),
            now: Time::ZERO,
            waiting: Vec::new(),
            held_up: Vec::new(),
            transfers: 0,
            gone: 0,
            awaited: Span::ZERO,
            longest_lazy: Span::ZERO,
        }
    }

    /// Transfers what is due up to `until`. Stops after the first transfer if `once`.
    fn advance(&mut self, until: Time, once: bool) -> bool {
        while let Some(deadline) = self.batcher.deadline().filter(|&due| due <= until) {
            self.now = self.now.max(deadline);
            self.transfer();
            if once {
                return true;
            }
        }
        self.now = self.now.max(until);
        false
    }

    fn transfer(&mut self) {
        if !self.batcher.is_due(self.now) {
            return;
        }
        self.batcher.taken(self.now);
        self.transfers += 1;
        for (since, urgency) in self.waiting.drain(..) {
            let wait = self.now - since;
            self.gone += 1;
            match urgency {
                Urgency::Lazy => self.longest_lazy = self.longest_lazy.max(wait),
                Urgency::Awaited => self.awaited += wait,
                Urgency::AtOnce => assert_eq!(wait, Span::ZERO),
            }
        }
    }

    /// Queues an entry as a piece of work of its own.
    fn push(&mut self, at: Time, flow: u32, urgency: Urgency) {
        self.advance(at, false);
        self.add(flow, urgency);
        self.transfer();
    }

    /// Queues an entry within a piece of work.
    fn add(&mut self, flow: u32, urgency: Urgency) {
        self.batcher.queued(self.now, flow, 0, urgency);
        self.waiting.push((self.now, urgency));
    }
}

/// Entries that an adapter queues for one request of a web server: microseconds after the connection was established, and urgency.
const REQUEST: [(u64, Urgency); 5] = [
    (0, Urgency::Awaited),
    (100, Urgency::Awaited),
    (150, Urgency::Lazy),
    (151, Urgency::Lazy),
    (400, Urgency::Lazy),
];

/// Simulates clients that each connect again `pause_us` after their connection was closed. An awaited entry holds up its connection until
/// the entry is transferred. Returns the number of transfers per request and the mean wait of a request.
fn serve(queue: &mut Queue, clients: u32, pause_us: u64, requests: u32) -> (f64, Span) {
    let before = (queue.transfers, queue.awaited);
    let mut steps: BinaryHeap<_> = (0..clients)
        .map(|client| {
            let start = queue.now + us(u64::from(client) * 500 / u64::from(clients));
            Reverse((start, client, 0))
        })
        .collect();
    let mut begun = clients;
    loop {
        let next = steps.peek().map(|Reverse((at, ..))| *at);
        // Entries of the same moment belong to one piece of work; the queue is polled when all of it is done.
        if next != Some(queue.now) && !queue.waiting.is_empty() {
            queue.transfer();
            schedule_next(queue, &mut steps);
        }
        let next = steps.peek().map(|Reverse((at, ..))| *at);
        let is_done = next != Some(queue.now);
        if is_done && queue.advance(next.unwrap_or(queue.now + LONGEST_WAIT), true) {
            schedule_next(queue, &mut steps);
            continue;
        }
        let Some(Reverse((at, socket, step))) = steps.pop() else {
            break;
        };
        let urgency = REQUEST[step].1;
        queue.now = at;
        queue.add(socket, urgency);
        if step + 1 == REQUEST.len() {
            if begun < requests {
                steps.push(Reverse((at + us(pause_us), begun, 0)));
                begun += 1;
            }
        } else if urgency == Urgency::Lazy {
            steps.push(Reverse((at + pause_before(step + 1), socket, step + 1)));
        } else {
            queue.held_up.push((socket, step));
        }
    }
    let transfers = (queue.transfers - before.0) as f64 / f64::from(requests);
    let wait = Span::from_ps(queue.awaited.as_ps() - before.1.as_ps());
    (transfers, wait / u64::from(requests))
}

type Steps = BinaryHeap<Reverse<(Time, u32, usize)>>;

/// Lets the connections of transferred entries continue.
fn schedule_next(queue: &mut Queue, steps: &mut Steps) {
    if queue.waiting.is_empty() {
        let now = queue.now;
        let held_up = queue.held_up.drain(..);
        steps.extend(
            held_up.map(|(socket, step)| Reverse((now + pause_before(step + 1), socket, step + 1))),
        );
    }
}

fn pause_before(step: usize) -> Span {
    us(REQUEST[step].0 - REQUEST[step - 1].0)
}

/// Returns the time that waits may add to a response, which takes 400 us.
fn share_of_a_response() -> Span {
    us(400) / SHARE
}

#[test]
fn one_connection_has_its_completions_carried_by_the_next_accept() {
    let mut queue = Queue::new();
    serve(&mut queue, 1, 100, 50);
    let (transfers, wait) = serve(&mut queue, 1, 100, 1_000);
    assert!((1.99..2.01).contains(&transfers), "{transfers}");
    // Nothing arrives while an entry waits, so entries seldom wait.
    assert!(wait <= share_of_a_response() / 2, "{wait:?}");
    assert!(queue.longest_lazy <= us(2_000));
}

#[test]
fn several_connections_share_transfers() {
    let mut queue = Queue::new();
    let (transfers, wait) = serve(&mut queue, 5, 100, 1_000);
    assert!(transfers < 2.0, "{transfers}");
    assert!(wait <= share_of_a_response(), "{wait:?}");
}

#[test]
fn batches_grow_with_the_load_and_response_times_do_not() {
    let mut last = 2.0;
    for clients in [20, 100, 500] {
        let mut queue = Queue::new();
        let (transfers, wait) = serve(&mut queue, clients, 100, 20_000);
        assert!(transfers < last, "{clients} clients: {transfers}");
        assert!(wait <= share_of_a_response(), "{clients} clients: {wait:?}");
        last = transfers;
    }
    assert!(last < 0.35, "{last}");
}

#[test]
fn the_batch_level_follows_the_load_up_and_down() {
    let mut queue = Queue::new();
    let high = |queue: &mut Queue| serve(queue, 200, 100, 10_000).0;
    let first = high(&mut queue);
    let (low, wait) = serve(&mut queue, 1, 5_000, 20);
    assert!(low <= 4.0 && wait <= us(10), "{low} {wait:?}");
    let second = high(&mut queue);
    assert!(first < 0.25 && second < 0.25, "{first} {second}");
}

#[test]
fn a_lone_awaited_entry_does_not_wait_at_low_load() {
    let mut queue = Queue::new();
    for second in 0..100 {
        let at = Time::ZERO + Span::from_secs(second);
        queue.push(at, second as u32, Urgency::Awaited);
        queue.push(at + us(50), second as u32, Urgency::Lazy);
    }
    assert_eq!(queue.awaited, Span::ZERO);
}

/// The other side has eight buffers and continues 20 us after it gets completions.
#[test]
fn a_stalled_other_side_is_noticed() {
    let mut queue = Queue::new();
    let rounds = 2_000;
    for _ in 0..rounds {
        let at = queue.now + us(20);
        for n in 0..8 {
            queue.push(at + us(n), 1, Urgency::Lazy);
        }
        while !queue.waiting.is_empty() {
            queue.advance(queue.now + LONGEST_WAIT, true);
        }
    }
    let round = Span::from_ps(queue.now.as_ps() / rounds);
    assert!(round < us(60), "{round:?}, of which 27 us are work");
}

/// Entries arrive regularly, a little later than the longest wait, which is not a stall.
#[test]
fn an_arrival_just_after_the_longest_wait_is_not_a_stall() {
    let mut queue = Queue::new();
    let rounds = 1_000;
    for round in 0..rounds {
        let at = Time::ZERO + (LONGEST_WAIT + us(1_000)) * round;
        queue.push(at, 1, Urgency::Lazy);
        queue.push(at + us(500), 1, Urgency::Lazy);
    }
    queue.advance(queue.now + LONGEST_WAIT, false);
    let transfers = queue.transfers as f64 / rounds as f64;
    assert!(transfers < 1.05, "{transfers}");
}

#[test]
fn half_a_ring_never_waits() {
    let mut queue = Queue::new();
    for _ in 0..64 {
        assert_eq!(queue.transfers, 0);
        queue.push(Time::ZERO, 1, Urgency::Lazy);
    }
    assert_eq!((queue.transfers, queue.gone), (1, 64));
}

fn urgencies() -> impl Strategy<Value = Urgency> {
    prop::sample::select(vec![Urgency::Lazy, Urgency::Awaited, Urgency::AtOnce])
}

proptest! {
    /// For any sequence, no entry is lost, none waits longer than the longest wait, and the total wait of awaited entries does not exceed
    /// their share of the time that work took according to completions.
    #[test]
    fn waits_are_bounded(steps in prop::collection::vec((0_u64..3_000, 0_u32..64, urgencies()), 1..400)) {
        let mut queue = Queue::new();
        let mut last_entries = FxHashMap::default();
        let (mut work, mut pushed) = (Span::ZERO, 0);
        for (gap_us, flow, urgency) in steps {
            let at = queue.now + us(gap_us);
            queue.push(at, flow, urgency);
            pushed += 1;
            let before = last_entries.insert(flow, at).unwrap_or(at);
            if urgency == Urgency::Lazy {
                work += at - before;
            }
            prop_assert_eq!(queue.gone + queue.waiting.len() as u64, pushed);
            prop_assert!(queue.awaited <= work / SHARE);
        }
        queue.advance(queue.now + LONGEST_WAIT, false);
        prop_assert_eq!(queue.gone, pushed);
        prop_assert!(queue.longest_lazy <= LONGEST_WAIT);
    }
}
