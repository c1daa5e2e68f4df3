//! A connection that moves between stacks is indistinguishable on the wire from one that stays.

use crate::common::{Moves, Scenario, Trace, run};
use baton_testkit::for_each_seed;

pub(crate) fn assert_same(still: &Trace, moved: &Trace) {
    for (still, moved) in still.segments.iter().zip(&moved.segments) {
        for (index, (left, right)) in still.iter().zip(moved).enumerate() {
            let before = &still[index.saturating_sub(3)..index];
            assert_eq!(left, right, "segment {index} differs, after {before:?}");
        }
    }
    assert_eq!(still, moved);
}

fn moves_do_not_show(moves: Moves, count: u64) {
    for_each_seed(count, |seed| {
        let still = run(&Scenario::random(seed, Moves::Never));
        let moved = run(&Scenario::random(seed, moves));
        assert_same(&still, &moved);
    });
}

#[test]
fn leaving_and_returning_at_every_event_is_invisible() {
    moves_do_not_show(Moves::InPlace, 500);
}

#[test]
fn moving_to_another_stack_at_every_event_is_invisible() {
    moves_do_not_show(Moves::Across, 500);
}

#[test]
fn moving_now_and_then_is_invisible() {
    moves_do_not_show(Moves::Sometimes, 1000);
}
