//! A network that loses, delays, reorders and duplicates frames, and two ends that it connects.

use baton_wire::impairment::{Impairer, Impairment};
use baton_wire::{Span, Time};
use std::collections::VecDeque;

/// One direction between two ends.
pub trait Way {
    /// Type of the frames.
    type Frame;
    /// Sends a frame.
    fn send(&mut self, now: Time, frame: Self::Frame);
    /// Returns when the next frame arrives.
    fn next_arrival(&self) -> Option<Time>;
    /// Returns the next frame that has arrived.
    fn receive(&mut self, now: Time) -> Option<Self::Frame>;
}

/// One direction of a network, with the frames in flight.
#[derive(Clone, Debug)]
pub struct Network<F> {
    /// Frames with their arrival times, in order.
    pub frames: VecDeque<(Time, F)>,
    impairer: Impairer,
    delay: Span,
}

impl<F: Clone> Network<F> {
    /// Creates a network on which each frame takes `delay`, plus the delay that `impairment` adds.
    pub fn new(impairment: Impairment, delay: Span, seed: u64) -> Self {
        Self {
            frames: VecDeque::new(),
            impairer: Impairer::new(impairment, seed),
            delay,
        }
    }

    /// Sends a frame. Returns false if it is lost.
    pub fn carries(&mut self, now: Time, frame: F) -> bool {
        if self.impairer.loses().is_some() {
            return false;
        }
        let copies = 1 + usize::from(self.impairer.duplicates());
        for frame in std::iter::repeat_n(frame, copies) {
            let at = now + self.delay + self.impairer.jitter();
            let earlier = self.frames.iter().rev();
            let later = earlier.take_while(|(other, _)| *other > at).count();
            self.frames.insert(self.frames.len() - later, (at, frame));
        }
        true
    }
}

impl<F: Clone> Way for Network<F> {
    type Frame = F;

    fn send(&mut self, now: Time, frame: F) {
        self.carries(now, frame);
    }

    fn next_arrival(&self) -> Option<Time> {
        self.frames.front().map(|&(at, _)| at)
    }

    fn receive(&mut self, now: Time) -> Option<F> {
        let next = self.frames.pop_front_if(|(at, _)| *at <= now);
        next.map(|(_, frame)| frame)
    }
}

/// One of two ends that exchange frames.
pub trait End {
    /// Type of the frames that the end sends and receives.
    type Frame;
    /// Handles a frame.
    fn receive(&mut self, now: Time, frame: Self::Frame);
    /// Runs timers and the application, as far as they are due.
    fn step(&mut self, now: Time);
    /// Returns the next frame to send.
    fn transmit(&mut self, now: Time) -> Option<Self::Frame>;
    /// Returns when the end has to be stepped again, if ever.
    fn next(&mut self, now: Time) -> Option<Time>;
}

impl<E: End + ?Sized> End for &mut E {
    type Frame = E::Frame;

    fn receive(&mut self, now: Time, frame: Self::Frame) {
        (**self).receive(now, frame);
    }

    fn step(&mut self, now: Time) {
        (**self).step(now);
    }

    fn transmit(&mut self, now: Time) -> Option<Self::Frame> {
        (**self).transmit(now)
    }

    fn next(&mut self, now: Time) -> Option<Time> {
        (**self).next(now)
    }
}

/// Two ends on virtual time.
#[derive(Debug)]
pub struct Pair<E, W> {
    /// The time.
    pub now: Time,
    /// The ends.
    pub ends: [E; 2],
    /// The direction towards each end.
    pub ways: [W; 2],
}

impl<E: End<Frame: Clone>> Pair<E, Network<E::Frame>> {
    /// Joins two ends by a network that loses nothing and takes no time.
    pub fn joined(ends: [E; 2]) -> Self {
        let way = || Network::new(Impairment::default(), Span::ZERO, 0);
        Self {
            now: Time::ZERO,
            ends,
            ways: [way(), way()],
        }
    }
}

impl<E: End, W: Way<Frame = E::Frame>> Pair<E, W> {
    /// Maximum number of steps of an end at one moment.
    const MOST_STEPS: usize = 100_000;

    /// Lets both ends do everything that they can do now, and advances the time to the next timer or arrival. Returns false if there is
    /// none.
    pub fn step(&mut self) -> bool {
        self.exchange(0);
        self.exchange(1);
        let now = self.now;
        let timers = self.ends.iter_mut().filter_map(|end| end.next(now));
        let arrivals = self.ways.iter().filter_map(Way::next_arrival);
        let next = timers.chain(arrivals).min();
        self.now = next.map_or(now, |next| next.max(now));
        next.is_some()
    }

    /// Lets both ends do everything that they can do now, until nothing more arrives.
    pub fn settle(&mut self) {
        let mut has_arrived = true;
        while has_arrived {
            self.exchange(0);
            self.exchange(1);
            let mut arrivals = self.ways.iter().filter_map(Way::next_arrival);
            has_arrived = arrivals.any(|at| at <= self.now);
        }
    }

    fn exchange(&mut self, side: usize) {
        let (now, end) = (self.now, &mut self.ends[side]);
        while let Some(frame) = self.ways[side].receive(now) {
            end.receive(now, frame);
        }
        for count in 0.. {
            assert!(count < Self::MOST_STEPS, "an end must become idle");
            end.step(now);
            let Some(frame) = end.transmit(now) else {
                break;
            };
            self.ways[1 - side].send(now, frame);
        }
    }
}
