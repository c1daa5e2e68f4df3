//! read and write on any descriptor, and fcntl and ioctl.

use crate::descriptors::File;
use crate::errno::{Errno, Outcome, fail};
use crate::pipe::{PipeRead, PipeWrite};
use crate::sockets::{Receive, Received, Send};
use crate::world::World;
use baton_abi::tcp_info::TcpState;
use bytes::Bytes;
use libc::c_int;

/// Bytes written and not yet sent (linux/sockios.h).
const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// Request for whether the next byte is urgent (linux/sockios.h).
const SIOCATMARK: libc::Ioctl = 0x8905;

/// read(2).
#[derive(Debug)]
pub struct Read {
    fd: c_int,
    want: usize,
    /// State between attempts on a socket.
    socket: Receive,
}

impl Read {
    /// Creates the call.
    pub fn new(fd: c_int, want: usize) -> Self {
        Self {
            fd,
            want,
            socket: Receive::new(fd, want, 0),
        }
    }

    /// With `nowhere`, the call takes no data from a socket, and fails with EFAULT.
    pub fn nowhere(self, nowhere: bool) -> Self {
        Self {
            socket: self.socket.nowhere(nowhere),
            ..self
        }
    }

    /// Returns the available data, or none at the end.
    ///
    /// # Errors
    /// As in the manual page.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<Received> {
        match world.descriptors.get(self.fd)? {
            File::Socket(_) if self.want == 0 => Ok(Received::default()),
            File::Socket(_) => self.socket.attempt(world),
            File::PipeReader(id) => {
                let want = self.want;
                let data = PipeRead { id, want }.attempt(world)?;
                let len = data.len();
                Ok(Received {
                    data,
                    len,
                    ..Received::default()
                })
            }
            File::PipeWriter(_) => fail(libc::EBADF),
            File::Epoll(_) => fail(libc::EINVAL),
        }
    }
}

/// write(2).
#[derive(Debug)]
pub struct Write {
    fd: c_int,
    socket: Send,
    data: Bytes,
    written: usize,
}

impl Write {
    /// Creates the call.
    pub fn new(fd: c_int, data: Bytes) -> Self {
        Self {
            fd,
            socket: Send::new(fd, data.clone(), 0),
            data,
            written: 0,
        }
    }

    /// Writes what fits. Returns the number of bytes once all are written or no more can be.
    ///
    /// # Errors
    /// As in the manual page.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<usize> {
        match world.descriptors.get(self.fd)? {
            File::Socket(_) => self.socket.attempt(world),
            File::PipeWriter(id) => {
                let mut write = PipeWrite {
                    id,
                    data: self.data.clone(),
                    written: self.written,
                };
                let outcome = write.attempt(world);
                self.written = write.written;
                outcome
            }
            File::PipeReader(_) => fail(libc::EBADF),
            File::Epoll(_) => fail(libc::EINVAL),
        }
    }
}

impl World {
    /// fcntl(2) for F_GETFL, F_SETFL, F_GETFD and F_SETFD.
    ///
    /// # Errors
    /// EINVAL for anything else.
    pub fn fcntl(&mut self, fd: c_int, command: c_int, arg: c_int) -> Result<c_int, Errno> {
        let file = self.descriptors.get(fd)?;
        let mode = match file {
            File::PipeReader(_) => libc::O_RDONLY,
            File::PipeWriter(_) => libc::O_WRONLY,
            File::Socket(_) | File::Epoll(_) => libc::O_RDWR,
        };
        let nonblocking = arg & libc::O_NONBLOCK != 0;
        match (command, self.nonblocking_mut(file)) {
            (libc::F_GETFL, Some(flag)) if *flag => Ok(mode | libc::O_NONBLOCK),
            (libc::F_GETFL, _) => Ok(mode),
            (libc::F_SETFL, Some(flag)) => {
                *flag = nonblocking;
                Ok(0)
            }
            (libc::F_SETFL | libc::F_GETFD | libc::F_SETFD, _) => Ok(0),
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    /// The O_NONBLOCK flag of a file.
    fn nonblocking_mut(&mut self, file: File) -> Option<&mut bool> {
        match file {
            File::Socket(id) => Some(&mut self.sockets[id].nonblocking),
            File::PipeReader(id) => Some(&mut self.pipes[id].reader_nonblocking),
            File::PipeWriter(id) => Some(&mut self.pipes[id].writer_nonblocking),
            File::Epoll(_) => None,
        }
    }

    /// ioctl(2): returns the number for the caller, if any. `arg` is the int to which FIONBIO's pointer points.
    ///
    /// # Errors
    /// EINVAL for a listener (tcp(7)), ENOTTY for an unknown request.
    pub fn ioctl(
        &mut self,
        fd: c_int,
        request: libc::Ioctl,
        arg: c_int,
    ) -> Result<Option<c_int>, Errno> {
        let file = self.descriptors.get(fd)?;
        if request == libc::FIONBIO {
            if let Some(flag) = self.nonblocking_mut(file) {
                *flag = arg != 0;
            }
            return Ok(None);
        }
        match file {
            File::Socket(id) if request == SIOCATMARK => self.at_mark(id).map(Some),
            File::Socket(id) => self.socket_queue_len(id, request).map(Some),
            File::PipeReader(id) | File::PipeWriter(id) if request == libc::FIONREAD => {
                Ok(Some(self.pipes[id].len() as c_int))
            }
            _ => Err(Errno(libc::ENOTTY)),
        }
    }

    /// SIOCINQ, SIOCOUTQ and SIOCOUTQNSD. A FIN counts as a byte until it is acknowledged.
    fn socket_queue_len(&self, id: usize, request: libc::Ioctl) -> Result<c_int, Errno> {
        if !matches!(request, libc::FIONREAD | libc::TIOCOUTQ | SIOCOUTQNSD) {
            return Err(Errno(libc::ENOTTY));
        }
        let socket = &self.sockets[id];
        if socket.listening.is_some() {
            return Err(Errno(libc::EINVAL));
        }
        let conn = socket.conn.filter(|_| !self.is_opening(id));
        let len = match (request, conn) {
            (libc::FIONREAD, _) if self.is_opening(id) => 0,
            (libc::FIONREAD, _) => socket.readable_len(),
            (_, None) => 0,
            (libc::TIOCOUTQ, Some(conn)) => {
                let fin_pending = matches!(
                    self.tcp_state(id),
                    TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck
                );
                self.stack.unacknowledged(conn) + usize::from(fin_pending)
            }
            (_, Some(conn)) => self.stack.not_sent(conn),
        };
        Ok(len as c_int)
    }
}
