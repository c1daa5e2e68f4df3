//! The program `baton`.

use std::process::ExitCode;

/// The library that `baton live run` preloads. Cargo builds it before this program, which depends on it.
#[cfg(live)]
const LIBRARY: &[u8] = include_bytes!(concat!(
    env!("OUT_DIR"),
    "/../../../deps/libbaton_preload.so"
));
#[cfg(not(live))]
const LIBRARY: &[u8] = &[];

fn main() -> ExitCode {
    baton::run(LIBRARY)
}
