//! Tests of the whole machine. They form one test program, because each program would have to compile the machine again.

mod checked;
mod hardware;
mod load;
mod long_run;
mod offload;
mod offload_cache;
mod play;
mod whole;

mod dialogues {
    baton_testkit::dialogues!(crate::play::Player, "machine/dialogues": hardware, load, nics, offload, offload_cache, servers, whole);
}
