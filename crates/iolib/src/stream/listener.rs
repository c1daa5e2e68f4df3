//! Where applications of other machines come to the adapter.

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

/// A machine that says nothing is asked after this, and then once a second.
const SILENCE: Duration = Duration::from_secs(5);
/// Questions that stay without an answer before the machine is taken for dead.
const QUESTIONS: u32 = 5;

/// The TCP port at which an adapter waits for applications. Nothing here blocks, whatever they do or do not. Whoever can reach it
/// can use the adapter: it belongs on a network that only friends are on.
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
    /// It is in use, or not of this machine.
    pub fn bind(address: impl ToSocketAddrs, limits: Limits) -> Result<Self, BindError> {
        let listener = TcpListener::bind(address).map_err(BindError::Address)?;
        listener.set_nonblocking(true).map_err(BindError::Address)?;
        Ok(Self {
            listener,
            limits,
            pending: Pending::default(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next application that has said what it wants, if it can be had beside the applications of these users, none for
    /// those of other machines. What is refused is counted.
    pub fn accept(&mut self, attached: &[Option<u32>]) -> Option<TcpAdapter> {
        let listener = &self.listener;
        let accept = || Ok(listener.accept()?.0);
        while let Some(Greeted { mut stream, hello }) = self.pending.next(accept, |_| None) {
            let granted = hello
                .and_then(|hello| self.limits.check_attached(None, attached).map(|()| hello))
                .and_then(|hello| Ok((self.limits.grant(&hello.wishes)?, hello)));
            let answer = granted.as_ref().map(|(geometry, _)| geometry);
            // A socket that has not been written to takes a short frame whole. If it is gone, it need not know.
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

    /// What it waits for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        self.pending.fds(self.listener.as_fd())
    }

    /// Refusals, by reason as it was told last.
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

/// Sends at once what is to be sent, and notices when the other machine dies without a word.
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
