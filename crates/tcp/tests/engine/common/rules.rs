//! Random settings of the rules other than recovery.

use baton_tcp::{
    Config, Keepalive, LinuxRules, MtuProbing, NagleRule, ProbePathMtu, WindowProbe, WindowUpdate,
};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Returns `config` with settings under which every byte still arrives, however long that takes.
pub fn with_patient_rules(rng: &mut Pcg64Mcg, config: Config) -> Config {
    Config {
        syn_ack_retries: 100,
        quick_acks: [0, 2, 16][rng.random_range(0..3)],
        eager_acks: rng.random_bool(0.5),
        ack_rate_limit_ms: [0, 500][rng.random_range(0..2)],
        challenge_acks_per_second: [0, 10][rng.random_range(0..2)],
        window_scale: [None, None, Some(0), Some(9)][rng.random_range(0..4)],
        route_mss: [None, None, Some(600)][rng.random_range(0..3)],
        window_clamp: [u32::MAX, 5000][rng.random_range(0..2)],
        not_sent_low_water: [u32::MAX, 3000][rng.random_range(0..2)],
        cork_limit_ms: [0, 200][rng.random_range(0..2)],
        window_probe: [WindowProbe::OldNumber, WindowProbe::NextByte][rng.random_range(0..2)],
        window_update: [WindowUpdate::TwoSegments, WindowUpdate::Doubled][rng.random_range(0..2)],
        linux: LinuxRules {
            max_pacing_rate: [None, Some(20_000), Some(2_000_000)][rng.random_range(0..3)],
            ..[LinuxRules::NONE, LinuxRules::ALL][rng.random_range(0..2)]
        },
        delay_fin_ack: rng.random_bool(0.5),
        nagle_rule: [NagleRule::Classic, NagleRule::Minshall][rng.random_range(0..2)],
        mtu_probing: mtu_probing(rng),
        keepalive: rng.random_bool(0.3).then_some(Keepalive {
            idle_ms: 500,
            interval_ms: 300,
            probes: 200,
        }),
        ..config
    }
}

/// Returns random settings of path MTU probing, with a search that begins at a small size and soon restarts.
fn mtu_probing(rng: &mut Pcg64Mcg) -> MtuProbing {
    let modes = [
        ProbePathMtu::Off,
        ProbePathMtu::AfterBlackHole,
        ProbePathMtu::Always,
    ];
    MtuProbing {
        when: modes[rng.random_range(0..3)],
        base_mss: rng.random_range(64..1500),
        floor_mss: rng.random_range(1..600),
        interval_s: rng.random_range(1..30),
        threshold: rng.random_range(2..100),
    }
}
