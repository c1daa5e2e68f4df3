//! Next hops of packets: the longest prefix wins (RFC 1122 3.3.1, RFC 4861 5.2).

use crate::addresses::Addresses;
use crate::config::is_link_local;
use crate::{Cidr, Route};
use baton_wire::Time;
use std::net::{IpAddr, Ipv6Addr};

/// Maximum number of routers taken from advertisements.
const MOST_ROUTERS: usize = 4;

/// A default router that advertised itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Advertised {
    router: Ipv6Addr,
    until: Time,
}

/// Configured and learnt routes.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    /// Longest prefix first.
    given: Vec<Route>,
    advertised: Vec<Advertised>,
}

impl Routes {
    pub(crate) fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| std::cmp::Reverse(route.destination.prefix_len()));
        Self {
            given: routes,
            advertised: Vec::new(),
        }
    }

    /// The next hop of packets to `dst`: `dst` itself if it is on the link.
    pub(crate) fn next_hop(&self, dst: IpAddr, own: &Addresses) -> Option<IpAddr> {
        if own.on_link(dst) || is_link_local(dst) {
            return Some(dst);
        }
        let given = self
            .given
            .iter()
            .find(|route| route.destination.contains(&dst));
        if let Some(route) = given {
            return Some(route.gateway.unwrap_or(dst));
        }
        match dst {
            IpAddr::V6(_) => self.advertised.first().map(|router| router.router.into()),
            IpAddr::V4(_) => None,
        }
    }

    /// Records that a router advertised itself as a default router until `until`; with `None`, that it is one no longer (RFC 4861 6.3.4).
    pub(crate) fn advertise(&mut self, router: Ipv6Addr, until: Option<Time>) {
        let known = self
            .advertised
            .iter()
            .position(|known| known.router == router);
        match (known, until) {
            (Some(index), Some(until)) => self.advertised[index].until = until,
            (Some(index), None) => {
                self.advertised.remove(index);
            }
            (None, Some(until)) if self.advertised.len() < MOST_ROUTERS => {
                self.advertised.push(Advertised { router, until });
            }
            _ => {}
        }
    }

    /// Records that a router does not answer, so that another one is used, if there is one (RFC 4861 6.3.6).
    pub(crate) fn router_failed(&mut self, router: IpAddr) {
        if let Some(at) = self
            .advertised
            .iter()
            .position(|known| router == known.router)
        {
            let failed = self.advertised.remove(at);
            self.advertised.push(failed);
        }
    }

    /// Drops routers whose lifetime has expired.
    pub(crate) fn handle_timeouts(&mut self, now: Time) {
        self.advertised.retain(|router| router.until > now);
    }

    /// When the next router's lifetime expires.
    pub(crate) fn deadline(&self) -> Time {
        let ends = self.advertised.iter().map(|router| router.until);
        ends.min().unwrap_or(Time::NEVER)
    }

    /// All routes, longest prefix first; advertised default routes last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Route> + '_ {
        let learnt = self.advertised.iter().map(|router| Route {
            destination: Cidr::V6(ipnet::Ipv6Net::default()),
            gateway: Some(router.router.into()),
        });
        self.given.iter().copied().chain(learnt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Span;

    fn addr(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn route(destination: &str, gateway: Option<&str>) -> Route {
        Route {
            destination: destination.parse().expect("a network"),
            gateway: gateway.map(addr),
        }
    }

    #[test]
    fn the_longest_prefix_wins() {
        let own = ["10.0.0.1/24", "fd00::1/64"].map(|text| text.parse().expect("a network"));
        let own = Addresses::new(&own, false, false);
        let routes = Routes::new(vec![
            route("0.0.0.0/0", Some("10.0.0.254")),
            route("10.1.0.0/16", Some("10.0.0.253")),
            route("10.1.2.0/24", Some("10.0.0.252")),
            route("10.9.0.0/16", None),
        ]);
        for (dst, next_hop) in [
            ("10.0.0.7", Some("10.0.0.7")),
            ("10.1.2.3", Some("10.0.0.252")),
            ("10.1.3.3", Some("10.0.0.253")),
            ("10.9.1.1", Some("10.9.1.1")),
            ("8.8.8.8", Some("10.0.0.254")),
            ("fd00::7", Some("fd00::7")),
            ("fe80::7", Some("fe80::7")),
            ("fd01::7", None),
        ] {
            assert_eq!(
                routes.next_hop(addr(dst), &own),
                next_hop.map(addr),
                "{dst}"
            );
        }
    }

    #[test]
    fn advertised_routers_come_and_go() {
        let own = Addresses::new(&["fe80::1/64".parse().expect("a network")], false, false);
        let far = addr("2001:db8::1");
        let router = |last| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last);
        let mut routes = Routes::new(Vec::new());
        let until = |s| Some(Time::ZERO + Span::from_secs(s));
        routes.advertise(router(7), until(10));
        routes.advertise(router(8), until(20));
        assert_eq!(routes.next_hop(far, &own), Some(router(7).into()));
        routes.router_failed(router(7).into());
        assert_eq!(routes.next_hop(far, &own), Some(router(8).into()));
        routes.advertise(router(8), None);
        assert_eq!(routes.next_hop(far, &own), Some(router(7).into()));
        assert_eq!(
            (routes.iter().count(), Some(routes.deadline())),
            (1, until(10))
        );
        routes.handle_timeouts(Time::ZERO + Span::from_secs(10));
        assert_eq!(routes.next_hop(far, &own), None);
    }
}
