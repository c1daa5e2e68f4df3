//! shutdown and close.

use super::{Association, SocketId};
use crate::descriptors::File;
use crate::errno::{Errno, Outcome, Stop};
use crate::sockets::Ready;
use crate::world::World;
use baton_abi::tcp_info::TcpState;
use baton_tcp::{ConnId, State};
use baton_wire::{Span, Time};
use libc::c_int;

/// close(2). Frees the descriptor immediately. A lingering socket makes the call wait.
#[derive(Debug)]
pub struct Close {
    fd: c_int,
    /// The lingering connection, and the time until which the call waits.
    lingers: Option<(ConnId, Time)>,
}

impl Close {
    /// Creates the call.
    pub fn new(fd: c_int) -> Self {
        Self { fd, lingers: None }
    }

    /// Closes the descriptor at the first attempt, and then checks whether a lingering connection is done.
    ///
    /// # Errors
    /// EBADF.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<()> {
        let (conn, until) = match self.lingers {
            Some(lingers) => lingers,
            None => match world.close_descriptor(self.fd)? {
                Some((conn, span)) => *self.lingers.insert((conn, world.now() + span)),
                None => return Ok(()),
            },
        };
        // The connection may have ended meanwhile, but no other connection can take its slot while this call waits.
        let waits = world.links.contains_key(&conn)
            && matches!(
                world.stack.state(conn),
                State::FinWait1 | State::Closing | State::LastAck
            );
        match waits && until > world.now() {
            true => Err(Stop::Wait(until)),
            false => Ok(()),
        }
    }
}

impl World {
    /// Frees a descriptor and closes its file. Returns the connection to linger for, and how long.
    fn close_descriptor(&mut self, fd: c_int) -> Result<Option<(ConnId, Span)>, Errno> {
        let file = self.descriptors.get(fd)?;
        self.forget_watched(fd);
        self.descriptors.remove(fd)?;
        self.changed();
        let lingers = match file {
            File::Socket(id) => self.close_socket(id),
            File::Epoll(id) => {
                self.epolls.remove(id);
                None
            }
            File::PipeReader(id) => {
                self.close_pipe(id, |pipe| pipe.has_reader = false);
                None
            }
            File::PipeWriter(id) => {
                self.close_pipe(id, |pipe| pipe.has_writer = false);
                None
            }
        };
        Ok(lingers)
    }

    /// Closes a socket. Its connection continues without it if it has not finished.
    fn close_socket(&mut self, id: SocketId) -> Option<(ConnId, Span)> {
        self.stop_listening(id);
        let socket = self.sockets.remove(id);
        let conn = socket.conn?;
        self.owners.remove(&conn);
        let unread = socket.received.len() > 0;
        let at_once = socket.options.linger == Some(Span::ZERO);
        if unread || at_once {
            // RFC 9293 3.6.1, RFC 2525 2.17; also SO_LINGER with a time of zero (socket(7)).
            self.abort(conn);
            return None;
        }
        self.stack.close(conn);
        let forsaken = socket.options.linger2_ms < 0 && self.stack.state(conn) == State::FinWait2;
        if forsaken {
            self.abort(conn);
            return None;
        }
        self.pump();
        socket.options.linger.map(|time| (conn, time))
    }

    /// Stops listening, and resets connections that wait to be accepted.
    pub(super) fn stop_listening(&mut self, id: SocketId) {
        let Some(listening) = self.sockets[id].listening.take() else {
            return;
        };
        for waiting in listening.queue {
            let child = self.sockets.remove(waiting.socket);
            if let Some(conn) = child.conn {
                self.owners.remove(&conn);
                self.abort(conn);
            }
        }
        for listener in listening.listeners {
            self.stack.unlisten(self.now(), listener);
        }
        self.pump();
    }

    /// shutdown(2).
    ///
    /// # Errors
    /// EINVAL for an unknown direction, ENOTCONN without connection.
    pub fn shutdown(&mut self, fd: c_int, how: c_int) -> Result<(), Errno> {
        let id = self.socket_id(fd)?;
        let (receive, send) = match how {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => return Err(Errno(libc::EINVAL)),
        };
        match self.tcp_state(id) {
            TcpState::Close => return Err(Errno(libc::ENOTCONN)),
            TcpState::Listen => {
                if receive {
                    self.stop_listening(id);
                }
            }
            TcpState::SynSent => {
                self.disconnect(id);
                self.sockets[id].association = Association::Unconnected;
            }
            _ => self.shut(id, receive, send),
        }
        self.wake(id, Ready::ALL);
        self.pump();
        Ok(())
    }

    fn shut(&mut self, id: SocketId, receive: bool, send: bool) {
        let socket = &mut self.sockets[id];
        socket.receive_shut |= receive;
        socket.send_shut |= send;
        let Some(conn) = socket.conn else { return };
        if receive {
            self.stack.shutdown_receive(conn);
        }
        if send {
            self.stack.shutdown(conn);
        }
    }
}
