//! Expected life of connections, learned from those that have ended.

use super::{Life, Remaining, View};
use rustc_hash::FxHashMap;

/// Number of classes that each cover a single number of enqueues; the classes above cover 16, 32, 64, ... numbers.
const EXACT: usize = 16;
/// Number of classes, for up to 2^31 enqueues.
const CLASSES: usize = EXACT + 28;
/// Minimum number of ended connections for a prediction.
const LEAST_SEEN: u64 = 16;
/// Number of ended connections after which the weight of everything learned is halved, because loads change.
const HALF_LIFE: u64 = 8192;

/// Predicts the mean number of enqueues after the n-th, over the connections that reached n, by local port, which identifies the
/// application. The paper proposes to predict lifetimes by their distribution (handoff-policies 3.3).
#[derive(Debug, Default)]
pub struct Survival {
    ports: FxHashMap<u16, Lives>,
}

/// Statistics of one port's connections, by class.
#[derive(Debug)]
struct Lives([Class; CLASSES]);

/// Connections that have reached this number of enqueues.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    seen: u64,
    /// Sum of their enqueues beyond this number.
    beyond: u64,
}

fn class_of(enqueues: u32) -> usize {
    match enqueues {
        0..16 => enqueues as usize,
        _ => (EXACT + enqueues.ilog2() as usize - 4).min(CLASSES - 1),
    }
}

/// Returns the smallest number of enqueues of a class.
fn least(class: usize) -> u64 {
    match class {
        0..EXACT => class as u64,
        _ => 1 << (class - EXACT + 4),
    }
}

impl Lives {
    fn learn(&mut self, enqueues: u32) {
        for (class, of) in self.0[..=class_of(enqueues)].iter_mut().enumerate() {
            of.seen += 1;
            of.beyond += u64::from(enqueues) - least(class);
        }
        if self.0[0].seen >= HALF_LIFE {
            for of in &mut self.0 {
                of.seen /= 2;
                of.beyond /= 2;
            }
        }
    }

    /// Returns `None` if too few connections have lived so long.
    fn expected(&self, enqueues: u32) -> Option<u64> {
        let of = self.0[class_of(enqueues)];
        (of.seen >= LEAST_SEEN).then(|| of.beyond / of.seen)
    }
}

impl Remaining for Survival {
    /// Treats a connection as endless if it has lived longer than nearly all others, or if its port is not yet known.
    fn remaining(&self, view: &View) -> u64 {
        let lives = self.ports.get(&view.local.port);
        let expected = lives.and_then(|lives| lives.expected(view.enqueues));
        expected.unwrap_or(u64::MAX)
    }

    fn learn(&mut self, life: &Life) {
        let empty = || Lives([Class::default(); CLASSES]);
        let lives = self.ports.entry(life.local.port).or_insert_with(empty);
        lives.learn(life.enqueues);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{life, view};
    use super::*;

    #[test]
    fn survival_classes_are_adjacent() {
        for class in 1..CLASSES {
            let first = least(class) as u32;
            assert_eq!(class_of(first), class);
            assert_eq!(class_of(first - 1), class - 1);
        }
        assert_eq!(class_of(u32::MAX), CLASSES - 1);
    }

    #[test]
    fn the_longer_a_connection_has_lived_the_more_it_has_left() {
        let mut survival = Survival::default();
        assert_eq!(survival.remaining(&view(80, 0, 0)), u64::MAX);
        for _ in 0..30 {
            survival.learn(&life(80, 2));
            survival.learn(&life(80, 2));
            survival.learn(&life(80, 98));
        }
        let remaining = |port, enqueues| survival.remaining(&view(port, 0, enqueues));
        assert_eq!(remaining(80, 0), 34);
        assert_eq!(remaining(80, 3), 95);
        assert_eq!(remaining(80, 70), 34);
        assert_eq!(remaining(80, 200), u64::MAX);
        assert_eq!(remaining(443, 3), u64::MAX);
    }

    #[test]
    fn old_lifetimes_are_forgotten() {
        let mut survival = Survival::default();
        for _ in 0..HALF_LIFE {
            survival.learn(&life(80, 100));
        }
        for _ in 0..HALF_LIFE * 8 {
            survival.learn(&life(80, 2));
        }
        assert!(survival.remaining(&view(80, 0, 0)) < 10);
    }
}
