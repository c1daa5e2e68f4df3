//! When each kind of event happens next.

use super::tick::Tick;
use baton_wire::Time;

/// A tick that is not armed.
const NEVER: u128 = u128::MAX;

/// At most one event of each kind, and the first of them all; of those of one time, the one that was armed first.
///
/// There are so few kinds that looking at all takes less time than keeping them in a heap, whose branches no processor foresees.
pub(super) struct Timetable {
    ticks: Vec<Tick>,
    /// The time of each tick and, below it, its number in the order of arming.
    keys: Vec<u128>,
    armed: u64,
    /// The place of the smallest key, and the key.
    first: (usize, u128),
}

impl Timetable {
    /// Nothing is armed on a machine with so many `nics`.
    pub(super) fn new(nics: u8) -> Self {
        let ticks: Vec<_> = Tick::all(nics).collect();
        Self {
            keys: vec![NEVER; ticks.len()],
            ticks,
            armed: 0,
            first: (0, NEVER),
        }
    }

    /// `tick` happens at `due`, unless it is armed for that time or an earlier one.
    #[inline]
    pub(super) fn arm(&mut self, tick: Tick, due: Time) {
        let place = tick.index();
        if due >= time_of(self.keys[place]) {
            return;
        }
        let key = u128::from(due.as_ps()) << 64 | u128::from(self.armed);
        self.armed += 1;
        self.keys[place] = key;
        if key < self.first.1 {
            self.first = (place, key);
        }
    }

    /// `tick` does not happen.
    pub(super) fn disarm(&mut self, tick: Tick) {
        let place = tick.index();
        self.keys[place] = NEVER;
        if self.first.0 == place {
            self.find_first();
        }
    }

    /// When the first happens; [`Time::NEVER`] if none is armed.
    #[inline]
    pub(super) fn first_time(&self) -> Time {
        time_of(self.first.1)
    }

    /// Takes the first.
    #[inline]
    pub(super) fn take_first(&mut self) -> Option<(Time, Tick)> {
        let (place, key) = self.first;
        if key == NEVER {
            return None;
        }
        self.keys[place] = NEVER;
        self.find_first();
        Some((time_of(key), self.ticks[place]))
    }

    fn find_first(&mut self) {
        let keys = self.keys.iter().copied().enumerate();
        self.first = keys.fold(
            (0, NEVER),
            |first, next| {
                if next.1 < first.1 { next } else { first }
            },
        );
    }
}

fn time_of(key: u128) -> Time {
    Time::from_ps((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::tick::NicTick;
    use super::*;
    use proptest::prelude::*;

    const NICS: u8 = 2;

    #[test]
    fn each_tick_has_its_place() {
        let ticks: Vec<_> = Tick::all(NICS).collect();
        assert!((0..).zip(&ticks).all(|(place, tick)| tick.index() == place));
        assert!(ticks.contains(&Tick::Nic(NicTick::Timer, 1)));
    }

    #[test]
    fn nothing_happens_until_something_is_armed() {
        let mut table = Timetable::new(NICS);
        assert_eq!(
            (table.first_time(), table.take_first()),
            (Time::NEVER, None)
        );
        table.arm(Tick::Disk, Time::from_ps(3));
        table.arm(Tick::Disk, Time::from_ps(5));
        assert_eq!(table.first_time(), Time::from_ps(3));
        table.disarm(Tick::Disk);
        assert_eq!(table.take_first(), None);
    }

    proptest! {
        /// Against a list in the order of arming.
        #[test]
        fn the_earliest_goes_first_and_of_equals_the_one_armed_first(
            steps in prop::collection::vec((0_usize..30, 0_u64..6), 0..200),
        ) {
            let ticks: Vec<_> = Tick::all(NICS).collect();
            let mut table = Timetable::new(NICS);
            let mut list: Vec<(Time, Tick)> = Vec::new();
            for (choice, ps) in steps {
                match ticks.get(choice) {
                    Some(&tick) if ps == 0 => {
                        table.disarm(tick);
                        list.retain(|armed| armed.1 != tick);
                    }
                    Some(&tick) => {
                        let due = Time::from_ps(ps);
                        table.arm(tick, due);
                        if list.iter().all(|armed| armed.1 != tick || armed.0 > due) {
                            list.retain(|armed| armed.1 != tick);
                            list.push((due, tick));
                        }
                    }
                    None => {
                        let first = (0..list.len()).min_by_key(|&place| list[place].0);
                        prop_assert_eq!(table.take_first(), first.map(|place| list.remove(place)));
                    }
                }
                let first = list.iter().map(|armed| armed.0).min();
                prop_assert_eq!(table.first_time(), first.unwrap_or(Time::NEVER));
            }
        }
    }
}
