//! A question to a peer. Where its connection is lost, it answers, and the kernel, which knows the connection no longer, resets it. Where the
//! kernel has the connection back, the answer acknowledges all.

use baton_tcp::Essentials;
use bytes::Bytes;
use etherparse::{PacketBuilder, TcpOptionElement};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with,
};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

const HOPS: u8 = 64;

/// A byte before all that the peer expects, which it drops (RFC 9293 3.8.4). Without one Linux answers twice a second at most, and has just
/// answered the kernel if that had the connection back a moment ago.
const OLD_BYTE: [u8; 1] = [0];

/// Sends packets with headers of its own.
#[derive(Debug)]
pub(super) struct Prober {
    narrow: OwnedFd,
    wide: OwnedFd,
}

impl Prober {
    /// In this thread's network namespace.
    ///
    /// # Errors
    /// There is no permission (CAP_NET_RAW).
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

    /// Has the peer of a connection, which is or was in this state, tell where it is (RFC 9293 3.10.7.4): what it is sent lies before all that it
    /// expects, and acknowledges nothing new.
    ///
    /// # Errors
    /// The system sends nothing.
    pub(super) fn ask(&self, state: &Essentials<Bytes>) -> io::Result<()> {
        let (bytes, to) = (question(state)?, state.flow.remote.addr);
        let socket = match to {
            IpAddr::V4(_) => &self.narrow,
            IpAddr::V6(_) => &self.wide,
        };
        sendto(socket, &bytes, SendFlags::DONTWAIT, &SocketAddr::new(to, 0))?;
        Ok(())
    }
}

/// An IP packet with the question.
///
/// # Errors
/// The addresses are of two families.
pub(crate) fn question(state: &Essentials<Bytes>) -> io::Result<Vec<u8>> {
    let flow = &state.flow;
    let ip = match (flow.local.addr, flow.remote.addr) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), HOPS),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), HOPS),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let seq = (state.send_una - 1).0;
    let shift = state.window_scaling.map_or(0, |scaling| scaling.receive);
    let offered = state.receive_edge.saturating_since(state.receive_next);
    // Rounded up: what was offered is not taken back.
    let window = u16::try_from(offered.div_ceil(1 << shift)).unwrap_or(u16::MAX);
    let tcp = ip
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
