//! A network that loses, delays, reorders and duplicates.

use baton_wire::impairment::{Impairer, Impairment, Share};
use baton_wire::{Span, Time};

/// Delay of a frame that nothing delays further.
const LEAST_DELAY: Span = Span::from_us(5);

/// One direction of the network, with the frames in flight.
#[derive(Clone, Debug)]
pub struct Network<F> {
    /// Frames with their arrival times.
    pub frames: Vec<(Time, F)>,
    impairer: Impairer,
}

impl<F: Clone> Network<F> {
    /// Creates a network that loses and duplicates these percentages of frames, and adds up to `most_delay` to 5 µs for each frame, so that
    /// frames overtake each other.
    pub fn new(loss_percent: u64, duplicate_percent: u64, most_delay: Span, seed: u64) -> Self {
        let share = |percent: u64| Share::from_probability(percent as f64 / 100.0);
        let impairment = Impairment {
            loss: share(loss_percent),
            duplicate: share(duplicate_percent),
            jitter: most_delay,
            ..Impairment::default()
        };
        Self {
            frames: Vec::new(),
            impairer: Impairer::new(impairment, seed),
        }
    }

    /// Sends a frame.
    pub fn send(&mut self, now: Time, frame: F) {
        if self.impairer.loses().is_some() {
            return;
        }
        let copies = 1 + usize::from(self.impairer.duplicates());
        for frame in std::iter::repeat_n(frame, copies) {
            let at = now + LEAST_DELAY + self.impairer.jitter();
            self.frames.push((at, frame));
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
