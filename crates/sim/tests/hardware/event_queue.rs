//! Compares the event queue with a sorted list.

use baton_sim::EventQueue;
use baton_wire::Time;
use proptest::prelude::*;

#[test]
fn empty_queue_has_nothing() {
    let mut queue: EventQueue<u8> = EventQueue::default();
    assert_eq!(
        (
            queue.len(),
            queue.is_empty(),
            queue.peek_time(),
            queue.pop()
        ),
        (0, true, None, None)
    );
}

#[test]
fn equal_times_keep_their_order() {
    let mut queue = EventQueue::with_capacity(1_000);
    for number in 0..1_000 {
        queue.push(Time::from_ps(number % 3), number);
    }
    let order: Vec<u64> = std::iter::from_fn(|| queue.pop().map(|(_, number)| number)).collect();
    let expected: Vec<u64> = (0..3)
        .flat_map(|time| (0..1_000).filter(move |number| number % 3 == time))
        .collect();
    assert_eq!(order, expected);
}

proptest! {
    #[test]
    fn pops_in_order_of_time_then_of_pushing(
        steps in prop::collection::vec(prop::option::weighted(0.6, prop_oneof![0_u64..5, Just(u64::MAX), any::<u64>()]), 0..300),
    ) {
        let mut queue = EventQueue::new();
        // Stable sorting by time alone keeps the order of pushing.
        let mut reference: Vec<(Time, usize)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            if let Some(ps) = step {
                queue.push(Time::from_ps(ps), number);
                reference.push((Time::from_ps(ps), number));
                reference.sort_by_key(|&(time, _)| time);
            } else {
                let expected = if reference.is_empty() { None } else { Some(reference.remove(0)) };
                if let Some((time, number)) = expected.filter(|(_, number)| number % 2 == 0) {
                    let before = time.as_ps().checked_sub(1).map(Time::from_ps);
                    prop_assert_eq!(before.and_then(|before| queue.pop_due(before)), None);
                    prop_assert_eq!(queue.pop_due(time), Some(number));
                } else {
                    prop_assert_eq!(queue.pop(), expected);
                }
            }
            prop_assert_eq!(queue.peek_time(), reference.first().map(|&(time, _)| time));
            prop_assert_eq!(queue.len(), reference.len());
        }
        for expected in reference {
            prop_assert_eq!(queue.pop(), Some(expected));
        }
        prop_assert!(queue.is_empty());
    }
}
