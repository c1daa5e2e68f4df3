//! socket, bind and listen.

use super::{Association, Listening, Socket, SocketId};
use crate::descriptors::File;
use crate::errno::Errno;
use crate::world::World;
use baton_abi::address::Family;
use baton_wire::Endpoint;
use libc::c_int;
use smallvec::SmallVec;
use std::collections::VecDeque;

impl World {
    /// socket(2) for TCP over IPv4 and IPv6.
    ///
    /// # Errors
    /// As in the manual page, for a host without other protocols.
    pub fn socket(&mut self, domain: c_int, kind: c_int, protocol: c_int) -> Result<c_int, Errno> {
        let family = Family::from_number(domain).ok_or(Errno(libc::EAFNOSUPPORT))?;
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        match kind & !flags {
            libc::SOCK_STREAM => {}
            libc::SOCK_DGRAM | libc::SOCK_RAW | libc::SOCK_SEQPACKET => {
                return Err(Errno(libc::ESOCKTNOSUPPORT));
            }
            _ => return Err(Errno(libc::EINVAL)),
        }
        if protocol != 0 && protocol != libc::IPPROTO_TCP {
            return Err(Errno(libc::EPROTONOSUPPORT));
        }
        let mut socket = Socket::new(family, &self.settings);
        socket.nonblocking = kind & libc::SOCK_NONBLOCK != 0;
        let id = self.sockets.insert(socket);
        self.descriptors.add(File::Socket(id)).inspect_err(|_| {
            self.sockets.remove(id);
        })
    }

    /// bind(2).
    ///
    /// # Errors
    /// As in ip(7).
    pub fn bind(&mut self, fd: c_int, sockaddr: &[u8]) -> Result<(), Errno> {
        let id = self.socket_id(fd)?;
        let mut local = self.sockets[id].read_address(sockaddr)?;
        if self.sockets[id].bound.is_some() || self.sockets[id].conn.is_some() {
            return Err(Errno(libc::EINVAL));
        }
        if local.addr.is_multicast() {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
        let keeps_port = local.port != 0;
        if local.port == 0 {
            local.port = self.ephemeral_port().ok_or(Errno(libc::EADDRINUSE))?;
        } else if self.is_taken(id, local) {
            return Err(Errno(libc::EADDRINUSE));
        }
        if !local.addr.is_unspecified() {
            self.learn_address(local.addr);
        }
        let socket = &mut self.sockets[id];
        (socket.bound, socket.keeps_port) = (Some(local), keeps_port);
        Ok(())
    }

    /// Reports whether another socket that does not share the port has it (socket(7), SO_REUSEADDR and SO_REUSEPORT).
    fn is_taken(&self, id: SocketId, local: Endpoint) -> bool {
        let new = &self.sockets[id].options;
        self.sockets.iter().any(|(other, socket)| {
            let Some(at) = socket.bound.filter(|_| other != id) else {
                return false;
            };
            let overlap = at.port == local.port
                && (at.addr == local.addr
                    || at.addr.is_unspecified()
                    || local.addr.is_unspecified());
            let reused = new.reuse_address && socket.options.reuse_address;
            let shared = new.reuse_port && socket.options.reuse_port;
            overlap && !shared && (!reused || socket.listening.is_some())
        })
    }

    /// listen(2). Changes the backlog of a socket that already listens.
    ///
    /// # Errors
    /// EINVAL for a socket with a connection, EADDRINUSE if another socket listens at the address.
    pub fn listen(&mut self, fd: c_int, backlog: c_int) -> Result<(), Errno> {
        let id = self.socket_id(fd)?;
        // A negative number counts as a very large one.
        let backlog = (backlog as u32 as usize).min(self.settings.somaxconn);
        let socket = &self.sockets[id];
        if socket.conn.is_some() || socket.association != Association::Unconnected {
            return Err(Errno(libc::EINVAL));
        }
        if let Some(listening) = &mut self.sockets[id].listening {
            listening.backlog = backlog;
            self.adjust_backlog(id);
            self.apply_options(id);
            return Ok(());
        }
        let local = self.bound_or_any(id)?;
        self.start_listening(id, local, backlog)
    }

    /// The socket's local end; binds an unbound socket to any port.
    fn bound_or_any(&mut self, id: SocketId) -> Result<Endpoint, Errno> {
        if let Some(local) = self.sockets[id].bound {
            return Ok(local);
        }
        let port = self.ephemeral_port().ok_or(Errno(libc::EADDRINUSE))?;
        let local = Endpoint::new(self.sockets[id].family.any(), port);
        self.sockets[id].bound = Some(local);
        Ok(local)
    }

    fn start_listening(
        &mut self,
        id: SocketId,
        local: Endpoint,
        backlog: usize,
    ) -> Result<(), Errno> {
        let socket = &self.sockets[id];
        let mut ends: SmallVec<[Endpoint; 2]> = SmallVec::new();
        ends.push(local);
        // An IPv6 socket accepts IPv4 connections too (RFC 3493 3.7).
        if local.addr == Family::V6.any() && !socket.options.v6_only {
            ends.push(Endpoint::new(Family::V4.any(), local.port));
        }
        let listens = |end: &Endpoint| {
            let mut listeners = self.stack.listeners();
            listeners.any(|listener| self.stack.listening_at(listener) == *end)
        };
        if ends.iter().any(listens) {
            return Err(Errno(libc::EADDRINUSE));
        }
        let mut listening = Listening {
            listeners: SmallVec::new(),
            backlog,
            queue: VecDeque::new(),
        };
        for end in ends {
            let socket = &self.sockets[id];
            let config = socket
                .options
                .config(&self.settings, &socket.window, end.addr);
            let listener = self.stack.listen_with(end, listening.room(), config);
            listening.listeners.push(listener);
        }
        self.sockets[id].listening = Some(listening);
        self.apply_options(id);
        Ok(())
    }

    /// Sets the engine's backlog to the number of connections that a listening socket still accepts.
    pub(super) fn adjust_backlog(&mut self, id: SocketId) {
        if let Some(listening) = &self.sockets[id].listening {
            for &listener in &listening.listeners {
                self.stack.set_backlog(listener, listening.room());
            }
        }
    }
}
