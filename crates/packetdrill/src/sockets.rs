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

use crate::address::Family;
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
use baton_tcp::{ConnId, ListenerId, State};
use baton_wire::{Endpoint, Flow, Time};
use libc::c_int;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A socket's place in the world.
pub(crate) type SocketId = usize;

/// How far the socket layer is with connecting; TCP may be further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Association {
    Unconnected,
    /// connect(2) began and did not report the outcome yet.
    Connecting,
    Connected,
}

/// A connection that nobody accepted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) socket: SocketId,
    /// Its peer, which is told also when the connection is no more.
    pub(crate) remote: Endpoint,
    /// Without data it is shown from now on only (TCP_DEFER_ACCEPT).
    pub(crate) hidden_until: Time,
}

/// What a listening socket has.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    /// One for each version of IP that it listens to.
    pub(crate) listeners: SmallVec<[ListenerId; 2]>,
    pub(crate) backlog: usize,
    pub(crate) queue: VecDeque<Waiting>,
}

impl Listening {
    /// Connections that still fit: one more than the backlog in all (listen(2) of Linux).
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
    pub(crate) options: SocketOptions,
    pub(crate) window: ReceiveWindow,
    pub(crate) association: Association,
    /// It opened its connection itself.
    pub(crate) active: bool,
    /// Data of the SYN was acknowledged with it, on the connection that it had last.
    pub(crate) syn_data: bool,
    /// Probes that were not answered, on the connection that it had last.
    pub(crate) probes: u8,
    /// connect(2) was told that all is well; the SYN waits for data (TCP_FASTOPEN_CONNECT).
    pub(crate) deferred: Option<Flow>,
    /// Its connection while the engine knows of it.
    pub(crate) conn: Option<ConnId>,
    pub(crate) listening: Option<Listening>,
    /// Told once, by the next call (sk_err).
    pub(crate) error: Option<Errno>,
    /// What the network last said, which did not end the connection (sk_err_soft).
    pub(crate) soft_error: Option<Errno>,
    pub(crate) receive_shut: bool,
    pub(crate) send_shut: bool,
    /// The peer's FIN arrived.
    pub(crate) finished: bool,
    pub(crate) received: ReceiveQueue,
    /// Where the peer's urgent byte is, until reads went over it.
    pub(crate) mark: Option<Mark>,
    /// A writer found no room and is to be told of it.
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

    /// Its local port; 0 while it has none.
    pub(crate) fn port(&self) -> u16 {
        self.bound.map_or(0, |end| end.port)
    }

    /// Until when a receiving call waits; none when it does not.
    pub(crate) fn receive_limit(&self, now: Time, flags: c_int) -> Option<Time> {
        let waits = !self.nonblocking && flags & libc::MSG_DONTWAIT == 0;
        let limit = self.options.receive_timeout;
        waits.then(|| limit.map_or(Time::NEVER, |limit| now + limit))
    }

    /// The same for a sending call.
    pub(crate) fn send_limit(&self, now: Time, flags: c_int) -> Option<Time> {
        let waits = !self.nonblocking && flags & libc::MSG_DONTWAIT == 0;
        let limit = self.options.send_timeout;
        waits.then(|| limit.map_or(Time::NEVER, |limit| now + limit))
    }
}

/// States as Linux numbers them (`tcpi_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TcpState {
    Established = 1,
    SynSent = 2,
    SynReceived = 3,
    FinWait1 = 4,
    FinWait2 = 5,
    Close = 7,
    CloseWait = 8,
    LastAck = 9,
    Listen = 10,
    Closing = 11,
}

impl World {
    /// The socket that `fd` names.
    pub(crate) fn socket_id(&self, fd: c_int) -> Result<SocketId, Errno> {
        match self.descriptors.get(fd)? {
            File::Socket(id) => Ok(id),
            _ => Err(Errno(libc::ENOTSOCK)),
        }
    }

    /// The state of a socket. TIME-WAIT has left its socket behind, which is closed.
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
            State::SynSent => TcpState::SynSent,
            State::SynReceived => TcpState::SynReceived,
            State::Established => TcpState::Established,
            State::FinWait1 => TcpState::FinWait1,
            State::FinWait2 => TcpState::FinWait2,
            State::CloseWait => TcpState::CloseWait,
            State::Closing => TcpState::Closing,
            State::LastAck => TcpState::LastAck,
            State::TimeWait => TcpState::Close,
        }
    }

    /// True when both ends of a connection have agreed on sequence numbers.
    pub(crate) fn is_synchronized(&self, conn: ConnId) -> bool {
        !matches!(self.stack.state(conn), State::SynSent | State::SynReceived)
    }

    /// True while a socket is still opening its connection. One that came by Fast Open is open from the start.
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
