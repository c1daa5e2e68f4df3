//! smoltcp as an end of the network.

use crate::engine::{DATA, FIRST_PORT, LISTENER, OPENER, PORT};
use crate::world::{Host, Role};
use baton_testkit::{End, Pattern};
use baton_wire::Time;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Maximum number of bytes of an IP packet.
const MTU: usize = 1500;

/// Packets to and from the stack.
#[derive(Default)]
struct Queues {
    inward: VecDeque<Vec<u8>>,
    outward: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Sending<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut packet = vec![0; len];
        let result = fill(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Sending<'_>)> {
        let packet = self.inward.pop_front()?;
        Some((Received(packet), Sending(&mut self.outward)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.outward))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

/// One connection of smoltcp with CUBIC.
pub struct OtherStack {
    interface: Interface,
    queues: Queues,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    role: Role,
    offset: u64,
}

impl OtherStack {
    /// Creates an end that opens a connection with buffers of `buffer` bytes.
    pub fn opening(role: Role, buffer: u32) -> Self {
        let mut end = Self::new(role, buffer, OPENER);
        let socket = end.sockets.get_mut::<Socket<'_>>(end.handle);
        socket
            .connect(
                end.interface.context(),
                (IpAddress::Ipv4(LISTENER), PORT),
                FIRST_PORT,
            )
            .expect("a new socket can connect");
        end
    }

    /// Creates an end that listens for a connection.
    pub fn listening(role: Role, buffer: u32) -> Self {
        let mut end = Self::new(role, buffer, LISTENER);
        let socket = end.sockets.get_mut::<Socket<'_>>(end.handle);
        socket.listen(PORT).expect("a new socket can listen");
        end
    }

    fn new(role: Role, buffer: u32, addr: Ipv4Addr) -> Self {
        let mut queues = Queues::default();
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut queues, Instant::ZERO);
        interface.update_ip_addrs(|addrs| {
            addrs
                .push(IpCidr::new(IpAddress::Ipv4(addr), 24))
                .expect("there is space for an address");
        });
        let room = || SocketBuffer::new(vec![0; buffer as usize]);
        let mut socket = Socket::new(room(), room());
        socket.set_congestion_control(CongestionControl::Cubic);
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self {
            interface,
            queues,
            sockets,
            handle,
            role,
            offset: 0,
        }
    }

    fn work(&mut self) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        match self.role {
            Role::Source if socket.state() == State::Established => loop {
                let room = socket.send_capacity() - socket.send_queue();
                if room < Pattern::LONGEST {
                    break;
                }
                let piece = DATA.piece(self.offset, room);
                let taken = socket.send_slice(&piece).expect("the connection is open");
                self.offset += taken as u64;
            },
            Role::Source => {}
            Role::Sink => {
                while socket.can_recv() {
                    let offset = self.offset;
                    let taken = socket.recv(|bytes| {
                        DATA.check(offset, bytes);
                        (bytes.len(), bytes.len())
                    });
                    self.offset += taken.expect("there is data") as u64;
                }
            }
        }
    }
}

/// Converts a time to smoltcp's clock, which counts microseconds.
fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_ps() / 1_000_000) as i64)
}

impl End for OtherStack {
    type Frame = Vec<u8>;

    fn receive(&mut self, now: Time, packet: Vec<u8>) {
        self.queues.inward.push_back(packet);
        self.interface
            .poll(instant(now), &mut self.queues, &mut self.sockets);
    }

    fn step(&mut self, now: Time) {
        self.work();
        self.interface
            .poll(instant(now), &mut self.queues, &mut self.sockets);
        self.work();
    }

    fn transmit(&mut self, _now: Time) -> Option<Vec<u8>> {
        self.queues.outward.pop_front()
    }

    fn next(&mut self, now: Time) -> Option<Time> {
        let at = self.interface.poll_at(instant(now), &self.sockets)?;
        let us = u64::try_from(at.total_micros()).unwrap_or(0);
        // Timers due now ran in the previous step. A microsecond later, the clock has advanced.
        Some(Time::from_ps(us * 1_000_000).max(Time::from_ps(now.as_ps() + 1_000_000)))
    }
}

impl Host for OtherStack {
    fn received(&self) -> Vec<u64> {
        vec![self.offset]
    }
}
