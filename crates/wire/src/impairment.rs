//! What a bad link does to frames: losses, also in bursts, duplicates, reordering, corruption and jitter. Everything is drawn from a seed:
//! the same frames suffer the same faults.

use crate::Span;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A share of frames, in parts of 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// All frames.
    pub const ALL: Self = Self(1_000_000_000);
    /// No frame.
    pub const NONE: Self = Self(0);

    /// Creates a share of `ppb` frames in 10^9; returns `None` if `ppb` is greater than 10^9.
    pub const fn from_ppb(ppb: u32) -> Option<Self> {
        if ppb <= Self::ALL.0 {
            Some(Self(ppb))
        } else {
            None
        }
    }

    /// Creates a share from a probability, which is cut off at 0 and 1.
    pub fn from_probability(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * f64::from(Self::ALL.0)).round() as u32)
    }

    /// Draws whether a frame belongs to this share.
    fn draw(self, random: &mut impl Rng) -> bool {
        // Draw nothing for an empty share, so that it does not influence later draws.
        self.0 > 0 && random.random_range(0..Self::ALL.0) < self.0
    }
}

/// Burst loss (the model of Gilbert and Elliott): the link is good or bad, and may change its state with each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLoss {
    /// Share of frames at which a good link turns bad.
    pub enter: Share,
    /// Share of frames at which a bad link turns good; its inverse is the mean length of a burst.
    pub leave: Share,
    /// Share of frames lost while the link is bad.
    pub loss: Share,
}

/// The impairments of one direction of a link. The default is a perfect link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Share of frames lost, each independently.
    pub loss: Share,
    /// Losses in bursts.
    pub burst: Option<BurstLoss>,
    /// Share of frames delivered twice.
    pub duplicate: Share,
    /// Share of frames that later frames overtake.
    pub reorder: Share,
    /// Share of frames in which a bit is flipped.
    pub corrupt: Share,
    /// Maximum additional delay, drawn for each frame; frames may overtake each other.
    pub jitter: Span,
}

/// Why a frame is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Independently of other frames.
    Single,
    /// In a burst.
    Burst,
}

/// Draws the fate of frames.
#[derive(Clone, Debug)]
pub struct Impairer {
    impairment: Impairment,
    random: Pcg64Mcg,
    /// Whether the link is in its bad state.
    is_bad: bool,
}

impl Impairer {
    /// Creates an impairer of a link that is in its good state.
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            impairment,
            random: Pcg64Mcg::seed_from_u64(seed),
            is_bad: false,
        }
    }

    /// Returns the impairments.
    pub fn impairment(&self) -> &Impairment {
        &self.impairment
    }

    /// Draws whether the next frame is lost.
    pub fn loses(&mut self) -> Option<Loss> {
        if let Some(burst) = self.impairment.burst {
            let change = if self.is_bad {
                burst.leave
            } else {
                burst.enter
            };
            self.is_bad ^= change.draw(&mut self.random);
            if self.is_bad && burst.loss.draw(&mut self.random) {
                return Some(Loss::Burst);
            }
        }
        (self.impairment.loss.draw(&mut self.random)).then_some(Loss::Single)
    }

    /// Draws whether a bit of a frame of `bytes` bytes is flipped. Returns the bit.
    pub fn corrupts(&mut self, bytes: usize) -> Option<usize> {
        let corrupts = bytes > 0 && self.impairment.corrupt.draw(&mut self.random);
        corrupts.then(|| self.random.random_range(0..8 * bytes))
    }

    /// Draws whether a frame is delivered twice.
    pub fn duplicates(&mut self) -> bool {
        self.impairment.duplicate.draw(&mut self.random)
    }

    /// Draws whether later frames overtake a frame.
    pub fn reorders(&mut self) -> bool {
        self.impairment.reorder.draw(&mut self.random)
    }

    /// Draws the additional delay of a frame.
    pub fn jitter(&mut self) -> Span {
        match self.impairment.jitter {
            Span::ZERO => Span::ZERO,
            most => Span::from_ps(self.random.random_range(0..=most.as_ps())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_have_the_given_length_and_share() {
        let share = Share::from_probability;
        let burst = BurstLoss {
            enter: share(0.01),
            leave: share(0.25),
            loss: Share::ALL,
        };
        let impairment = Impairment {
            burst: Some(burst),
            ..Impairment::default()
        };
        let mut impairer = Impairer::new(impairment, 7);
        let lost: Vec<bool> = (0..200_000).map(|_| impairer.loses().is_some()).collect();
        let count = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((count / bursts - 4.0).abs() < 0.3, "{}", count / bursts);
        let expected = 0.01 / (0.01 + 0.25);
        assert!((count / 200_000.0 / expected - 1.0).abs() < 0.1, "{count}");
    }

    #[test]
    fn a_perfect_link_draws_nothing() {
        let mut impairer = Impairer::new(Impairment::default(), 1);
        assert_eq!(impairer.loses(), None);
        assert_eq!(impairer.corrupts(100), None);
        assert!(!impairer.duplicates() && !impairer.reorders());
        assert_eq!(impairer.jitter(), Span::ZERO);
    }
}
