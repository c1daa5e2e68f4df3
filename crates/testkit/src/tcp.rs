//! Random configurations of TCP, and its stacks as ends of a network.

use crate::{End, Network, Pair, Random};
use baton_tcp::{
    Config, Congestion, EcnMode, Keepalive, LinuxRules, MtuProbing, NagleRule, ProbePathMtu,
    Segment, Stack, SynCookies, WindowProbe, WindowUpdate,
};
use baton_wire::{Payload, Time};

/// Two stacks, and the network between them.
pub type Stacks<P> = Pair<Stack<P>, Network<Segment<P>>>;

/// A stack without an application: the test reads, writes and polls events.
impl<P: Payload> End for Stack<P> {
    type Frame = Segment<P>;

    fn receive(&mut self, now: Time, segment: Segment<P>) {
        self.handle_segment(now, segment);
    }

    fn step(&mut self, now: Time) {
        self.handle_timeouts(now);
    }

    fn transmit(&mut self, now: Time) -> Option<Segment<P>> {
        let (_, segment) = self.poll_transmit(now)?;
        Some(segment)
    }

    fn next(&mut self, _now: Time) -> Option<Time> {
        self.poll_timeout()
    }
}

/// The built-in controllers.
const CONTROLLERS: [Congestion; 4] = [
    Congestion::NewReno,
    Congestion::Cubic,
    Congestion::Dctcp,
    Congestion::Bbr,
];

/// Draws a configuration under which every byte arrives, however long that takes.
pub fn patient_config(random: &mut Random) -> Config {
    let keepalive = Keepalive {
        idle_ms: 500,
        interval_ms: 300,
        probes: 200,
    };
    Config {
        mss: random.one_of(&[536, 1000, 1460, 8960]),
        send_buffer: 500 + random.below(79_500) as u32,
        receive_buffer: 500 + random.below(79_500) as u32,
        window_scaling: random.percent(70),
        window_scale: random.one_of(&[None, None, Some(0), Some(9)]),
        timestamps: random.percent(60),
        sack: random.percent(60),
        initial_window_segments: 1 + random.below(10) as u32,
        nagle: random.percent(50),
        nagle_rule: random.one_of(&[NagleRule::Classic, NagleRule::Minshall]),
        rto_min_ms: random.one_of(&[10, 200]),
        rto_initial_ms: random.one_of(&[300, 1000, 3000]),
        rto_max_ms: 4_000,
        delayed_ack_ms: random.one_of(&[0, 40, 100, 200]),
        ack_every_segments: 1 + random.below(3) as u32,
        quick_acks: random.one_of(&[0, 2, 16]),
        eager_acks: random.percent(50),
        ack_rate_limit_ms: random.one_of(&[0, 500]),
        challenge_acks_per_second: random.one_of(&[0, 10]),
        delay_fin_ack: random.percent(50),
        data_retries: 200,
        syn_retries: 100,
        syn_ack_retries: 100,
        congestion: random.one_of(&CONTROLLERS),
        hystart: random.percent(50),
        slow_start_after_idle: random.percent(50),
        limited_transmit: random.percent(50),
        rack_tlp: random.percent(70),
        rate_reduction: random.percent(70),
        duplicate_sack: random.percent(70),
        forward_rto: random.percent(70),
        undo: random.percent(70),
        ecn: random.one_of(&[EcnMode::Off, EcnMode::Accept, EcnMode::Request]),
        route_mss: random.one_of(&[None, None, Some(600)]),
        window_clamp: random.one_of(&[u32::MAX, 5000]),
        not_sent_low_water: random.one_of(&[u32::MAX, 3000]),
        cork_limit_ms: random.one_of(&[0, 200]),
        window_probe: random.one_of(&[WindowProbe::OldNumber, WindowProbe::NextByte]),
        window_update: random.one_of(&[WindowUpdate::TwoSegments, WindowUpdate::Doubled]),
        linux: LinuxRules {
            max_pacing_rate: random.one_of(&[None, Some(20_000), Some(2_000_000)]),
            ..random.one_of(&[LinuxRules::NONE, LinuxRules::ALL])
        },
        mtu_probing: mtu_probing(random),
        keepalive: random.percent(30).then_some(keepalive),
        ..Config::default()
    }
}

/// Returns random settings of path MTU probing, with a search that begins at a small size and soon restarts.
fn mtu_probing(random: &mut Random) -> MtuProbing {
    let modes = [
        ProbePathMtu::Off,
        ProbePathMtu::AfterBlackHole,
        ProbePathMtu::Always,
    ];
    MtuProbing {
        when: random.one_of(&modes),
        base_mss: 64 + random.below(1436) as u16,
        floor_mss: 1 + random.below(599) as u16,
        interval_s: 1 + random.below(29) as u32,
        threshold: 2 + random.below(98) as u16,
    }
}

/// Draws a configuration with any rules, under which connections may end soon, and buffers of at most 20,000 bytes.
pub fn any_config(random: &mut Random) -> Config {
    let keepalive = Keepalive {
        idle_ms: 1 + random.below(1 << 16) as u32,
        interval_ms: 1 + random.below(1 << 16) as u32,
        probes: 1 + random.below(255) as u32,
    };
    let cookies = [SynCookies::Off, SynCookies::OnOverflow, SynCookies::Always];
    let shift = random.below(15) as u8;
    let user_timeout_ms = 1 + random.below(1 << 16) as u32;
    Config {
        mss: 64 + random.below(1397) as u16,
        send_buffer: 1 + random.below(20_000) as u32,
        receive_buffer: 1 + random.below(20_000) as u32,
        window_scale: random.percent(30).then_some(shift),
        data_retries: random.below(5) as u32,
        syn_retries: random.below(3) as u32,
        syn_ack_retries: random.below(4) as u32,
        syn_cookies: random.one_of(&cookies),
        fin_wait_2_ms: 1 + random.below(1 << 16) as u32,
        msl_ms: 1 + random.below(1 << 16) as u32,
        user_timeout_ms: random.percent(50).then_some(user_timeout_ms),
        keepalive: random.percent(20).then_some(keepalive),
        delayed_ack_ms: random.below(500) as u32,
        path_mtu_discovery: random.percent(50),
        abort_on_close_with_unread: random.percent(50),
        not_sent_low_water: random.below(1 << 16) as u32,
        ..patient_config(random)
    }
}
