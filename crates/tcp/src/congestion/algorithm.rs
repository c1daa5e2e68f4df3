//! The available congestion control algorithms.

use super::bbr::Bbr;
use super::cubic::Cubic;
use super::cubic_linux::LinuxCubic;
use super::custom::{Custom, Outsider};
use super::dctcp::Dctcp;
use super::new_reno::NewReno;
use crate::config::{Config, Congestion};
use serde::{Deserialize, Serialize};

/// An algorithm with its state. Small states are stored inline, since every acknowledgment uses them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Algorithm {
    NewReno(NewReno),
    Cubic(Cubic),
    Dctcp(Dctcp),
    Bbr(Box<Bbr>),
    Custom(Box<Outsider>),
    LinuxCubic(Box<LinuxCubic>),
}

/// Evaluates an expression with the controller of whichever variant the algorithm is.
macro_rules! ask {
    ($algorithm:expr, $it:ident => $question:expr) => {
        match $algorithm {
            Algorithm::NewReno($it) => $question,
            Algorithm::Cubic($it) => $question,
            Algorithm::Dctcp($it) => $question,
            Algorithm::Bbr($it) => $question,
            Algorithm::LinuxCubic($it) => $question,
            Algorithm::Custom(outsider) => {
                let $it = &mut outsider.controller;
                $question
            }
        }
    };
}
pub(super) use ask;

impl Algorithm {
    /// Creates the configured algorithm. `seed` is its only source of randomness.
    pub(super) fn new(config: &Config, seed: u64) -> Self {
        match config.congestion {
            Congestion::NewReno => Self::NewReno(NewReno::default()),
            Congestion::Cubic if config.linux.cubic => Self::LinuxCubic(Box::default()),
            Congestion::Cubic => Self::Cubic(Cubic::default()),
            Congestion::Dctcp => Self::Dctcp(Dctcp::default()),
            Congestion::Bbr => Self::Bbr(Box::new(Bbr::new(seed))),
            Congestion::Custom(custom) => Self::Custom(Box::new(Outsider::new(custom, seed))),
        }
    }

    pub(super) fn kind(&self) -> Congestion {
        match self {
            Self::NewReno(_) => Congestion::NewReno,
            Self::Cubic(_) | Self::LinuxCubic(_) => Congestion::Cubic,
            Self::Dctcp(_) => Congestion::Dctcp,
            Self::Bbr(_) => Congestion::Bbr,
            Self::Custom(outsider) => Congestion::Custom(outsider.custom()),
        }
    }

    /// Recreates a custom controller that was deserialized. Returns true if it starts without saved state.
    pub(super) fn revive(&mut self, custom: Custom) -> bool {
        match self {
            Self::Custom(outsider) => outsider.revive(custom),
            _ => false,
        }
    }
}
