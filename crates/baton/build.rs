//! Notes whether the program has `baton live`, which contains a library.

use std::env;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(live)");
    // A feature cannot depend on the target.
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if linux && env::var_os("CARGO_FEATURE_LIVE").is_some() {
        println!("cargo::rustc-cfg=live");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
