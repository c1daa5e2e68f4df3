//! An adapter beside a kernel, which has the interface: it has the packets of captured flows and no others.

use super::ledger::{Keeper, Ledger, Remains, lock};
use crate::broker::{BrokerLink, CapturedStats, question};
use crate::error::LiveError;
use crate::neighbourhood::Neighbourhood;
use crate::port::{AfXdp, AfXdpConfig, Port};
use baton_inet::{Cidr, Host, InterfaceConfig, Unclaimed};
use baton_nic::adapter::{Adapter, Custody};
use baton_wire::{Flow, Span, Time};
use bytes::Bytes;
use serde::Serialize;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// What an engine beside a kernel needs.
pub struct BesideKernel {
    /// Has the packets of captured flows.
    pub port: AfXdp,
    /// For the engine: the kernel's own addresses, and all the world behind the interface.
    pub interface: InterfaceConfig,
    /// For the adapter.
    pub beside: Beside,
}

impl BesideKernel {
    /// On the interface `name` in this thread's network namespace, which stays the kernel's, by the broker that `link` leads to.
    ///
    /// # Errors
    /// There is no such interface, it has no address, or its sockets cannot be had.
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
            ..InterfaceConfig::new(port.link().mac, addresses)
        };
        let beside = Beside {
            link,
            sockets: sockets.map_err(LiveError::failed("cannot copy a descriptor"))?,
            ledger: Arc::default(),
            neighbourhood,
            held: VecDeque::new(),
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

/// Packets of connections on their way that are kept: some windows of them.
const MOST_HELD: usize = 4096;
/// For so long; what is lost then the peer sends again.
const LONGEST_HOLD: Span = Span::from_secs(1);
/// After a broker was killed the next one has connections back within this time that were on their way, or nobody has.
const LONGEST_RETURN_MS: u32 = 1800;
/// Flows are looked through so often.
const SWEEP: Span = Span::from_ms(200);

/// What it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BesideStats {
    /// Packets that came before their connection, and were kept.
    pub held: u64,
    /// Those that found it.
    pub delivered: u64,
    /// Those that did not, or for which there was no room.
    pub dropped: u64,
    /// Neighbours that the kernel was asked for.
    pub sought: u64,
    /// Connections that nobody had any more after their broker was killed: their peers were told by a reset.
    pub given_up: u64,
}

/// What an adapter beside a kernel does.
#[derive(Debug)]
pub struct Beside {
    link: BrokerLink,
    /// Those of the port, for the next broker.
    sockets: Vec<OwnedFd>,
    ledger: Arc<Mutex<Ledger>>,
    neighbourhood: Neighbourhood,
    held: VecDeque<Held>,
    swept: Time,
    /// The adapter knows that it is to give everything back.
    closed: bool,
    /// The broker is gone.
    is_alone: bool,
    stats: BesideStats,
}

/// A packet of a connection on its way.
#[derive(Debug)]
struct Held {
    since: Time,
    flow: Flow,
    packet: Bytes,
}

impl Beside {
    /// Lets an adapter take over what the broker has taken out of the kernel, for the user it did that for, and nothing else.
    pub fn custody(&self) -> impl Custody<Bytes> + use<> {
        Keeper::new(self.link.memory(), &self.ledger)
    }

    /// What the broker has counted.
    pub(super) fn captured(&self) -> CapturedStats {
        self.link.stats()
    }

    /// Connections that an application has still to hand over.
    pub(super) fn with_applications(&self) -> usize {
        lock(&self.ledger).with_applications(self.link.table())
    }

    /// Whether the broker is gone: connections that are here stay.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Totals.
    pub(super) fn stats(&self) -> &BesideStats {
        &self.stats
    }

    /// Keeps packets that no connection here claims: their own is on its way, here or back. Nobody is told that there is none. Gives how
    /// many there were.
    pub(super) fn hold(&mut self, now: Time, host: &mut Host) -> u32 {
        let mut count = 0;
        while let Some(Unclaimed { flow, packet }) = host.poll_unclaimed() {
            count += 1;
            if self.held.len() == MOST_HELD {
                self.held.pop_front();
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

    /// Does what there is to do after connections have come and gone.
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
            // Asked again in a second: by then the kernel has found it.
            if let Ok(Some(mac)) = self.neighbourhood.way_to(addr) {
                host.interface_mut().found(now, addr, mac);
            }
        }
        if now.saturating_since(self.swept) >= SWEEP {
            self.swept = now;
            self.find_broker();
            self.give_up(host);
            lock(&self.ledger).sweep(self.link.table(), |flow| {
                let stack = host.stack();
                match stack.find(flow) {
                    Some(_) => Remains::Connection,
                    None if stack.in_time_wait(now, flow) => Remains::TimeWait,
                    None => Remains::Nothing,
                }
            });
        }
    }

    fn find_broker(&mut self) {
        if self.link.is_there() {
            self.is_alone = false;
            return;
        }
        self.is_alone = self.link.find_next(&self.sockets).is_err();
    }

    /// Ends connections that a broker was moving when it was killed, unless another one has come: their peers answer the question that they are
    /// asked, and hear by a reset that there is no such connection.
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

    /// A turn ends, and packets leave: what has become of connections is written down before.
    pub(super) fn commit(&mut self, now: Time, host: &Host) {
        let (table, stack) = (self.link.table(), host.stack());
        lock(&self.ledger).write(now, table, stack);
    }

    /// When it must next be called, if nothing comes before.
    pub(super) fn poll_timeout(&self) -> Time {
        self.swept + SWEEP
    }

    fn deliver(&mut self, now: Time, host: &mut Host) {
        for _ in 0..self.held.len() {
            let Some(held) = self.held.pop_front() else {
                break;
            };
            if host.stack().find(&held.flow).is_some() {
                self.stats.delivered += 1;
                host.handle_packet(now, held.packet);
            } else if lock(&self.ledger).has(self.link.table(), &held.flow) {
                match now.saturating_since(held.since) < LONGEST_HOLD {
                    true => self.held.push_back(held),
                    false => self.stats.dropped += 1,
                }
            } else if self.is_alone {
                host.handle_stray(now, held.packet);
            } else {
                // The kernel has the connection again. That it takes no packets this way is as if it had lost them.
                self.link.inject(&held.packet);
            }
        }
    }
}
