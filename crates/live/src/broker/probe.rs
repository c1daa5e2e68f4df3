//! A question to a peer. If the peer's connection is lost, the kernel, which no longer knows the connection, resets it when the peer
//! answers. If the kernel has the connection back, the answer acknowledges everything that the peer has received.

use baton_tcp::Essentials;
use baton_wire::Flow;
use bytes::Bytes;
use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep, TcpOptionElement};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with,
};
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

const HOPS: u8 = 64;

/// A byte before everything that the peer expects, which the peer drops (RFC 9293 3.8.4). Linux answers a segment without data at most twice
/// a second, and may have just answered the kernel if the kernel got the connection back a moment ago.
const OLD_BYTE: [u8; 1] = [0];

/// Sends packets with headers of its own.
#[derive(Debug)]
pub(super) struct Prober {
    narrow: OwnedFd,
    wide: OwnedFd,
}

impl Prober {
    /// Opens raw sockets in this thread's network namespace.
    ///
    /// # Errors
    /// The process lacks the permission (CAP_NET_RAW).
    pub(super) fn new() -> io::Result<Self> {
        let open = |family| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            socket_with(family, SocketType::RAW, flags, Some(ipproto::RAW))
        };
        Ok(Self {
            narrow: open(AddressFamily::INET)?,
            wide: open(AddressFamily::INET6)?,
        })
    }

    /// Makes the peer of a connection that is or was in this state report its sequence numbers (RFC 9293 3.10.7.4): the packet lies before
    /// everything that the peer expects, and acknowledges nothing new.
    ///
    /// # Errors
    /// The system cannot send the packet.
    pub(super) fn ask(&self, state: &Essentials<Bytes>) -> io::Result<()> {
        self.send(&question(state)?, state.flow.remote.addr)
    }

    /// Makes the peer at the other end of a flow answer to a packet with a random sequence number, which is hardly ever an expected one.
    ///
    /// # Errors
    /// The system cannot send the packet.
    pub(super) fn rouse(&self, flow: &Flow) -> io::Result<()> {
        let mut numbers = [0; 8];
        getrandom(&mut numbers[..], GetRandomFlags::empty())?;
        let number = |at: usize| {
            let bytes = numbers[at..].first_chunk();
            u32::from_ne_bytes(*bytes.expect("there are two numbers"))
        };
        let tcp = ip(flow)?.tcp(flow.local.port, flow.remote.port, number(0), 0);
        let tcp = tcp.ack(number(4));
        let mut bytes = Vec::with_capacity(tcp.size(0));
        tcp.write(&mut bytes, &[]).map_err(io::Error::other)?;
        self.send(&bytes, flow.remote.addr)
    }

    fn send(&self, packet: &[u8], to: IpAddr) -> io::Result<()> {
        let socket = match to {
            IpAddr::V4(_) => &self.narrow,
            IpAddr::V6(_) => &self.wide,
        };
        sendto(socket, packet, SendFlags::DONTWAIT, &SocketAddr::new(to, 0))?;
        Ok(())
    }
}

/// Builds the IP packet with the question.
///
/// # Errors
/// The addresses are of different families.
pub(crate) fn question(state: &Essentials<Bytes>) -> io::Result<Vec<u8>> {
    let flow = &state.flow;
    let seq = (state.send_una - 1).0;
    let shift = state.window_scaling.map_or(0, |scaling| scaling.receive);
    let offered = state.receive_edge.saturating_since(state.receive_next);
    // Rounded up, because an offered window must not shrink.
    let window = u16::try_from(offered.div_ceil(1 << shift)).unwrap_or(u16::MAX);
    let tcp = ip(flow)?
        .tcp(flow.local.port, flow.remote.port, seq, window)
        .ack(state.receive_next.0);
    let options = state
        .timestamp
        .map(|value| TcpOptionElement::Timestamp(value, 0));
    let tcp = tcp.options(options.as_slice()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(tcp.size(OLD_BYTE.len()));
    tcp.write(&mut bytes, &OLD_BYTE).map_err(io::Error::other)?;
    Ok(bytes)
}

fn ip(flow: &Flow) -> io::Result<PacketBuilderStep<IpHeaders>> {
    match (flow.local.addr, flow.remote.addr) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            Ok(PacketBuilder::ipv4(from.octets(), to.octets(), HOPS))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            Ok(PacketBuilder::ipv6(from.octets(), to.octets(), HOPS))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
