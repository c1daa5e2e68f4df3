//! A host with a stack of its own and an adapter in another process: each connection is located on one of the two (handoff-policies 2).
//!
//! The adapter owns the interface. It passes packets that belong to none of its connections to the host, and sends the packets that the
//! host makes.

use crate::adapter::ApplicationRow;
use crate::remote::{
    CannotListen, LinkNews, LinkWatch, application_row, link_counters, until_agreed,
};
use crate::snapshot::{SnapshotSource, add_handoffs, add_host_counters};
use crate::world::SocketWorld;
use baton_bus::descriptor::Status;
use baton_host::layer::{AdapterEnd, AdapterId, LayerCalls, SocketLayer};
use baton_host::process::{HostProcess, Lower, PacketSocket};
use baton_host::{Ready, Selection, SocketId};
use baton_inet::{Cidr, Host, InterfaceConfig, Medium};
use baton_iolib::Arena;
use baton_sockets::kernel::PlaceRow;
use baton_sockets::{Driver, HostEnd};
use baton_tcp::{Config, Stack};
use baton_wire::{Endpoint, Flow, Time};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::slice;

/// Maximum length of a packet that the host's stack makes, bytes: that of Ethernet.
const MTU: u16 = 1500;
/// The host has a single adapter.
const ADAPTER: AdapterId = AdapterId(0);

/// Configuration of a host with an adapter.
#[derive(Debug)]
pub struct HandoffConfig {
    /// Selects the connections that are handed off to the adapter.
    pub selection: Box<dyn Selection>,
    /// Parameters of connections.
    pub tcp: Config,
    /// Port on which the server listens.
    pub port: u16,
    /// Maximum number of connections that wait to be accepted.
    pub backlog: usize,
    /// Maximum number of sockets.
    pub most_sockets: usize,
    /// Seed for values that must not be guessable.
    pub secret: u64,
}

/// Sockets on the host's own stack and on an adapter.
pub struct HandoffSockets<N> {
    driver: Driver,
    below: Below,
    /// The host's process, with a packet socket for each IP version.
    process: HostProcess<Bytes>,
    watch: LinkWatch<N>,
}

/// The host's stack, whose packets the adapter sends.
struct Below {
    host: Host,
    /// Memory for packets that are sent.
    arena: Arena,
}

impl Lower<Bytes> for Below {
    type Link = HostEnd;

    fn stack(&mut self) -> &mut Stack<Bytes> {
        self.host.stack_mut()
    }

    fn take_in(
        &mut self,
        now: Time,
        packet: Bytes,
        is_away: impl Fn(&Flow) -> bool,
    ) -> Option<(Flow, Bytes)> {
        let unclaimed = self.host.handle_frame_unless(now, packet, is_away)?;
        Some((unclaimed.flow, unclaimed.packet))
    }

    fn handle_timeouts(&mut self, now: Time) {
        if self.host.poll_timeout().is_some_and(|due| due <= now) {
            self.host.handle_timeouts(now);
        }
    }

    fn transmit(
        &mut self,
        now: Time,
        ends: &mut [AdapterEnd<Bytes, HostEnd>],
        sockets: &[PacketSocket],
    ) -> bool {
        let memory = self.arena.memory(MTU.into());
        if !self.host.poll_frame(now, memory) {
            return false;
        }
        let packet = memory.split().freeze();
        let ([AdapterEnd { os, link }], Some(&(_, socket))) = (ends, sockets.first()) else {
            unreachable!("there is one adapter, with a socket");
        };
        os.send_packet(now, link, socket, packet, false);
        true
    }
}

impl<N: FnMut(&LinkNews)> HandoffSockets<N> {
    /// Attaches to the adapter behind `driver`, and listens at its addresses.
    ///
    /// # Errors
    /// The adapter does not let this process receive packets for the port.
    pub fn new(mut driver: Driver, config: HandoffConfig, tell: N) -> Result<Self, CannotListen> {
        let mut packets = Vec::new();
        let mut addresses = Vec::new();
        let mut refused = None;
        for any in [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ] {
            match packet_socket(&mut driver, Endpoint::new(any, config.port)) {
                Ok((socket, address)) => {
                    packets.push((ADAPTER, socket));
                    addresses.push(address);
                }
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused.filter(|_| addresses.is_empty()) {
            return Err(error);
        }
        let host = host(&addresses, config.tcp, config.secret);
        let mut host = host.ok_or(CannotListen {
            at: Endpoint::new(addresses[0], config.port),
            status: Status::AddressNotAvailable,
        })?;
        let mut layer = SocketLayer::new(config.most_sockets, Some(config.selection));
        for address in addresses {
            let at = Endpoint::new(address, config.port);
            let listener = host.stack_mut().listen(at, config.backlog);
            layer.add_listener(listener, ADAPTER);
        }
        Ok(Self {
            driver,
            below: Below {
                host,
                arena: Arena::default(),
            },
            process: HostProcess::new(layer, packets),
            watch: LinkWatch::new(tell),
        })
    }

    /// Returns the endpoints at which the host listens.
    pub fn listening(&self) -> impl Iterator<Item = Endpoint> + '_ {
        let stack = self.below.host.stack();
        stack.listeners().map(|id| stack.listening_at(id))
    }

    /// Returns the socket layer.
    pub fn layer(&self) -> &SocketLayer<Bytes> {
        self.process.layer()
    }

    /// Handles the stack's events, and sends its packets as long as the queues have space.
    fn settle(&mut self, now: Time) {
        let ends = slice::from_mut(self.driver.adapter_end());
        self.process.settle(now, ends, &mut self.below);
    }
}

/// Creates a packet socket; returns it with the adapter's address of that IP version.
fn packet_socket(driver: &mut Driver, at: Endpoint) -> Result<(SocketId, IpAddr), CannotListen> {
    let now = driver.now();
    let refused = |status| CannotListen { at, status };
    let socket = driver.os_mut().packet_socket(now, at).map_err(refused)?;
    let own = until_agreed(driver, socket, at, |os| os.local(socket));
    if own.is_err() {
        let now = driver.now();
        driver.os_mut().close(now, socket);
    }
    Ok((socket, own?.addr))
}

/// Creates the host with its own stack. To this host, all other addresses are on the adapter's side.
fn host(addresses: &[IpAddr], tcp: Config, secret: u64) -> Option<Host> {
    let cidrs = addresses.iter().map(|&addr| Cidr::new(addr, 0).ok());
    let config = InterfaceConfig {
        medium: Medium::Ip,
        mtu: MTU,
        // The adapter has verified the checksums.
        verify_checksums: false,
        ..InterfaceConfig::new([0; 6], cidrs.collect::<Option<_>>()?)
    };
    Host::new(config, tcp, secret).ok()
}

impl<N: FnMut(&LinkNews)> SocketWorld for HandoffSockets<N> {
    type Calls<'a>
        = LayerCalls<'a, Bytes, HostEnd>
    where
        Self: 'a;

    fn name(&self) -> String {
        format!("handoff to the adapter at {}", self.driver.address())
    }

    fn now(&self) -> Time {
        self.driver.now()
    }

    fn turn(&mut self) -> io::Result<()> {
        self.driver.turn();
        if self.watch.look(&self.driver) {
            self.process.layer_mut().handle_adapter_lost(ADAPTER);
        }
        let now = self.driver.now();
        let ends = slice::from_mut(self.driver.adapter_end());
        self.process.handle_arrived(now, ends, &mut self.below);
        self.settle(now);
        Ok(())
    }

    fn submit(&mut self) {
        self.settle(self.driver.now());
        self.driver.transmit();
    }

    fn next_ready(&mut self) -> Option<Ready> {
        self.process.layer_mut().next_ready()
    }

    fn calls(&mut self) -> Self::Calls<'_> {
        let now = self.driver.now();
        let adapters = slice::from_mut(self.driver.adapter_end());
        let layer = self.process.layer_mut();
        layer.calls(now, self.below.host.stack_mut(), adapters)
    }

    fn unlisten(&mut self) {
        let now = self.driver.now();
        for listener in self.process.layer_mut().take_listeners() {
            self.below.host.stack_mut().unlisten(now, listener);
        }
    }

    fn undrained(&self) -> usize {
        self.below.host.stack().len()
    }

    fn reset_all(&mut self) {
        let stack = self.below.host.stack_mut();
        let left: Vec<_> = stack.connections().collect();
        for conn in left {
            stack.abort(conn);
        }
    }

    fn wait(&mut self, due: Time) -> io::Result<()> {
        let due = self
            .below
            .host
            .poll_timeout()
            .map_or(due, |own| own.min(due));
        let span = due.saturating_since(self.driver.now());
        self.driver.wait(Some(span.into()))
    }
}

impl<N: FnMut(&LinkNews)> SnapshotSource for HandoffSockets<N> {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        link_counters(&self.driver, counters);
        add_host_counters(&self.below.host, counters);
        add_handoffs(self.layer(), self.driver.os().soft_limit(), counters);
    }

    fn applications(&self, now: Time) -> Vec<ApplicationRow> {
        vec![application_row(
            &self.driver,
            now,
            self.process.packets().len() as u64,
        )]
    }

    fn places(&self, now: Time) -> Vec<PlaceRow> {
        let states = self.layer().states();
        states.map(|state| PlaceRow::new(now, &state)).collect()
    }
}
