//! Stream sockets as a Linux application sees them (socket(7), tcp(7)).

mod accept;
mod close;
mod connect;
mod events;
mod open;
mod readiness;
mod receive;
mod send;

pub use accept::Accept;
pub use close::Close;
pub use connect::Connect;
pub use receive::{Receive, Received};
pub use send::Send;

pub(crate) use readiness::Ready;

use crate::descriptors::File;
use crate::errno::Errno;
use crate::flags::Settings;
use crate::options::SocketOptions;
use crate::receive_queue::ReceiveQueue;
use crate::receive_window::ReceiveWindow;
use crate::timestamping::Timestamps;
use crate::urgent::Mark;
use crate::world::World;
use crate::zero_copy::ZeroCopy;
use baton_abi::address::{self, Family};
use baton_abi::tcp_info::TcpState;
use baton_tcp::{ConnId, ListenerId, State};
use baton_wire::{Endpoint, Flow, Time};
use libc::c_int;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Index of a socket in the world.
pub(crate) type SocketId = usize;

/// State of a connection attempt in the socket layer. TCP may already be in a later state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Association {
    Unconnected,
    /// connect(2) began and has not reported the outcome yet.
    Connecting,
    Connected,
}

/// A connection that is not accepted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) socket: SocketId,
    /// The peer, which accept(2) returns even if the connection has ended.
    pub(crate) remote: Endpoint,
    /// Time before which the connection is hidden unless it has data (TCP_DEFER_ACCEPT).
    pub(crate) hidden_until: Time,
}

/// State of a listening socket.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    /// One listener for each version of IP.
    pub(crate) listeners: SmallVec<[ListenerId; 2]>,
    pub(crate) backlog: usize,
    pub(crate) queue: VecDeque<Waiting>,
}

impl Listening {
    /// Number of connections that the queue can still take. In total it takes one more than the backlog (listen(2) of Linux).
    pub(crate) fn room(&self) -> usize {
        (self.backlog + 1).saturating_sub(self.queue.len())
    }
}

/// One socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) family: Family,
    pub(crate) nonblocking: bool,
    /// Local end, once it has a port.
    pub(crate) bound: Option<Endpoint>,
    /// bind(2) set the port (SOCK_BINDPORT_LOCK).
    pub(crate) keeps_port: bool,
    pub(crate) options: SocketOptions,
    pub(crate) window: ReceiveWindow,
    pub(crate) association: Association,
    /// The socket opened its connection actively.
    pub(crate) active: bool,
    /// On the last connection, data of the SYN was acknowledged with the SYN.
    pub(crate) syn_data: bool,
    /// Unanswered probes on the last connection.
    pub(crate) probes: u8,
    /// connect(2) returned success; the SYN waits for data (TCP_FASTOPEN_CONNECT).
    pub(crate) deferred: Option<Flow>,
    /// The connection, while the engine has it.
    pub(crate) conn: Option<ConnId>,
    pub(crate) listening: Option<Listening>,
    /// Error that the next call reports once (sk_err).
    pub(crate) error: Option<Errno>,
    /// The last ICMP error, which did not end the connection (sk_err_soft).
    pub(crate) soft_error: Option<Errno>,
    pub(crate) receive_shut: bool,
    pub(crate) send_shut: bool,
    /// The peer's FIN arrived.
    pub(crate) finished: bool,
    pub(crate) received: ReceiveQueue,
    /// Position of the peer's urgent byte, until reads have passed it.
    pub(crate) mark: Option<Mark>,
    /// A writer found no space and is to be notified when there is.
    pub(crate) no_space: bool,
    pub(crate) zero_copy: ZeroCopy,
    pub(crate) timestamps: Timestamps,
}

impl Socket {
    pub(crate) fn new(family: Family, settings: &Settings) -> Self {
        Self {
            family,
            nonblocking: false,
            bound: None,
            keeps_port: false,
            options: SocketOptions::new(settings),
            window: ReceiveWindow::new(settings.receive_buffer, Some(settings.receive_buffer_max)),
            association: Association::Unconnected,
            active: false,
            syn_data: false,
            probes: 0,
            deferred: None,
            conn: None,
            listening: None,
            error: None,
            soft_error: None,
            receive_shut: false,
            send_shut: false,
            finished: false,
            received: ReceiveQueue::default(),
            mark: None,
            no_space: false,
            zero_copy: ZeroCopy::default(),
            timestamps: Timestamps::default(),
        }
    }

    /// The local port; 0 if there is none.
    pub(crate) fn port(&self) -> u16 {
        self.bound.map_or(0, |end| end.port)
    }

    /// Time until which a receiving call waits; `None` if it does not wait.
    pub(crate) fn receive_limit(&self, now: Time, flags: c_int) -> Option<Time> {
        let waits = !self.nonblocking && flags & libc::MSG_DONTWAIT == 0;
        let limit = self.options.receive_timeout;
        waits.then(|| limit.map_or(Time::NEVER, |limit| now + limit))
    }

    /// Reads an address that is passed to the socket. IPv4-mapped ones count as IPv4 (RFC 4291 2.5.5.2).
    ///
    /// # Errors
    /// EINVAL if the address is too short, EAFNOSUPPORT if it is of another family.
    pub(crate) fn read_address(&self, sockaddr: &[u8]) -> Result<Endpoint, Errno> {
        let address = address::read(sockaddr, self.family)?;
        Ok(Endpoint::new(address.ip().to_canonical(), address.port()))
    }

    /// Time until which a sending call waits; `None` if it does not wait.
    pub(crate) fn send_limit(&self, now: Time, flags: c_int) -> Option<Time> {
        let waits = !self.nonblocking && flags & libc::MSG_DONTWAIT == 0;
        let limit = self.options.send_timeout;
        waits.then(|| limit.map_or(Time::NEVER, |limit| now + limit))
    }
}

impl World {
    /// The socket that `fd` names.
    pub(crate) fn socket_id(&self, fd: c_int) -> Result<SocketId, Errno> {
        match self.descriptors.get(fd)? {
            File::Socket(id) => Ok(id),
            _ => Err(Errno(libc::ENOTSOCK)),
        }
    }

    /// The state of a socket. A socket whose connection is in TIME-WAIT is closed.
    pub(crate) fn tcp_state(&self, id: SocketId) -> TcpState {
        let socket = &self.sockets[id];
        if socket.listening.is_some() {
            return TcpState::Listen;
        }
        let Some(conn) = socket.conn else {
            return match socket.deferred {
                Some(_) => TcpState::SynSent,
                None => TcpState::Close,
            };
        };
        match self.stack.state(conn) {
            State::TimeWait => TcpState::Close,
            state => state.into(),
        }
    }

    /// Reports whether both ends of a connection have agreed on sequence numbers.
    pub(crate) fn is_synchronized(&self, conn: ConnId) -> bool {
        !matches!(self.stack.state(conn), State::SynSent | State::SynReceived)
    }

    /// Reports whether a socket is still opening its connection. One accepted by Fast Open is open from the start.
    pub(crate) fn is_opening(&self, id: SocketId) -> bool {
        match self.tcp_state(id) {
            TcpState::SynSent => true,
            TcpState::SynReceived => {
                let conn = self.sockets[id].conn;
                !conn.is_some_and(|conn| self.stack.is_opened_fast(conn))
            }
            _ => false,
        }
    }
}
