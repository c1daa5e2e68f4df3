//! Local addresses and ports of outgoing connections.

use super::config::AdapterConfig;
use baton_bus::descriptor::Status;
use baton_tcp::Stack;
use baton_wire::{Endpoint, Flow, Payload, Time};
use siphasher::sip::SipHasher13;
use std::fmt::Debug;
use std::hash::Hasher;
use std::net::IpAddr;
use std::num::NonZero;

/// Identifies the sockets that may share a listener: the operating system's number of their user, and the number that they have chosen.
pub type Sharing = (u32, NonZero<u32>);

/// Agrees on ports with other adapters that have the same addresses.
pub trait PortRegistry: Debug + Send {
    /// Returns whether this adapter, and no other, may choose the port for a socket that is not bound to one.
    fn may_choose(&self, port: u16) -> bool;

    /// Returns whether sockets may listen at `local`: no other adapter has a listener that takes the same connections, or all of them share
    /// it.
    fn may_listen(&self, local: Endpoint, sharing: Option<Sharing>) -> bool;

    /// Records a listener of this adapter. Returns false, and records nothing, if it may not listen.
    fn listen(&mut self, local: Endpoint, sharing: Option<Sharing>) -> bool;

    /// Removes a listener of this adapter.
    fn unlisten(&mut self, local: Endpoint);

    /// Records that a connection is opened from a port that its application has chosen. Returns false if another adapter may have
    /// connections with this port.
    fn connect_from(&mut self, port: u16) -> bool;
}

/// Chooses local addresses and ports that hosts leave unspecified.
#[derive(Debug)]
pub(super) struct Ports {
    addresses: Vec<IpAddr>,
    first: u16,
    count: u32,
    seed: u64,
    /// Number of searches so far. Each search for a port starts one port further.
    opened: u32,
    /// Present if other adapters have the same addresses.
    registry: Option<Box<dyn PortRegistry>>,
}

impl Ports {
    pub(super) fn new(config: &AdapterConfig) -> Self {
        Self {
            addresses: config.addresses.clone(),
            first: config.first_port,
            count: u32::from(config.last_port - config.first_port) + 1,
            seed: config.port_seed,
            opened: 0,
            registry: None,
        }
    }

    pub(super) fn set_registry(&mut self, registry: Box<dyn PortRegistry>) {
        self.registry = Some(registry);
    }

    /// Returns whether the other adapters permit a listener at `local`.
    pub(super) fn may_listen(&self, local: Endpoint, sharing: Option<Sharing>) -> bool {
        let registry = self.registry.as_ref();
        registry.is_none_or(|registry| registry.may_listen(local, sharing))
    }

    /// Records a listener for the other adapters. Returns false if they do not permit it.
    pub(super) fn listen(&mut self, local: Endpoint, sharing: Option<Sharing>) -> bool {
        let registry = self.registry.as_mut();
        registry.is_none_or(|registry| registry.listen(local, sharing))
    }

    /// Removes a listener.
    pub(super) fn unlisten(&mut self, local: Endpoint) {
        if let Some(registry) = &mut self.registry {
            registry.unlisten(local);
        }
    }

    /// Returns whether sockets may be bound to this address.
    pub(super) fn may_bind(&self, addr: IpAddr) -> bool {
        addr.is_unspecified() || self.addresses.contains(&addr)
    }

    /// Returns whether this is an address of the adapter. An adapter of the loopback interface has all loopback addresses.
    pub(super) fn is_own(&self, addr: IpAddr) -> bool {
        let is_looped = || addr.is_loopback() && self.addresses.iter().any(IpAddr::is_loopback);
        self.addresses.contains(&addr) || is_looped()
    }

    /// Returns the adapter's address for a socket bound to `bound`: that address, or the first address of the same IP version if `bound` is
    /// unspecified.
    pub(super) fn own_like(&self, bound: IpAddr) -> Option<IpAddr> {
        let mut own = self.addresses.iter().copied();
        own.find(|addr| match bound.is_unspecified() {
            true => addr.is_ipv4() == bound.is_ipv4(),
            false => *addr == bound,
        })
    }

    /// Returns the four-tuple of a new connection from `bound`, and completes the address or port if the socket is not bound to one.
    ///
    /// # Errors
    /// Fails if no address can reach `remote`, if no port is free, or if the requested port is in use.
    pub(super) fn flow<P: Payload>(
        &mut self,
        now: Time,
        stack: &Stack<P>,
        bound: Option<Endpoint>,
        remote: Endpoint,
    ) -> Result<Flow, Status> {
        let addr = match bound {
            Some(bound) if !bound.addr.is_unspecified() => bound.addr,
            _ => self.source(remote.addr).ok_or(Status::Unreachable)?,
        };
        if addr.is_ipv4() != remote.addr.is_ipv4() {
            return Err(Status::AddressNotAvailable);
        }
        let is_free = |local: Endpoint| {
            let flow = Flow { local, remote };
            (stack.find(&flow).is_none() && !stack.in_time_wait(now, &flow)).then_some(flow)
        };
        if let Some(bound) = bound.filter(|bound| bound.port != 0) {
            let registry = self.registry.as_mut();
            let permitted = registry.is_none_or(|registry| registry.connect_from(bound.port));
            let flow = is_free(Endpoint::new(addr, bound.port)).filter(|_| permitted);
            return flow.ok_or(Status::AddressInUse);
        }
        self.candidates(stack, addr, remote)
            .find_map(|port| is_free(Endpoint::new(addr, port)))
            .ok_or(Status::NoPort)
    }

    /// Returns a port for a listener at `addr` that no listener uses at any address.
    ///
    /// # Errors
    /// Fails if there is none.
    pub(super) fn listening_port<P: Payload>(
        &mut self,
        stack: &Stack<P>,
        addr: IpAddr,
    ) -> Result<u16, Status> {
        let nobody = Endpoint::new(addr, 0);
        let first = self.candidates(stack, addr, nobody).next();
        first.ok_or(Status::NoPort)
    }

    /// Returns the ports without a listener, starting at one that others cannot guess (RFC 6056 3.3.3, simple hash-based port selection).
    fn candidates<P: Payload>(
        &mut self,
        stack: &Stack<P>,
        addr: IpAddr,
        remote: Endpoint,
    ) -> impl Iterator<Item = u16> {
        let start = self.hash(addr, remote).wrapping_add(self.opened);
        self.opened = self.opened.wrapping_add(1);
        let (first, count) = (self.first, self.count);
        let port = move |step: u32| first + (start.wrapping_add(step) % count) as u16;
        let registry = self.registry.as_ref();
        let permitted = move |port: u16| registry.is_none_or(|registry| registry.may_choose(port));
        let listens = |port: u16| {
            let mut listeners = stack.listeners();
            listeners.any(|id| stack.listening_at(id).port == port)
        };
        let ports = (0..count).map(port);
        ports.filter(move |&port| permitted(port) && !listens(port))
    }

    /// Returns the local address with the longest common prefix with `remote` (RFC 6724 5, rule 8).
    fn source(&self, remote: IpAddr) -> Option<IpAddr> {
        let candidates = self.addresses.iter().copied();
        candidates
            .filter_map(|addr| Some((common_bits(addr, remote)?, addr)))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, addr)| addr)
    }

    fn hash(&self, addr: IpAddr, remote: Endpoint) -> u32 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, self.seed.rotate_left(32));
        for addr in [addr, remote.addr] {
            match addr {
                IpAddr::V4(addr) => hasher.write(&addr.octets()),
                IpAddr::V6(addr) => hasher.write(&addr.octets()),
            }
        }
        hasher.write(&remote.port.to_be_bytes());
        hasher.finish() as u32
    }
}

/// Returns the number of equal leading bits of two addresses, or `None` if they are of different versions.
fn common_bits(one: IpAddr, other: IpAddr) -> Option<u32> {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            Some((one.to_bits() ^ other.to_bits()).leading_zeros())
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            Some((one.to_bits() ^ other.to_bits()).leading_zeros())
        }
        _ => None,
    }
}

/// Returns whether a listener at one endpoint would take connections to a listener at the other.
pub fn overlap(one: Endpoint, other: Endpoint) -> bool {
    let either_is_any = one.addr.is_unspecified() || other.addr.is_unspecified();
    one.port == other.port
        && one.addr.is_ipv4() == other.addr.is_ipv4()
        && (one.addr == other.addr || either_is_any)
}
