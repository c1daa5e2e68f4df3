//! placeholder
use crate::cli::GenerateArgs;
use crate::failure::Failure;
pub fn execute(_: &GenerateArgs) -> Result<(), Failure> {
    Ok(())
}
