//! What a client knows of servers: their cookies, and where Fast Open did not work (RFC 7413 4.1.3).

use crate::remembered::Remembered;
use baton_wire::{Endpoint, FastOpenCookie, FastOpenOption, Flow, Span, Time};
use std::net::IpAddr;

/// Time for which Fast Open is not tried after its first failure; doubles with each failure. The RFC leaves the value open.
const FIRST_BACK_OFF: Span = Span::from_secs(60);

/// Maximum number of doublings of that time, up to about an hour, as in Linux (tcp_fastopen_blackhole_timeout_sec).
const MOST_DOUBLINGS: u8 = 6;

/// What a server's answers contained. It applies to all ports of the server's address.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    cookie: Option<FastOpenOption>,
    mss: Option<u16>,
    ignored: Ignored,
}

/// Requests for a cookie that were answered without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ignored {
    #[default]
    None,
    /// A request with the assigned kind: the next one uses the experimental kind, as in Linux.
    Assigned,
    /// A request of each kind: later ones use the assigned kind.
    Both,
}

/// Record of failures of Fast Open; `times` is 0 if the only failure so far may have been chance.
#[derive(Clone, Copy, Debug)]
struct BackOff {
    until: Time,
    times: u8,
}

/// What a SYN to a server may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// No Fast Open, which failed recently.
    Nothing,
    /// This option, which is a request or a cookie. With a cookie, also data, for a server with this MSS if that is known.
    Option(FastOpenOption, Option<u16>),
}

/// Servers to which a client has connected.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    given: Remembered<(IpAddr, IpAddr), Given>,
    back_offs: Remembered<(IpAddr, Endpoint), BackOff>,
}

impl Servers {
    /// Returns what a SYN of `flow` may carry now.
    pub(crate) fn offer(&mut self, now: Time, flow: &Flow) -> Offer {
        let back_off = self.back_offs.get(&port_of(flow));
        if back_off.is_some_and(|it| now < it.until) {
            return Offer::Nothing;
        }
        let given = self.given.get(&addresses_of(flow));
        let given = given.copied().unwrap_or_default();
        match given.cookie {
            Some(option) => Offer::Option(option, given.mss),
            None => {
                let request = FastOpenOption {
                    cookie: FastOpenCookie::REQUEST,
                    experimental: given.ignored == Ignored::Assigned,
                };
                Offer::Option(request, None)
            }
        }
    }

    /// The MSS option that the server sent last.
    pub(crate) fn mss(&mut self, flow: &Flow) -> Option<u16> {
        self.given.get(&addresses_of(flow))?.mss
    }

    /// Records the server's answer. A cookie in it shows that Fast Open works.
    pub(crate) fn learn(&mut self, flow: &Flow, cookie: Option<FastOpenOption>, mss: Option<u16>) {
        let given = self.given.entry(addresses_of(flow)).get_or_insert_default();
        given.mss = mss;
        if cookie.is_some() {
            given.cookie = cookie;
            self.worked(flow);
        }
    }

    /// Records that the server answered a request of this kind without a cookie.
    pub(crate) fn request_ignored(&mut self, flow: &Flow, experimental: bool) {
        let given = self.given.entry(addresses_of(flow)).get_or_insert_default();
        given.ignored = match (given.ignored, experimental) {
            (Ignored::None, false) => Ignored::Assigned,
            _ => Ignored::Both,
        };
    }

    /// Forgets everything.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Records that data in a SYN was acknowledged.
    pub(crate) fn worked(&mut self, flow: &Flow) {
        self.back_offs.forget(&port_of(flow));
    }

    /// Records a failure: a SYN was not answered, its data was not accepted, or an ICMP error came for it (RFC 7413 4.1.3.1).
    pub(crate) fn failed(&mut self, now: Time, flow: &Flow) {
        let entry = self.back_offs.entry(port_of(flow));
        let before = entry.map_or(0, |before| before.times);
        *entry = Some(BackOff {
            until: now + FIRST_BACK_OFF * (1 << before.min(MOST_DOUBLINGS)),
            times: before.saturating_add(1),
        });
    }

    /// Records that a SYN was not answered, which may be chance: the second time counts as a failure.
    pub(crate) fn suspect(&mut self, now: Time, flow: &Flow) {
        let entry = self.back_offs.entry(port_of(flow));
        if entry.is_some() {
            return self.failed(now, flow);
        }
        *entry = Some(BackOff {
            until: now,
            times: 0,
        });
    }
}

fn addresses_of(flow: &Flow) -> (IpAddr, IpAddr) {
    (flow.local.addr, flow.remote.addr)
}

fn port_of(flow: &Flow) -> (IpAddr, Endpoint) {
    (flow.local.addr, flow.remote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembered::MOST;

    fn flow(server: u32, port: u16) -> Flow {
        Flow {
            local: Endpoint::new(IpAddr::from([10, 0, 0, 1]), 5000),
            remote: Endpoint::new(IpAddr::from(server.to_be_bytes()), port),
        }
    }

    fn cookie(byte: u8) -> FastOpenOption {
        FastOpenOption::new(FastOpenCookie::new(&[byte; 8]).expect("a cookie"))
    }

    const ASKS: Offer = Offer::Option(FastOpenOption::REQUEST, None);
    const ASKS_BY_EXPERIMENT: Offer = Offer::Option(
        FastOpenOption {
            cookie: FastOpenCookie::REQUEST,
            experimental: true,
        },
        None,
    );

    #[test]
    fn the_last_cookie_of_an_address_is_for_all_its_ports() {
        let mut servers = Servers::default();
        assert_eq!(servers.offer(Time::ZERO, &flow(1, 80)), ASKS);
        servers.learn(&flow(1, 80), Some(cookie(1)), Some(1000));
        servers.learn(&flow(1, 81), Some(cookie(2)), Some(1400));
        servers.learn(&flow(1, 80), None, Some(1200));
        let known = Offer::Option(cookie(2), Some(1200));
        assert_eq!(servers.offer(Time::ZERO, &flow(1, 82)), known);
        assert_eq!(servers.offer(Time::ZERO, &flow(2, 80)), ASKS);
    }

    #[test]
    fn the_experimental_option_kind_is_tried_once() {
        let mut servers = Servers::default();
        let server = flow(1, 80);
        servers.request_ignored(&server, false);
        assert_eq!(servers.offer(Time::ZERO, &server), ASKS_BY_EXPERIMENT);
        for experimental in [true, false, false] {
            servers.request_ignored(&server, experimental);
            assert_eq!(servers.offer(Time::ZERO, &server), ASKS);
        }
        servers.forget();
        servers.request_ignored(&server, false);
        assert_eq!(servers.offer(Time::ZERO, &server), ASKS_BY_EXPERIMENT);
    }

    #[test]
    fn a_single_loss_does_not_disable_fast_open() {
        let mut servers = Servers::default();
        let (now, server) = (Time::ZERO, flow(1, 80));
        servers.suspect(now, &server);
        assert_eq!(servers.offer(now, &server), ASKS);
        servers.suspect(now, &server);
        assert_eq!(servers.offer(now, &server), Offer::Nothing);
        // A cookie came after all.
        servers.learn(&server, Some(cookie(1)), None);
        servers.suspect(now, &server);
        assert_ne!(servers.offer(now, &server), Offer::Nothing);
    }

    #[test]
    fn a_port_where_fast_open_failed_is_avoided_ever_longer() {
        let mut servers = Servers::default();
        let (spared, other) = (flow(1, 80), flow(1, 81));
        let mut now = Time::ZERO;
        for seconds in [60, 120, 240, 480, 960, 1920, 3840, 3840] {
            servers.failed(now, &spared);
            let just_before = now + Span::from_ms(1000 * seconds - 1);
            now += Span::from_secs(seconds);
            assert_eq!(servers.offer(just_before, &spared), Offer::Nothing);
            assert_eq!(servers.offer(just_before, &other), ASKS);
            assert_eq!(servers.offer(now, &spared), ASKS);
        }
        servers.worked(&spared);
        servers.failed(now, &spared);
        assert_eq!(servers.offer(now + Span::from_secs(60), &spared), ASKS);
    }

    #[test]
    fn the_number_of_remembered_servers_is_limited() {
        let mut servers = Servers::default();
        for server in 0..2 * MOST as u32 {
            servers.learn(&flow(server, 80), Some(cookie(1)), None);
            servers.failed(Time::ZERO, &flow(server, 80));
            // This server is used most often, and so is not forgotten.
            assert_ne!(servers.offer(Time::ZERO, &flow(0, 81)), ASKS);
        }
        assert_eq!(servers.given.len(), MOST);
        assert_eq!(servers.back_offs.len(), MOST);
        assert_eq!(servers.offer(Time::ZERO, &flow(1, 81)), ASKS);
    }
}
