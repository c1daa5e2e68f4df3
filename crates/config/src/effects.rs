//! Which of the keys that were set change anything.

use super::Planned;
use super::keys::{self, Condition};
use std::collections::{BTreeMap, BTreeSet};

/// A key that was set, and where.
type Place = (String, String);

/// What keys did in the runs seen so far.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    in_effect: BTreeSet<Place>,
    without: BTreeMap<Place, &'static Condition>,
}

impl Effects {
    /// Sees what keys do in a run.
    pub fn see(&mut self, run: &Planned) {
        let place = |set: &super::Set| (set.path.clone(), set.place.clone());
        let changes = run.set.iter().filter(|set| set.is_change);
        let mut unknown = changes
            .filter(|set| !self.in_effect.contains(&place(set)))
            .peekable();
        if unknown.peek().is_none() {
            return;
        }
        let Ok(experiment) = toml::Value::try_from(&run.experiment) else {
            return;
        };
        let unknown: Vec<_> = unknown.collect();
        for set in unknown {
            // Who sets the other key as well, in the same place or above, knows what it does.
            let is_known = |condition: &Condition| {
                let mut others = run.set.iter();
                others.any(|other| other.path == condition.path && other.kind >= set.kind)
            };
            match keys::without_effect(&experiment, &set.path) {
                Some(condition) if !is_known(condition) => {
                    self.without.insert(place(set), condition);
                }
                _ => {
                    self.in_effect.insert(place(set));
                }
            }
        }
    }

    /// Takes what another saw in other runs.
    pub fn join(&mut self, other: Self) {
        self.in_effect.extend(other.in_effect);
        self.without.extend(other.without);
    }

    /// Keys that did nothing in any run, and what they need.
    pub fn without(mut self) -> Vec<String> {
        let in_effect = self.in_effect;
        self.without.retain(|place, _| !in_effect.contains(place));
        let said = self.without.iter().map(|((path, place), condition)| {
            format!("{place}: {path} has no effect, for that needs {condition}")
        });
        said.collect()
    }
}
