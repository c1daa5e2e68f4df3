//! Requests of applications.

use super::Shared;
use crate::broker::captured::{CaptureError, NotRecovered, Returning, Taker};
use crate::broker::fin::without_fin;
use crate::broker::memory::{Stage, now_ms};
use crate::broker::namespace::namespace_of;
use crate::broker::notice::Loss;
use crate::broker::record::{self, Said};
use crate::broker::seal::seal;
use crate::repair::{RepairError, even_timestamp, flow_of, give_back, take};
use crate::xdp::XdpError;
use baton_sockets::broker::messages::{
    ADAPTER, COUNTERS, Excess, GIVE_BACK, KNOWS, MOST_SMALL_BYTES, MOST_STATE_BYTES, Message,
    POLICY, RECLAIM, RECOVER, RESTORE_ALL, Recovery, TAKE,
};
use baton_tcp::{Config, DecodeError, Essentials, Moved, NotEssential};
use baton_wire::Flow;
use bytes::Bytes;
use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum unread data of a connection that can move: its state must fit into a message on the way back.
const MOST_UNREAD_BYTES: usize = MOST_STATE_BYTES - MOST_SMALL_BYTES;

/// The answer to a request that was carried out.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) socket: Option<OwnedFd>,
}

impl From<Vec<u8>> for Answer {
    fn from(body: Vec<u8>) -> Self {
        Self { body, socket: None }
    }
}

impl From<OwnedFd> for Answer {
    fn from(socket: OwnedFd) -> Self {
        Self {
            body: Vec::new(),
            socket: Some(socket),
        }
    }
}

/// Reason why the broker refuses a request.
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
    #[error(
        "this broker serves {expected} of network namespace {namespace}, and the adapter is at {of} of network namespace {from} \
         (`lsns -t net` lists them); give --broker another path"
    )]
    OtherInterface {
        of: String,
        expected: String,
        from: u64,
        namespace: u64,
    },
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
    #[error("another question of this user is not answered yet; ask again")]
    Asked,
    #[error(
        "the user has more under way with the broker than it may, and this one did not get its turn"
    )]
    NoMemory,
    #[error(transparent)]
    Excess(#[from] Excess),
    #[error("a socket of another user")]
    NotOwner,
    #[error("a socket of another network namespace")]
    OtherNamespace,
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
    /// Carries out a request of an application and returns the answer.
    pub(super) fn handle(&self, message: Message, taker: Taker) -> Result<Answer, Refusal> {
        let user = taker.user;
        match message.kind {
            GIVE_BACK | RECLAIM => {
                let waits = message.kind == RECLAIM;
                return Ok(self.give_back(&message.body, taker, waits)?.into());
            }
            RECOVER => return Ok(self.recover(&message.body, taker)?.into()),
            POLICY => {
                let adapter = self.captured.adapter().ok_or(CaptureError::NoAdapter)?;
                return Ok(adapter.policy.to_string().into_bytes().into());
            }
            COUNTERS => {
                self.check_operator(user)?;
                return Ok(serde_json::to_vec(&self.limits.counters())?.into());
            }
            RESTORE_ALL => {
                self.check_operator(user)?;
                return Ok(self.restore_all().to_string().into_bytes().into());
            }
            KNOWS => {
                let flow = serde_json::from_slice(&message.body)?;
                let is_of = self.captured.is_of(&flow, taker);
                return Ok(is_of.to_string().into_bytes().into());
            }
            ADAPTER => {
                let pid = self.captured.adapter().map_or(0, |adapter| adapter.pid);
                return Ok(pid.to_string().into_bytes().into());
            }
            TAKE => {}
            _ => return Err(Refusal::Unknown),
        }
        let socket = message.socket().ok_or(Refusal::NoSocket)?;
        let is_wide = self.check(socket, user)?;
        Ok(self.take(socket, is_wide, taker)?.into())
    }

    /// Checks that this user is an operator.
    fn check_operator(&self, user: u32) -> Result<(), Refusal> {
        let may = user == 0 || user == self.starter;
        may.then_some(()).ok_or(Refusal::NotOperator)
    }

    /// Checks that this user may be the adapter. At the next broker, an adapter that has dropped root has the broker's own user.
    pub(super) fn check_adapter(&self, user: u32) -> Result<(), Refusal> {
        let is_own = user == rustix::process::getuid().as_raw();
        is_own
            .then_some(())
            .ok_or(Refusal::NotOperator)
            .or_else(|_| self.check_operator(user))
    }

    /// Checks that this user may move this socket. Returns whether it is an IPv6 socket.
    fn check(&self, socket: BorrowedFd<'_>, user: u32) -> Result<bool, Refusal> {
        let family = sockopt::socket_domain(socket).map_err(|_| Refusal::NotTcp)?;
        let is_ip = matches!(family, AddressFamily::INET | AddressFamily::INET6);
        let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
        if !is_ip || !is_stream {
            return Err(Refusal::NotTcp);
        }
        let is_own = || Ok::<_, Refusal>(fstat(socket)?.st_uid == user);
        if user != 0 && !self.made.is_of(socket, user)? && !is_own()? {
            return Err(Refusal::NotOwner);
        }
        match namespace_of(socket) {
            Ok(namespace) if namespace == self.captured.namespace() => {
                Ok(family == AddressFamily::INET6)
            }
            _ => Err(Refusal::OtherNamespace),
        }
    }

    /// Redirects the packets first, so that none of the connection's packets reaches a kernel that no longer knows the connection.
    fn take(
        &self,
        socket: BorrowedFd<'_>,
        is_wide: bool,
        taker: Taker,
    ) -> Result<Vec<u8>, Refusal> {
        let flow = flow_of(socket)?;
        let (session, ticket) = self.captured.capture(&flow, taker, is_wide)?;
        let (interface, reader) = (&self.captured.interface, self.captured.reader());
        let essentials = take(socket, &flow, interface, reader, MOST_UNREAD_BYTES)
            .inspect_err(|_| self.captured.let_go(&flow))?;
        self.captured
            .note(&flow, &record::encode(&essentials, 0, now_ms()));
        let tcp = Config {
            nagle: !sockopt::tcp_nodelay(socket).unwrap_or_default(),
            ..session.tcp.clone()
        };
        let state = essentials.into_portable(&tcp);
        let state = seal(&session.memory, Stage::Taken, ticket, state);
        Ok(Moved::new(state).to_bytes())
    }

    /// A connection comes back in the state in which the application was given it: by this broker, if the adapter has done nothing with it, or by
    /// the adapter.
    fn give_back(&self, state: &[u8], taker: Taker, waits: bool) -> Result<OwnedFd, Refusal> {
        let moved = Moved::<Bytes>::from_bytes(state)?;
        let Returning { is_wide } = self.captured.begin_return(&moved.state, taker, waits)?;
        let flow = moved.state.flow;
        let essentials = moved.state.essentials();
        let essentials = essentials.inspect_err(|_| drop(self.lose(&flow, Loss::NotTaken)))?;
        let socket = self.put_back(&essentials, is_wide, taker)?;
        if waits {
            self.captured.count_recovered();
        }
        Ok(socket)
    }

    fn put_back(
        &self,
        essentials: &Essentials<Bytes>,
        is_wide: bool,
        taker: Taker,
    ) -> Result<OwnedFd, Refusal> {
        let flow = essentials.flow;
        let (mut essentials, fin) = without_fin(essentials.clone());
        essentials.timestamp = essentials.timestamp.map(even_timestamp);
        let let_go = || {
            self.captured.let_go(&flow);
            self.captured.ask_to_acknowledge(&essentials);
        };
        let socket = give_back(&essentials, is_wide, let_go)
            .inspect_err(|_| drop(self.lose(&flow, Loss::NotTaken)))?;
        self.made.add(socket.as_fd(), taker.user)?;
        if let Some(fin) = fin {
            // If this fails, the application waits for an end that the peer has sent long ago; nothing better can be done.
            let _ = self.captured.inject(&fin);
        }
        Ok(socket)
    }

    // --- after the end of an adapter that was killed ---

    /// Restores a connection that was on an adapter that was killed, in the state in which the adapter left it, provided that the
    /// application has sent and received as much.
    fn recover(&self, body: &[u8], taker: Taker) -> Result<OwnedFd, Refusal> {
        let Recovery {
            flow,
            sent,
            received,
        } = serde_json::from_slice(body)?;
        let (Returning { is_wide }, said, data) = self.captured.begin_recovery(&flow, taker)?;
        let left = match said {
            Said::Complete(words) => record::decode(flow, &words, data, now_ms()),
            Said::Untouched | Said::Incomplete => None,
        };
        let left = left.ok_or_else(|| self.lose(&flow, Loss::Incomplete))?;
        let unacknowledged: usize = left.send_buffer.iter().map(Bytes::len).sum();
        let written_to = left.send_una + unacknowledged as u32;
        if (written_to, left.receive_next) != (sent, received) {
            return Err(self.lose(&flow, Loss::Mismatch));
        }
        let socket = self.put_back(&left, is_wide, taker)?;
        self.captured.count_recovered();
        Ok(socket)
    }

    fn lose(&self, flow: &Flow, loss: Loss) -> Refusal {
        self.captured.lose(flow, loss);
        Refusal::Lost(loss)
    }
}
