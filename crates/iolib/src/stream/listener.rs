//! The listener at which applications on other machines attach to the adapter.

use super::adapter::{StreamAdapter, TcpAdapter};
use crate::application::Application;
use crate::handshake::{Geometry, Hello, Limits, Refusal, frame};
use crate::pending::{Greeted, Pending};
use crate::unix_socket::BindError;
use rustix::event::PollFlags;
use rustix::net::sockopt;
use smallvec::SmallVec;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Idle time after which TCP sends keepalive probes, one a second.
const SILENCE: Duration = Duration::from_secs(5);
/// Number of unanswered probes after which the other machine counts as dead.
const QUESTIONS: u32 = 5;

/// The TCP port at which an adapter waits for applications. It never blocks, whatever the applications do. Anyone who can reach the port
/// can use the adapter, so it belongs on a trusted network only.
#[derive(Debug)]
pub struct TcpAdapterListener {
    listener: TcpListener,
    limits: Limits,
    pending: Pending<TcpStream>,
}

impl TcpAdapterListener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub fn bind(address: impl ToSocketAddrs, limits: Limits) -> Result<Self, BindError> {
        let listener = TcpListener::bind(address).map_err(BindError::Address)?;
        listener.set_nonblocking(true).map_err(BindError::Address)?;
        Ok(Self {
            listener,
            limits,
            pending: Pending::default(),
        })
    }

    /// Returns the address at which it listens.
    ///
    /// # Errors
    /// The system does not know the address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the next application that has sent its hello and may attach. `attached` has the users of the attached applications; `None`
    /// stands for applications on other machines. Counts refusals.
    pub fn accept(&mut self, attached: &[Option<u32>]) -> Option<TcpAdapter> {
        let listener = &self.listener;
        let accept = || Ok(listener.accept()?.0);
        while let Some(Greeted { mut stream, hello }) = self.pending.next(accept, |_| None) {
            let granted = hello
                .and_then(|hello| self.limits.check_attached(None, attached).map(|()| hello))
                .and_then(|hello| Ok((self.limits.grant(&hello.wishes)?, hello)));
            let answer = granted.as_ref().map(|(geometry, _)| geometry);
            // A socket that was not written to before accepts a short frame as a whole. If the application is gone, it does not need the
            // answer.
            let answered = prepare(&stream).and_then(|()| stream.write_all(&frame(&answer)));
            match granted {
                Ok((geometry, hello)) if answered.is_ok() => {
                    return Some(attach(stream, geometry, &hello));
                }
                Ok(_) => {}
                Err(refusal) => self.pending.count(&refusal),
            }
        }
        None
    }

    /// Returns the events to wait for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        self.pending.fds(self.listener.as_fd())
    }

    /// Returns the number of refusals by reason, with the details of the latest.
    pub fn refusals(&self) -> &[(Refusal, u64)] {
        self.pending.refusals()
    }
}

fn attach(stream: TcpStream, geometry: Geometry, hello: &Hello) -> TcpAdapter {
    let application = Application {
        name: hello.name.clone(),
        peer: stream.peer_addr().ok(),
        ..Application::default()
    };
    StreamAdapter::over(stream, geometry, application)
}

/// Sets the socket to send without delay, and to notice when the other machine dies silently.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    let timeout = SILENCE + Duration::from_secs(QUESTIONS.into());
    sockopt::set_tcp_user_timeout(stream, timeout.as_millis() as u32)?;
    Ok(())
}
