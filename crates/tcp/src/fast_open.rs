//! TCP Fast Open (RFC 7413): state of the stack outside of connections.
//!
//! A server's cookies are a keyed hash of both addresses, so that the server need not store them; a client stores the cookies that it
//! was given, and where Fast Open did not work. `pending` has the pending requests of a listener, `servers` what a client knows of
//! servers. The option is understood under both of its kinds (RFC 7413 4.1.1, RFC 6994).

mod pending;
mod servers;

pub(crate) use pending::Pending;
pub(crate) use servers::{Offer, Servers};

use crate::isn::Secret;
use baton_wire::{Endpoint, FastOpenCookie, Flow};
use rustc_hash::FxHashMap;
use siphasher::sip::SipHasher24;
use std::net::IpAddr;

/// Key of Fast Open cookies. Servers that share an address share the key (RFC 7413 4.1.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastOpenKey(pub [u8; 16]);

/// Does not reveal the key.
impl std::fmt::Debug for FastOpenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FastOpenKey(..)")
    }
}

/// The current key and the previous one, whose cookies are still accepted and answered with new ones (RFC 7413 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenKeys {
    /// Key of new cookies.
    pub current: FastOpenKey,
    /// Key of earlier cookies.
    pub previous: Option<FastOpenKey>,
}

/// Fast Open settings of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastOpenListening {
    /// Maximum number of requests whose handshake is not complete (RFC 7413 5.1); 0: Fast Open is off.
    pub pending: usize,
    /// Data is accepted without a cookie too: for networks where addresses cannot be forged (RFC 7413 6.4).
    pub without_cookie: bool,
}

/// How a client uses Fast Open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// With the server's cookie if there is one; otherwise the SYN requests a cookie.
    Cookie,
    /// With data in the SYN and no option, to a server that accepts this (RFC 7413 6.4).
    WithoutCookie,
}

/// Kind of a cookie that came with a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    Current,
    Previous,
    Wrong,
}

impl FastOpenKey {
    /// The cookie for the client at `flow.remote`. It is computed as in Linux, so that hosts that share an address and a key accept
    /// each other's cookies.
    fn cookie(&self, flow: &Flow) -> FastOpenCookie {
        let (low, high) = self.0.split_at(8);
        let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let hasher = SipHasher24::new_with_keys(half(low), half(high));
        let hash = match (flow.remote.addr, flow.local.addr) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                hasher.hash([client.octets(), server.octets()].as_flattened())
            }
            (client, server) => {
                let octets = |addr: IpAddr| match addr {
                    IpAddr::V4(addr) => addr.to_ipv6_mapped().octets(),
                    IpAddr::V6(addr) => addr.octets(),
                };
                hasher.hash([octets(client), octets(server)].as_flattened())
            }
        };
        FastOpenCookie::new(&hash.to_le_bytes()).expect("8 bytes are a cookie")
    }
}

impl FastOpenKeys {
    pub(crate) fn presented(&self, flow: &Flow, cookie: &FastOpenCookie) -> Presented {
        let made_by = |key: &FastOpenKey| key.cookie(flow) == *cookie;
        if made_by(&self.current) {
            Presented::Current
        } else if self.previous.as_ref().is_some_and(made_by) {
            Presented::Previous
        } else {
            Presented::Wrong
        }
    }
}

/// A stack's keys, and its knowledge of servers.
#[derive(Debug)]
pub(crate) struct FastOpenState {
    keys: FastOpenKeys,
    /// Keys of listeners that have their own.
    own_keys: FxHashMap<Endpoint, FastOpenKeys>,
    pub(crate) servers: Servers,
}

impl FastOpenState {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self {
            keys: FastOpenKeys {
                current: FastOpenKey(secret.fast_open_key()),
                previous: None,
            },
            own_keys: FxHashMap::default(),
            servers: Servers::default(),
        }
    }

    pub(crate) fn set_keys(&mut self, keys: FastOpenKeys) {
        self.keys = keys;
    }

    pub(crate) fn set_own_keys(&mut self, local: Endpoint, keys: Option<FastOpenKeys>) {
        match keys {
            Some(keys) => self.own_keys.insert(local, keys),
            None => self.own_keys.remove(&local),
        };
    }

    /// The keys of the listener at `local`.
    pub(crate) fn keys_at(&self, local: Endpoint) -> &FastOpenKeys {
        let of = |local| self.own_keys.get(&local);
        of(local)
            .or_else(|| of(local.unspecified()))
            .unwrap_or(&self.keys)
    }

    /// The cookie for the remote end of `flow`.
    pub(crate) fn cookie(&self, flow: &Flow) -> FastOpenCookie {
        self.keys_at(flow.local).current.cookie(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(client: &str, server: &str) -> Flow {
        let end = |addr: &str, port| Endpoint::new(addr.parse().expect("an address"), port);
        Flow {
            local: end(server, 80),
            remote: end(client, 5000),
        }
    }

    fn key(words: [u32; 4]) -> FastOpenKey {
        let bytes = words.map(u32::to_le_bytes);
        FastOpenKey(bytes.as_flattened().try_into().expect("16 bytes"))
    }

    /// Cookies of Linux's own packet scripts (tools/testing/selftests/net/packetdrill).
    #[test]
    fn cookies_are_those_of_linux() {
        let keys = [
            key([0xa1a1_a1a1, 0xb2b2_b2b2, 0xc3c3_c3c3, 0xd4d4_d4d4]),
            key([0; 4]),
        ];
        for (client, server, cookies) in [
            (
                "192.0.2.1",
                "192.168.0.1",
                ["3021b9d889017eeb", "b7c12350a90dc8f5"],
            ),
            (
                "fd3d:fa7b:d17d::1",
                "fd3d:0a0b:17d6::1",
                ["c1d1e9742a47a9bc", "82af1a8f9a205c34"],
            ),
        ] {
            for (key, expected) in keys.iter().zip(cookies) {
                let cookie = key.cookie(&flow(client, server));
                assert_eq!(format!("{cookie:?}"), expected);
            }
        }
    }

    #[test]
    fn a_cookie_is_of_one_address_and_of_one_of_two_keys() {
        let (old, new) = (key([1; 4]), key([2; 4]));
        let keys = FastOpenKeys {
            current: new,
            previous: Some(old),
        };
        let (here, there) = (flow("10.0.0.2", "10.0.0.1"), flow("10.0.0.3", "10.0.0.1"));
        let presented = |cookie: FastOpenCookie| keys.presented(&here, &cookie);
        assert_eq!(presented(new.cookie(&here)), Presented::Current);
        assert_eq!(presented(old.cookie(&here)), Presented::Previous);
        assert_eq!(presented(key([3; 4]).cookie(&here)), Presented::Wrong);
        assert_eq!(presented(new.cookie(&there)), Presented::Wrong);
        let cut = FastOpenCookie::new(&new.cookie(&here)[..4]).expect("a cookie");
        assert_eq!(presented(cut), Presented::Wrong);
        let mut other_port = here;
        other_port.remote.port += 1;
        assert_eq!(new.cookie(&other_port), new.cookie(&here));
    }
}
