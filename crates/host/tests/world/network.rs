//! A network that loses, delays, reorders and duplicates.

use super::Random;
use baton_tcp::{Segment, Symbolic};
use baton_wire::{Span, Time};

/// Frames on their way, each with the time it arrives.
#[derive(Default)]
pub struct Network {
    pub frames: Vec<(Time, Segment<Symbolic>)>,
    pub loss_percent: u64,
    pub duplicate_percent: u64,
    pub most_delay_us: u64,
}

impl Network {
    pub fn send(&mut self, now: Time, segment: Segment<Symbolic>, random: &mut Random) {
        if random.percent(self.loss_percent) {
            return;
        }
        let copies = if random.percent(self.duplicate_percent) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let delay = Span::from_us(5 + random.below(self.most_delay_us));
            self.frames.push((now + delay, segment.clone()));
        }
    }

    pub fn next_arrival(&self) -> Option<Time> {
        self.frames.iter().map(|(at, _)| *at).min()
    }

    pub fn receive(&mut self, now: Time) -> Option<Segment<Symbolic>> {
        let first = (0..self.frames.len()).min_by_key(|&i| self.frames[i].0)?;
        (self.frames[first].0 <= now).then(|| self.frames.swap_remove(first).1)
    }
}
