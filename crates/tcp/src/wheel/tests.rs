use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// A timer is set, postponed or brought forward.
    Set { id: u32, after_ps: u64 },
    /// A timer is off; the wheel is not notified.
    Stop { id: u32 },
    /// The connection is gone.
    Cancel { id: u32 },
    /// Time passes.
    Wait { ps: u64 },
}

fn span_ps() -> impl Strategy<Value = u64> {
    // From within a slot to beyond the horizon of 4.4 s.
    prop_oneof![
        0..2_000_000u64,
        0..5_000_000_000u64,
        0..500_000_000_000u64,
        0..20_000_000_000_000u64
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..6u32;
    prop_oneof![
        4 => (id.clone(), span_ps()).prop_map(|(id, after_ps)| Step::Set { id, after_ps }),
        1 => id.clone().prop_map(|id| Step::Stop { id }),
        1 => id.prop_map(|id| Step::Cancel { id }),
        3 => span_ps().prop_map(|ps| Step::Wait { ps }),
    ]
}

/// Does what a stack does when the wheel's time has come.
fn run_due(wheel: &mut Wheel, deadlines: &mut [Time; 6], now: Time) {
    while let Some(id) = wheel.pop_due(now, |id| deadlines[id as usize]) {
        let deadline = &mut deadlines[id as usize];
        if *deadline <= now {
            *deadline = Time::NEVER;
        } else {
            wheel.schedule(now, id, *deadline);
        }
    }
}

proptest! {
    #[test]
    fn timers_are_never_late(steps in proptest::collection::vec(step(), 1..100)) {
        let mut wheel = Wheel::new();
        let mut deadlines = [Time::NEVER; 6];
        let mut now = Time::ZERO;
        for step in steps {
            match step {
                Step::Set { id, after_ps } => {
                    deadlines[id as usize] = now + Span::from_ps(after_ps);
                    wheel.schedule(now, id, deadlines[id as usize]);
                }
                Step::Stop { id } => deadlines[id as usize] = Time::NEVER,
                Step::Cancel { id } => {
                    deadlines[id as usize] = Time::NEVER;
                    wheel.cancel(id);
                }
                Step::Wait { ps } => {
                    let until = now + Span::from_ps(ps);
                    while let Some(next) = wheel.next().filter(|&next| next <= until) {
                        let earliest = deadlines.iter().copied().min().expect("there are six");
                        prop_assert!(next <= earliest, "{next:?} is later than {earliest:?}");
                        now = now.max(next);
                        run_due(&mut wheel, &mut deadlines, now);
                        wheel.check();
                        prop_assert!(wheel.next().is_none_or(|next| next > now), "it gets on");
                    }
                    now = until;
                }
            }
            wheel.check();
            let earliest = deadlines.iter().copied().min().expect("there are six");
            prop_assert!(earliest == Time::NEVER || wheel.next().is_some_and(|next| next <= earliest));
            for (id, &deadline) in deadlines.iter().enumerate() {
                prop_assert!(wheel.covers(id as u32, deadline));
            }
        }
    }
}

#[test]
fn a_deadline_is_kept_to_the_picosecond() {
    let mut wheel = Wheel::new();
    let deadline = Time::from_ps(123_456_789_123);
    wheel.schedule(Time::ZERO, 0, deadline);
    let mut wakes = Vec::new();
    loop {
        let at = wheel.next().expect("it is not over");
        wakes.push(at);
        if wheel.pop_due(at, |_| deadline).is_some() {
            break;
        }
    }
    assert_eq!(wakes.len(), 2, "once for the slot, once for the timer");
    assert_eq!(wakes[1], deadline);
    assert_eq!(wheel.next(), None);
}

#[test]
fn postponing_a_timer_repeatedly_causes_no_early_wakeup() {
    let mut wheel = Wheel::new();
    let mut woken = 0;
    let mut deadline = Time::NEVER;
    for ms in 0..1000 {
        let now = Time::ZERO + Span::from_ms(ms);
        deadline = now + Span::from_ms(200);
        while let Some(id) = wheel.pop_due(now, |_| deadline) {
            woken += 1;
            wheel.schedule(now, id, deadline);
        }
        wheel.schedule(now, 3, deadline);
    }
    assert_eq!(woken, 0, "entries that come up early go where they belong");
    assert!(wheel.covers(3, deadline));
}

#[test]
fn a_stack_that_slept_for_long_catches_up() {
    let mut wheel = Wheel::new();
    let deadlines: Vec<Time> = (0..100)
        .map(|id| Time::ZERO + Span::from_ms(id * 997))
        .collect();
    for (id, &deadline) in deadlines.iter().enumerate() {
        wheel.schedule(Time::ZERO, id as u32, deadline);
    }
    let now = Time::ZERO + Span::from_secs(50);
    let mut due = Vec::new();
    while let Some(id) = wheel.pop_due(now, |id| deadlines[id as usize]) {
        due.push(id);
    }
    due.sort_unstable();
    assert_eq!(due, (0..51).collect::<Vec<_>>());
    wheel.check();
}
