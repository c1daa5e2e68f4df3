//! Implementation of the fuzz targets. Each function accepts arbitrary bytes and panics only on errors.
//!
//! The targets themselves are in `fuzz/`, which requires a nightly compiler. With any compiler, the test `replay` passes every input of
//! `fuzz/corpus` to these functions, and the test `random` passes inputs drawn from seeds.

mod access_log;
mod application;
mod broker;
mod capture;
mod control;
mod conversation;
mod descriptors;
mod experiment;
mod frame;
mod hostile_adapter;
mod packet;
mod portable;
mod shared_memory;
mod stream;

pub use access_log::access_log;
pub use application::application;
pub use broker::broker;
pub use capture::capture;
pub use control::control;
pub use conversation::segments;
pub use descriptors::descriptors;
pub use experiment::experiment;
pub use frame::frame;
pub use hostile_adapter::hostile_adapter;
pub use packet::packet;
pub use portable::portable;
pub use shared_memory::shared_memory;
pub use stream::stream;

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets.
pub const TARGETS: &[Target] = &[
    ("packet", packet),
    ("frame", frame),
    ("segments", segments),
    ("portable", portable),
    ("application", application),
    ("broker", broker),
    ("control", control),
    ("descriptors", descriptors),
    ("access_log", access_log),
    ("capture", capture),
    ("experiment", experiment),
    ("hostile_adapter", hostile_adapter),
    ("shared_memory", shared_memory),
    ("stream", stream),
];
