use super::*;
use proptest::prelude::*;

fn batcher(level: u32, timer_us: u32) -> Batcher {
    Batcher::new(
        &Batching {
            level,
            timer_us,
            ..Batching::default()
        },
        128,
        32,
    )
    .unwrap()
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

#[test]
fn level_one_transfers_each_entry_at_once() {
    let mut batcher = batcher(1, 1_000);
    assert!(!batcher.is_due(at_us(0)), "nothing waits");
    for us in 0..3 {
        batcher.queued(at_us(us), 0, 0, Urgency::Awaited);
        assert!(batcher.is_due(at_us(us)));
        batcher.taken(at_us(us));
        assert_eq!((batcher.waiting(), batcher.deadline()), (0, None));
    }
}

#[test]
fn the_level_collects_entries_and_the_timer_limits_the_wait() {
    let mut batcher = batcher(3, 5);
    batcher.queued(at_us(10), 0, 0, Urgency::Awaited);
    batcher.queued(at_us(12), 0, 0, Urgency::Awaited);
    assert!(!batcher.is_due(at_us(12)));
    assert_eq!(
        batcher.deadline(),
        Some(at_us(15)),
        "the first one set the timer"
    );
    assert!(batcher.is_due(at_us(15)));
    batcher.queued(at_us(13), 0, 0, Urgency::Awaited);
    assert!(batcher.is_due(at_us(13)), "the level is reached");
}

#[test]
fn urgent_entries_and_full_transfers_do_not_wait() {
    let mut batcher = batcher(128, 1_000);
    batcher.flush();
    batcher.queued(at_us(0), 0, 4_095, Urgency::Awaited);
    assert!(!batcher.is_due(at_us(0)), "there was nothing to flush");
    batcher.queued(at_us(0), 0, 1, Urgency::Awaited);
    assert!(batcher.is_due(at_us(0)));
    batcher.taken(at_us(0));
    batcher.queued(at_us(1), 0, 0, Urgency::Awaited);
    batcher.flush();
    assert!(batcher.is_due(at_us(1)));
    batcher.taken(at_us(1));
    batcher.queued(at_us(2), 0, 0, Urgency::Awaited);
    assert!(!batcher.is_due(at_us(2)));
    batcher.queued(at_us(2), 0, 0, Urgency::AtOnce);
    assert!(batcher.is_due(at_us(2)));
}

#[test]
fn timers_run_for_whole_ticks() {
    let config = |timer_us| Batching {
        timer_us,
        tick_us: 10_000,
        ..Batching::default()
    };
    for (timer_us, runs_us) in [(0, 0), (1, 10_000), (10_000, 10_000), (10_001, 20_000)] {
        assert_eq!(config(timer_us).timer(), Span::from_us(runs_us));
    }
}

#[test]
fn impossible_parameters_are_named() {
    let error = |config: Batching| config.validate(128, 32).unwrap_err().to_string();
    assert_eq!(
        error(Batching {
            level: 0,
            ..Batching::default()
        }),
        "level = 0: expected 1 or more"
    );
    assert_eq!(
        error(Batching {
            max_descriptors: 0,
            ..Batching::default()
        }),
        "max_descriptors = 0: expected 1 or more"
    );
    assert_eq!(
        error(Batching {
            level: 129,
            ..Batching::default()
        }),
        "level = 129: expected 1 to 128, the depth of the ring"
    );
    assert_eq!(
        error(Batching {
            max_transfer_bytes: 31,
            ..Batching::default()
        }),
        "max_transfer_bytes = 31: expected at least 32, one descriptor"
    );
}

#[test]
fn batching_is_read_from_toml_and_unknown_keys_are_refused() {
    let read: Batching = toml::from_str("level = 8\ntimer_us = 50").unwrap();
    assert_eq!(
        read,
        Batching {
            level: 8,
            timer_us: 50,
            ..Batching::default()
        }
    );
    let error = toml::from_str::<Batching>("levels = 8")
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown field `levels`"), "{error}");
    assert!(toml::from_str::<Batching>("level = -1").is_err());
    let read: Batching = toml::from_str("policy = \"adaptive\"").unwrap();
    assert_eq!(read.policy, BatchingPolicy::Adaptive);
}

proptest! {
    #[test]
    fn no_entry_is_lost_or_waits_beyond_its_timer(level in 1_u32..20, timer_us in 0_u32..30, gaps_us in prop::collection::vec(0_u64..10, 1..200)) {
        let mut batcher = batcher(level, timer_us);
        let (mut now, mut queued, mut taken) = (Time::ZERO, 0, 0);
        let mut waiting_since = Vec::new();
        for gap in gaps_us {
            let next = now + Span::from_us(gap);
            // The timer fires before the next descriptor is queued.
            if let Some(deadline) = batcher.deadline().filter(|&deadline| deadline <= next) {
                prop_assert!(batcher.is_due(deadline));
                taken += batcher.waiting();
                batcher.taken(deadline);
                for since in waiting_since.drain(..) {
                    prop_assert!(deadline - since <= Span::from_us(timer_us.into()));
                }
            }
            now = next;
            batcher.queued(now, 0, 0, Urgency::Awaited);
            queued += 1;
            waiting_since.push(now);
            if batcher.is_due(now) {
                prop_assert!(batcher.waiting() >= level || timer_us == 0);
                taken += batcher.waiting();
                batcher.taken(now);
                waiting_since.clear();
            }
            prop_assert_eq!(queued, taken + batcher.waiting());
            prop_assert!(batcher.waiting() < level);
        }
    }
}
