//! A network that loses, delays, reorders and duplicates.

use crate::Random;
use baton_wire::{Span, Time};

/// One direction of the network, with the frames in flight.
#[derive(Clone, Debug)]
pub struct Network<F> {
    /// Frames with their arrival times.
    pub frames: Vec<(Time, F)>,
    /// Percentage of frames that are lost.
    pub loss_percent: u64,
    /// Percentage of frames, among those not lost, that are duplicated.
    pub duplicate_percent: u64,
    /// Upper bound of the random delay that is added to 5 µs for each frame, so that frames overtake each other.
    pub most_delay_us: u64,
}

impl<F: Clone> Network<F> {
    /// Sends a frame.
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

    /// Returns when the next frame arrives.
    pub fn next_arrival(&self) -> Option<Time> {
        self.frames.iter().map(|(at, _)| *at).min()
    }

    /// Returns the next frame that has arrived.
    pub fn receive(&mut self, now: Time) -> Option<F> {
        let first = (0..self.frames.len()).min_by_key(|&index| self.frames[index].0)?;
        (self.frames[first].0 <= now).then(|| self.frames.swap_remove(first).1)
    }
}
