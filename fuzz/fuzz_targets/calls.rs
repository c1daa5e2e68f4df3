//! Sequences of socket calls. As root, with `BATON` naming the program, beside which `baton-sequences` and `deps/libbaton_preload.so` are.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| baton_sequences::compare::check(data));
