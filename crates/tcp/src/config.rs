//! Parameters of an engine.

pub(crate) mod apart;
mod behind_a_gap;
mod linux;
mod mtu_probing;

pub use linux::LinuxRules;
pub use mtu_probing::{MtuProbing, ProbePathMtu};

use crate::congestion::Custom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Congestion control algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// NewReno (RFC 5681, RFC 6582).
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// DCTCP (RFC 8257), for networks whose queues mark above a low threshold and whose hosts all use it.
    Dctcp,
    /// BBR version 3 (draft-ietf-ccwg-bbr-06).
    Bbr,
    /// A controller that a user of this crate provides.
    #[schemars(skip)]
    Custom(Custom),
}

/// What a receiver reports about ECN marks (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnEcho {
    /// Reports that there was a mark, until the peer says that it reduced its window (RFC 3168 6.1.3).
    UntilReduced,
    /// Reports for each segment whether it was marked, by an immediate ACK where that changes (RFC 8257 3.2). The peer must expect this.
    EachChange,
}

/// Whether the congestion window is counted as the RFCs recommend or as Linux does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowCounting {
    /// As the RFCs recommend. An acknowledgment counts for a few segments at most in slow start (RFC 3465 2.2, RFC 9406 4.2), and a
    /// reduction starts from the data in flight (RFC 5681 3.1, RFC 9937 6.1).
    Rfc,
    /// As Linux does. In slow start every acknowledged byte counts, up to ssthresh. A reduction starts from the window itself, in whole
    /// segments. ECN marks reduce the window by PRR, as losses do. Only a SYN that was lost twice makes the first window one segment.
    Linux,
}

/// What the minimum retransmission timeout limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298 2.4).
    Timeout,
    /// The variance's share of the timeout, so that the timeout exceeds a round trip by at least this minimum: Linux.
    Variance,
}

/// Whether explicit congestion notification is used (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// Never.
    Off,
    /// On connections whose peer asks for it.
    Accept,
    /// On connections whose peer asks for it; connections opened here ask for it.
    Request,
}

/// Probing of a silent peer (RFC 9293 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keepalive {
    /// Silence before the first probe, ms.
    #[schemars(range(min = 1))]
    pub idle_ms: u32,
    /// Time between probes, ms.
    #[schemars(range(min = 1))]
    pub interval_ms: u32,
    /// Unanswered probes after which the connection is given up.
    #[schemars(range(min = 1))]
    pub probes: u32,
}

impl Default for Keepalive {
    /// Two hours of silence, the minimum of RFC 9293 3.8.4; the rest as in Linux.
    fn default() -> Self {
        Self {
            idle_ms: 7_200_000,
            interval_ms: 75_000,
            probes: 9,
        }
    }
}

/// When a SYN is answered without keeping state (RFC 4987 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SynCookies {
    /// Never: a SYN that does not fit into the backlog is dropped.
    Off,
    /// When the backlog of half-open connections is full.
    OnOverflow,
    /// For every SYN.
    Always,
}

/// How a closed window is probed (RFC 9293 3.8.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowProbe {
    /// With a segment without data just before the window, which the peer must answer: Linux.
    OldNumber,
    /// With the next byte: RFC 9293 and BSD.
    NextByte,
}

/// When buffer space that the application has freed is worth an ACK of its own (RFC 9293 3.8.6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowUpdate {
    /// When the window would open by two segments or half the buffer: BSD.
    TwoSegments,
    /// When the window that the peer knows would at least double: Linux.
    Doubled,
}

/// Which partial segments wait for an acknowledgment while Nagle's algorithm is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NagleRule {
    /// Partial segments that follow any unacknowledged data (RFC 9293 3.7.4).
    Classic,
    /// Partial segments that follow an unacknowledged partial segment, as Minshall modified the rule: Linux and FreeBSD.
    Minshall,
}

/// A parameter with an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field} is {value}; expected {expected}")]
pub struct ConfigError {
    /// The field of [`Config`].
    pub field: &'static str,
    /// Value of the field.
    pub value: u64,
    /// Values that the field may have.
    pub expected: &'static str,
}

/// Parameters that all connections of one stack share unless their owner sets others. The defaults are those of a typical present-day host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Largest segment this end can receive, bytes of data (RFC 9293 3.7.1).
    #[schemars(range(min = LEAST_MSS), extend("x-unit" = "bytes"))]
    pub mss: u16,
    /// Maximum length of a segment's data and options on the route to the peer, bytes, if less than `mss`. SYNs announce it, and no
    /// segment is longer until the route changes (ip-route(8): `advmss` and `mtu lock` without headers); none: `mss` holds.
    #[serde(with = "apart")]
    #[schemars(with = "Option<u16>", range(min = LEAST_MSS), extend("x-unit" = "bytes"))]
    pub route_mss: Option<u16>,
    /// Send buffer, bytes.
    #[schemars(range(min = 1, max = LARGEST_BUFFER), extend("x-unit" = "bytes"))]
    pub send_buffer: u32,
    /// Receive buffer, bytes; also the largest window that is ever advertised.
    #[schemars(range(min = 1, max = LARGEST_BUFFER), extend("x-unit" = "bytes"))]
    pub receive_buffer: u32,
    /// Offer window scaling (RFC 7323 2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 3).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Initial congestion window, segments (RFC 6928 gives 10, RFC 2581 up to 2).
    #[schemars(range(min = 1))]
    pub initial_window_segments: u32,
    /// Congestion control.
    pub congestion: Congestion,
    /// Whether the congestion window is counted as the RFCs recommend or as Linux does.
    pub window_counting: WindowCounting,
    /// Leave slow start when round trips get longer, and let the window grow by up to eight segments at each acknowledgment (HyStart++, RFC
    /// 9406). Otherwise slow start lasts until a loss, and the window grows by two segments at most.
    pub hystart: bool,
    /// Start anew with the initial window after an idle time longer than a retransmission timeout (RFC 5681 4.1).
    pub slow_start_after_idle: bool,
    /// Send new data on the first duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// Detect losses by time and probe for lost tails (RACK-TLP, RFC 8985), on connections that use SACK. Otherwise losses are detected by
    /// counting (RFC 6675, RFC 6582).
    pub rack_tlp: bool,
    /// Send in proportion to the data that arrives during recovery (PRR, RFC 9937), on connections that use SACK.
    pub rate_reduction: bool,
    /// Report duplicates to the peer (D-SACK, RFC 2883), on connections that use SACK. Reports from the peer are always understood.
    pub duplicate_sack: bool,
    /// Recognise spurious retransmission timeouts by the acknowledgments after them, and undo them (F-RTO, RFC 5682).
    pub forward_rto: bool,
    /// Undo a reduction of the window when timestamps (Eifel, RFC 3522) or reports of duplicates (RFC 2883) show that
    /// nothing was lost.
    pub undo: bool,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// What is reported about ECN marks that arrive; none: what the congestion control expects of its peers.
    pub ecn_echo: Option<EcnEcho>,
    /// Retransmission timeout before the first measurement, ms (RFC 6298 2.1 gives 1000, RFC 2988 gave 3000).
    #[schemars(range(min = 1))]
    pub rto_initial_ms: u32,
    /// Minimum retransmission timeout, ms (RFC 6298 2.4).
    #[schemars(range(min = 1))]
    pub rto_min_ms: u32,
    /// What the minimum retransmission timeout limits.
    pub rto_floor: RtoFloor,
    /// Maximum retransmission timeout, ms (RFC 6298 2.5).
    #[schemars(range(min = 1))]
    pub rto_max_ms: u32,
    /// Maximum delay of an acknowledgment, ms (RFC 9293 3.8.6.3: under 500).
    #[schemars(range(max = LONGEST_ACK_DELAY_MS))]
    pub delayed_ack_ms: u32,
    /// Resolution of timers, ms: a timer expires at the first tick after its time, together with all other timers of that tick. 0:
    /// timers are exact.
    #[schemars(range(max = LONGEST_TICK_MS))]
    pub timer_tick_ms: u32,
    /// Full segments after which an acknowledgment is sent at the latest.
    #[schemars(range(min = 1))]
    pub ack_every_segments: u32,
    /// Use Nagle's algorithm on new connections (RFC 9293 3.7.4).
    pub nagle: bool,
    /// Retransmissions of a SYN before giving up.
    pub syn_retries: u32,
    /// Retransmissions of a SYN after the same timeout, before the timeout doubles each time. It is 0 by RFC 6298 5.5, 4 in FreeBSD
    /// (`tcp_syn_backoff`) and, by default, in Linux 6.5 and later (`tcp_syn_linear_timeouts`). The state of a moved connection does not
    /// include it, because the SYN has been answered.
    #[serde(with = "apart")]
    #[schemars(with = "u32")]
    pub syn_linear_timeouts: u32,
    /// Retransmissions of data before giving up (RFC 9293 3.8.3, R2).
    pub data_retries: u32,
    /// Maximum segment lifetime, ms; TIME-WAIT lasts twice as long (RFC 9293 3.6.1).
    pub msl_ms: u32,
    /// Time that a connection waits for the peer's FIN after its owner has closed it, ms (tcp_fin_timeout; RFC 9293 3.6.1).
    pub fin_wait_2_ms: u32,
    /// Retransmissions of the answer to a SYN before giving up.
    pub syn_ack_retries: u32,
    /// When to answer a SYN without keeping state.
    pub syn_cookies: SynCookies,
    /// Probe a silent peer; none: never.
    pub keepalive: Option<Keepalive>,
    /// Give up when data is unacknowledged, or cannot be sent, for this time, ms (RFC 9293 3.8.3, RFC 5482); none: only after the number of
    /// retries.
    #[schemars(range(min = 1))]
    pub user_timeout_ms: Option<u32>,
    /// Maximum number of challenge ACKs of the whole stack in a second (RFC 5961 7); 0: no limit.
    pub challenge_acks_per_second: u32,
    /// Acknowledge as soon as more than one segment less than `ack_every_segments` is unacknowledged, as Linux does. Otherwise acknowledge
    /// when `ack_every_segments` full segments are unacknowledged.
    pub eager_acks: bool,
    /// Minimum time between ACKs that answer unacceptable segments without data, ms; 0: none. It keeps two ends from answering each other
    /// for ever (tcp_invalid_ratelimit of Linux).
    #[serde(with = "behind_a_gap")]
    #[schemars(with = "u32")]
    pub ack_rate_limit_ms: u32,
    /// Number of segments acknowledged immediately at the start of a connection and after an idle time, before ACKs are delayed
    /// (Linux: 16); 0: none.
    pub quick_acks: u32,
    /// The owner is notified that it may write only while fewer bytes than this are unsent (TCP_NOTSENT_LOWAT).
    #[schemars(extend("x-unit" = "bytes"))]
    pub not_sent_low_water: u32,
    /// Follow ICMP messages about the path's MTU (RFC 1191, RFC 8201).
    pub path_mtu_discovery: bool,
    /// Window scale to offer; none: the scale that the receive buffer needs.
    #[schemars(range(max = LARGEST_WINDOW_SCALE))]
    pub window_scale: Option<u8>,
    /// Largest window to offer, bytes (TCP_WINDOW_CLAMP).
    #[schemars(range(min = 1), extend("x-unit" = "bytes"))]
    pub window_clamp: u32,
    /// Send a reset when a connection is closed with unread data (RFC 9293 3.6.1: "SHOULD", RFC 2525 2.17).
    pub abort_on_close_with_unread: bool,
    /// How a closed window is probed.
    pub window_probe: WindowProbe,
    /// When an opened window is worth an ACK of its own.
    pub window_update: WindowUpdate,
    /// Delay the ACK of a FIN when the peer closes first, so that our FIN may travel with the ACK, as Linux does once there was data.
    /// Otherwise the FIN is acknowledged immediately.
    pub delay_fin_ack: bool,
    /// Which partial segments Nagle's algorithm holds back.
    pub nagle_rule: NagleRule,
    /// Maximum time that a cork holds back a partial segment when nothing else is outstanding, ms (Linux: 200); 0: no limit.
    pub cork_limit_ms: u32,
    /// Deviations of Linux from the RFCs.
    #[serde(with = "apart")]
    #[schemars(with = "LinuxRules")]
    pub linux: LinuxRules,
    /// Probing for the path's MTU, independent of ICMP messages.
    #[serde(with = "apart")]
    #[schemars(with = "MtuProbing")]
    pub mtu_probing: MtuProbing,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1460,
            route_mss: None,
            send_buffer: 256 * 1024,
            receive_buffer: 256 * 1024,
            window_scaling: true,
            timestamps: true,
            sack: true,
            initial_window_segments: 10,
            congestion: Congestion::Cubic,
            window_counting: WindowCounting::Rfc,
            hystart: true,
            slow_start_after_idle: true,
            limited_transmit: true,
            rack_tlp: true,
            rate_reduction: true,
            duplicate_sack: true,
            forward_rto: true,
            undo: true,
            ecn: EcnMode::Accept,
            ecn_echo: None,
            rto_initial_ms: 1000,
            rto_min_ms: 200,
            rto_floor: RtoFloor::Timeout,
            rto_max_ms: 60_000,
            delayed_ack_ms: 40,
            timer_tick_ms: 0,
            ack_every_segments: 2,
            nagle: true,
            syn_retries: 6,
            syn_linear_timeouts: 0,
            data_retries: 15,
            msl_ms: 30_000,
            fin_wait_2_ms: 60_000,
            syn_ack_retries: 5,
            syn_cookies: SynCookies::OnOverflow,
            keepalive: None,
            user_timeout_ms: None,
            challenge_acks_per_second: 1000,
            eager_acks: true,
            ack_rate_limit_ms: 500,
            quick_acks: 16,
            not_sent_low_water: u32::MAX,
            path_mtu_discovery: true,
            window_scale: None,
            window_clamp: u32::MAX,
            abort_on_close_with_unread: true,
            window_probe: WindowProbe::OldNumber,
            window_update: WindowUpdate::Doubled,
            delay_fin_ack: true,
            nagle_rule: NagleRule::Minshall,
            cork_limit_ms: 200,
            linux: LinuxRules::NONE,
            mtu_probing: MtuProbing::default(),
        }
    }
}

/// Minimum MSS: a smaller one leaves no space for data after the options.
const LEAST_MSS: u64 = 64;

/// Buffers larger than this do not fit a scaled window (RFC 7323 2.3).
const LARGEST_BUFFER: u64 = 1 << 30;

/// RFC 9293 3.8.6.3, MUST-40.
const LONGEST_ACK_DELAY_MS: u64 = 499;
const LONGEST_TICK_MS: u64 = 1_000;

/// RFC 7323 2.3.
const LARGEST_WINDOW_SCALE: u64 = 14;

impl Config {
    /// Returns the parameters of a connection of Linux with its default settings, which follows Linux where it differs from the RFCs. A
    /// connection that comes from the Linux kernel needs them to behave as before.
    pub fn linux() -> Self {
        Self {
            window_counting: WindowCounting::Linux,
            rto_floor: RtoFloor::Variance,
            rto_max_ms: 120_000,
            linux: LinuxRules::ALL,
            ..Self::default()
        }
    }

    /// The MSS that SYNs name (RFC 9293 3.7.1).
    pub fn advertised_mss(&self) -> u16 {
        self.mss.min(self.route_room())
    }

    /// Maximum length of a segment's data and options that the route allows, bytes.
    pub(crate) fn route_room(&self) -> u16 {
        self.route_mss.unwrap_or(u16::MAX)
    }

    /// Checks that all values are valid.
    ///
    /// # Errors
    /// Returns the first field with an invalid value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let within = |field, value: u64, least: u64, most: u64, expected| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError {
                    field,
                    value,
                    expected,
                })
            }
        };
        let positive = |field, value: u32| within(field, value.into(), 1, u64::MAX, "more than 0");
        for (field, mss) in [
            ("mss", self.mss),
            ("route_mss", self.route_mss.unwrap_or(u16::MAX)),
        ] {
            within(field, mss.into(), LEAST_MSS, u64::MAX, "at least 64")?;
        }
        for (field, len) in [
            ("send_buffer", self.send_buffer),
            ("receive_buffer", self.receive_buffer),
        ] {
            within(field, len.into(), 1, LARGEST_BUFFER, "1 to 2^30")?;
        }
        if let Congestion::Custom(custom) = self.congestion {
            let known = u64::from(custom.is_known());
            within("congestion", known, 1, 1, "a controller with a factory")?;
        }
        positive("initial_window_segments", self.initial_window_segments)?;
        positive("ack_every_segments", self.ack_every_segments)?;
        positive("rto_min_ms", self.rto_min_ms)?;
        let (least, most) = (self.rto_min_ms, self.rto_max_ms);
        within(
            "rto_min_ms",
            least.into(),
            1,
            most.into(),
            "at most rto_max_ms",
        )?;
        let initial = self.rto_initial_ms;
        within(
            "rto_initial_ms",
            initial.into(),
            1,
            most.into(),
            "1 to rto_max_ms",
        )?;
        within(
            "delayed_ack_ms",
            self.delayed_ack_ms.into(),
            0,
            LONGEST_ACK_DELAY_MS,
            "less than 500",
        )?;
        within(
            "timer_tick_ms",
            self.timer_tick_ms.into(),
            0,
            LONGEST_TICK_MS,
            "at most 1000",
        )?;
        let scale = self.window_scale.unwrap_or(0);
        within(
            "window_scale",
            scale.into(),
            0,
            LARGEST_WINDOW_SCALE,
            "at most 14",
        )?;
        positive("window_clamp", self.window_clamp)?;
        if let Some(rate) = self.linux.max_pacing_rate {
            within("linux.max_pacing_rate", rate, 1, u64::MAX, "more than 0")?;
        }
        let MtuProbing {
            base_mss,
            floor_mss,
            interval_s,
            threshold,
            ..
        } = self.mtu_probing;
        for (field, value, least, expected) in [
            (
                "mtu_probing.base_mss",
                base_mss.into(),
                mtu_probing::LEAST_BASE_MSS,
                "at least 64",
            ),
            ("mtu_probing.floor_mss", floor_mss.into(), 1, "more than 0"),
            (
                "mtu_probing.interval_s",
                interval_s.into(),
                1,
                "more than 0",
            ),
            (
                "mtu_probing.threshold",
                threshold.into(),
                mtu_probing::LEAST_THRESHOLD,
                "at least 2",
            ),
        ] {
            within(field, value, least, u64::MAX, expected)?;
        }
        if let Some(keepalive) = self.keepalive {
            positive("keepalive.idle_ms", keepalive.idle_ms)?;
            positive("keepalive.interval_ms", keepalive.interval_ms)?;
            positive("keepalive.probes", keepalive.probes)?;
        }
        match self.user_timeout_ms {
            Some(timeout_ms) => positive("user_timeout_ms", timeout_ms),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
