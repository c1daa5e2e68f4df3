//! placeholder
use crate::cli::ReproduceArgs;
use crate::failure::Failure;
pub fn execute(_: &ReproduceArgs) -> Result<(), Failure> {
    Ok(())
}
