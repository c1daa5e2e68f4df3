//! Settings of an instance, from the flags string at its start: `key=value,key=value`.

use crate::options::congestion_named;
use baton_tcp::{Config, Congestion, EcnMode, FastOpenKey, FastOpenKeys, Keepalive, ProbePathMtu};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Parameters of an instance, which correspond to sysctls and to the interface of a host. Defaults are those of a typical Linux test set-up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Initial parameters of connections; sizes of segments and buffers are filled in for each socket.
    pub tcp: Config,
    /// Congestion control of new sockets.
    pub congestion: Congestion,
    /// Largest packet of the interface, bytes.
    pub mtu: u16,
    /// Largest packet of the route to peers, where that is less (`ip route ... mtu lock`).
    pub route_mtu: Option<u16>,
    /// Receive buffer of new sockets, bytes of kernel memory (at most half of it is offered).
    pub receive_buffer: u32,
    /// Largest receive buffer of autotuning.
    pub receive_buffer_max: u32,
    /// Send buffer of new sockets, bytes of kernel memory.
    pub send_buffer: u32,
    /// Largest send buffer of autotuning.
    pub send_buffer_max: u32,
    /// Whether bursts are super-segments.
    pub gso: Gso,
    /// Segments that a super-segment may hold whatever the pacing rate (tcp_min_tso_segs).
    pub min_tso_segs: u32,
    /// Default keepalive parameters of sockets.
    pub keepalive: Keepalive,
    /// Limit of every listener's backlog (somaxconn).
    pub somaxconn: usize,
    /// Local IPv4 address of connections whose socket is not bound.
    pub local4: Ipv4Addr,
    /// Local IPv6 address of connections whose socket is not bound.
    pub local6: Ipv6Addr,
    /// Permissions of Fast Open (tcp_fastopen).
    pub fast_open: FastOpenBits,
    /// Key of Fast Open cookies (tcp_fastopen_key); `None`: derived from the seed.
    pub fast_open_key: Option<FastOpenKey>,
    /// The previous key, whose cookies are still accepted.
    pub fast_open_previous_key: Option<FastOpenKey>,
    /// Forget cached information about servers (`ip tcp_metrics flush`).
    pub flush_metrics: bool,
    /// The interface's queue refuses packets (`tc qdisc ... pfifo limit 0`).
    pub queue_refuses: bool,
    /// Bytes of data of the segments that the interface merges (GRO); `None`: it does not merge.
    pub merged_segment: Option<usize>,
    /// File to which counters are written (nstat).
    pub counters: Option<PathBuf>,
    /// File with lines of flags that change settings while a script runs.
    pub changes: Option<PathBuf>,
    /// Secret of initial sequence numbers. Runs with the same secret are the same.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tcp: Config {
                syn_retries: 5,
                ecn: EcnMode::Off,
                ..Config::linux()
            },
            congestion: Congestion::Cubic,
            mtu: 1500,
            route_mtu: None,
            receive_buffer: 540_000,
            receive_buffer_max: 15 << 20,
            send_buffer: 256 << 10,
            send_buffer_max: 4 << 20,
            gso: Gso::On,
            min_tso_segs: 2,
            keepalive: Keepalive::default(),
            somaxconn: 4096,
            local4: Ipv4Addr::new(192, 168, 0, 1),
            local6: Ipv6Addr::new(0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1),
            fast_open: FastOpenBits::CLIENT,
            fast_open_key: None,
            fast_open_previous_key: None,
            flush_metrics: false,
            queue_refuses: false,
            merged_segment: None,
            counters: None,
            changes: None,
            seed: 0x6261_746f_6e21,
        }
    }
}

/// Super-segments, which TCP passes to the device as one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gso {
    /// No super-segments.
    Off,
    /// Super-segments are fetched as single packets.
    On,
    /// The device segments them, as a device with offloads turned off by `ethtool`.
    Device,
}

bitflags::bitflags! {
    /// Permissions of Fast Open, as in the sysctl tcp_fastopen of Linux. Other bits are kept and have no effect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FastOpenBits: u32 {
        /// Clients may use Fast Open.
        const CLIENT = 1;
        /// Listeners may use Fast Open.
        const SERVER = 2;
        /// Clients send data without a cookie.
        const CLIENT_WITHOUT_COOKIE = 4;
        /// Listeners accept data without a cookie.
        const SERVER_WITHOUT_COOKIE = 0x200;
        /// All listeners use Fast Open, even without the socket option.
        const ALL_LISTENERS = 0x400;
        const _ = !0;
    }
}

/// Why a flags string is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagsError {
    /// A part is not `key=value`.
    #[error("`{0}` is not key=value")]
    NoValue(String),
    /// The key does not exist.
    #[error("`{0}` is not a key; keys are {keys}", keys = known_keys())]
    UnknownKey(String),
    /// The value is not allowed for the key.
    #[error("{key}={value}: expected {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// The values are contradictory or invalid.
    #[error("{0}")]
    Config(#[from] baton_tcp::ConfigError),
}

type Set = fn(&mut Settings, &str) -> Option<()>;

struct Key {
    name: &'static str,
    expected: &'static str,
    set: Set,
}

const ON_OFF: &str = "on or off";
const NUMBER: &str = "a number";
const MILLISECONDS: &str = "milliseconds";
const BYTES: &str = "bytes";
const FAST_OPEN_KEY: &str = "four groups of hexadecimal digits as in tcp_fastopen_key";

/// Lists keys, each with its values, the setting that it changes, and the function that parses a value; then keys that need a special function.
macro_rules! keys {
    (
        $($name:literal, $values:expr => $($field:ident).+ = $read:expr;)+
        $(and $other:literal, $others:expr => $set:ident;)*
    ) => {
        &[
            $(key($name, $values, |s, v| put(&mut s.$($field).+, ($read)(v))),)+
            $(key($other, $others, $set),)*
        ]
    };
}

/// Every key, its values, and the setting that it changes.
const KEYS: &[Key] = keys! {
    "congestion", "cubic, reno, dctcp or bbr" => congestion = congestion_named;
    "initial_window", "segments" => tcp.initial_window_segments = number;
    "mtu", BYTES => mtu = packet_size;
    "route_mtu", BYTES => route_mtu = |v: &str| packet_size(v).map(Some);
    "rcvbuf", BYTES => receive_buffer = buffer;
    "rcvbuf_max", BYTES => receive_buffer_max = buffer;
    "sndbuf", BYTES => send_buffer = buffer;
    "sndbuf_max", BYTES => send_buffer_max = buffer;
    "window_scaling", ON_OFF => tcp.window_scaling = switch;
    "sack", ON_OFF => tcp.sack = switch;
    "timestamps", ON_OFF => tcp.timestamps = switch;
    "dsack", ON_OFF => tcp.duplicate_sack = switch;
    "rack_tlp", ON_OFF => tcp.rack_tlp = switch;
    "prr", ON_OFF => tcp.rate_reduction = switch;
    "frto", ON_OFF => tcp.forward_rto = switch;
    "undo", ON_OFF => tcp.undo = switch;
    "limited_transmit", ON_OFF => tcp.limited_transmit = switch;
    "slow_start_after_idle", ON_OFF => tcp.slow_start_after_idle = switch;
    "ecn", "0 (off), 1 (request and accept) or 2 (accept)" => tcp.ecn = ecn;
    "syn_retries", NUMBER => tcp.syn_retries = number;
    "syn_linear_timeouts", NUMBER => tcp.syn_linear_timeouts = number;
    "synack_retries", NUMBER => tcp.syn_ack_retries = number;
    "data_retries", NUMBER => tcp.data_retries = number;
    "rto_initial_ms", MILLISECONDS => tcp.rto_initial_ms = number;
    "rto_min_ms", MILLISECONDS => tcp.rto_min_ms = number;
    "rto_max_ms", MILLISECONDS => tcp.rto_max_ms = number;
    "delayed_ack_ms", MILLISECONDS => tcp.delayed_ack_ms = number;
    "quick_acks", "segments" => tcp.quick_acks = number;
    "fin_timeout_ms", MILLISECONDS => tcp.fin_wait_2_ms = number;
    "msl_ms", MILLISECONDS => tcp.msl_ms = number;
    "notsent_lowat", BYTES => tcp.not_sent_low_water = number;
    "challenge_ack_limit", "per second, 0 for none" => tcp.challenge_acks_per_second = number;
    "invalid_ratelimit_ms", MILLISECONDS => tcp.ack_rate_limit_ms = number;
    "path_mtu_discovery", ON_OFF => tcp.path_mtu_discovery = switch;
    "mtu_probing", "0 (off), 1 (after a black hole) or 2 (always)" => tcp.mtu_probing.when = probing;
    "base_mss", BYTES => tcp.mtu_probing.base_mss = number;
    "mtu_probe_floor", BYTES => tcp.mtu_probing.floor_mss = number;
    "probe_interval_s", "seconds" => tcp.mtu_probing.interval_s = number;
    "probe_threshold", BYTES => tcp.mtu_probing.threshold = number;
    "keepalive_time_s", "seconds" => keepalive.idle_ms = seconds;
    "keepalive_intvl_s", "seconds" => keepalive.interval_ms = seconds;
    "keepalive_probes", NUMBER => keepalive.probes = number;
    "gso", "on, off or device" => gso = gso;
    "min_tso_segs", "segments" => min_tso_segs = |v: &str| number(v).filter(|&segments| segments > 0);
    "somaxconn", NUMBER => somaxconn = number;
    "local4", "an IPv4 address" => local4 = number;
    "local6", "an IPv6 address" => local6 = number;
    "fastopen", "a number as in the sysctl tcp_fastopen" => fast_open = fast_open_bits;
    "fastopen_key", FAST_OPEN_KEY => fast_open_key = |v: &str| fast_open_key(v).map(Some);
    "fastopen_previous_key", FAST_OPEN_KEY => fast_open_previous_key = |v: &str| fast_open_key(v).map(Some);
    "tcp_metrics", "flush" => flush_metrics = |v: &str| (v == "flush").then_some(true);
    "queue", "takes or refuses" => queue_refuses = |v: &str| one_of(v, "refuses", "takes");
    "qdisc", "fq or pfifo" => tcp.linux.paces = |v: &str| one_of(v, "fq", "pfifo");
    "gro", BYTES => merged_segment = |v: &str| number(v).filter(|&len| len > 0).map(Some);
    "counters", "a file's path" => counters = |v: &str| Some(Some(v.into()));
    "changes", "a file's path" => changes = |v: &str| Some(Some(v.into()));
    "seed", NUMBER => seed = number;
    and "hystart", "on, off or rfc9406" => set_hystart;
};

const fn key(name: &'static str, expected: &'static str, set: Set) -> Key {
    Key {
        name,
        expected,
        set,
    }
}

/// Sets HyStart: Linux's rules, or those of RFC 9406.
fn set_hystart(settings: &mut Settings, value: &str) -> Option<()> {
    let follows_rfc = value == "rfc9406";
    settings.tcp.linux.hystart = !follows_rfc;
    settings.tcp.hystart = follows_rfc || switch(value)?;
    Some(())
}

fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    *field = value?;
    Some(())
}

fn number<T: std::str::FromStr>(value: &str) -> Option<T> {
    value.parse().ok()
}

fn buffer(value: &str) -> Option<u32> {
    number(value).filter(|len| (2304..=1 << 30).contains(len))
}

fn packet_size(value: &str) -> Option<u16> {
    number(value).filter(|&len| len >= 576)
}

fn seconds(value: &str) -> Option<u32> {
    number::<u32>(value)?.checked_mul(1000)
}

fn fast_open_bits(value: &str) -> Option<FastOpenBits> {
    let bits = match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => number(value),
    };
    bits.map(FastOpenBits::from_bits_retain)
}

/// Parses `xxxxxxxx-xxxxxxxx-xxxxxxxx-xxxxxxxx`, little-endian numbers.
fn fast_open_key(value: &str) -> Option<FastOpenKey> {
    let group = |digits| u32::from_str_radix(digits, 16).ok();
    let groups: Option<Vec<u32>> = value.split('-').map(group).collect();
    let groups: [u32; 4] = groups?.try_into().ok()?;
    let bytes = groups.map(u32::to_le_bytes);
    Some(FastOpenKey(bytes.as_flattened().try_into().ok()?))
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" | "1" => Some(true),
        "off" | "0" => Some(false),
        _ => None,
    }
}

fn one_of(value: &str, yes: &str, no: &str) -> Option<bool> {
    match value {
        value if value == yes => Some(true),
        value if value == no => Some(false),
        _ => None,
    }
}

fn gso(value: &str) -> Option<Gso> {
    Some(match value {
        "on" => Gso::On,
        "off" => Gso::Off,
        "device" => Gso::Device,
        _ => return None,
    })
}

fn ecn(value: &str) -> Option<EcnMode> {
    match value {
        "0" => Some(EcnMode::Off),
        "1" => Some(EcnMode::Request),
        "2" => Some(EcnMode::Accept),
        _ => None,
    }
}

fn probing(value: &str) -> Option<ProbePathMtu> {
    match value {
        "0" => Some(ProbePathMtu::Off),
        "1" => Some(ProbePathMtu::AfterBlackHole),
        "2" => Some(ProbePathMtu::Always),
        _ => None,
    }
}

fn known_keys() -> String {
    let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    names.join(", ")
}

impl Settings {
    /// Parses a flags string. An empty string gives the defaults.
    ///
    /// # Errors
    /// Names the first part that is wrong.
    pub fn parse(flags: &str) -> Result<Self, FlagsError> {
        let mut settings = Self::default();
        settings.take(flags)?;
        Ok(settings)
    }

    /// Changes the settings that a flags string names.
    ///
    /// # Errors
    /// Names the first part that is wrong; the parts before it are applied.
    pub fn take(&mut self, flags: &str) -> Result<(), FlagsError> {
        let parts = flags
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| FlagsError::NoValue(part.to_owned()))?;
            let key = KEYS
                .iter()
                .find(|key| key.name == name)
                .ok_or_else(|| FlagsError::UnknownKey(name.to_owned()))?;
            (key.set)(self, value).ok_or_else(|| FlagsError::BadValue {
                key: name.to_owned(),
                value: value.to_owned(),
                expected: key.expected,
            })?;
        }
        Ok(self.tcp.check()?)
    }

    /// The keys of Fast Open cookies, if configured.
    pub fn fast_open_keys(&self) -> Option<FastOpenKeys> {
        self.fast_open_key.map(|current| FastOpenKeys {
            current,
            previous: self.fast_open_previous_key,
        })
    }

    /// The local address of a connection to `remote` whose socket is not bound.
    pub fn local_for(&self, remote: IpAddr) -> IpAddr {
        match remote {
            IpAddr::V4(_) => self.local4.into(),
            IpAddr::V6(_) => self.local6.into(),
        }
    }

    /// Largest segment of the interface: the MTU without IP and TCP headers (RFC 9293 3.7.1).
    pub fn mss_for(&self, addr: IpAddr) -> u16 {
        self.mtu - headers_len(addr)
    }

    /// Largest segment of the route, if it has an MTU of its own.
    pub fn route_mss_for(&self, addr: IpAddr) -> Option<u16> {
        self.route_mtu.map(|mtu| mtu - headers_len(addr))
    }
}

/// IP and TCP headers without options.
fn headers_len(addr: IpAddr) -> u16 {
    match addr {
        IpAddr::V4(_) => 40,
        IpAddr::V6(_) => 60,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_string_gives_a_usual_linux_host() {
        let settings = Settings::parse("").expect("defaults are good");
        assert_eq!(settings.tcp.initial_window_segments, 10);
        assert_eq!(settings.tcp.syn_retries, 5);
        assert_eq!(settings.congestion, Congestion::Cubic);
        assert_eq!(settings.mss_for(settings.local4.into()), 1460);
        assert_eq!(settings.mss_for(settings.local6.into()), 1440);
    }

    #[test]
    fn keys_set_what_they_name() {
        let settings = Settings::parse("ecn=1, gso=off,local4=10.0.0.7,keepalive_time_s=5");
        let settings = settings.expect("good flags");
        assert_eq!(settings.tcp.ecn, EcnMode::Request);
        assert_eq!(settings.gso, Gso::Off);
        assert_eq!(settings.local4, Ipv4Addr::new(10, 0, 0, 7));
        assert_eq!(settings.keepalive.idle_ms, 5000);
    }

    #[test]
    fn fast_open_is_set_as_on_linux() {
        let settings = Settings::parse(
            "fastopen=0x603,fastopen_key=a1a1a1a1-00000001-c3c3c3c3-d4d4d4d4,fastopen_previous_key=0-0-0-0",
        );
        let settings = settings.expect("good flags");
        let bits = FastOpenBits::all() - FastOpenBits::CLIENT_WITHOUT_COOKIE;
        assert!(bits.contains(settings.fast_open));
        let keys = settings.fast_open_keys().expect("a key was given");
        assert_eq!(keys.current.0[3..6], [0xa1, 1, 0]);
        assert_eq!(keys.previous, Some(FastOpenKey([0; 16])));
    }

    #[test]
    fn invalid_settings_are_named() {
        let message = |flags| Settings::parse(flags).expect_err("bad flags").to_string();
        assert_eq!(message("gso"), "`gso` is not key=value");
        assert!(message("gsoo=on").starts_with("`gsoo` is not a key; keys are congestion, "));
        assert_eq!(
            message("gso=maybe"),
            "gso=maybe: expected on, off or device"
        );
        assert!(message("rto_min_ms=0").contains("rto_min_ms"));
    }

    #[test]
    fn every_key_refuses_invalid_values() {
        let is_path = |key: &&Key| ["changes", "counters"].contains(&key.name);
        for key in KEYS.iter().filter(|key| !is_path(key)) {
            assert!(
                (key.set)(&mut Settings::default(), "?").is_none(),
                "{}",
                key.name
            );
        }
    }
}
