//! Sequences of socket calls. Must run as root, with `BATON` naming the program. `baton-sequences` and `deps/libbaton_preload.so` must be in
//! the same folder.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| baton_sequences::compare::check(data));
