//! Batching of one side, from the command line.

use crate::cli::{BatchingName, DescriptorArgs};
use crate::failure::Failure;
use baton_bus::{Batching, BatchingPolicy, Descriptor};

/// Returns the requested batching for a ring of `depth` descriptors, with `usual` for options that were not given.
///
/// # Errors
/// Fails if the values are not valid.
pub(super) fn batching(
    arguments: DescriptorArgs,
    usual: &Batching,
    depth: u32,
) -> Result<Batching, Failure> {
    let policy = match arguments.batching {
        None | Some(BatchingName::Fixed) => BatchingPolicy::Fixed,
        Some(BatchingName::Adaptive) => BatchingPolicy::Adaptive,
    };
    let set = arguments.level.or(arguments.timer_us);
    if policy == BatchingPolicy::Adaptive && set.is_some() {
        let message =
            "--batching adaptive finds level and timer itself; leave out --level and --timer-us";
        return Err(Failure::BadInput(message.to_owned()));
    }
    let batching = Batching {
        policy,
        level: arguments.level.unwrap_or(usual.level),
        timer_us: arguments.timer_us.unwrap_or(usual.timer_us),
        max_descriptors: arguments.max_descriptors.unwrap_or(usual.max_descriptors),
        ..usual.clone()
    };
    let flag = match arguments.max_descriptors {
        Some(0) => "--max-descriptors",
        _ => "--level",
    };
    batching
        .validate(depth, Descriptor::BYTES)
        .map_err(|error| Failure::BadInput(format!("{flag}: {error}")))?;
    Ok(batching)
}
