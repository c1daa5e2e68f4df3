//! Options for when one side of a live link sends descriptors to the other.

use clap::{Args, ValueEnum};

/// Batching of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct DescriptorArgs {
    /// Who chooses when descriptors are sent to the other side [default: fixed]
    #[arg(long, value_name = "KIND")]
    pub batching: Option<BatchingName>,
    /// Number of waiting descriptors at which they are sent (1 to 128); 1 sends those of one piece of work together [default: 1]
    #[arg(long, value_name = "N")]
    pub level: Option<u32>,
    /// Maximum time that a descriptor waits for others, microseconds [default: 1000]
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub timer_us: Option<u32>,
    /// Maximum number of descriptors in one transfer [default: 128]
    #[arg(long, value_name = "N")]
    pub max_descriptors: Option<u32>,
}

/// Batching policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BatchingName {
    /// The user, by --level and --timer-us.
    Fixed,
    /// The side itself, from what it observes.
    Adaptive,
}
