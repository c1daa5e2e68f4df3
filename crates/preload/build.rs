//! The shared object stays in memory once loaded: the threads that called into it run destructors of its
//! thread-local values when they end, which may be after a tool has closed it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
