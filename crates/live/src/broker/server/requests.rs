//! What applications ask for.

use super::Shared;
use crate::broker::captured::{CaptureError, NotRecovered, Taker};
use crate::broker::fin::without_fin;
use crate::broker::memory::now_ms;
use crate::broker::namespace::namespace_of;
use crate::broker::notice::Loss;
use crate::broker::record::{self, Said};
use crate::repair::{RepairError, flow_of, forget, give_back, take};
use crate::xdp::XdpError;
use baton_sockets::broker::messages::{
    ADAPTER, GIVE_BACK, KNOWS, Message, PLACES, POLICY, RECLAIM, RECOVER, RESTORE_ALL, Recovery,
    TAKE,
};
use baton_tcp::{Config, DecodeError, Essentials, Moved, NotEssential};
use baton_wire::Flow;
use bytes::Bytes;
use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io;
use std::os::fd::BorrowedFd;

/// Why the broker does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("a request without a socket")]
    NoSocket,
    #[error("an unknown request")]
    Unknown,
    #[error("no socket of TCP")]
    NotTcp,
    #[error("only root and the user of the broker may ask for this")]
    NotOperator,
    #[error("an adapter of interface {of}; expected one of {expected}")]
    OtherInterface { of: String, expected: String },
    #[error("process {0} is the adapter; end it, or replace it (--replace)")]
    Occupied(u32),
    #[error("the connection is lost with the adapter: {0}")]
    Lost(Loss),
    #[error(transparent)]
    NotRecovered(#[from] NotRecovered),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a socket of another user")]
    NotOwner,
    #[error("a socket of another network namespace")]
    OtherNamespace,
    #[error("a connection that was not handed over by this application")]
    NotTaken,
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Xdp(#[from] XdpError),
    #[error(transparent)]
    Repair(#[from] RepairError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    NotEssential(#[from] NotEssential),
    #[error("{0}")]
    System(#[from] rustix::io::Errno),
}

impl Shared {
    /// Does what an application of this user asks for; gives what is to be answered.
    pub(super) fn handle(&self, message: Message, taker: Taker) -> Result<Vec<u8>, Refusal> {
        let user = taker.user;
        match message.kind {
            POLICY => {
                let adapter = self.captured.adapter().ok_or(CaptureError::NoAdapter)?;
                return Ok(adapter.policy.to_string().into_bytes());
            }
            PLACES => return Ok(serde_json::to_vec(&self.applications.places(user))?),
            RESTORE_ALL => {
                check_operator(user)?;
                return Ok(self.restore_all().to_string().into_bytes());
            }
            KNOWS => {
                let flow = serde_json::from_slice(&message.body)?;
                return Ok(self.captured.is_of(&flow, taker).to_string().into_bytes());
            }
            ADAPTER => {
                let pid = self.captured.adapter().map_or(0, |adapter| adapter.pid);
                return Ok(pid.to_string().into_bytes());
            }
            _ => {}
        }
        let socket = message.socket().ok_or(Refusal::NoSocket)?;
        self.check(socket, user)?;
        match message.kind {
            TAKE => return self.take(socket, taker),
            GIVE_BACK => self.give_back(socket, &message.body, taker)?,
            RECLAIM => self.reclaim(socket, &message.body, taker)?,
            RECOVER => self.recover(socket, &message.body, taker)?,
            _ => return Err(Refusal::Unknown),
        }
        Ok(Vec::new())
    }

    /// Whether this user may ask for this socket.
    fn check(&self, socket: BorrowedFd<'_>, user: u32) -> Result<(), Refusal> {
        let family = sockopt::socket_domain(socket).map_err(|_| Refusal::NotTcp)?;
        let is_ip = matches!(family, AddressFamily::INET | AddressFamily::INET6);
        let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
        if !is_ip || !is_stream {
            return Err(Refusal::NotTcp);
        }
        if user != 0 && fstat(socket)?.st_uid != user {
            return Err(Refusal::NotOwner);
        }
        match namespace_of(socket) {
            Ok(namespace) if namespace == self.captured.namespace() => Ok(()),
            _ => Err(Refusal::OtherNamespace),
        }
    }

    /// Packets first: none of the connection's reaches a kernel that does not know it any more.
    fn take(&self, socket: BorrowedFd<'_>, taker: Taker) -> Result<Vec<u8>, Refusal> {
        let flow = flow_of(socket)?;
        let session = self.captured.capture(&flow, taker)?;
        let essentials = take_captured(socket).inspect_err(|_| self.captured.let_go(&flow))?;
        self.captured
            .note(&flow, &record::encode(&essentials, 0, now_ms()));
        let tcp = Config {
            nagle: !sockopt::tcp_nodelay(socket).unwrap_or_default(),
            ..session.tcp.clone()
        };
        Ok(Moved::new(essentials.into_portable(&tcp)).to_bytes())
    }

    fn give_back(&self, socket: BorrowedFd<'_>, state: &[u8], taker: Taker) -> Result<(), Refusal> {
        let moved = Moved::<Bytes>::from_bytes(state)?;
        let essentials = moved.state.essentials()?;
        if !self.captured.is_of(&essentials.flow, taker) {
            return Err(Refusal::NotTaken);
        }
        self.put_back(socket, essentials)
    }

    fn put_back(
        &self,
        socket: BorrowedFd<'_>,
        essentials: Essentials<Bytes>,
    ) -> Result<(), Refusal> {
        let flow = essentials.flow;
        let (essentials, fin) = without_fin(essentials);
        let outcome = give_back(socket, &essentials, || self.captured.let_go(&flow));
        // Whatever went wrong: a kernel without the connection answers the peer by a reset.
        self.captured.let_go(&flow);
        outcome?;
        if let Some(fin) = fin {
            // Without it the application waits for an end that the peer has told long ago; nothing better can be done.
            let _ = self.captured.inject(&fin);
        }
        Ok(())
    }

    // --- after the end of an adapter that was killed ---

    /// A connection was on its way to the adapter: it comes back as it was, if that has done nothing with it.
    fn reclaim(&self, socket: BorrowedFd<'_>, state: &[u8], taker: Taker) -> Result<(), Refusal> {
        let moved = Moved::<Bytes>::from_bytes(state)?;
        let essentials = moved.state.essentials()?;
        let flow = essentials.flow;
        match self.captured.remains(&flow, taker)?.0 {
            Said::Untouched => self.put_back(socket, essentials)?,
            Said::Incomplete | Said::Complete(_) => return Err(self.lose(&flow, Loss::Incomplete)),
        }
        self.captured.count_recovered();
        Ok(())
    }

    /// A connection was on the adapter: it comes back as that has left it, if the application has seen the same of it.
    fn recover(&self, socket: BorrowedFd<'_>, body: &[u8], taker: Taker) -> Result<(), Refusal> {
        let Recovery {
            flow,
            sent,
            received,
        } = serde_json::from_slice(body)?;
        let left = match self.captured.remains(&flow, taker)? {
            (Said::Complete(words), data) => record::decode(flow, &words, data, now_ms()),
            (Said::Untouched | Said::Incomplete, _) => None,
        };
        let left = left.ok_or_else(|| self.lose(&flow, Loss::Incomplete))?;
        let unacknowledged: usize = left.send_buffer.iter().map(Bytes::len).sum();
        let written_to = left.send_una + unacknowledged as u32;
        if (written_to, left.receive_next) != (sent, received) {
            return Err(self.lose(&flow, Loss::Mismatch));
        }
        if let Err(error) = give_back(socket, &left, || self.captured.let_go(&flow)) {
            self.lose(&flow, Loss::NotTaken);
            return Err(error.into());
        }
        self.captured.count_recovered();
        Ok(())
    }

    fn lose(&self, flow: &Flow, loss: Loss) -> Refusal {
        self.captured.lose(flow, loss);
        Refusal::Lost(loss)
    }
}

/// Whether this user may ask for what concerns all.
pub(super) fn check_operator(user: u32) -> Result<(), Refusal> {
    let may = user == 0 || user == rustix::process::getuid().as_raw();
    may.then_some(()).ok_or(Refusal::NotOperator)
}

/// A connection in the kernel whose packets go elsewhere.
fn take_captured(socket: BorrowedFd<'_>) -> Result<Essentials<Bytes>, Refusal> {
    let essentials = take(socket)?.essentials;
    forget(socket)?;
    Ok(essentials)
}
