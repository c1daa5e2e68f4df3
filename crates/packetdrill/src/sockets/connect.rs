//! connect.

use super::{Association, Ready, SocketId, TcpState};
use crate::address::{self, Family};
use crate::errno::{Errno, Outcome, Stop, fail};
use crate::flags::FastOpenBits;
use crate::network::Link;
use crate::world::World;
use baton_tcp::{ConnId, FastOpen};
use baton_wire::{Endpoint, Flow, Time};
use libc::c_int;

/// connect(2).
#[derive(Debug)]
pub struct Connect {
    fd: c_int,
    sockaddr: Vec<u8>,
    /// What a call that does not wait says while the handshake is under way, and until when one that does waits.
    begun: Option<(c_int, Option<Time>)>,
}

impl Connect {
    /// The call as it is made.
    pub fn new(fd: c_int, sockaddr: &[u8]) -> Self {
        Self {
            fd,
            sockaddr: sockaddr.to_vec(),
            begun: None,
        }
    }

    /// Starts the handshake, the first time, and reports its outcome when there is one.
    ///
    /// # Errors
    /// As the manual page has it.
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
    /// What is said to callers that do not wait; starts the handshake unless it is under way. None: it waits for data, and
    /// the caller does not.
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

    /// The connection that this socket would have, if it may have one.
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
        let remote = address::read(sockaddr, socket.family)?;
        if remote.addr.is_multicast() {
            return Err(Errno(libc::ENETUNREACH));
        }
        self.flow_to(id, remote)
    }

    /// What a message that opens a connection by Fast Open opens it to, and how: where connect(2) was to, or `sockaddr`.
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

    /// The local end that a connection from this socket has.
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

    /// Opens it, by Fast Open or not. The SYN leaves when the world is next pumped.
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

    /// connect(2) to AF_UNSPEC: back to a socket without connection, with a reset if the peer knows of one.
    pub(super) fn disconnect(&mut self, id: SocketId) {
        self.stop_listening(id);
        if let Some(conn) = self.sockets[id].conn {
            self.abort(conn);
        }
        let socket = &mut self.sockets[id];
        socket.association = Association::Unconnected;
        socket.deferred = None;
        socket.error = None;
        (socket.receive_shut, socket.send_shut, socket.finished) = (false, false, false);
        socket.received = Default::default();
        socket.mark = None;
    }
}
