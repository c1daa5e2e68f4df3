//! connect.

use super::{Association, Ready, SocketId};
use crate::errno::{Errno, Outcome, Stop, fail};
use crate::flags::FastOpenBits;
use crate::network::Link;
use crate::world::World;
use baton_abi::address::{self, Family};
use baton_abi::tcp_info::TcpState;
use baton_tcp::{ConnId, FastOpen};
use baton_wire::{Endpoint, Flow, Time};
use libc::c_int;

/// connect(2).
#[derive(Debug)]
pub struct Connect {
    fd: c_int,
    sockaddr: Vec<u8>,
    /// Error number for a call that does not wait while the handshake is in progress, and the time until which a call waits.
    begun: Option<(c_int, Option<Time>)>,
}

impl Connect {
    /// Creates the call.
    pub fn new(fd: c_int, sockaddr: &[u8]) -> Self {
        Self {
            fd,
            sockaddr: sockaddr.to_vec(),
            begun: None,
        }
    }

    /// Starts the handshake at the first attempt, and reports its outcome once there is one.
    ///
    /// # Errors
    /// As in the manual page.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<()> {
        let id = world.socket_id(self.fd)?;
        let (meanwhile, limit) = match self.begun {
            Some(begun) => begun,
            None => {
                if address::family_of(&self.sockaddr) == Some(libc::AF_UNSPEC) {
                    world.disconnect(id);
                    return Ok(());
                }
                let Some(meanwhile) = world.begin_connecting(id, &self.sockaddr)? else {
                    return Ok(());
                };
                let limit = world.sockets[id].send_limit(world.now(), 0);
                *self.begun.insert((meanwhile, limit))
            }
        };
        match world.tcp_state(id) {
            TcpState::SynSent | TcpState::SynReceived => match limit {
                Some(limit) if limit > world.now() => Err(Stop::Wait(limit)),
                _ => fail(meanwhile),
            },
            TcpState::Close => {
                let socket = &mut world.sockets[id];
                socket.association = Association::Unconnected;
                let errno = socket.error.take().unwrap_or(Errno(libc::ECONNABORTED));
                (socket.receive_shut, socket.send_shut) = (false, false);
                Err(errno.into())
            }
            _ => {
                world.sockets[id].association = Association::Connected;
                Ok(())
            }
        }
    }
}

impl World {
    /// Starts the handshake unless it is in progress. Returns the error number for callers that do not wait, or `None` if the
    /// handshake waits for data and the caller does not wait.
    fn begin_connecting(&mut self, id: SocketId, sockaddr: &[u8]) -> Result<Option<c_int>, Errno> {
        if self.sockets[id].deferred.is_some() {
            return Err(Errno(libc::EISCONN));
        }
        if self.sockets[id].association == Association::Connecting {
            return Ok(Some(libc::EALREADY));
        }
        let flow = self.flow_to_connect(id, sockaddr)?;
        let fast = &self.sockets[id].options.fast_open;
        let how = fast.connect.then(|| fast.asking(&self.settings));
        if let Some(how) = how
            && self.stack.knows_fast_open(self.now(), &flow, how)
        {
            let socket = &mut self.sockets[id];
            socket.bound = Some(flow.local);
            socket.deferred = Some(flow);
            socket.association = Association::Connecting;
            self.wake(id, Ready::WRITABLE);
            return Ok(None);
        }
        self.open_connection(id, flow, how)?;
        self.pump();
        Ok(Some(libc::EINPROGRESS))
    }

    /// The four-tuple of the socket's connection to `sockaddr`, if it may connect.
    fn flow_to_connect(&mut self, id: SocketId, sockaddr: &[u8]) -> Result<Flow, Errno> {
        let socket = &self.sockets[id];
        match socket.association {
            Association::Connected => return Err(Errno(libc::EISCONN)),
            Association::Connecting => return Err(Errno(libc::EALREADY)),
            Association::Unconnected => {}
        }
        if socket.listening.is_some() || socket.conn.is_some() {
            return Err(Errno(libc::EISCONN));
        }
        let remote = socket.read_address(sockaddr)?;
        if remote.addr.is_multicast() {
            return Err(Errno(libc::ENETUNREACH));
        }
        self.flow_to(id, remote)
    }

    /// The four-tuple and the kind of Fast Open for a message that opens a connection: to connect(2)'s address, or to `sockaddr`.
    pub(super) fn fast_open_of(
        &mut self,
        id: SocketId,
        sockaddr: &[u8],
    ) -> Result<(Flow, FastOpen), Errno> {
        let unspecified = address::family_of(sockaddr) == Some(libc::AF_UNSPEC);
        if !self.settings.fast_open.contains(FastOpenBits::CLIENT) || unspecified {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        let how = self.sockets[id].options.fast_open.asking(&self.settings);
        let flow = match self.sockets[id].deferred.take() {
            Some(flow) => flow,
            None => self.flow_to_connect(id, sockaddr)?,
        };
        Ok((flow, how))
    }

    /// The four-tuple of a connection from this socket to `remote`.
    fn flow_to(&mut self, id: SocketId, remote: Endpoint) -> Result<Flow, Errno> {
        let (addr, port) = match self.sockets[id].bound {
            Some(bound) => (bound.addr, bound.port),
            None => {
                let port = self.ephemeral_port().ok_or(Errno(libc::EADDRNOTAVAIL))?;
                (Family::of(remote.addr).any(), port)
            }
        };
        let addr = match addr.is_unspecified() {
            true => self.settings.local_for(remote.addr),
            false => addr,
        };
        if Family::of(addr) != Family::of(remote.addr) {
            return Err(Errno(libc::ENETUNREACH));
        }
        Ok(Flow {
            local: Endpoint::new(addr, port),
            remote,
        })
    }

    /// Opens a connection, by Fast Open or not. The SYN leaves when the world is pumped next.
    pub(super) fn open_connection(
        &mut self,
        id: SocketId,
        flow: Flow,
        how: Option<FastOpen>,
    ) -> Result<ConnId, Errno> {
        let socket = &self.sockets[id];
        let config = socket
            .options
            .config(&self.settings, &socket.window, flow.local.addr);
        let conn = match how {
            Some(how) => self.stack.connect_fast_open(self.now, flow, &config, how),
            None => self.stack.connect_with(self.now, flow, config),
        };
        let conn = conn.ok_or(Errno(libc::EADDRNOTAVAIL))?;
        self.links.insert(conn, Link::default());
        self.owners.insert(conn, id);
        let socket = &mut self.sockets[id];
        socket.bound = Some(flow.local);
        socket.conn = Some(conn);
        socket.active = true;
        socket.association = Association::Connecting;
        (socket.receive_shut, socket.send_shut, socket.finished) = (false, false, false);
        self.apply_options(id);
        Ok(conn)
    }

    /// connect(2) to AF_UNSPEC: dissolves the connection, with a reset if the peer knows it.
    pub(super) fn disconnect(&mut self, id: SocketId) {
        self.stop_listening(id);
        if let Some(conn) = self.sockets[id].conn {
            self.abort(conn);
        }
        let socket = &mut self.sockets[id];
        socket.association = Association::Unconnected;
        socket.deferred = None;
        socket.error = None;
        socket.bound = socket.bound.filter(|_| socket.keeps_port);
        (socket.receive_shut, socket.send_shut, socket.finished) = (false, false, false);
        socket.received = Default::default();
        socket.mark = None;
    }
}
