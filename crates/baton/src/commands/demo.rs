//! placeholder
use crate::cli::DemoArgs;
use crate::failure::Failure;
pub fn execute(_: &DemoArgs) -> Result<(), Failure> {
    Ok(())
}
