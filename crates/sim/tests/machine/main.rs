//! The machine as a whole. One program, since each has a machine of its own to be built.

mod checked;
mod load;
mod long_run;
mod nics;
mod offload;
mod offload_cache;
mod servers;
mod whole;
