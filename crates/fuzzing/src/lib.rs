//! Implementation of the fuzz targets. Each function accepts arbitrary bytes and panics only on errors.
//!
//! The targets themselves are in `fuzz/`, which requires a nightly compiler. With any compiler, the test `replay` passes every input of
//! `fuzz/corpus` to these functions, and the test `random` passes inputs drawn from seeds.
//!
//! | to find | look in |
//! |---|---|
//! | all targets by name | [`TARGETS`] |
//! | frames and packets of a network | [`frame()`], [`packet()`] |
//! | TCP connections whose peers and owner do anything | [`segments`], `src/conversation/` |
//! | states of connections, intact and damaged | [`portable()`] |
//! | applications and adapters that break the rules | [`application()`], [`hostile_adapter()`], [`descriptors()`] |
//! | connections that move, over links and networks with faults | [`cluster()`] |
//! | links to which a third party writes | [`shared_memory()`], [`stream()`] |
//! | messages of the broker, questions about a running engine | [`broker()`], [`control()`] |
//! | files of users: logs, captures, experiments | [`access_log()`], [`capture()`], [`experiment()`] |

mod access_log;
mod application;
mod broker;
mod capture;
mod cluster;
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
pub use cluster::cluster;
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
    ("cluster", cluster),
    ("experiment", experiment),
    ("hostile_adapter", hostile_adapter),
    ("shared_memory", shared_memory),
    ("stream", stream),
];
