//! Configurations that an input may select.

use arbitrary::{Arbitrary, Result, Unstructured};
use baton_tcp::{
    Config, Congestion, EcnMode, Keepalive, MtuProbing, NagleRule, ProbePathMtu, SynCookies,
    WindowProbe, WindowUpdate,
};

use super::BUFFER;
use super::input::Change;

/// Configuration options that are not about loss recovery.
#[derive(Debug, Arbitrary)]
pub(super) struct Rules {
    syn_ack_retries: u8,
    fin_wait_2_ms: u16,
    msl_ms: u16,
    user_timeout_ms: Option<u16>,
    path_mtu_discovery: bool,
    abort_on_close_with_unread: bool,
    delay_fin_ack: bool,
    eager_acks: bool,
    limits_acks: bool,
    quick_acks: u8,
    window_scale: Option<u8>,
    not_sent_low_water: u16,
    corks_end: bool,
    probes_next_byte: bool,
    updates_when_doubled: bool,
    is_minshall: bool,
}

impl Rules {
    pub(super) fn apply(&self, config: Config) -> Config {
        Config {
            syn_ack_retries: (self.syn_ack_retries % 4).into(),
            fin_wait_2_ms: u32::from(self.fin_wait_2_ms) + 1,
            msl_ms: u32::from(self.msl_ms) + 1,
            user_timeout_ms: self.user_timeout_ms.map(|ms| u32::from(ms) + 1),
            path_mtu_discovery: self.path_mtu_discovery,
            abort_on_close_with_unread: self.abort_on_close_with_unread,
            delay_fin_ack: self.delay_fin_ack,
            eager_acks: self.eager_acks,
            ack_rate_limit_ms: if self.limits_acks { 500 } else { 0 },
            challenge_acks_per_second: if self.limits_acks { 10 } else { 0 },
            quick_acks: self.quick_acks.into(),
            window_scale: self.window_scale.map(|shift| shift % 15),
            not_sent_low_water: self.not_sent_low_water.into(),
            cork_limit_ms: if self.corks_end { 200 } else { 0 },
            window_probe: match self.probes_next_byte {
                true => WindowProbe::NextByte,
                false => WindowProbe::OldNumber,
            },
            window_update: match self.updates_when_doubled {
                true => WindowUpdate::Doubled,
                false => WindowUpdate::TwoSegments,
            },
            nagle_rule: match self.is_minshall {
                true => NagleRule::Minshall,
                false => NagleRule::Classic,
            },
            ..config
        }
    }
}

/// Returns any of the built-in algorithms.
fn congestion(number: u8) -> Congestion {
    const ALL: [Congestion; 4] = [
        Congestion::NewReno,
        Congestion::Cubic,
        Congestion::Dctcp,
        Congestion::Bbr,
    ];
    ALL[usize::from(number) % ALL.len()]
}

pub(super) fn change(config: &mut Config, change: &Change) {
    match *change {
        Change::SendBuffer(len) => config.send_buffer = len.into(),
        Change::ReceiveBuffer(len) => config.receive_buffer = u32::from(len).max(1),
        Change::Keepalive(times) => {
            config.keepalive = times.map(|(idle_ms, interval_ms, probes)| Keepalive {
                idle_ms: u32::from(idle_ms).max(1),
                interval_ms: u32::from(interval_ms).max(1),
                probes: probes.into(),
            });
        }
        Change::UserTimeout(ms) => config.user_timeout_ms = ms.map(u32::from),
        Change::DelayedAck(ms) => config.delayed_ack_ms = u32::from(ms) % 500,
        Change::QuickAcks(count) => config.quick_acks = count.into(),
        Change::WindowClamp(len) => config.window_clamp = len.into(),
        Change::Mss(mss) => config.mss = mss.max(64),
        Change::Congestion(number) => config.congestion = congestion(number),
        Change::MtuProbing {
            when,
            base_mss,
            interval_s,
            threshold,
        } => {
            config.mtu_probing = MtuProbing {
                when: [
                    ProbePathMtu::Off,
                    ProbePathMtu::AfterBlackHole,
                    ProbePathMtu::Always,
                ][usize::from(when % 3)],
                base_mss,
                floor_mss: base_mss / 4,
                interval_s: interval_s.into(),
                threshold: threshold.into(),
            };
        }
    }
}

pub(super) fn config(input: &mut Unstructured<'_>) -> Result<Config> {
    Ok(Config {
        mss: input.int_in_range(64..=1460)?,
        send_buffer: BUFFER,
        receive_buffer: input.int_in_range(1..=BUFFER)?,
        window_scaling: input.arbitrary()?,
        timestamps: input.arbitrary()?,
        sack: input.arbitrary()?,
        nagle: input.arbitrary()?,
        congestion: congestion(input.arbitrary()?),
        ecn: [EcnMode::Off, EcnMode::Accept, EcnMode::Request][input.int_in_range(0..=2)?],
        rack_tlp: input.arbitrary()?,
        rate_reduction: input.arbitrary()?,
        duplicate_sack: input.arbitrary()?,
        forward_rto: input.arbitrary()?,
        undo: input.arbitrary()?,
        syn_cookies: [SynCookies::Off, SynCookies::OnOverflow, SynCookies::Always]
            [input.int_in_range(0..=2)?],
        data_retries: input.int_in_range(0..=4)?,
        syn_retries: input.int_in_range(0..=2)?,
        ..Config::default()
    })
}
