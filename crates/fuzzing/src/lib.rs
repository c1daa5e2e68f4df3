//! What the fuzz targets do with their input. Each function takes any bytes and panics only where something is wrong.
//!
//! The targets themselves are in `fuzz/`, which needs a nightly compiler; with any compiler the test `replay` runs every input of
//! `fuzz/corpus` through these functions, and the test `random` inputs drawn from seeds.

mod access_log;
mod application;
mod broker;
mod capture;
mod conversation;
mod descriptors;
mod experiment;
mod frame;
mod hostile_adapter;
mod packet;
mod portable;
mod shared_memory;
mod stream;

pub use access_log::{SPELLED, access_log};
pub use application::application;
pub use broker::broker;
pub use capture::capture;
pub use conversation::segments;
pub use descriptors::descriptors;
pub use experiment::experiment;
pub use frame::frame;
pub use hostile_adapter::hostile_adapter;
pub use packet::packet;
pub use portable::portable;
pub use shared_memory::shared_memory;
pub use stream::stream;

/// A fuzz target: its name, which is that of its corpus, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("packet", packet),
    ("frame", frame),
    ("segments", segments),
    ("portable", portable),
    ("application", application),
    ("broker", broker),
    ("descriptors", descriptors),
    ("access_log", access_log),
    ("capture", capture),
    ("experiment", experiment),
    ("hostile_adapter", hostile_adapter),
    ("shared_memory", shared_memory),
    ("stream", stream),
];
