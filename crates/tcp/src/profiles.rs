//! Parameters in use by a stack's connections; equal sets are stored once.

use crate::config::{Config, Congestion};
use std::ops::Index;

/// Number of a set of parameters.
pub(crate) type ProfileId = u16;

/// Sets of parameters, and how many connections and listeners use each. The first is the stack's own and stays.
#[derive(Debug)]
pub(crate) struct Profiles {
    configs: Vec<Config>,
    users: Vec<u32>,
}

impl Profiles {
    /// Starts with the stack's own parameters as number 0.
    pub(crate) fn new(own: Config) -> Self {
        Self {
            configs: vec![own],
            users: vec![1],
        }
    }

    /// Adds a user of these parameters. Returns `None` if there are too many different sets.
    pub(crate) fn intern(&mut self, config: &Config) -> Option<ProfileId> {
        let in_use = |index: &usize| self.users[*index] > 0;
        let known = (0..self.configs.len())
            .filter(in_use)
            .find(|&index| self.configs[index] == *config);
        let free = || self.users.iter().position(|&users| users == 0);
        let index = known.or_else(free).unwrap_or(self.configs.len());
        let number = ProfileId::try_from(index).ok()?;
        if index == self.configs.len() {
            self.configs.push(config.clone());
            self.users.push(0);
        } else if known.is_none() {
            self.configs[index] = config.clone();
        }
        self.users[index] += 1;
        Some(number)
    }

    /// Returns `config`. If it names a deserialized custom controller, adds the factory of the controller with that name in the
    /// parameters in use.
    pub(crate) fn with_factory(&self, config: &Config) -> Config {
        let mut config = config.clone();
        if let Congestion::Custom(wanted) = &mut config.congestion
            && !wanted.is_known()
        {
            let in_use = self.in_use().map(|id| self[id].congestion);
            let known = in_use.filter_map(|congestion| match congestion {
                Congestion::Custom(custom) => Some(custom),
                _ => None,
            });
            if let Some(known) = known.into_iter().find(|known| known == wanted) {
                *wanted = known;
            }
        }
        config
    }

    /// Adds a user of parameters that are in use.
    pub(crate) fn share(&mut self, id: ProfileId) -> ProfileId {
        self.users[usize::from(id)] += 1;
        id
    }

    /// Removes a user.
    pub(crate) fn release(&mut self, id: ProfileId) {
        let users = &mut self.users[usize::from(id)];
        debug_assert!(*users > 0, "only what is used is released");
        *users -= 1;
    }

    /// Number of users of these parameters.
    pub(crate) fn users(&self, id: ProfileId) -> u32 {
        self.users[usize::from(id)]
    }

    /// Sets of parameters that have users.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = ProfileId> + '_ {
        let used = |&index: &usize| self.users[index] > 0;
        (0..self.configs.len())
            .filter(used)
            .map(|index| index as ProfileId)
    }
}

impl Index<ProfileId> for Profiles {
    type Output = Config;

    fn index(&self, id: ProfileId) -> &Config {
        &self.configs[usize::from(id)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_mss(mss: u16) -> Config {
        Config {
            mss,
            ..Config::default()
        }
    }

    #[test]
    fn equal_parameters_are_kept_once_and_unused_numbers_are_used_again() {
        let mut profiles = Profiles::new(with_mss(1));
        assert_eq!(profiles.intern(&with_mss(2)), Some(1));
        assert_eq!(profiles.intern(&with_mss(2)), Some(1));
        assert_eq!(profiles.intern(&with_mss(1)), Some(0));
        assert_eq!((profiles.users(0), profiles.users(1)), (2, 2));
        profiles.release(1);
        profiles.release(1);
        assert_eq!(profiles.in_use().collect::<Vec<_>>(), [0]);
        assert_eq!(profiles.intern(&with_mss(3)), Some(1));
        assert_eq!(profiles[1].mss, 3);
    }

    #[test]
    fn the_number_of_parameter_sets_is_limited() {
        let mut profiles = Profiles::new(with_mss(0));
        for count in 1..=u32::from(ProfileId::MAX) {
            let config = Config {
                send_buffer: count,
                ..with_mss(0)
            };
            profiles.users.push(1);
            profiles.configs.push(config);
        }
        assert_eq!(profiles.intern(&with_mss(9)), None);
        assert_eq!(profiles.intern(&with_mss(0)), Some(0));
    }
}
