//! Tests of the whole machine. They are one program, since each program would have to build the machine again.

mod checked;
mod load;
mod long_run;
mod nics;
mod offload;
mod offload_cache;
mod servers;
mod whole;
