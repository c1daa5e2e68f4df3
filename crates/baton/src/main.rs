//! The program `baton`.

use std::process::ExitCode;

fn main() -> ExitCode {
    baton::run()
}
