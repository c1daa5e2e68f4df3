//! What tools show of applications and their sockets.

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
    /// Its number.
    pub id: SessionId,
    /// Sockets, those reserved by ACCEPTs among them.
    pub sockets: usize,
    /// Sockets that listen.
    pub listeners: usize,
    /// Sockets with a connection, or with one that is being opened or is ending.
    pub connections: usize,
    /// ACCEPTs that wait for connections.
    pub accepts_waiting: usize,
    /// SENDs that wait for room or are being fetched.
    pub sends_waiting: usize,
    /// RECVs that wait for data or are being filled.
    pub receives_waiting: usize,
    /// Transfers of data that are under way.
    pub transfers: usize,
    /// Descriptors of responses that wait.
    pub responses_waiting: usize,
    /// The application takes responses too slowly: its requests wait.
    pub is_held_up: bool,
    /// Descriptors in each transfer of responses.
    pub per_transfer: EntriesPerTransfer,
    /// Times that the application had no room for all of a transfer.
    pub times_held_up: u64,
    /// Data cache that it has started, bytes.
    pub cache_bytes: u32,
    /// Bytes that stand there.
    pub cached_bytes: u32,
    /// Totals.
    pub stats: SessionStats,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRow {
    /// The number that the application gave it.
    pub number: u32,
    /// What it is: a state of TCP (RFC 9293 3.3.2) in lower case, or "closed", "listen", "reserved" or "ending".
    pub state: String,
    /// Its own end, as far as it is known.
    pub local: Option<Endpoint>,
    /// The other end of its connection.
    pub remote: Option<Endpoint>,
    /// What waits there.
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
