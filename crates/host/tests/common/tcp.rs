//! Random TCP configurations that survive any sequence of losses.

use super::patient::patient;
use baton_tcp::Config;
use baton_testkit::Random;

/// Returns a configuration with random buffers and options.
pub fn tcp_config(random: &mut Random) -> Config {
    Config {
        send_buffer: 2000 + random.below(30_000) as u32,
        receive_buffer: 3000 + random.below(60_000) as u32,
        window_scaling: random.percent(50),
        timestamps: random.percent(50),
        sack: random.percent(50),
        nagle: random.percent(50),
        ..patient()
    }
}
