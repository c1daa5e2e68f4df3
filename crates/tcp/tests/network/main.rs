//! Two ends and a bottleneck between them, on virtual time: how much gets through, and who gets it. The other end is the
//! same engine, or smoltcp, which we did not write.
//!
//! The results are recorded as snapshots: a change that moves one is to be looked at, and accepted with
//! `INSTA_UPDATE=always cargo test -p baton-tcp --test network` when it is meant.

mod black_hole;
mod controllers;
mod engine;
mod fairness;
mod matrix;
mod other_stack;
mod path;
mod world;
