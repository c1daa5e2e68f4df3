//! Short constructors for types that tests use often.

use baton_wire::{Endpoint, Symbolic};
use std::net::{IpAddr, Ipv4Addr};

/// Returns port `port` of 10.0.0.`host`.
pub const fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

/// Returns a piece of the data that `source` sends.
pub const fn symbolic(source: u64, offset: u64, len: u32) -> Symbolic {
    Symbolic {
        source,
        offset,
        len,
    }
}

/// Returns a list of tests, each with the name of its function.
#[macro_export]
macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        &[$((stringify!($test), $test as fn())),+]
    };
}
