//! A machine for full offload (the batching paper): all of TCP on the adapter, sockets by descriptors, and a web server that httperf-like
//! clients ask for one file.
//!
//! Host and adapter are the live ones' code, [`baton_host::offload`] and [`baton_nic::offload`]; here they meet over a link on which
//! crossings take time and are counted, and each is a process that sleeps, wakes up, and does all that is there in one piece of work.
//! What a piece of work sends leaves when it is done.

mod adapter_side;
mod carrier;
mod clients;
mod config;
mod host_side;
mod http;
mod link;
mod machine;
mod measured;
mod pages;
mod results;
mod worker;

pub use config::{
    AdapterCosts, AdapterSideConfig, Experiment, HostCosts, HostSideConfig, LinkConfig, LoadConfig,
    RunConfig,
};
pub use machine::{RunError, run};
pub use pages::PagesConfig;
pub use results::Results;
