use super::*;

#[test]
fn the_default_configuration_is_valid() {
    assert_eq!(Config::default().check(), Ok(()));
}

#[test]
fn impossible_parameters_are_named() {
    type Spoil = fn(&mut Config);
    let cases: [(&str, Spoil); 21] = [
        ("mss", |c| c.mss = 63),
        ("send_buffer", |c| c.send_buffer = 0),
        ("receive_buffer", |c| c.receive_buffer = (1 << 30) + 1),
        ("initial_window_segments", |c| c.initial_window_segments = 0),
        ("ack_every_segments", |c| c.ack_every_segments = 0),
        ("rto_min_ms", |c| c.rto_min_ms = 0),
        ("rto_min_ms", |c| c.rto_min_ms = c.rto_max_ms + 1),
        ("rto_initial_ms", |c| c.rto_initial_ms = c.rto_max_ms + 1),
        ("delayed_ack_ms", |c| c.delayed_ack_ms = 500),
        ("timer_tick_ms", |c| c.timer_tick_ms = 1_001),
        ("window_scale", |c| c.window_scale = Some(15)),
        ("window_clamp", |c| c.window_clamp = 0),
        ("route_mss", |c| {
            c.route_mss = Some(63);
        }),
        ("linux.max_pacing_rate", |c| {
            c.linux.max_pacing_rate = Some(0);
        }),
        ("mtu_probing.base_mss", |c| c.mtu_probing.base_mss = 63),
        ("mtu_probing.floor_mss", |c| c.mtu_probing.floor_mss = 0),
        ("mtu_probing.interval_s", |c| c.mtu_probing.interval_s = 0),
        ("mtu_probing.threshold", |c| c.mtu_probing.threshold = 1),
        ("user_timeout_ms", |c| c.user_timeout_ms = Some(0)),
        ("keepalive.idle_ms", |c| {
            c.keepalive = Some(Keepalive {
                idle_ms: 0,
                ..Keepalive::default()
            })
        }),
        ("keepalive.probes", |c| {
            c.keepalive = Some(Keepalive {
                probes: 0,
                ..Keepalive::default()
            })
        }),
    ];
    for (field, spoil) in cases {
        let mut config = Config::default();
        spoil(&mut config);
        let error = config.check().expect_err(field);
        assert_eq!(error.field, field);
        let text = error.to_string();
        assert!(
            text.starts_with(field) && text.contains("expected"),
            "{text}"
        );
    }
}
