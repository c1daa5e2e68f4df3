//! A network that loses, delays, reorders and duplicates.

use crate::Random;
use baton_wire::{Span, Time};

/// One direction, with the frames on their way.
#[derive(Clone, Debug)]
pub struct Network<F> {
    /// Each with the time at which it arrives.
    pub frames: Vec<(Time, F)>,
    /// Of a hundred frames.
    pub loss_percent: u64,
    /// Of a hundred frames that are not lost.
    pub duplicate_percent: u64,
    /// A frame takes 5 µs and less than so many more; each its own time, so that one overtakes another.
    pub most_delay_us: u64,
}

impl<F: Clone> Network<F> {
    /// Puts a frame on its way.
    pub fn send(&mut self, now: Time, frame: F, random: &mut Random) {
        if random.percent(self.loss_percent) {
            return;
        }
        let copies = 1 + usize::from(random.percent(self.duplicate_percent));
        for frame in std::iter::repeat_n(frame, copies) {
            let delay = Span::from_us(5 + random.below(self.most_delay_us));
            self.frames.push((now + delay, frame));
        }
    }

    /// When the next frame arrives.
    pub fn next_arrival(&self) -> Option<Time> {
        self.frames.iter().map(|(at, _)| *at).min()
    }

    /// The next frame that has arrived.
    pub fn receive(&mut self, now: Time) -> Option<F> {
        let first = (0..self.frames.len()).min_by_key(|&index| self.frames[index].0)?;
        (self.frames[first].0 <= now).then(|| self.frames.swap_remove(first).1)
    }
}
