use super::*;
use proptest::prelude::*;
use std::convert::Infallible;

const GOALS: [Goal; 2] = [Goal::deterministic(0.0), Goal::deterministic(0.005)];

const RANGE: Range = Range {
    least: 100.0,
    most: 1_488_095.0,
    width: 0.005,
};

/// A simple device with a known answer.
#[derive(Clone, Copy, Debug)]
enum Device {
    /// Forwards up to this rate, and drops the rest.
    Saturates(f64),
    /// Forwards less, the more it has to drop: receive livelock.
    Collapses(f64),
    /// Saturates at the second rate, and from the first rate on loses one frame in a thousand.
    Leaks(f64, f64),
}

impl Device {
    fn measure(self, load: f64) -> Measured {
        let forwarded = match self {
            Self::Saturates(capacity) => load.min(capacity),
            Self::Collapses(capacity) if load > capacity => capacity * (capacity / load),
            Self::Collapses(_) => load,
            Self::Leaks(from, capacity) if load > from => (load * 0.999).min(capacity),
            Self::Leaks(..) => load,
        };
        Measured {
            loss_ratio: 1.0 - forwarded / load,
            forwarding_rate: forwarded,
        }
    }

    /// Returns the greatest load of which at most `ratio` is lost.
    fn rate(self, ratio: f64) -> f64 {
        match self {
            Self::Saturates(capacity) => capacity / (1.0 - ratio),
            Self::Collapses(capacity) => capacity / (1.0 - ratio).sqrt(),
            Self::Leaks(from, _) if ratio < 0.001 => from,
            Self::Leaks(_, capacity) => capacity / (1.0 - ratio),
        }
    }
}

fn search(device: Device, goals: &[Goal]) -> Found {
    let Ok(found) = multiple(&RANGE, goals, |load| {
        Ok::<_, Infallible>(device.measure(load))
    });
    found
}

fn assert_exact(device: Device, found: &Found) {
    for result in &found.goals {
        let rate = device.rate(result.goal.loss_ratio).min(RANGE.most);
        let lower = result.lower.expect("a load that meets the goal");
        assert!(
            lower <= rate * (1.0 + 1e-9),
            "{device:?}: {lower} meets {result:?}"
        );
        assert!(
            lower >= rate * (1.0 - RANGE.width),
            "{device:?}: {lower} is near {rate}"
        );
    }
}

fn devices() -> impl Strategy<Value = Device> {
    let rates = || 2_000.0..1_400_000.0_f64;
    prop_oneof![
        rates().prop_map(Device::Saturates),
        rates().prop_map(Device::Collapses),
        (rates(), 0.3..1.0_f64).prop_map(|(rate, share)| Device::Leaks(rate * share, rate)),
    ]
}

proptest! {
    #[test]
    fn a_rate_is_found_in_two_thirds_of_the_trials_of_bisection(device in devices()) {
        let found = search(device, &GOALS);
        assert_exact(device, &found);
        let Ok(halved) = bisection(&RANGE, &GOALS, |load| Ok::<_, Infallible>(device.measure(load)));
        assert_exact(device, &halved);
        // For a device that loses a little from a low rate on, results at higher rates do not predict that rate; only halving finds it.
        let (thirds, of) = if matches!(device, Device::Leaks(..)) { (3, 3) } else { (3, 2) };
        prop_assert!(thirds * found.trials <= of * halved.trials, "{} of {} trials", found.trials, halved.trials);
    }

    #[test]
    fn the_order_of_goals_does_not_matter(device in devices()) {
        let (mut found, turned) = (search(device, &GOALS), search(device, &[GOALS[1], GOALS[0]]));
        found.goals.reverse();
        prop_assert_eq!(found, turned);
    }
}

#[test]
fn a_saturated_device_takes_four_trials() {
    let found = search(Device::Saturates(600_000.0), &GOALS);
    assert_eq!(
        found.trials, 4,
        "the greatest load, one below and one above for one goal, one below for the other"
    );
}

#[test]
fn a_device_without_losses_takes_one_trial() {
    let found = search(Device::Saturates(2e6), &GOALS);
    assert_eq!(found.trials, 1);
    for result in found.goals {
        assert_eq!((result.lower, result.upper), (Some(RANGE.most), None));
        assert_eq!(result.conditional_throughput, Some(RANGE.most));
    }
}

#[test]
fn a_device_that_forwards_nothing_has_no_rate() {
    let dead = |load| {
        assert!(load >= RANGE.least);
        Ok::<_, Infallible>(Measured {
            loss_ratio: 1.0,
            forwarding_rate: 0.0,
        })
    };
    let (Ok(found), Ok(halved)) = (
        multiple(&RANGE, &GOALS, dead),
        bisection(&RANGE, &GOALS, dead),
    );
    for result in found.goals.iter().chain(&halved.goals) {
        assert_eq!((result.lower, result.upper), (None, Some(RANGE.least)));
        assert_eq!(result.conditional_throughput, None);
    }
}

#[test]
fn half_of_the_trials_may_lose_more() {
    // Every third trial loses a tenth, at any load below the device's capacity.
    let noisy = |loads: &mut u32, load: f64| {
        *loads += 1;
        let measured = Device::Saturates(500_000.0).measure(load);
        let loss_ratio = if loads.is_multiple_of(3) {
            0.1_f64.max(measured.loss_ratio)
        } else {
            measured.loss_ratio
        };
        Measured {
            loss_ratio,
            ..measured
        }
    };
    let mut count = 0;
    let goals = [Goal::live(0.005)];
    let Ok(found) = multiple(&RANGE, &goals, |load| {
        Ok::<_, Infallible>(noisy(&mut count, load))
    });
    assert_exact(Device::Saturates(500_000.0), &found);
    let strict = [Goal {
        exceed_ratio: 0.2,
        ..goals[0]
    }];
    let Ok(found) = multiple(&RANGE, &strict, |load| {
        Ok::<_, Infallible>(noisy(&mut count, load))
    });
    assert_eq!(
        found.goals[0].lower, None,
        "more than a fifth of the trials lose too much"
    );
}

#[test]
fn the_conditional_throughput_is_that_of_the_lower_bound() {
    let device = Device::Saturates(700_000.0);
    let found = search(device, &GOALS);
    for result in found.goals {
        let lower = result.lower.expect("a bound");
        let forwarded = device.measure(lower).forwarding_rate;
        let throughput = result.conditional_throughput.expect("a throughput");
        assert!(
            (throughput - forwarded).abs() < 1e-3,
            "{throughput} and {forwarded}"
        );
    }
}
