//! An adapter beside a kernel that owns the interface: the adapter receives only the packets of captured flows.

use super::ledger::{Keeper, Ledger, Remains, lock};
use crate::broker::{BrokerLink, CapturedStats, question};
use crate::error::LiveError;
use crate::neighbourhood::Neighbourhood;
use crate::port::{AfXdp, AfXdpConfig, Port, link_info_or_loopback};
use baton_inet::{Cidr, Host, InterfaceConfig, Unclaimed};
use baton_nic::adapter::{Adapter, Custody};
use baton_wire::{Flow, Span, Time};
use bytes::Bytes;
use serde::Serialize;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// Everything that an engine beside a kernel needs.
pub struct BesideKernel {
    /// Receives the packets of captured flows.
    pub port: AfXdp,
    /// Configuration of the engine's interface: the kernel's own addresses, with every other address reachable behind the interface.
    pub interface: InterfaceConfig,
    /// The adapter's part of the state, for `AdapterService::set_beside`.
    pub beside: Beside,
}

impl BesideKernel {
    /// Opens the interface `name` in this thread's network namespace with the help of the broker behind `link`. The kernel keeps the
    /// interface.
    ///
    /// # Errors
    /// There is no such interface, it has no address, or its sockets cannot be opened.
    pub fn open(name: &str, config: &AfXdpConfig, link: BrokerLink) -> Result<Self, LiveError> {
        let unknown = || LiveError::failed("cannot ask the kernel about the interface");
        let mut neighbourhood = Neighbourhood::of(name).map_err(unknown())?;
        let addresses = neighbourhood.addresses().map_err(unknown())?;
        let port = AfXdp::by_broker(name, config, &link)?;
        let sockets = port.copy_sockets();
        let everywhere = |&addr| Cidr::new(addr, 0).expect("a prefix of no length is right");
        let addresses = addresses.iter().map(everywhere).collect();
        let interface = InterfaceConfig {
            mtu: port.link().mtu,
            announce: false,
            finds_neighbours: false,
            is_loopback: link_info_or_loopback(name)?.1,
            ..InterfaceConfig::new(port.link().mac, addresses)
        };
        let beside = Beside {
            link,
            sockets: sockets.map_err(LiveError::failed("cannot duplicate a descriptor"))?,
            ledger: Arc::default(),
            neighbourhood,
            held: VecDeque::new(),
            held_bytes: 0,
            swept: Time::ZERO,
            closed: false,
            is_alone: false,
            stats: BesideStats::default(),
        };
        Ok(Self {
            port,
            interface,
            beside,
        })
    }
}

/// Maximum number of packets held for connections that are being moved: a few windows' worth.
const MOST_HELD: usize = 4096;
/// Maximum total size of held packets, bytes.
const MOST_HELD_BYTES: usize = 16 << 20;
/// Longest time to hold a packet. After this time it is dropped, and the peer retransmits it.
const LONGEST_HOLD: Span = Span::from_secs(1);
/// After the broker was killed, connections that have been moving for longer than this are given up, unless another broker has come.
const LONGEST_RETURN_MS: u32 = 1800;
/// Interval between two sweeps of the ledger.
const SWEEP: Span = Span::from_ms(200);

/// Counters of an adapter beside a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BesideStats {
    /// Packets that arrived before their connection and were held.
    pub held: u64,
    /// Held packets that were delivered to their connection.
    pub delivered: u64,
    /// Held packets that were dropped, because their connection did not come in time or the buffer was full.
    pub dropped: u64,
    /// Neighbours whose Ethernet addresses the kernel was asked for.
    pub sought: u64,
    /// Connections that were given up because their broker was killed while they moved. Their peers receive a reset.
    pub given_up: u64,
}

/// State of an adapter beside a kernel.
#[derive(Debug)]
pub struct Beside {
    link: BrokerLink,
    /// Duplicates of the port's sockets, for the next broker.
    sockets: Vec<OwnedFd>,
    ledger: Arc<Mutex<Ledger>>,
    neighbourhood: Neighbourhood,
    held: VecDeque<Held>,
    held_bytes: usize,
    swept: Time,
    /// Whether the adapter knows that it must give back all connections.
    closed: bool,
    /// Whether the broker has gone away.
    is_alone: bool,
    stats: BesideStats,
}

/// A packet of a connection that is being moved.
#[derive(Debug)]
struct Held {
    since: Time,
    flow: Flow,
    packet: Bytes,
}

impl Beside {
    /// Returns the custody for an adapter: it may take over only what the broker has taken out of the kernel for the same user.
    pub fn custody(&self) -> impl Custody<Bytes> + use<> {
        Keeper::new(self.link.memory(), &self.ledger)
    }

    /// Returns the broker's counters.
    pub(super) fn captured(&self) -> CapturedStats {
        self.link.stats()
    }

    /// Announces that the adapter is shutting down: all connections go back.
    pub(super) fn end(&self) {
        self.link.close();
    }

    /// Returns whether, as far as the adapter knows, packets of `flow` come to it.
    pub(super) fn has(&self, flow: &Flow) -> bool {
        lock(&self.ledger).has(self.link.table(), flow)
    }

    /// Returns the number of connections that applications have yet to hand over.
    pub(super) fn with_applications(&self) -> usize {
        lock(&self.ledger).with_applications(self.link.table())
    }

    /// Returns whether the broker has gone away. This adapter's connections then stay on the adapter.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Returns the counters.
    pub(super) fn stats(&self) -> &BesideStats {
        &self.stats
    }

    /// Holds packets that no connection on the adapter claims. They are not answered, because their connection is on its way to the adapter
    /// or back. Returns the number of packets.
    pub(super) fn hold(&mut self, now: Time, host: &mut Host) -> u32 {
        let mut count = 0;
        while let Some(Unclaimed { flow, packet, .. }) = host.poll_unclaimed() {
            count += 1;
            self.held_bytes += packet.len();
            while self.held.len() >= MOST_HELD || self.held_bytes > MOST_HELD_BYTES {
                let Some(oldest) = self.held.pop_front() else {
                    break;
                };
                self.held_bytes -= oldest.packet.len();
                self.stats.dropped += 1;
            }
            self.stats.held += 1;
            let since = now;
            self.held.push_back(Held {
                since,
                flow,
                packet,
            });
        }
        count
    }

    /// Registers connections that have left the kernel, delivers held packets, resolves neighbours and, at intervals, sweeps the ledger.
    pub(super) fn work(&mut self, now: Time, host: &mut Host, adapter: &mut Adapter<Bytes>) {
        let table = self.link.table();
        lock(&self.ledger).hear(table);
        self.deliver(now, host);
        if self.link.is_closed() {
            if !std::mem::replace(&mut self.closed, true) {
                adapter.stop_imports(now);
            }
            self.link.set_on_adapter(adapter.imported().into());
        }
        while let Some(addr) = host.interface_mut().poll_sought() {
            self.stats.sought += 1;
            // If the kernel does not know yet, the interface asks again in a second; by then the kernel has found the neighbour.
            if let Ok(Some(mac)) = self.neighbourhood.way_to(addr) {
                host.interface_mut().found(now, addr, mac);
            }
        }
        if now.saturating_since(self.swept) >= SWEEP {
            self.swept = now;
            self.find_broker();
            self.give_up(host);
            let stack = host.stack();
            lock(&self.ledger).sweep(self.link.table(), |flow| Remains::of(now, stack, flow));
        }
    }

    fn find_broker(&mut self) {
        if self.link.is_there() {
            self.is_alone = false;
            return;
        }
        self.is_alone = self.link.find_next(&self.sockets).is_err();
    }

    /// Gives up the connections that a broker was moving when it was killed, unless another broker has come: sends each peer a packet to
    /// which it replies, and the reply is answered with a reset.
    fn give_up(&mut self, host: &mut Host) {
        if !self.is_alone {
            return;
        }
        for state in lock(&self.ledger).give_up(self.link.table(), LONGEST_RETURN_MS) {
            self.stats.given_up += 1;
            if let Ok(question) = question(&state) {
                host.send_packet(question.into());
            }
        }
    }

    /// Records the states of changed connections before packets leave.
    pub(super) fn commit(&mut self, now: Time, host: &mut Host) {
        let (table, stack) = (self.link.table(), host.stack_mut());
        lock(&self.ledger).write(now, table, stack);
    }

    /// Returns the latest time of the next call of [`Beside::work`].
    pub(super) fn poll_timeout(&self) -> Time {
        self.swept + SWEEP
    }

    fn deliver(&mut self, now: Time, host: &mut Host) {
        for _ in 0..self.held.len() {
            let Some(held) = self.held.pop_front() else {
                break;
            };
            self.held_bytes -= held.packet.len();
            let (table, remains) = (
                self.link.table(),
                Remains::of(now, host.stack(), &held.flow),
            );
            if remains == Remains::Connection {
                self.stats.delivered += 1;
                host.handle_packet(now, held.packet);
                continue;
            }
            let mut ledger = lock(&self.ledger);
            // A SYN may have just ended the connection's TIME-WAIT: then the SYN is for the kernel's listener.
            ledger.sweep_one(table, &held.flow, remains);
            let is_coming = ledger.has(table, &held.flow);
            drop(ledger);
            if is_coming {
                match now.saturating_since(held.since) < LONGEST_HOLD {
                    true => {
                        self.held_bytes += held.packet.len();
                        self.held.push_back(held);
                    }
                    false => self.stats.dropped += 1,
                }
            } else if self.is_alone {
                host.handle_stray(now, held.packet);
            } else {
                // The kernel has the connection again. If it does not accept the packet, that is like packet loss.
                self.link.inject(&held.packet);
            }
        }
    }
}
