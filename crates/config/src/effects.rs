//! Finds the keys that were set but change nothing.

use super::Planned;
use super::keys::{self, Condition};
use std::collections::{BTreeMap, BTreeSet};

/// A key that was set, and the place where it was set.
type Place = (String, String);

/// The effects of keys in the runs seen so far.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    in_effect: BTreeSet<Place>,
    without: BTreeMap<Place, &'static Condition>,
}

impl Effects {
    /// Records the effects of keys in a run.
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
            // A user who also sets the other key, in the same layer or in a later one, knows the effect.
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

    /// Adds the effects that `other` recorded in other runs.
    pub fn join(&mut self, other: Self) {
        self.in_effect.extend(other.in_effect);
        self.without.extend(other.without);
    }

    /// Returns messages about the keys that had no effect in any run, with the conditions that they need.
    pub fn without(mut self) -> Vec<String> {
        let in_effect = self.in_effect;
        self.without.retain(|place, _| !in_effect.contains(place));
        let said = self.without.iter().map(|((path, place), condition)| {
            format!("{place}: {path} has no effect, because it needs {condition}")
        });
        said.collect()
    }
}
