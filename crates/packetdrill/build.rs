//! The shared object stays in memory once loaded. Threads that called into it run destructors of its thread-local values when they
//! end, possibly after a tool has closed the object.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
