//! Tests of the whole machine. They form one test program, because each program would have to compile the machine again.

mod checked;
mod hardware;
mod load;
mod long_run;
mod nics;
mod offload;
mod offload_cache;
mod servers;
mod whole;
