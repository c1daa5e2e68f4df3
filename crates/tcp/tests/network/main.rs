//! Tests of two ends with a bottleneck between them, in virtual time: how much data arrives, and how flows share the bottleneck. The other
//! end is the same engine, or smoltcp, an independent implementation.
//!
//! The results are recorded as snapshots. Review any change of a snapshot, and accept it with
//! `INSTA_UPDATE=always cargo test -p baton-tcp --test network` if it is intended.

mod black_hole;
mod controllers;
mod engine;
mod fairness;
mod matrix;
mod other_stack;
mod path;
mod world;
