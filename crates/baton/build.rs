//! Notes whether the program has `baton live`, which contains a library.

use std::env;
use std::fs::OpenOptions;
use std::path::PathBuf;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(live)");
    // A feature cannot depend on the target.
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if linux && env::var_os("CARGO_FEATURE_LIVE").is_some() {
        println!("cargo::rustc-cfg=live");
        provide_library();
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Makes an empty file where the library will be: it is not built where programs are only checked.
fn provide_library() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets this variable"));
    let library = out.join("../../../deps/libbaton_preload.so");
    let made = OpenOptions::new().append(true).create(true).open(&library);
    made.unwrap_or_else(|error| panic!("{}: {error}", library.display()));
}
