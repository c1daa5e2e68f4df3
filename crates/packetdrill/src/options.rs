//! Socket options (socket(7), tcp(7), ip(7), ipv6(7)): their values and effects.

mod get;
mod set;
mod value;

use crate::flags::{FastOpenBits, Settings};
use crate::receive_window::ReceiveWindow;
use baton_abi::address::Family;
use baton_tcp::{
    Config, Congestion, FastOpen, FastOpenKeys, FastOpenListening, Keepalive, LinuxRules,
};
use baton_wire::{Span, Timestamping};
use libc::c_int;
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// Buffer size of the engine. It is so large that it limits nothing: this crate limits sockets by kernel memory.
const ENGINE_BUFFER: u32 = 1 << 30;

/// Names of congestion control in TCP_CONGESTION.
const CONGESTION_NAMES: [(&str, Congestion); 4] = [
    ("cubic", Congestion::Cubic),
    ("reno", Congestion::NewReno),
    ("dctcp", Congestion::Dctcp),
    ("bbr", Congestion::Bbr),
];

/// The algorithm of this name.
pub(crate) fn congestion_named(name: &str) -> Option<Congestion> {
    let mut names = CONGESTION_NAMES.iter();
    names.find(|known| known.0 == name).map(|known| known.1)
}

/// The name of an algorithm.
pub(crate) fn congestion_name(congestion: Congestion) -> String {
    let mut names = CONGESTION_NAMES.iter();
    match (names.find(|known| known.1 == congestion), congestion) {
        (Some((name, _)), _) => (*name).to_owned(),
        (None, Congestion::Custom(custom)) => custom.name().to_owned(),
        (None, other) => format!("{other:?}"),
    }
}

/// How a socket uses Fast Open (tcp(7)).
#[derive(Clone, Debug, Default)]
pub(crate) struct FastOpenOptions {
    /// TCP_FASTOPEN: limit of a listener's pending requests, if set.
    pub(crate) pending: Option<u32>,
    /// TCP_FASTOPEN_CONNECT.
    pub(crate) connect: bool,
    /// TCP_FASTOPEN_NO_COOKIE.
    pub(crate) without_cookie: bool,
    /// TCP_FASTOPEN_KEY.
    pub(crate) keys: Option<FastOpenKeys>,
}

impl FastOpenOptions {
    /// Settings of a listener with this backlog.
    pub(crate) fn listening(&self, settings: &Settings, backlog: usize) -> FastOpenListening {
        let bits = settings.fast_open;
        let asked = match self.pending {
            Some(asked) if asked > 0 => asked as usize,
            _ if bits.contains(FastOpenBits::ALL_LISTENERS) => backlog,
            _ => 0,
        };
        let allowed = bits.contains(FastOpenBits::SERVER);
        FastOpenListening {
            pending: if allowed {
                asked.min(settings.somaxconn)
            } else {
                0
            },
            without_cookie: self.without_cookie
                || bits.contains(FastOpenBits::SERVER_WITHOUT_COOKIE),
        }
    }

    /// How a client uses Fast Open.
    pub(crate) fn asking(&self, settings: &Settings) -> FastOpen {
        let bits = settings.fast_open;
        match self.without_cookie || bits.contains(FastOpenBits::CLIENT_WITHOUT_COOKIE) {
            true => FastOpen::WithoutCookie,
            false => FastOpen::Cookie,
        }
    }
}

/// The options of one socket. Accepted sockets start with their listener's.
#[derive(Clone, Debug)]
pub(crate) struct SocketOptions {
    pub(crate) nodelay: bool,
    pub(crate) cork: bool,
    /// TCP_MAXSEG.
    pub(crate) mss: Option<u16>,
    pub(crate) congestion: Congestion,
    pub(crate) user_timeout_ms: u32,
    pub(crate) keepalive_on: bool,
    pub(crate) keepalive: Keepalive,
    /// TCP_DEFER_ACCEPT, seconds.
    pub(crate) defer_accept_s: u32,
    /// TCP_SYNCNT.
    pub(crate) syn_count: Option<u32>,
    /// TCP_LINGER2, ms; negative: the connection of a closed socket ends immediately in FIN-WAIT-2.
    pub(crate) linger2_ms: i64,
    /// TCP_NOTSENT_LOWAT; 0: the host's setting.
    pub(crate) not_sent_low_water: u32,
    /// SO_MAX_PACING_RATE, bytes a second.
    pub(crate) max_pacing_rate: Option<u64>,
    /// TCP_INQ.
    pub(crate) report_unread: bool,
    /// TCP_QUICKACK as it was last set.
    pub(crate) quick_ack: bool,
    /// SO_LINGER.
    pub(crate) linger: Option<Span>,
    /// Kernel memory of the send buffer, and whether the application set it.
    pub(crate) send_buffer: u32,
    pub(crate) send_buffer_locked: bool,
    pub(crate) receive_timeout: Option<Span>,
    pub(crate) send_timeout: Option<Span>,
    /// SO_RCVLOWAT.
    pub(crate) low_water: usize,
    pub(crate) reuse_address: bool,
    pub(crate) reuse_port: bool,
    /// IP_TOS and IPV6_TCLASS, whole bytes.
    pub(crate) service_v4: u8,
    pub(crate) service_v6: u8,
    pub(crate) v6_only: bool,
    /// IP_MTU_DISCOVER.
    pub(crate) mtu_discover: c_int,
    /// IP_RECVERR, IPV6_RECVERR.
    pub(crate) report_errors: bool,
    /// SO_TIMESTAMPING.
    pub(crate) timestamping: Timestamping,
    pub(crate) fast_open: FastOpenOptions,
    /// accept(2) returned the socket: its owner decides about ICMP errors.
    pub(crate) accepted: bool,
    /// Options that are stored and returned, but have no effect.
    pub(crate) others: FxHashMap<(c_int, c_int), c_int>,
}

impl SocketOptions {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            nodelay: false,
            cork: false,
            mss: None,
            congestion: settings.congestion,
            user_timeout_ms: 0,
            keepalive_on: false,
            keepalive: settings.keepalive,
            defer_accept_s: 0,
            syn_count: None,
            linger2_ms: settings.tcp.fin_wait_2_ms.into(),
            not_sent_low_water: 0,
            max_pacing_rate: None,
            report_unread: false,
            quick_ack: true,
            linger: None,
            send_buffer: settings.send_buffer,
            send_buffer_locked: false,
            receive_timeout: None,
            send_timeout: None,
            low_water: 1,
            reuse_address: false,
            reuse_port: false,
            service_v4: 0,
            service_v6: 0,
            v6_only: false,
            mtu_discover: libc::IP_PMTUDISC_WANT,
            report_errors: false,
            timestamping: Timestamping::empty(),
            fast_open: FastOpenOptions::default(),
            accepted: false,
            others: FxHashMap::default(),
        }
    }

    /// Type of service of packets of one family, without the ECN bits.
    pub(crate) fn service(&self, family: Family) -> u8 {
        match family {
            Family::V4 => self.service_v4 & !3,
            Family::V6 => self.service_v6 & !3,
        }
    }

    /// Reports whether calls with MSG_ZEROCOPY are to be reported.
    pub(crate) fn reports_zero_copy(&self) -> bool {
        let kept = self.others.get(&(libc::SOL_SOCKET, libc::SO_ZEROCOPY));
        kept.is_some_and(|&on| on != 0)
    }

    /// Reports whether the urgent byte is read in line (SO_OOBINLINE).
    pub(crate) fn urgent_inline(&self) -> bool {
        let kept = self.others.get(&(libc::SOL_SOCKET, libc::SO_OOBINLINE));
        kept.is_some_and(|&on| on != 0)
    }

    /// Reports whether packets are sent without "don't fragment".
    pub(crate) fn may_fragment(&self) -> bool {
        self.mtu_discover == libc::IP_PMTUDISC_DONT
    }

    /// Maximum number of bytes that may wait to be sent before the socket counts as full.
    pub(crate) fn not_sent_limit(&self, settings: &Settings) -> u32 {
        match self.not_sent_low_water {
            0 => settings.tcp.not_sent_low_water,
            own => own,
        }
    }

    /// The engine's parameters for a connection of this socket over `local`.
    pub(crate) fn config(
        &self,
        settings: &Settings,
        window: &ReceiveWindow,
        local: IpAddr,
    ) -> Config {
        let interface = settings.mss_for(local);
        Config {
            mss: self.mss.map_or(interface, |mss| mss.min(interface)),
            route_mss: settings.route_mss_for(local),
            send_buffer: ENGINE_BUFFER,
            receive_buffer: window.full_space(),
            window_clamp: window.offered(),
            window_scale: Some(window.scale()),
            congestion: self.congestion,
            nagle: !self.nodelay,
            syn_retries: self.syn_count.unwrap_or(settings.tcp.syn_retries),
            keepalive: self.keepalive_on.then_some(self.keepalive),
            user_timeout_ms: (self.user_timeout_ms > 0).then_some(self.user_timeout_ms),
            fin_wait_2_ms: self.linger2_ms.max(1) as u32,
            not_sent_low_water: u32::MAX,
            path_mtu_discovery: settings.tcp.path_mtu_discovery && !self.may_fragment(),
            linux: LinuxRules {
                max_pacing_rate: self.max_pacing_rate,
                unreachable_ends_half_open: !self.accepted
                    && settings.tcp.linux.unreachable_ends_half_open,
                ..settings.tcp.linux
            },
            ..settings.tcp.clone()
        }
    }
}
