//! A network that loses, delays, reorders and duplicates.

use baton_wire::impairment::{Impairer, Impairment};
use baton_wire::{Span, Time};

/// One direction of the network, with the frames in flight.
#[derive(Clone, Debug)]
pub struct Network<F> {
    /// Frames with their arrival times.
    pub frames: Vec<(Time, F)>,
    impairer: Impairer,
    delay: Span,
}

impl<F: Clone> Network<F> {
    /// Creates a network on which each frame takes `delay`, and more where it is impaired.
    pub fn new(impairment: Impairment, delay: Span, seed: u64) -> Self {
        Self {
            frames: Vec::new(),
            impairer: Impairer::new(impairment, seed),
            delay,
        }
    }

    /// Sends a frame.
    pub fn send(&mut self, now: Time, frame: F) {
        if self.impairer.loses().is_some() {
            return;
        }
        let copies = 1 + usize::from(self.impairer.duplicates());
        for frame in std::iter::repeat_n(frame, copies) {
            let at = now + self.delay + self.impairer.jitter();
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
