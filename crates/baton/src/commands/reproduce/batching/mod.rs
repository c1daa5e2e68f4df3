//! "Evaluating Batching for TCP Offload" (IBM Research): how many bus crossings batching of descriptors saves, and how it affects response
//! times, simulated or measured; and the studies that the paper leaves open.

mod bench;
mod lab;
#[cfg(live)]
mod live;
mod machine;
mod published;
mod search;
mod settings;
mod studies;
mod table;

pub use studies::NAMES as STUDIES;

use super::{Context, Outcome, Reproduction};
use crate::failure::Failure;
use lab::Lab;
#[cfg(live)]
use live::LiveBench;

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "batching",
    about: "response time and bus crossings with batching on host and adapter (IBM Research), and studies it leaves open (--study)",
    figure: true,
    run,
};

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    #[cfg(live)]
    if context.batching.measures_this_machine() {
        return table::run(&LiveBench::new(context)?);
    }
    let lab = Lab::new(context)?;
    if context.batching.study.is_empty() {
        table::run(&lab)
    } else {
        studies::run(&lab, &context.batching.study)
    }
}
