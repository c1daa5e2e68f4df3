//! Descriptions of applications and their sockets for tools.

use super::SessionId;
use super::session::Session;
use super::socket::{Phase, Socket};
use super::stats::SessionStats;
use baton_bus::EntriesPerTransfer;
use baton_bus::descriptor::SocketInfo;
use baton_bus::link::Inline;
use baton_tcp::Stack;
use baton_wire::{Endpoint, Payload};

/// One application.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Number of the session.
    pub id: SessionId,
    /// Number of sockets, including those reserved by ACCEPTs.
    pub sockets: usize,
    /// Number of listening sockets.
    pub listeners: usize,
    /// Number of sockets whose connection is open, being opened or ending.
    pub connections: usize,
    /// Number of pending ACCEPTs.
    pub accepts_waiting: usize,
    /// Number of SENDs that wait for space or are being fetched.
    pub sends_waiting: usize,
    /// Number of RECVs that wait for data or are being filled.
    pub receives_waiting: usize,
    /// Number of data transfers in progress.
    pub transfers: usize,
    /// Number of response descriptors that wait.
    pub responses_waiting: usize,
    /// Whether the application takes responses too slowly, so that its requests wait.
    pub is_held_up: bool,
    /// Number of descriptors in each transfer of responses.
    pub per_transfer: EntriesPerTransfer,
    /// Number of times that the application had no space for all of a transfer.
    pub times_held_up: u64,
    /// Size of the application's data cache, bytes.
    pub cache_bytes: u32,
    /// Bytes in the data cache.
    pub cached_bytes: u32,
    /// Totals.
    pub stats: SessionStats,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRow {
    /// Number that the application gave the socket.
    pub number: u32,
    /// State of the socket: a TCP state (RFC 9293 3.3.2) in lower case, or "closed", "listen", "reserved", "ending", "importing",
    /// "exported" or "packets".
    pub state: String,
    /// Local address and port, if known.
    pub local: Option<Endpoint>,
    /// Address and port of the peer.
    pub remote: Option<Endpoint>,
    /// Pending data and requests of the socket.
    pub info: SocketInfo,
}

impl<P: Payload + Inline> Session<P> {
    pub(super) fn row(&self) -> SessionRow {
        let count = |wanted: fn(&Phase) -> bool| {
            let sockets = self.sockets.iter();
            sockets.filter(|(_, socket)| wanted(&socket.phase)).count()
        };
        let queue = self.responses.queue();
        let (cache_bytes, cached_bytes) = self.cache.bytes();
        SessionRow {
            id: SessionId(self.id),
            sockets: self.sockets.len(),
            listeners: count(|phase| matches!(phase, Phase::Listening(_))),
            connections: count(|phase| {
                matches!(
                    phase,
                    Phase::Connecting { .. } | Phase::Connected(_) | Phase::Ending(_)
                )
            }),
            accepts_waiting: self.accepts.len(),
            sends_waiting: self.sends.len(),
            receives_waiting: self.receives.len(),
            transfers: self.jobs.len(),
            responses_waiting: queue.len() + self.responses.outside(),
            is_held_up: queue.is_held_up(),
            per_transfer: queue.stats().per_transfer,
            times_held_up: queue.stats().held_up,
            cache_bytes,
            cached_bytes,
            stats: self.stats,
        }
    }

    pub(super) fn socket_rows<'a>(
        &'a self,
        stack: &'a Stack<P>,
    ) -> impl Iterator<Item = SocketRow> + 'a {
        self.sockets.iter().map(|(slot, socket)| {
            let flow = socket.conn().map(|conn| stack.flow(conn));
            SocketRow {
                number: socket.number,
                state: state(stack, socket),
                local: flow.map(|flow| flow.local).or(socket.local),
                remote: flow.map(|flow| flow.remote),
                info: self.info(stack, slot as u32),
            }
        })
    }
}

fn state<P: Payload>(stack: &Stack<P>, socket: &Socket) -> String {
    match socket.phase {
        Phase::Idle => "closed".to_owned(),
        Phase::Listening(_) => "listen".to_owned(),
        Phase::Reserved => "reserved".to_owned(),
        Phase::Ending(_) => "ending".to_owned(),
        Phase::Importing => "importing".to_owned(),
        Phase::Exported => "exported".to_owned(),
        Phase::Packets => "packets".to_owned(),
        Phase::Connecting { conn, .. } | Phase::Connected(conn) => {
            format!("{:?}", stack.state(conn)).to_lowercase()
        }
    }
}
