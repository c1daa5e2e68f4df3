//! Times of the next event of each kind.

use super::tick::{TICKS, Tick};
use baton_wire::Time;

/// At most one event of each kind, ordered by time; events of the same time are in the order in which they were armed.
///
/// About ten events are armed, and new ones are mostly due soon, so a sorted list is cheaper than a heap.
pub(super) struct Timetable {
    /// Time of each tick, by index; [`Time::NEVER`] if it is not armed.
    times: [Time; TICKS],
    /// The armed ticks by index, the next one last.
    armed: Vec<(Time, u8)>,
}

impl Timetable {
    /// Creates a timetable without armed ticks.
    pub(super) fn new() -> Self {
        Self {
            times: [Time::NEVER; TICKS],
            armed: Vec::with_capacity(TICKS),
        }
    }

    /// Arms `tick` for `due`, unless it is armed for that time or earlier. Most callers pass a constant tick, so that its index is computed
    /// at compile time.
    #[inline(always)]
    pub(super) fn arm(&mut self, tick: Tick, due: Time) {
        let index = tick.index();
        if due < self.times[index] {
            self.rearm(index, due);
        }
    }

    #[inline(never)]
    fn rearm(&mut self, index: usize, due: Time) {
        if self.times[index] < Time::NEVER {
            self.disarm(index);
        }
        self.times[index] = due;
        // The tick is usually one of the next.
        let mut place = self.armed.len();
        self.armed.push((due, index as u8));
        while place > 0 && self.armed[place - 1].0 <= due {
            self.armed.swap(place - 1, place);
            place -= 1;
        }
    }

    /// Disarms the tick with this index.
    #[cold]
    fn disarm(&mut self, index: usize) {
        self.times[index] = Time::NEVER;
        self.armed.retain(|&(_, armed)| usize::from(armed) != index);
    }

    /// Takes the next tick.
    #[inline]
    pub(super) fn take_next(&mut self) -> Option<(Time, Tick)> {
        let (time, index) = self.armed.pop()?;
        self.times[usize::from(index)] = Time::NEVER;
        Some((time, Tick::at(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tick::{MOST_NICS, NicTick};
    use super::*;
    use proptest::prelude::*;

    /// Returns all ticks in the order of their indices.
    fn ticks() -> Vec<Tick> {
        let of_machine = [
            Tick::ClientTimer,
            Tick::ClientOpen,
            Tick::Sample,
            Tick::Disk,
            Tick::Server,
        ];
        let of_nic = [NicTick::AtNic, NicTick::AtClients];
        let of_nics = (0..MOST_NICS as u8).flat_map(|nic| of_nic.map(|tick| Tick::Nic(tick, nic)));
        of_machine.into_iter().chain(of_nics).collect()
    }

    #[test]
    fn each_tick_has_its_place() {
        let ticks = ticks();
        assert!((0..).zip(&ticks).all(|(place, tick)| tick.index() == place));
        assert!(
            (0..)
                .zip(&ticks)
                .all(|(place, tick)| Tick::at(place) == *tick)
        );
        assert_eq!(ticks.len(), TICKS);
    }

    #[test]
    fn nothing_happens_until_something_is_armed() {
        let mut table = Timetable::new();
        assert_eq!(table.take_next(), None);
        table.arm(Tick::Disk, Time::from_ps(3));
        table.arm(Tick::Disk, Time::from_ps(5));
        let disk = (Time::from_ps(3), Tick::Disk);
        assert_eq!(table.take_next(), Some(disk), "the earlier counts");
        table.arm(Tick::Disk, Time::from_ps(7));
        table.disarm(Tick::Disk.index());
        assert_eq!(table.take_next(), None);
    }

    proptest! {
        /// Compares the timetable with a list in the order of arming.
        #[test]
        fn the_earliest_goes_first_and_of_equals_the_one_armed_first(
            steps in prop::collection::vec((0_usize..32, 0_u64..6), 0..200),
        ) {
            let ticks = ticks();
            let mut table = Timetable::new();
            let mut list: Vec<(Time, Tick)> = Vec::new();
            for (choice, ps) in steps {
                match ticks.get(choice) {
                    Some(&tick) if ps == 0 => {
                        table.disarm(tick.index());
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
                        prop_assert_eq!(table.take_next(), first.map(|place| list.remove(place)));
                    }
                }
            }
        }
    }
}
