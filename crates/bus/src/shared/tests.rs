use super::memory::{SharedRing, Side};
use super::testing::{OwnMemory, inline_request, request, response};
use super::{Attention, End, Put};
use crate::descriptor::{Descriptor, MOST_INLINE_BYTES, Malformed, whole_entries};
use crate::link::Violation;
use core::sync::atomic::{AtomicU32, Ordering};
use proptest::prelude::*;
use std::collections::VecDeque;

fn all_of(end: &mut End<&OwnMemory>) -> Vec<Descriptor> {
    let mut got = Vec::new();
    let _ = end.get(usize::MAX, &mut got).expect("no violation");
    got
}

#[test]
fn both_directions_carry_entries_in_order() {
    let memory = OwnMemory::new(4);
    let (mut host, mut adapter) = (
        End::new(&memory, Side::Host),
        End::new(&memory, Side::Adapter),
    );
    for round in 0..10 {
        let requests = [request(round), request(round + 1), request(round + 2)];
        assert_eq!(
            host.put(&requests),
            Ok(Put {
                taken: 3,
                ring: false
            })
        );
        let responses = [response(round)];
        assert_eq!(adapter.put(&responses).expect("no violation").taken, 1);
        assert_eq!(all_of(&mut adapter), requests);
        assert_eq!(all_of(&mut host), responses);
    }
}

#[test]
fn entries_are_put_and_got_whole() {
    let memory = OwnMemory::new(8);
    let (mut host, mut adapter) = (
        End::new(&memory, Side::Host),
        End::new(&memory, Side::Adapter),
    );
    // Three entries of one, three and five descriptors, the last of which does not fit.
    let entries = [
        vec![request(1)],
        inline_request(2, 16 + 64),
        inline_request(3, 16 + 128),
    ]
    .concat();
    assert_eq!(entries.len(), 9);
    assert_eq!(host.put(&entries).expect("no violation").taken, 4);
    let mut got = Vec::new();
    assert!(!adapter.get(2, &mut got).expect("no violation"));
    assert_eq!(got, entries[..1]);
    assert!(!adapter.get(2, &mut got).expect("no violation"));
    assert_eq!(got, entries[..4], "a long entry comes alone and whole");
    assert_eq!(host.put(&entries[4..]).expect("no violation").taken, 5);
    assert_eq!(all_of(&mut adapter), entries[4..]);
}

#[test]
fn a_side_that_can_take_nothing_is_woken_only_by_new_space() {
    let memory = OwnMemory::new(2);
    let (mut host, mut adapter) = (
        End::new(&memory, Side::Host),
        End::new(&memory, Side::Adapter),
    );
    let put = adapter.put(&[request(1), request(2), request(3)]);
    assert_eq!(put.expect("no violation").taken, 2);
    let put = host.put(&[request(4)]).expect("no violation");
    assert!(!put.ring, "it is awake");
    assert_eq!(adapter.prepare_to_sleep(), Ok(false), "something has come");
    assert_eq!(adapter.prepare_to_sleep_for_room(), Ok(true));
    let put = host.put(&[request(5)]).expect("no violation");
    assert!(!put.ring, "it waits only for space");
    let mut got = Vec::new();
    assert_eq!(host.get(1, &mut got), Ok(true), "there is room");
    adapter.awake();
    assert_eq!(adapter.prepare_to_sleep_for_room(), Ok(false));
    let put = adapter.put(&[request(3)]).expect("no violation");
    assert_eq!(put.taken, 1);
}

#[test]
fn doorbells_are_rung_only_for_sleepers() {
    let memory = OwnMemory::new(2);
    let (mut host, mut adapter) = (
        End::new(&memory, Side::Host),
        End::new(&memory, Side::Adapter),
    );
    assert_eq!(adapter.prepare_to_sleep(), Ok(true));
    let put = host.put(&[request(1)]).expect("no violation");
    assert!(put.ring, "it sleeps");
    let put = host.put(&[request(2), request(3)]).expect("no violation");
    assert_eq!((put.taken, put.ring), (1, false), "it was woken already");
    assert_eq!(
        host.prepare_to_sleep(),
        Ok(true),
        "there is no room to go on"
    );
    adapter.awake();
    assert_eq!(
        adapter.prepare_to_sleep(),
        Ok(false),
        "there is something to get"
    );
    let mut got = Vec::new();
    assert_eq!(
        adapter.get(1, &mut got),
        Ok(true),
        "the host waits for room"
    );
    assert_eq!(adapter.get(1, &mut got), Ok(false));
    host.awake();
    assert_eq!(host.prepare_to_sleep(), Ok(false), "there is room");
    assert!(!host.put(&[request(3)]).expect("no violation").ring);
    assert_eq!(host.prepare_to_sleep(), Ok(true));
    assert_eq!(adapter.get(1, &mut got), Ok(false), "it waits for entries");
    assert_eq!(got, [request(1), request(2), request(3)]);
}

#[test]
fn a_sleeper_is_not_woken_for_lazy_entries_that_it_masks() {
    let memory = OwnMemory::new(4);
    let (mut host, mut adapter) = (
        End::new(&memory, Side::Host),
        End::new(&memory, Side::Adapter),
    );
    assert_eq!(host.prepare_to_sleep(), Ok(true));
    let put = adapter.put_lazily(&[response(1)]).expect("no violation");
    assert!(put.ring, "it masks nothing");
    assert!(host.awake(), "it was rung for");
    assert_eq!(all_of(&mut host), [response(1)]);

    host.mask_lazy(true);
    assert_eq!(host.prepare_to_sleep(), Ok(true));
    let put = adapter.put_lazily(&[response(2)]).expect("no violation");
    assert!(!put.ring, "it sleeps on");
    assert_eq!(host.prepare_to_sleep(), Ok(false), "there is something");
    assert_eq!(all_of(&mut host), [response(2)]);
    assert_eq!(host.prepare_to_sleep(), Ok(true));
    let put = adapter.put_lazily(&[response(3)]).expect("no violation");
    assert!(!put.ring);
    assert!(adapter.put(&[response(4)]).expect("no violation").ring);
    assert!(host.awake());
    assert_eq!(all_of(&mut host), [response(3), response(4)]);

    // The host cannot sleep through a ring that is full of lazy responses.
    assert_eq!(host.prepare_to_sleep(), Ok(true));
    let put = adapter.put_lazily(&[response(5); 4]).expect("no violation");
    assert_eq!((put.taken, put.ring), (4, false));
    let put = adapter.put_lazily(&[response(6)]).expect("no violation");
    assert_eq!((put.taken, put.ring), (0, true));
    assert!(host.awake());
    assert_eq!(all_of(&mut host).len(), 4);
    assert_eq!(host.prepare_to_sleep(), Ok(true));
    assert!(!host.awake(), "it woke up by itself");
}

fn spoil(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::SeqCst);
}

#[test]
fn wrong_indices_are_violations() {
    let memory = OwnMemory::new(4);
    let ring = |side| memory.control.ring(side);
    let mut adapter = End::new(&memory, Side::Adapter);
    spoil(&ring(Side::Host).produced.0, 5);
    let too_many = Violation::Index {
        claimed: 5,
        depth: 4,
    };
    assert_eq!(adapter.get(9, &mut Vec::new()), Err(too_many));
    assert_eq!(adapter.prepare_to_sleep(), Err(too_many));
    let mut adapter = End::new(&memory, Side::Adapter);
    // The host claims to have taken descriptors that were never put.
    spoil(&ring(Side::Adapter).consumed.0, 1);
    let responses = [response(1); 5];
    assert_eq!(
        adapter.put(&responses),
        Err(Violation::Index {
            claimed: u32::MAX,
            depth: 0
        })
    );
    // The host takes descriptors back.
    let memory = OwnMemory::new(4);
    let mut adapter = End::new(&memory, Side::Adapter);
    spoil(&memory.control.ring(Side::Host).produced.0, 2);
    assert_eq!(adapter.prepare_to_sleep(), Ok(false));
    spoil(&memory.control.ring(Side::Host).produced.0, 1);
    assert_eq!(
        adapter.prepare_to_sleep(),
        Err(Violation::Index {
            claimed: 1,
            depth: 4
        })
    );
}

#[test]
fn truncated_entries_are_violations_and_not_returned() {
    let memory = OwnMemory::new(4);
    let mut host = End::new(&memory, Side::Host);
    let mut adapter = End::new(&memory, Side::Adapter);
    let entry = inline_request(1, 80);
    // A host that violates the protocol can put an entry in two steps.
    let ring = SharedRing::new(&memory, Side::Host);
    let taken = host.producer.put(&ring, &[request(0), entry[0]]);
    assert_eq!(taken, Ok(2));
    let mut got = Vec::new();
    assert_eq!(
        adapter.get(9, &mut got),
        Err(Violation::Malformed(Malformed::Truncated { missing: 2 }))
    );
    assert_eq!(got, []);
}

#[test]
fn entries_stay_whole_when_slots_are_released_in_between() {
    let longest = inline_request(99, MOST_INLINE_BYTES);
    for (before, most) in (24..=33).flat_map(|before| (1..=64).map(move |most| (before, most))) {
        let memory = OwnMemory::new(64);
        let mut host = End::new(&memory, Side::Host);
        let mut adapter = End::new(&memory, Side::Adapter);
        let plain = |count| (0..count).map(request);
        let sent: Vec<_> = plain(before)
            .chain(longest.iter().copied())
            .chain(plain(9))
            .collect();
        assert_eq!(host.put(&sent).map(|put| put.taken), Ok(sent.len()));
        let mut all = Vec::new();
        while all.len() < sent.len() {
            let mut got = Vec::new();
            assert_eq!(adapter.get(most, &mut got), Ok(false));
            assert!(got.len() <= most || got.len() == longest.len());
            assert_eq!(whole_entries(&got, got.len()), got.len());
            all.extend(got);
        }
        assert_eq!(all, sent);
        assert_eq!(host.put(&sent).map(|put| put.taken), Ok(sent.len()));
    }
}

#[test]
fn indices_wrap_around() {
    let memory = OwnMemory::new(4);
    let (mut host, mut adapter) = (
        End::new(&memory, Side::Host),
        End::new(&memory, Side::Adapter),
    );
    let near_the_end = u32::MAX - 5;
    host.producer.start_at(near_the_end);
    adapter.consumer.start_at(near_the_end);
    spoil(&memory.control.ring(Side::Host).consumed.0, near_the_end);
    spoil(&memory.control.ring(Side::Host).produced.0, near_the_end);
    for round in 0..20 {
        let requests = [request(round), request(round + 1), request(round + 2)];
        assert_eq!(host.put(&requests).expect("no violation").taken, 3);
        assert_eq!(all_of(&mut adapter), requests);
    }
}

proptest! {
    /// For any interleaving, entries come out whole, in order and once; a side sleeps only if it has nothing to do, and is woken up when it
    /// has.
    #[test]
    fn no_entry_is_lost_in_random_interleavings(depth in 3_u32..6, steps in prop::collection::vec((0_u8..6, 1_usize..4), 1..200)) {
        let memory = OwnMemory::new(1 << depth);
        let mut host = End::new(&memory, Side::Host);
        let mut adapter = End::new(&memory, Side::Adapter);
        let (mut next, mut under_way) = (0, VecDeque::new());
        let (mut adapter_sleeps, mut host_sleeps) = (false, false);
        for (step, size) in steps {
            match step {
                0..=2 if !host_sleeps => {
                    next += 1;
                    let entries = [vec![request(next)], inline_request(next, 16 * size)].concat();
                    let put = host.put(&entries).expect("no violation");
                    prop_assert!(put.taken <= 1 || put.taken == entries.len());
                    under_way.extend(&entries[..put.taken]);
                    adapter_sleeps &= !put.ring;
                }
                3 if !host_sleeps => host_sleeps = host.prepare_to_sleep().expect("no violation"),
                4 if !adapter_sleeps => {
                    let mut got = Vec::new();
                    if adapter.get(size, &mut got).expect("no violation") {
                        host.awake();
                        host_sleeps = false;
                    }
                    let expected: Vec<_> = under_way.drain(..got.len()).collect();
                    prop_assert_eq!(got, expected);
                }
                5 if !adapter_sleeps => {
                    adapter_sleeps = adapter.prepare_to_sleep().expect("no violation");
                    prop_assert!(!adapter_sleeps || under_way.is_empty());
                }
                _ => {}
            }
            prop_assert!(!adapter_sleeps || under_way.is_empty(), "it sleeps and nobody rang");
        }
    }
}

#[test]
fn a_side_that_waits_for_something_else_is_rung_too() {
    let memory = OwnMemory::new(2);
    let mut host = End::new(&memory, Side::Host);
    // Between the load and the exchange, the other side began to wait for something else: it must be woken up all the same.
    spoil(
        memory.control.attention(Side::Adapter),
        Attention::ROOM | Attention::ENTRIES,
    );
    assert!(host.put(&[request(1)]).expect("no violation").ring);
    assert_eq!(
        memory
            .control
            .attention(Side::Adapter)
            .load(Ordering::SeqCst),
        0
    );
}
