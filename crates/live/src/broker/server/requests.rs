//! Requests of applications.

use super::Shared;
use super::made::cookie_of;
use crate::broker::captured::{CaptureError, NotRecovered, Port, Returning, Taker};
use crate::broker::fin::without_fin;
use crate::broker::limits::Resources;
use crate::broker::memory::{Stage, now_ms, now_us};
use crate::broker::namespace::namespace_of;
use crate::broker::notice::Loss;
use crate::broker::record::{self, Said};
use crate::broker::seal::seal;
use crate::repair::{RepairError, even_timestamp, flow_of, give_back, take};
use crate::xdp::XdpError;
use baton_host::MoveReason;
use baton_sockets::broker::messages::{
    ADAPTER, COUNTERS, Excess, GIVE_BACK, HISTORY, IS_LOOPBACK, KNOWS, MOST_SMALL_BYTES,
    MOST_STATE_BYTES, Message, POLICY, RECLAIM, RECOVER, RESTORE_ALL, Recovery, TAKE,
    parts_of_returned, returned,
};
use baton_tcp::{Config, DecodeError, Essentials, Keepalive, Moved, NotEssential};
use baton_wire::Flow;
use bytes::Bytes;
use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::PoisonError;
use std::time::Duration;

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
    #[error("the request carries no socket")]
    NoSocket,
    #[error("the request is of an unknown kind")]
    Unknown,
    #[error("the socket is not a TCP socket")]
    NotTcp,
    #[error("only root and the broker's user may request this")]
    NotOperator,
    #[error(
        "this broker serves {expected} in network namespace {namespace}, but the adapter uses {of} in network namespace {from} \
         (`lsns -t net` lists the namespaces); give --broker another path"
    )]
    OtherInterface {
        of: String,
        expected: String,
        from: u64,
        namespace: u64,
    },
    #[error("process {0} is already the adapter; end it, or replace it (--replace)")]
    Occupied(u32),
    #[error("the connection was lost with its adapter: {0}")]
    Lost(Loss),
    #[error(transparent)]
    NotRecovered(#[from] NotRecovered),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("another question of this user is still unanswered; try again later")]
    Asked,
    #[error(
        "the user has too many requests in progress at the broker, and this one was not served in time"
    )]
    NoMemory,
    #[error(transparent)]
    Excess(#[from] Excess),
    #[error("the socket belongs to another user")]
    NotOwner,
    #[error("the socket belongs to another network namespace")]
    OtherNamespace,
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Xdp(#[from] XdpError),
    #[error(transparent)]
    Repair(#[from] RepairError),
    #[error("the request is cut short; expected a length, unread data and a state")]
    Malformed,
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    NotEssential(#[from] NotEssential),
    #[error("{0}")]
    System(#[from] rustix::io::Errno),
}

impl Refusal {
    /// Returns whether a connection could not be restored because its peer has reset it.
    pub(super) fn is_reset(&self) -> bool {
        let is_reset = |source: &io::Error| source.kind() == io::ErrorKind::ConnectionReset;
        matches!(self, Self::Repair(RepairError::Step { source, .. }) if is_reset(source))
    }
}

/// Returns the parameters of a connection: `tcp`, changed by the options that the program has set on the socket.
fn with_options(socket: BorrowedFd<'_>, tcp: &Config) -> Config {
    let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let keepalive = || {
        Some(Keepalive {
            idle_ms: ms(sockopt::tcp_keepidle(socket).ok()?),
            interval_ms: ms(sockopt::tcp_keepintvl(socket).ok()?),
            probes: sockopt::tcp_keepcnt(socket).ok()?,
        })
    };
    let is_kept = sockopt::socket_keepalive(socket).unwrap_or_default();
    let timeout = sockopt::tcp_user_timeout(socket).unwrap_or_default();
    Config {
        nagle: !sockopt::tcp_nodelay(socket).unwrap_or_default(),
        keepalive: is_kept.then(keepalive).flatten().or(tcp.keepalive),
        user_timeout_ms: (timeout > 0).then_some(timeout).or(tcp.user_timeout_ms),
        ..tcp.clone()
    }
}

impl Shared {
    /// Carries out a request of an application and returns the answer.
    pub(super) fn handle(&self, message: Message, taker: Taker) -> Result<Answer, Refusal> {
        let user = taker.user;
        let why = MoveReason::of_number(message.why);
        match message.kind {
            GIVE_BACK => return Ok(self.give_back(&message.body, taker, Some(why))?.into()),
            RECLAIM => return Ok(self.give_back(&message.body, taker, None)?.into()),
            HISTORY => {
                let query = serde_json::from_slice(&message.body)?;
                let user = self.check_operator(user).err().map(|_| user);
                let answer = self.captured.history().tell(&query, user);
                return Ok(serde_json::to_vec(&answer)?.into());
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
            IS_LOOPBACK => {
                let is_loopback = self.captured.is_loopback();
                return Ok(is_loopback.to_string().into_bytes().into());
            }
            TAKE => {}
            _ => return Err(Refusal::Unknown),
        }
        let socket = message.files.into_iter().next().ok_or(Refusal::NoSocket)?;
        let is_wide = self.check(socket.as_fd(), user)?;
        Ok(self.take(socket, is_wide, taker, why)?.into())
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

    /// Takes a connection out of the kernel. Redirects its packets first, so that none of them reaches a kernel that no longer knows it.
    fn take(
        &self,
        owned: OwnedFd,
        is_wide: bool,
        taker: Taker,
        why: MoveReason,
    ) -> Result<Vec<u8>, Refusal> {
        let began_us = now_us();
        let socket = owned.as_fd();
        let flow = flow_of(socket)?;
        let cookie = cookie_of(socket)?;
        let stays = |why: &dyn Display| {
            let mut history = self.captured.history();
            history.stayed(&flow, taker, cookie, why.to_string());
        };
        let (local, remote) = (flow.local.addr, flow.remote.addr);
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if !ways.is_way_to(local, remote)? {
            let error = CaptureError::Route(remote);
            stays(&error);
            return Err(error.into());
        }
        drop(ways);
        let port = match self.kept_ports.contains(&flow.local.port) {
            true => Some(self.limits.take(taker.user, Resources::Ports, 1)),
            false => None,
        };
        let port = port.transpose().map_err(|limit| {
            self.limits.count(limit);
            stays(&CaptureError::Ports);
            CaptureError::Ports
        })?;
        let captured = self.captured.capture(&flow, taker, is_wide);
        let (session, ticket) = captured.inspect_err(|error| {
            // If the connection has been captured before, its history says so already.
            if !matches!(error, CaptureError::Captured) {
                stays(error);
            }
        })?;
        let (interface, reader) = (&self.captured.interface, self.captured.reader());
        let (mut essentials, keeps_port) =
            take(socket, &flow, interface, reader, MOST_UNREAD_BYTES).inspect_err(|error| {
                self.captured.let_go(&flow);
                stays(error);
            })?;
        self.captured
            .history()
            .left(&flow, taker, cookie, why, began_us);
        self.captured
            .note(&flow, &record::encode(&essentials, 0, now_ms()));
        // IPv6 headers are longer than the IPv4 headers for which the session's MSS leaves space.
        let longer = if flow.local.addr.is_ipv6() { 20 } else { 0 };
        let tcp = Config {
            mss: session.tcp.mss.saturating_sub(longer),
            ..with_options(socket, &session.tcp)
        };
        let unread = std::mem::take(&mut essentials.receive_buffer).concat();
        if let Some(share) = port.filter(|_| keeps_port) {
            self.captured.keep_port(&flow, Port(owned, share));
        }
        let state = essentials.into_portable(&tcp);
        let state = seal(&session.memory, Stage::Taken, ticket, state);
        Ok(returned(&unread, &Moved::new(state).to_bytes()))
    }

    /// Puts a connection back in the state that the application was given by the adapter or, if the adapter has done nothing with the
    /// connection, by this broker. Without a reason `why`, the connection comes back because the adapter has disappeared.
    fn give_back(
        &self,
        body: &[u8],
        taker: Taker,
        why: Option<MoveReason>,
    ) -> Result<OwnedFd, Refusal> {
        let (unread, state) = parts_of_returned(body).ok_or(Refusal::Malformed)?;
        let waits = why.is_none();
        let moved = Moved::<Bytes>::from_bytes(state)?;
        let Returning { is_wide } = self.captured.begin_return(&moved.state, taker, waits)?;
        let flow = moved.state.flow;
        let essentials = moved.state.essentials();
        let mut essentials = essentials.inspect_err(|_| drop(self.lose(&flow, Loss::NotTaken)))?;
        if !unread.is_empty() {
            let unread = Bytes::copy_from_slice(unread);
            essentials.receive_buffer.insert(0, unread);
        }
        let why = why.unwrap_or(MoveReason::AdapterKilled);
        let socket = self.put_back(&essentials, is_wide, taker, why)?;
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
        why: MoveReason,
    ) -> Result<OwnedFd, Refusal> {
        let flow = essentials.flow;
        let returning = self.captured.returning(&flow);
        let (mut essentials, fin) = without_fin(essentials.clone());
        essentials.timestamp = essentials.timestamp.map(even_timestamp);
        let let_go = || {
            self.captured.let_go(&flow);
            self.captured.ask_to_acknowledge(&essentials);
        };
        let socket = give_back(&essentials, is_wide, let_go)
            .inspect_err(|_| drop(self.lose(&flow, Loss::NotTaken)))?;
        if let Some((began_us, of_all)) = returning {
            let cookie = cookie_of(socket.as_fd()).unwrap_or_default();
            let why = match why {
                MoveReason::Relief => of_all.unwrap_or(why),
                _ => why,
            };
            let mut history = self.captured.history();
            history.returned(&flow, began_us, cookie, why);
        }
        self.made.add(socket.as_fd(), taker.user)?;
        if let Some(fin) = fin {
            // If this fails, the application never sees the end of the stream, although the peer has sent it; nothing better can be done.
            let _ = self.captured.inject(&fin);
        }
        Ok(socket)
    }

    // --- after the end of an adapter that was killed ---

    /// Restores a connection that was on an adapter that was killed, in the state in which the adapter left it, provided that the application
    /// agrees on how much was sent and received.
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
        let why = MoveReason::AdapterKilled;
        let socket = self.put_back(&left, is_wide, taker, why)?;
        self.captured.count_recovered();
        Ok(socket)
    }

    fn lose(&self, flow: &Flow, loss: Loss) -> Refusal {
        self.captured.lose(flow, loss);
        Refusal::Lost(loss)
    }
}
