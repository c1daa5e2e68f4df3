//! Plays scenarios of a Linux application and its peer through the C interface.

#![allow(unsafe_code)]

mod player;

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("scenarios/", stringify!($name), ".txt"));
                player::play_file(stringify!($name), text);
            }
        )*
    };
}

scenarios!(
    arguments,
    blocking,
    close,
    ecn,
    epoll,
    fast_open,
    handshake,
    interface,
    invalid,
    mtu_probing,
    nagle,
    options,
    paths,
    receive,
    recovery,
    send,
    shutdown,
    splice,
    timers,
    timestamping,
    urgent,
    windows,
    zero_copy,
);

/// Plays the file that the environment variable BATON_SCENARIOS names, for experiments.
#[test]
fn named_file() {
    if let Some(path) = std::env::var_os("BATON_SCENARIOS") {
        let text = std::fs::read_to_string(&path).expect("a file");
        player::play_file(&path.to_string_lossy(), &format!("\n{text}"));
    }
}
